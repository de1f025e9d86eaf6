"""Encoded images and labels in Parquet files, read a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.label_numbers import are_numbers
from gfscore.core.regular import require_regular
from gfscore.images.arrays import whole_labels
from gfscore.tables.parquet_files import opened_parquet

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

BATCH = 64
"""Rows read from Parquet at a time."""


@contextmanager
def opened(file: Path | str, column: str) -> Iterator[ParquetFile]:
    """Open a Parquet file with a given column; InputError, naming the file, if it is damaged or lacks the column."""
    import pyarrow as pa

    require_regular(file)
    try:
        with _whole(file) as parquet:
            names = parquet.schema_arrow.names
            if column not in names:
                raise InputError(f"{file}: no column {column}, only {', '.join(names)}; correct the name")
            if names.count(column) > 1:
                raise InputError(f"{file}: has {names.count(column)} columns {column}; rename one")
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error


def _whole(file):
    # Not around the yield above, since the caller may raise ValueError for other reasons.
    try:
        return opened_parquet(file)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error


def encoded_images(file: Path | str, column: str, rows: NDArray[np.int64]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield, for ascending `rows` (n,), the name of the row and a function that returns its encoded image.

    Row groups without any of the rows are not read. The function raises InputError for a row without bytes.
    """
    end = 0
    with opened(file, column) as parquet:
        for group in range(parquet.num_row_groups):
            start, end = end, end + parquet.metadata.row_group(group).num_rows
            wanted = set(rows[(rows >= start) & (rows < end)].tolist())
            batches = parquet.iter_batches(BATCH, row_groups=[group], columns=[column]) if wanted else ()
            for row, value in enumerate((value for batch in batches for value in batch[column]), start):
                if row in wanted:
                    yield f"{file}: row {row}", partial(_bytes_of, value, file, row)


def _bytes_of(value, file, row):
    content = value.as_py()
    content = content.get("bytes") if isinstance(content, dict) else content
    if not isinstance(content, bytes):
        raise InputError(f"{file}: row {row} holds no encoded image; save images as bytes, not as paths")
    return content


def labels_in(file: Path | str, column: str) -> NDArray[Any]:
    """Labels (n,) of a file, int32 or str; InputError for missing values and other types."""
    import pyarrow as pa

    with opened(file, column) as parquet:
        values = parquet.read([column])[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
    whole = str(values.type).removeprefix("u").startswith("int")
    text = str(values.type) in ("string", "large_string")
    if values.null_count or not (whole or text):
        raise InputError(
            f"{file}: column {column} is {values.type}, {values.null_count} null; give whole numbers or names"
        )
    return values.to_numpy().astype(str) if text else whole_labels(values.to_numpy(), len(values), f"{file}: {column}")


def class_indices(labels: list[NDArray[Any]], path: Path | str) -> tuple[list[NDArray[Any]], tuple[str, ...] | None]:
    """Labels of several files as class indices, and the sorted class names if labels are names, else None.

    Names that are numbers are sorted as such.

    Raises InputError, naming `path`, if labels are numbers in some files and names in others.
    """
    kinds = {values.dtype.kind for values in labels if len(values)}
    if len(kinds) > 1:
        raise InputError(f"{path}: labels are numbers in some files and names in others; write the files again")
    if "U" not in kinds:
        return labels, None
    names = np.unique(np.concatenate([values for values in labels if len(values)]))
    indices = [np.searchsorted(names, values) for values in labels]
    if not are_numbers(names.tolist()):
        return indices, tuple(names.tolist())
    # As text 10 comes before 2.
    order = np.argsort(names.astype(np.int64), kind="stable")
    place = np.argsort(order, kind="stable")
    return [place[values] for values in indices], tuple(names[order].tolist())
