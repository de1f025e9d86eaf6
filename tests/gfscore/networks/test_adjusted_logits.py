"""Files of logits with offsets: what is read from them again, and what stays as it was."""

import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gfscore.core.errors import InputError
from gfscore.networks.adjusted_files.logits import write_adjusted_logits
from gfscore.tables.logit_files import read_logits_file

CLASSES = ("cat", "dog", "bird")
OFFSETS = np.array([0.5, -1.0, 0.5])
LOGITS = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
LABELS = np.arange(6) % 3
NAMES = [f"image-{number}" for number in range(6)]


def frame():
    return pd.DataFrame({"sample_id": NAMES, **dict(zip(CLASSES, LOGITS.T, strict=True)), "label": LABELS})


def write_npz(path):
    np.savez(path, logits=LOGITS, labels=LABELS, sample_id=np.array(NAMES))


def write_lists(path):
    lists = pa.array(list(LOGITS), type=pa.list_(pa.float32()))
    pq.write_table(pa.table({"sample_id": NAMES, "logits": lists, "label": LABELS}), path)


WRITERS = {
    "lists.parquet": write_lists,
    "columns.parquet": lambda path: frame().to_parquet(path, index=False),
    "arrays.npz": write_npz,
    "logits.npy": lambda path: np.save(path, LOGITS),
    "table.csv": lambda path: frame().to_csv(path, index=False),
    "table.csv.gz": lambda path: frame().to_csv(path, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_logits_move_and_labels_and_names_stay(tmp_path, name):
    path, target = tmp_path / name, tmp_path / "new" / name
    WRITERS[name](path)
    write_adjusted_logits(path, OFFSETS, target, classes=CLASSES)
    _, labels, sample_id = read_logits_file(path, classes=CLASSES)
    logits, adjusted_labels, adjusted_id = read_logits_file(target, classes=CLASSES)
    np.testing.assert_allclose(logits, LOGITS + OFFSETS, atol=1e-6)
    np.testing.assert_array_equal(adjusted_labels, labels)
    np.testing.assert_array_equal(adjusted_id, sample_id)


@pytest.mark.parametrize("name", ["arrays.npz", "lists.parquet", "columns.parquet"])
@pytest.mark.parametrize("number_type", [np.float16, np.int64])
def test_offsets_are_not_lost_where_logits_are_whole_numbers_or_in_half_precision(tmp_path, name, number_type):
    path, target = tmp_path / name, tmp_path / "new" / name
    # Neighbouring numbers of float16 are 0.25 apart here.
    logits = (300 + np.arange(18).reshape(6, 3)).astype(number_type)
    offsets = np.array([0.1, -0.05, -0.05])
    if name == "arrays.npz":
        np.savez(path, logits=logits, labels=LABELS)
    elif name == "lists.parquet":
        lists = pa.array(list(logits), type=pa.list_(pa.from_numpy_dtype(logits.dtype)))
        pq.write_table(pa.table({"logits": lists, "label": LABELS}), path)
    else:
        pq.write_table(pa.table({**dict(zip(CLASSES, logits.T, strict=True)), "label": LABELS}), path)
    write_adjusted_logits(path, offsets, target, classes=CLASSES)
    adjusted, _, _ = read_logits_file(target, classes=CLASSES)
    np.testing.assert_allclose(adjusted, logits + offsets, atol=1e-4)


def test_arrays_beside_the_logits_may_have_any_name(tmp_path):
    path, target = tmp_path / "m.npz", tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in {"logits": LOGITS, "labels": LABELS, "file": np.array(NAMES)}.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, values)
    write_adjusted_logits(path, OFFSETS, target, classes=CLASSES)
    with np.load(target) as arrays:
        assert arrays["file"].tolist() == NAMES
        np.testing.assert_allclose(arrays["logits"], LOGITS + OFFSETS, atol=1e-6)


def test_of_several_models_one_moves(tmp_path):
    path, target = tmp_path / "m.npz", tmp_path / "a.npz"
    np.savez(path, first=LOGITS, second=LOGITS, labels=LABELS)
    write_adjusted_logits(path, OFFSETS, target, classes=CLASSES, member="second")
    with np.load(target) as arrays:
        np.testing.assert_array_equal(arrays["first"], LOGITS)
        np.testing.assert_allclose(arrays["second"], LOGITS + OFFSETS, atol=1e-6)


def test_probabilities_become_those_of_the_adjusted_logits(tmp_path):
    path, target = tmp_path / "m.npy", tmp_path / "a.npy"
    powers = np.exp(LOGITS.astype(np.float64))
    np.save(path, powers / powers.sum(axis=1, keepdims=True))
    write_adjusted_logits(path, OFFSETS, target, classes=CLASSES, probabilities=True)
    powers = powers * np.exp(OFFSETS)
    np.testing.assert_allclose(np.load(target), powers / powers.sum(axis=1, keepdims=True))


def test_one_column_moves_by_the_difference_of_both_offsets(tmp_path):
    path, target = tmp_path / "m.npy", tmp_path / "a.npy"
    for values, options, expected in (
        (LOGITS[:, 0], {}, LOGITS[:, 0] - 1.5),
        (1 / (1 + np.exp(-LOGITS[:, 0])), {"probabilities": True}, 1 / (1 + np.exp(1.5 - LOGITS[:, 0]))),
    ):
        np.save(path, values)
        write_adjusted_logits(path, OFFSETS[:2], target, classes=CLASSES[:2], overwrite=True, **options)
        np.testing.assert_allclose(np.load(target), expected, atol=1e-6)


def test_what_does_not_fit_is_refused_and_nothing_written(tmp_path):
    path, target = tmp_path / "m.npy", tmp_path / "a.npy"
    np.save(path, LOGITS)
    with pytest.raises(InputError, match=r"m\.npy: of 3 classes, but the offsets are of 2"):
        write_adjusted_logits(path, OFFSETS[:2], target, classes=CLASSES)
    target.write_text("mine")
    with pytest.raises(InputError, match=r"a\.npy: stands already"):
        write_adjusted_logits(path, OFFSETS, target, classes=CLASSES)
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (LOGITS[:, :1], {}, "1 class; class-wise robustness needs at least 2 classes"),
        (np.zeros((6, 5), dtype=np.float32), {}, "5 logits per row, but 3 classes"),
        (np.where(LOGITS > 1, np.nan, LOGITS), {}, "rows are not finite"),
        (
            np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True),
            {},
            "these are probabilities, not logits; give logits, or .* --probabilities",
        ),
        (LOGITS, {"probabilities": True}, "it is no distribution over the classes"),
    ],
)
def test_values_that_an_audit_refuses_are_not_adjusted(tmp_path, values, options, message):
    path, target = tmp_path / "m.npy", tmp_path / "a.npy"
    np.save(path, values)
    with pytest.raises(InputError, match=rf"m\.npy: .*{message}"):
        write_adjusted_logits(path, OFFSETS, target, classes=CLASSES, **options)
    assert not target.exists()
