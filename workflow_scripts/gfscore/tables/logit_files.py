"""Readers of users' files of logits and labels: .npz, .npy, .csv, .parquet."""

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few, unknown
from gfscore.core.labels import are_numbers, class_indices
from gfscore.tables.binary_files import (
    ROW_NAMES,
    WITHOUT_ROW_NAMES,
    is_list,
    opened,
    read_parquet,
    unreadable,
    whole_array,
)
from gfscore.tables.csv_files import MISSING, read_csv

LABELS = ("labels", "label", "y")
SAMPLE_ID = "sample_id"
FORMATS = (".parquet", ".npz", ".npy", ".csv", ".csv.gz")


def read_logits_file(
    path: Path | str, *, classes: Sequence[str], member: str | None = None
) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[np.str_] | None]:
    """Logits of a file: `(logits (N, K), labels (N,) or None, sample_id (N,) str or None)`.

    `.npz` holds an array `logits` and optionally `labels` (or `label`, `y`) and `sample_id`; `.npy` the logits alone;
    `.csv` and `.parquet` one column per class, named as in `classes` or in label order under other names, or (Parquet)
    one list column `logits`, and optionally `label` and `sample_id`. In a file of several models `member` is the array
    or list column of one, in place of `logits`. For two classes one column is enough, of the second: logits are then
    (N,) or (N, 1). Labels are class indices or names in `classes`. Nothing is unpickled.
    Raises InputError, naming the file.
    """
    columns = _columns(path, bare="logits", classes=classes)
    if member is not None:
        if member not in columns:
            raise InputError(f"{path}: {unknown('array or column', member, list(columns))}; correct `member`")
        shared = {name: columns[name] for name in (*LABELS, SAMPLE_ID) if name in columns}
        columns = shared | {"logits": columns[member]}
    name, labels = _labels(columns, path, exclude=classes if set(classes) <= set(columns) else ())
    labels = None if labels is None else class_indices(labels, classes, f"{path}: {name}")
    sample_id = columns.pop(SAMPLE_ID, None)
    if "logits" in columns:
        logits = columns["logits"]
    elif Path(path).suffix == ".npz" and not set(classes) <= set(columns):
        raise InputError(
            f"{path}: no array `logits`; it holds {few(list(columns)) or 'no other'}; write it with "
            "numpy.savez(path, logits=..., labels=...)"
        )
    else:
        logits = _side_by_side({name: columns[name] for name in _class_columns(columns, classes, path)}, path)
    return logits, labels, _sample_ids(sample_id, rows_of=logits, path=path)


def read_labels_file(
    path: Path | str, *, classes: Sequence[str] | None = None
) -> tuple[NDArray[Any], NDArray[np.str_] | None, str]:
    """Labels of a file: `(labels (N,), sample_id (N,) str or None, name)`, in the formats of read_logits_file.

    Labels are class indices or names in `classes` (None where none are listed). `name` is the name of the array or
    column of labels in the file. Raises InputError, naming the file.
    """
    columns = _columns(path, bare="labels", classes=classes or ())
    name, labels = _labels(columns, path)
    if labels is None:
        raise InputError(f"{path}: no labels; name the array or column one of {', '.join(LABELS)}")
    if labels.ndim != 1:
        raise InputError(f"{path}: {name}: shape {labels.shape}; expected (samples,)")
    labels = class_indices(labels, classes, f"{path}: {name}")
    return labels, _sample_ids(columns.get(SAMPLE_ID), rows_of=labels, path=path), name


def _labels(columns, path, exclude=()):
    # Removes the labels from the columns: `(name, labels)`, or None twice. `exclude`: class names, such as "y".
    present = {name: columns.pop(name) for name in LABELS if name in columns and name not in exclude}
    name, labels = next(iter(present.items()), (None, None))
    # Only if there are several: an empty cell, NaN, would differ from itself.
    if (
        labels is not None
        and len(present) > 1
        and not all(np.array_equal(labels, others) for others in present.values())
    ):
        raise InputError(f"{path}: {' and '.join(present)} differ, and each may be the labels; keep one")
    return name, labels


def _sample_ids(sample_id, *, rows_of, path):
    # Identifiers (N,) str, one for each row of `rows_of`.
    if sample_id is None:
        return None
    if sample_id.ndim != 1 or sample_id.shape != rows_of.shape[:1]:
        raise InputError(
            f"{path}: {SAMPLE_ID} has shape {sample_id.shape} beside an array of shape {rows_of.shape}; give one per "
            "row"
        )
    # A missing identifier is NaN in a column of numbers, None among texts, and an empty text in CSV.
    texts = sample_id.tolist() if sample_id.dtype.kind in "OSU" else []
    empty = np.array([text in (None, "", b"") for text in texts])
    missing = np.isnan(sample_id) if sample_id.dtype.kind == "f" else empty
    if missing.any():
        raise InputError(f"{path}: row {np.argmax(missing)} has no {SAMPLE_ID}; give one per row")
    try:
        # numpy decodes bytes as ASCII.
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: a {SAMPLE_ID} is not UTF-8 ({error}); write the file again") from error
    return (np.array(texts, dtype=object) if texts else sample_id).astype(str)


def _side_by_side(columns, path):
    # Array (N, K) of columns of numbers (N,).
    shapes = {name: column.shape for name, column in columns.items()}
    if len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 1:
        raise InputError(
            f"{path}: the arrays {', '.join(f'{name} {shape}' for name, shape in islice(shapes.items(), 5))} are not "
            "columns of logits of equal length; name an array (samples, classes) `logits`"
        )
    if not len(next(iter(columns.values()))):
        raise InputError(f"{path}: holds a header and no rows; write the file again")
    for name, column in columns.items():
        _require_numbers(column, f"{path}: column {name!r}")
    return np.column_stack(list(columns.values()))


