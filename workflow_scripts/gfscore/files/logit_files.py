"""Logits and labels that somebody already has, in the file formats people keep them in."""

from pathlib import Path

import numpy as np

from gfscore.errors import InputError
from gfscore.files.numpy_files import whole_array
from gfscore.files.parquet_files import opened_parquet

LABELS = ("labels", "label", "y")
SAMPLE_ID = "sample_id"
FORMATS = (".parquet", ".npz", ".npy", ".csv", ".csv.gz")


def read_logits_file(path, *, classes):
    """Logits of a file: `(logits (N, K), labels (N,) or None, sample_id (N,) str or None)`.

    `.npz` holds an array `logits` and optionally `labels` (or `label`, `y`) and `sample_id`; `.npy` the logits alone;
    `.csv` and `.parquet` one column per class, in label order or named like `classes`, or (Parquet) one list column
    `logits`, and optionally `label` and `sample_id`. Nothing is unpickled. Raises InputError naming the file.
    """
    columns = _columns(path, bare="logits")
    labels = next((columns.pop(name) for name in LABELS if name in columns), None)
    sample_id = columns.pop(SAMPLE_ID, None)
    if "logits" in columns:
        logits = columns["logits"]
    else:
        logits = np.column_stack([columns[name] for name in _class_columns(columns, classes, path)])
    return logits, labels, None if sample_id is None else np.asarray(sample_id).astype(str)


def read_labels_file(path):
    """Labels of a file: `(labels (N,), sample_id (N,) str or None)`, in the formats of read_logits_file."""
    columns = _columns(path, bare="labels")
    labels = next((columns[name] for name in LABELS if name in columns), None)
    if labels is None:
        raise InputError(f"{path}: no labels; name the array or column one of {', '.join(LABELS)}")
    sample_id = columns.get(SAMPLE_ID)
    return labels, None if sample_id is None else np.asarray(sample_id).astype(str)


def _class_columns(columns, classes, path):
    if set(classes) <= set(columns):
        return classes
    if len(columns) != len(classes):
        raise InputError(
            f"{path}: {len(columns)} columns of logits ({', '.join(list(columns)[:5])}, ...) for {len(classes)} "
            "classes; give one column per class, an optional `label` and `sample_id`, and nothing else"
        )
    return list(columns)


def _columns(path, *, bare):
    """Arrays of a file by name; a bare .npy array gets the name `bare`."""
    path = Path(path)
    suffix = next((suffix for suffix in FORMATS if path.name.endswith(suffix)), None)
    if suffix is None:
        raise InputError(f"{path}: format {path.suffix or 'without suffix'} is unknown; use {', '.join(FORMATS)}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check `path` in config.yaml")
    try:
        return _READERS[suffix](path, bare)
    except InputError:
        raise
    except Exception as error:
        # Damaged files fail inside the readers in many ways; each means the same to the user.
        raise InputError(f"{path}: not readable as {suffix} ({error}); write the file again") from error


def _read_npz(path, _bare):
    with np.load(path, allow_pickle=False) as file:
        return {name: whole_array(file, name) for name in file.files}


def _read_npy(path, bare):
    # Mapped first: that compares the size that the header promises with that of the file.
    return {bare: np.array(np.load(path, mmap_mode="r", allow_pickle=False))}


def _read_csv(path, _bare):
    import pandas as pd

    frame = pd.read_csv(path, dtype={SAMPLE_ID: str})
    return {name: frame[name].to_numpy() for name in frame.columns}


def _read_parquet(path, _bare):
    import pyarrow as pa

    with opened_parquet(path) as file:
        table = file.read()
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
            columns[name] = np.stack([np.asarray(row) for row in column.to_pylist()])
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return columns


_READERS = {
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
}
