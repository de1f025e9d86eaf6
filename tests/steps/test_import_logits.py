"""Logits of users beside the dataset that they belong to: as many rows as it has samples, of all or of a subset."""

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images.datasets import describe_images, open_described
from gfscore.tables.parquet_tables import read_logits
from import_logits import import_logits

MODEL = {"dataset": "made", "threat": "none", "model": "A"}
LABELS = np.arange(200) % 2
LOGITS = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32)


@pytest.fixture
def made(tmp_path):
    """Function (subset, arrays) -> path of the manifest, beside a file of logits."""
    np.save(tmp_path / "labels.npy", LABELS)

    def make(subset, **arrays):
        settings = {"source": "labels", "subset": subset}
        described = describe_images(settings, tmp_path / "labels.npy", dataset="made", classes=["cat", "dog"])
        write_json(tmp_path / "made.json", described)
        np.savez(tmp_path / "given.npz", **arrays)
        return tmp_path / "made.json"

    return make


def imported(manifest):
    table = manifest.with_name("logits.parquet")
    import_logits(manifest.with_name("given.npz"), manifest, table, model=MODEL, allow_probabilities=False)
    return read_logits(table)


@pytest.mark.parametrize("others", [{}, {"labels": LABELS}])
def test_logits_of_all_samples_beside_a_subset_are_refused_with_what_to_do(made, others):
    manifest = made({"samples": 100, "seed": 0}, logits=LOGITS, **others)
    with pytest.raises(InputError, match=r"given\.npz: 200 rows, but made has 100 samples; .*or set subset: null$"):
        imported(manifest)


def test_logits_of_the_samples_of_a_subset_are_taken(made):
    manifest = made({"samples": 100, "seed": 0}, logits=LOGITS[:100])
    sample_id, labels, _ = imported(manifest)
    images, _ = open_described(manifest)
    assert list(sample_id) == images.sample_id.tolist() and list(labels) == images.labels.tolist()


@pytest.mark.parametrize("arrays", [{"logits": LOGITS[:199]}, {"logits": LOGITS, "labels": LABELS[:199]}])
def test_a_missing_row_is_refused_with_what_to_do(made, arrays):
    with pytest.raises(InputError, match=r"199 rows, but made has 200 samples; give one row per sample, in the order"):
        imported(made(None, **arrays))


def test_logits_without_rows_are_refused_for_their_shape(made):
    with pytest.raises(InputError, match=r"logits have shape \(\)"):
        imported(made(None, logits=np.float32(1)))