def _require_numbers(column, where):
    # In a text file an empty cell, which is read as NaN, is a missing logit.
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise InputError(
            f"{where}: row {np.isnan(column).argmax()} is empty or no number ({np.isnan(column).sum()} such rows); "
            "write every logit as a number, and find out why the model gave none (half precision?)"
        )
    if column.dtype.kind not in "OSU":
        return
    for row, cell in enumerate(column.tolist()):
        if not _is_number(cell):
            raise InputError(
                f"{where}: row {row} is {repr(cell)[:80]}, no number; write every logit as a number, with a point"
            )
    if len(column):
        kind = type(column[0]).__name__
        raise InputError(
            f"{where}: holds numbers as {kind}, such as {column[0]!r:.80}; store them as float32 or float64"
        )


def _is_number(cell):
    # Stricter than float(), which accepts 1_000 and digits of any script.
    if isinstance(cell, str) and not (cell.isascii() and "_" not in cell):
        return False
    try:
        return not np.isnan(float(cell))
    except (ValueError, TypeError, OverflowError):
        return False


def _class_columns(columns, classes, path):
    if set(classes) <= set(columns):
        return classes
    nameless = next((name for name in columns if ROW_NAMES.match(name) and name not in classes), None)
    if nameless is not None:
        raise InputError(
            f"{path}: column {nameless!r} has no name, so it probably holds row names; {WITHOUT_ROW_NAMES}"
        )
    # One logit, or one probability, of the second of two classes.
    one_of_two = len(columns) == 1 and len(classes) == 2
    if len(columns) != len(classes) and not one_of_two:
        raise InputError(
            f"{path}: {len(columns)} columns of logits ({few(list(columns))}) for {len(classes)} "
            "classes; give one column per class, an optional `label` and `sample_id`, and nothing else"
        )
    known = {_folded(name) for name in classes}
    if one_of_two:
        _require_second_class(next(iter(columns)), classes, path)
        return list(columns)
    if any(_folded(name) in known for name in columns):
        # Some columns are named as classes, so their order cannot be taken for the label order.
        foreign = next(name for name in columns if name not in classes)
        raise InputError(
            f"{path}: column {foreign!r} is none of the classes ({few(classes)}); name every column "
            "exactly as its class, or none of them and put them in label order"
        )
    _require_ascending(columns, path)
    return list(columns)


def _require_second_class(name, classes, path):
    # The column of the first class would be read as that of the second.
    if _folded(name) == _folded(classes[0]):
        raise InputError(
            f"{path}: column {name!r} is the first of the classes ({few(classes)}), and one column stands for the "
            "second; give a column of each class"
        )


def _require_ascending(columns, path):
    # Readers take names such as logit_0, p10 or 7 for class indices, so their order must agree.
    parts = {name: part for name in columns if (part := _NUMBERED.fullmatch(name.strip()))}
    if len(parts) < len(columns) or len({(part[1].casefold(), part[3].casefold()) for part in parts.values()}) > 1:
        return
    for name, due in zip(columns, sorted(columns, key=lambda name: int(parts[name][2])), strict=True):
        if name != due:
            raise InputError(
                f"{path}: columns numbered out of order, {name!r} where {due!r} is due; sort them by number, or name "
                "each as its class"
            )


_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.DOTALL)


def _folded(name):
    return name.strip().casefold()


def _columns(path, *, bare, classes):
    """Arrays of a file by name; a bare .npy array gets the name `bare`; labels may be names of `classes`."""
    path = Path(path)
    suffix = next((suffix for suffix in FORMATS if path.name.endswith(suffix)), None)
    if suffix is None:
        raise InputError(f"{path}: format {path.suffix or 'without suffix'} is unknown; use {', '.join(FORMATS)}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check `path` in config.yaml")
    try:
        return _READERS[suffix](path, bare, classes)
    except InputError:
        raise
    except Exception as error:
        # The readers raise errors of many types for damaged files.
        raise unreadable(path, suffix, error) from error


def _read_npz(path, _bare, _classes):
    with opened(path) as file:
        return {name: whole_array(file, name) for name in file.files}


def _read_npy(path, bare, _classes):
    # Memory-mapped, because that compares the size in the header with the size of the file.
    return {bare: np.array(opened(path, mmap_mode="r"))}


def _read_csv(path, _bare, classes):
    # A class may be called NA or null, which then is no missing label.
    named = [name for name in LABELS if name not in classes] if set(MISSING) & set(classes) else []
    frame = read_csv(path, text=(SAMPLE_ID, *named))
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    numbers = [name for name in named if name in columns and are_numbers(columns[name])]
    return columns | {name: columns[name].astype(np.int64) for name in numbers}


def _read_parquet(path, _bare, _classes):
    table = read_parquet(path)
    return {name: _values(table.column(name).combine_chunks(), name) for name in table.column_names}


def _values(column, name):
    # Values of a column, (N,), or (N, K) for lists of equal length.
    import pyarrow.compute as pc

    if not is_list(column.type):
        return column.to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(column)
    if column.null_count or len(pc.unique(lengths)) > 1:
        raise ValueError(f"the lists of {name} are missing in some rows, or differ in length")
    values = column.flatten().to_numpy(zero_copy_only=False)
    # Lists are read as 64-bit numbers, whatever type they are stored in.
    if values.dtype.kind in "fiu" and values.dtype != np.uint64:
        values = values.astype(np.promote_types(values.dtype, np.int64), copy=False)
    return values.reshape(len(column), -1)


_READERS = {
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
}
