import shutil

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.calibration.evidence import read_evidence
from gfscore.audit.calibration.temperature_search import SearchSettings
from gfscore.audit.calibration.temperatures import Resampling, calibrate
from gfscore.core.errors import InputError
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.splits import choosing_samples
from gfscore.tables.parquet_tables import write_logits, write_table
from gfscore.workflow.catalogue import CATALOGUE
from made import logits_and_labels

N, K, MODELS = 200, 4, 4
IDS = np.array([f"s{row:03d}" for row in range(N)])
SPLIT = {"share": 0.5, "seed": 0}
SEARCH = SearchSettings(low=0.1, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)


def model_of(index):
    return {"dataset": "toy", "threat": "none", "model": f"m{index}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Logits and sweeps of the models; every model is confident to a different degree."""
    path = tmp_path_factory.mktemp("models")
    for index in range(MODELS):
        identity = {**model_of(index), "dataset_digest": "d", "checkpoint_sha256": f"c{index}"}
        logits, labels = made(index)
        write_logits(path / f"logits{index}.parquet", sample_id=IDS, label=labels, logits=logits, identity=identity)
        curves = sweep_class_scores(logits, labels, K, activation="softmax", low=SEARCH.low, high=SEARCH.high)
        points = len(curves.temperatures)
        rows = {
            "temperature": np.repeat(curves.temperatures, K),
            "class_index": np.tile(np.arange(K, dtype=np.int32), points),
            "n": np.tile(curves.n, points),
            "value": curves.values.ravel(),
            "accuracy": 1.0,
        }
        sweep = path / f"sweep{index}.parquet"
        write_table(sweep, CATALOGUE["sweep"], pd.DataFrame(rows), identity=identity | {"activation": "softmax"})
    return path


def made(index):
    # The same labels in every model, as in a data set.
    logits, _ = logits_and_labels(index, n=N, k=K, scale=1.0, signal=0.0)
    labels = np.arange(N, dtype=np.int32) % K
    logits[np.arange(N), labels] += 2.5 - 0.3 * index
    return (logits * (1 + index)).astype(np.float32), labels


def chooses():
    return choosing_samples(IDS, made(0)[1], SPLIT)


def evidence(folder, index, distances, *, split, measured=slice(None)):
    """ModelEvidence of one model whose samples lie at `distances` (N,), of which those `measured` are in the table."""
    labels = made(index)[1]
    frame = pd.DataFrame(
        {
            "sample_id": IDS, "label": labels, "prediction": labels, "value": distances, "censored": False,
            "clean_prediction": labels, "attack": "fmn", "steps": 1,
        }
    )[measured]  # fmt: skip
    path = folder / "distances.parquet"
    identity = {**model_of(index), "dataset_digest": "d", "checkpoint_sha256": f"c{index}", "measure": "minimal-l2"}
    write_table(path, CATALOGUE["samples of kind minimal"], frame, identity=identity)
    return read_evidence(
        folder / f"sweep{index}.parquet", folder / f"logits{index}.parquet", path,
        model=model_of(index), robust_accuracy=float("nan"), seed=0, split=split,
    )  # fmt: skip


@pytest.mark.parametrize("split", [None, SPLIT])
def test_logits_are_read_when_asked_for_in_the_two_parts_of_the_samples(folder, tmp_path, split):
    path = tmp_path / "logits.parquet"
    shutil.copy(folder / "logits1.parquet", path)
    found = read_evidence(
        folder / "sweep1.parquet", path, None, model=model_of(1), robust_accuracy=float("nan"), seed=0, split=split
    )
    logits, labels = made(1)
    parts = found.read_parts()
    for _, of_part in parts:
        np.testing.assert_array_equal(np.bincount(of_part), np.full(K, N / K / 2))
    rows = [(*row, label) for part in parts for row, label in zip(*part, strict=True)]
    assert sorted(rows) == sorted((*row, label) for row, label in zip(logits, labels, strict=True))
    if split:
        np.testing.assert_array_equal(parts[0][0], logits[chooses()])
    path.unlink()
    with pytest.raises(InputError, match=r"logits\.parquet"):
        found.read_parts()


def calibrated(folder, distances, *, split=SPLIT):
    models = [evidence(folder, index, own, split=split) for index, own in enumerate(distances)]
    resampling = Resampling(bootstrap=19, confidence=0.9, permutations=19, seed=0)
    given = {"settings": SEARCH, "stability_window": 0.05, "resampling": resampling, "split": split}
    return calibrate(models, ["attack_distance"], **given)[0]["attack_distance"]


def test_distances_of_samples_that_report_the_temperature_do_not_choose_it(folder):
    own = np.array([0.2, 0.5, 0.9, 0.4])
    before = np.tile(own[:, None], N)
    # Among the samples that report, the models change places, and go far enough to reverse the means over all.
    after = np.where(chooses(), before, 3 * before[::-1])
    first, second = calibrated(folder, before), calibrated(folder, after)
    for key in ("t_star", "stretches", "best", "at_one", "permutation", "bootstrap"):
        assert first[key] == second[key], key
    # They do report it.
    assert first["agreement"]["attack distance"] != second["agreement"]["attack distance"]
    assert first["baseline"] != second["baseline"]
    # Without a split all samples choose.
    assert calibrated(folder, before, split=None)["t_star"] != calibrated(folder, after, split=None)["t_star"]


def test_each_part_of_the_samples_has_its_own_mean_distance(folder):
    distances = np.where(chooses(), 1.0, 3.0)
    found = evidence(folder, 0, distances, split=SPLIT)
    assert (found.attack_distance, found.report_distance) == (1, 3)
    whole = evidence(folder, 0, distances, split=None)
    assert whole.attack_distance == whole.report_distance == pytest.approx(distances.mean())


def test_an_attacked_part_without_samples_that_choose_says_what_to_do(folder):
    distances = np.ones(N)
    with pytest.raises(InputError, match=r"none of its 100 samples .* `subset`, or set `split: null`"):
        evidence(folder, 0, distances, split=SPLIT, measured=~chooses())
    # One that nobody reports has no agreement to report, but chooses.
    found = evidence(folder, 0, distances, split=SPLIT, measured=chooses())
    assert found.attack_distance == 1
    assert np.isnan(found.report_distance)
