"""Readers of users' files of logits and labels: .npz, .npy, .csv, .parquet."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few, unknown_name
from gfscore.core.files import LOGIT_ENDINGS
from gfscore.core.labels import are_numbers, class_indices, classes_of_one_hot
from gfscore.core.mappings import only
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
"""Names that an array or column of labels may have."""

SAMPLE_ID = "sample_id"

Columns = dict[str, NDArray[np.generic]]
"""Arrays of a file by name."""

_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})([^0-9]*)", re.DOTALL)
"""Names such as logit_0, p10 or 7: text, number, text."""


def format_of(path: Path) -> str | None:
    """Which of LOGIT_ENDINGS the name of a file ends in; None for another ending."""
    for suffix in LOGIT_ENDINGS:
        if path.name.endswith(suffix):
            return suffix
    return None


def read_logits_file(
    path: Path | str, *, classes: Sequence[str], member: str | None = None
) -> tuple[NDArray[Any], NDArray[np.generic] | None, NDArray[np.str_] | None]:
    """Logits, labels and sample names of a user's file; nothing is unpickled.

    `.npz` holds an array `logits` and optionally `labels` (or `label`, `y`) and `sample_id`; `.npy` the logits alone;
    `.csv` and `.parquet` one column per class, named as in `classes` or in label order under other names, or (Parquet)
    one list column `logits`, and optionally `label` and `sample_id`.

    Parameters
    ----------
    path : Path or str
        File to read.
    classes : sequence of str
        Names of the K classes.
    member : str, optional
        In a file of several models, the array or list column of one, in place of `logits`.

    Returns
    -------
    logits : ndarray of shape (N, K)
        For two classes one column is enough, of the second: logits are then (N,) or (N, 1).
    labels : ndarray of shape (N,), or None
        Class indices; names in `classes` are converted.
    sample_id : ndarray of shape (N,), str, or None
        Names of the samples.

    Raises
    ------
    InputError
        Naming the file.
    """
    columns = columns_of(path, bare="logits", classes=classes)
    class_names = _classes_with_columns(columns, classes) if member is None else ()
    name, labels = _labels_in(columns, path, class_names)
    if labels is not None:
        labels = class_indices(labels, classes, f"{path}: {name}")
    layout = logits_layout(columns, path, classes=classes, member=member)
    logits = columns[layout.names[0]]
    if layout.by_class:
        logits = _stacked(only(columns, layout.names), path)
    return logits, labels, _sample_ids(columns.get(SAMPLE_ID), logits, path)


def read_labels_file(
    path: Path | str, *, classes: Sequence[str] | None = None
) -> tuple[NDArray[np.generic], NDArray[np.str_] | None, str]:
    """Labels and sample names of a user's file, in the formats of read_logits_file.

    Parameters
    ----------
    path : Path or str
        File to read.
    classes : sequence of str, optional
        Names of the classes, where they are listed.

    Returns
    -------
    labels : ndarray of shape (N,)
        Class indices; names in `classes` are converted.
    sample_id : ndarray of shape (N,), str, or None
        Names of the samples.
    name : str
        Name of the array or column of labels in the file.

    Raises
    ------
    InputError
        Naming the file.
    """
    columns = columns_of(path, bare="labels", classes=classes or ())
    name, labels = _labels_in(columns, path)
    if labels is None or name is None:
        raise InputError(f"{path}: no labels; name the array or column one of {', '.join(LABELS)}")
    if labels.ndim != 1:
        raise InputError(f"{path}: {name}: shape {labels.shape}; expected (samples,)")
    labels = class_indices(labels, classes, f"{path}: {name}")
    return labels, _sample_ids(columns.get(SAMPLE_ID), labels, path), name


def _labels_in(
    columns: Columns, path: Path | str, class_names: Collection[str] = ()
) -> tuple[str | None, NDArray[np.generic] | None]:
    # `(name, labels)`, or None twice; a column that is named as a class holds no labels.
    present = only(columns, [name for name in LABELS if name in columns and name not in class_names])
    if not present:
        return None, None
    (name, labels), *further = present.items()
    # Only compared if there are several: an empty cell, NaN, would differ from itself.
    for _, candidate in further:
        if not np.array_equal(labels, candidate):
            raise InputError(f"{path}: {' and '.join(present)} differ, and each may be the labels; keep one")
    if labels.ndim == 2 and labels.shape[1] > 1 and labels.dtype.kind in "biuf":
        return name, classes_of_one_hot(labels, f"{path}: {name}")
    if labels.ndim == 2 and labels.shape[1] == 1:
        return name, labels[:, 0]
    return name, labels


def _sample_ids(sample_id: NDArray[np.generic] | None, rows: NDArray[Any], path: Path | str) -> NDArray[np.str_] | None:
    # Identifiers (N,) str, one for each of the `rows`.
    if sample_id is None:
        return None
    if sample_id.ndim != 1 or sample_id.shape != rows.shape[:1]:
        raise InputError(
            f"{path}: {SAMPLE_ID} has shape {sample_id.shape} beside an array of shape {rows.shape}; give one per row"
        )
    # A missing identifier is NaN in a column of numbers, None among texts, and an empty text in CSV.
    texts = sample_id.tolist() if sample_id.dtype.kind in "OSU" else []
    if sample_id.dtype.kind == "f":
        missing = np.isnan(sample_id)
    else:
        missing = np.array([text in (None, "", b"") for text in texts])
    if missing.any():
        raise InputError(f"{path}: row {np.argmax(missing)} has no {SAMPLE_ID}; give one per row")
    if not texts:
        return sample_id.astype(str)
    try:
        # numpy decodes bytes as ASCII.
        texts = [text.decode() if isinstance(text, bytes) else text for text in texts]
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: a {SAMPLE_ID} is not UTF-8 ({error}); write the file again") from error
    return np.array(texts, dtype=object).astype(str)


# ---- columns of logits ----


@dataclass(frozen=True)
class LogitsLayout:
    """Where a file holds its logits.

    Attributes
    ----------
    names : sequence of str
        Names of the arrays or columns.
    by_class : bool
        Whether each holds the logits of one class: of all classes in label order, or of the second of two classes.
        Otherwise there is one, of shape (N, K).
    """

    names: Sequence[str]
    by_class: bool


def logits_layout(
    columns: Columns, path: Path | str, *, classes: Sequence[str], member: str | None = None
) -> LogitsLayout:
    """Where a file holds its logits, by the names of its arrays or columns.

    Parameters
    ----------
    columns : dict of ndarray
        All columns of the file; see columns_of.
    path : Path or str
        The file, for messages.
    classes : sequence of str
        Names of the K classes.
    member : str, optional
        In a file of several models, the array or list column of one.

    Raises
    ------
    InputError
        For an unknown member, and for columns that are not one for each class, or whose order is not clear.
    """
    if member is not None:
        if member not in columns:
            raise InputError(f"{path}: {unknown_name('array or column', member, list(columns))}; correct `member`")
        return LogitsLayout([member], by_class=False)
    if "logits" in columns:
        return LogitsLayout(["logits"], by_class=False)

    class_names = _classes_with_columns(columns, classes)
    others = {SAMPLE_ID, *(set(LABELS) - class_names)}
    candidates = [name for name in columns if name not in others]
    if Path(path).suffix == ".npz" and not class_names:
        raise InputError(
            f"{path}: no array `logits`; it holds {few(candidates) or 'no other'}; write it with "
            "numpy.savez(path, logits=..., labels=...)"
        )
    return LogitsLayout(_class_columns(candidates, classes, path), by_class=True)


def _classes_with_columns(columns: Columns, classes: Sequence[str]) -> set[str]:
    # Where every class has a column, one of them may be called "y", which otherwise holds labels.
    return set(classes) if set(classes) <= set(columns) else set()


def _stacked(columns: Columns, path: Path | str) -> NDArray[Any]:
    # Columns (N,) of logits as an array (N, K).
    shapes = [column.shape for column in columns.values()]
    if len(set(shapes)) > 1 or len(shapes[0]) != 1:
        listed = ", ".join(f"{name} {column.shape}" for name, column in islice(columns.items(), 5))
        raise InputError(
            f"{path}: the arrays {listed} are not columns of logits of equal length; name an array (samples, classes) "
            "`logits`"
        )
    if shapes[0] == (0,):
        raise InputError(f"{path}: holds a header and no rows; write the file again")
    for name, column in columns.items():
        _require_numbers(column, f"{path}: column {name!r}")
    return np.column_stack(list(columns.values()))


def _require_numbers(column: NDArray[np.generic], where: str) -> None:
    # In a text file an empty cell, which is read as NaN, is a missing logit.
    if column.dtype.kind == "f":
        missing = np.isnan(column)
        if missing.any():
            raise InputError(
                f"{where}: row {missing.argmax()} is empty or no number ({missing.sum()} such rows); write every logit "
                "as a number, and find out why the model gave none (half precision?)"
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


def _is_number(cell: Any) -> bool:
    # Stricter than float(), which accepts 1_000 and digits of any script.
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        return False
    try:
        return not np.isnan(float(cell))
    except (ValueError, TypeError, OverflowError):
        return False


def _class_columns(columns: Sequence[str], classes: Sequence[str], path: Path | str) -> Sequence[str]:
    # Names of the columns of logits in label order, among the columns that hold no labels and no sample names.
    if set(classes) <= set(columns):
        return classes
    for name in columns:
        if ROW_NAMES.match(name) and name not in classes:
            raise InputError(
                f"{path}: column {name!r} has no name, so it probably holds row names; {WITHOUT_ROW_NAMES}"
            )
    if len(columns) == 1 and len(classes) == 2:
        (name,) = columns
        # One logit, or one probability, belongs to the second of two classes.
        if _folded(name) == _folded(classes[0]):
            raise InputError(
                f"{path}: column {name!r} is the first of the classes ({few(classes)}), and one column stands for the "
                "second; give a column of each class"
            )
        return [name]
    if len(columns) != len(classes):
        raise InputError(
            f"{path}: {len(columns)} columns of logits ({few(columns)}) for {len(classes)} "
            "classes; give one column per class, an optional `label` and `sample_id`, and nothing else"
        )
    class_names = {_folded(name) for name in classes}
    if any(_folded(name) in class_names for name in columns):
        # Some columns are named as classes, so their order cannot be taken for the label order.
        foreign = next(name for name in columns if name not in classes)
        raise InputError(
            f"{path}: column {foreign!r} is none of the classes ({few(classes)}); name every column "
            "exactly as its class, or none of them and put them in label order"
        )
    _require_ascending(columns, path)
    return columns


def _require_ascending(columns: Sequence[str], path: Path | str) -> None:
    # Readers take names such as logit_0, p10 or 7 for class indices, so their order must agree.
    numbers = {}
    frames = set()
    for name in columns:
        match = _NUMBERED.fullmatch(name.strip())
        if not match:
            return
        numbers[name] = int(match[2])
        frames.add((match[1].casefold(), match[3].casefold()))
    if len(frames) > 1:
        return
    for name, expected in zip(columns, sorted(columns, key=numbers.__getitem__), strict=True):
        if name != expected:
            raise InputError(
                f"{path}: columns numbered out of order, {name!r} where {expected!r} is due; sort them by number, or "
                "name each as its class"
            )


def _folded(name: str) -> str:
    return name.strip().casefold()


# ---- formats ----


def columns_of(path: Path | str, *, bare: str, classes: Sequence[str]) -> Columns:
    """Arrays of a file by name; nothing is unpickled.

    Parameters
    ----------
    path : Path or str
        File to read.
    bare : str
        Name of the array of a .npy file.
    classes : sequence of str
        Names of the classes, which labels may be.

    Raises
    ------
    InputError
        Naming the file, for an unknown format and a damaged file.
    """
    path = Path(path)
    suffix = format_of(path)
    if suffix is None:
        raise InputError(f"{path}: format {path.suffix or 'without suffix'} is unknown; use {', '.join(LOGIT_ENDINGS)}")
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check `path` in its entry")
    try:
        return _READERS[suffix](path, bare, classes)
    except InputError:
        raise
    except Exception as error:
        # The readers raise errors of many types for damaged files.
        raise unreadable(path, suffix, error) from error


def _read_npz(path: Path, _bare: str, _classes: Sequence[str]) -> Columns:
    with opened(path) as file:
        return {name: whole_array(file, name) for name in file.files}


def _read_npy(path: Path, bare: str, _classes: Sequence[str]) -> Columns:
    # Memory-mapped, because that compares the size in the header with the size of the file.
    return {bare: np.array(opened(path, mmap_mode="r"))}


def _read_csv(path: Path, _bare: str, classes: Sequence[str]) -> Columns:
    # A class may be called NA or null, which then is no missing label.
    labels_as_text = []
    if set(MISSING) & set(classes):
        labels_as_text = [name for name in LABELS if name not in classes]
    frame = read_csv(path, text=(SAMPLE_ID, *labels_as_text))
    columns = {name: frame[name].to_numpy() for name in frame.columns}
    for name in labels_as_text:
        if name in columns and are_numbers(columns[name]):
            columns[name] = columns[name].astype(np.int64)
    return columns


def _read_parquet(path: Path, _bare: str, _classes: Sequence[str]) -> Columns:
    table = read_parquet(path)
    columns = {}
    for name in table.column_names:
        column = table.column(name).combine_chunks()
        if not is_list(column.type):
            columns[name] = column.to_numpy(zero_copy_only=False)
            continue
        if not len(column):
            raise ValueError(f"the column {name} has no rows")
        # Lists of equal length are an array (N, K).
        lengths = pc.list_value_length(column)
        if column.null_count or len(pc.unique(lengths)) > 1:
            raise ValueError(f"the lists of {name} are missing in some rows, or differ in length")
        values = column.flatten().to_numpy(zero_copy_only=False)
        # Lists are read as 64-bit numbers, whatever type they are stored in.
        if values.dtype.kind in "fiu" and values.dtype != np.uint64:
            values = values.astype(np.promote_types(values.dtype, np.int64), copy=False)
        columns[name] = values.reshape(len(column), -1)
    return columns


_READERS: dict[str, Callable[[Path, str, Sequence[str]], Columns]] = {
    ".parquet": _read_parquet,
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
}
"""Readers by suffix: of a path, the name of a bare array, and the classes."""
