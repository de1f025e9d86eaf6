"""Copies of users' files of logits in which an offset is added to the logits of each class."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic, require_free
from gfscore.core.settings import LOGARITHMS
from gfscore.statistics.logits import ProbabilitiesGiven, is_one_column, require_logits
from gfscore.tables.logit_files import columns_of, logits_layout, read_logits_file


def write_adjusted_logits(
    path: Path | str,
    offsets: NDArray[np.float64],
    target: Path | str,
    *,
    classes: Sequence[str],
    member: str | None = None,
    probabilities: bool = False,
    overwrite: bool = False,
) -> None:
    """Write a file of logits with offsets, in the format of the original; labels and all else are copied.

    Parameters
    ----------
    path : Path or str
        File in one of the formats of `read_logits_file`.
    offsets : ndarray of shape (K,), float64
        What is added to the logits of the classes.
    target : Path or str
        File to write, with the same ending.
    classes : sequence of str
        Names of the K classes.
    member : str, optional
        In a file of several models, the array or list column of one.
    probabilities : bool
        Whether the file holds probabilities; then the probabilities of the adjusted logits are written.
    overwrite : bool
        Whether an existing target is replaced.

    Raises
    ------
    InputError
        Naming the file, for what `read_logits_file` and `require_logits` refuse, another number of offsets, and a
        target that exists.
    """
    path, target = Path(path), Path(target)
    require_free(target, overwrite=overwrite)
    if len(offsets) != len(classes):
        raise InputError(f"{path}: of {len(classes)} classes, but the offsets are of {len(offsets)}; choose them anew")
    logits, labels, _ = read_logits_file(path, classes=classes, member=member)
    if labels is None:
        labels = np.zeros(logits.shape[:1], dtype=np.int64)
    allowed = LOGARITHMS if probabilities else False
    try:
        require_logits(logits, labels, classes=len(classes), source=path, allow_probabilities=allowed)
    except ProbabilitiesGiven as error:
        raise InputError(
            f"{path}: {error.fault}; give logits, or probabilities that sum to 1 with --probabilities"
        ) from error
    adjusted = _adjusted(logits, offsets, probabilities=probabilities)
    columns = columns_of(path, bare="logits", classes=classes)
    layout = logits_layout(columns, path, classes=classes, member=member)

    with atomic(target) as temporary:
        _write(path, temporary, layout.names, adjusted)


def _adjusted(
    logits: NDArray[np.generic], offsets: NDArray[np.float64], *, probabilities: bool
) -> NDArray[np.floating]:
    # At least float32: rounding of large logits to half precision could be longer than the offsets.
    number_type = np.result_type(logits.dtype, np.float32)
    values = logits.astype(np.float64)
    one_column = is_one_column(values)
    shift = offsets[1:] - offsets[:1] if one_column else offsets
    if not probabilities:
        return (values + shift).astype(number_type)
    # Probabilities of logits with a shift are proportional to p exp(shift).
    scaled = values * np.exp(shift)
    total = 1 - values + scaled if one_column else scaled.sum(axis=1, keepdims=True)
    return (scaled / total).astype(number_type)


def _write(path: Path, target: Path, names: Sequence[str], adjusted: NDArray[np.floating]) -> None:
    columns = dict(zip(names, adjusted.T, strict=True)) if len(names) > 1 else {names[0]: adjusted}
    if path.suffix == ".npy":
        with target.open("wb") as file:
            np.save(file, columns["logits"])
    elif path.suffix == ".npz":
        # Not by savez, whose own arguments arrays may be called like.
        with np.load(path, allow_pickle=False) as arrays, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, values in {**arrays, **columns}.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, values, allow_pickle=False)
    elif path.suffix == ".parquet":
        table = pq.read_table(path)
        for name, values in columns.items():
            index = table.schema.get_field_index(name)
            field = table.schema.field(index)
            nested = pa.types.is_nested(field.type)
            number_type = field.type.value_type if nested else field.type
            if pa.types.is_integer(number_type) or pa.types.is_float16(number_type):
                field = field.with_type(pa.list_(pa.float64()) if nested else pa.float64())
            items = list(values) if nested else values.ravel()
            table = table.set_column(index, field, pa.array(items, type=field.type))
        pq.write_table(table, target)
    else:
        # As text, so that all other cells are copied as they are.
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
        for name, values in columns.items():
            frame[name] = values.ravel()
        frame.to_csv(target, index=False, compression="gzip" if path.suffix == ".gz" else None)
