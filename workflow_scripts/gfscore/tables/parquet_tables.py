"""Writer and reader of the Parquet tables of results/.

Each file holds its identity (dataset, model, digests, versions) as key-value metadata, and the reader refuses a file
whose identity differs from the expected one.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.tables.binary_files import opened_parquet
from gfscore.tables.table import ATTRIBUTES, LOGITS, Table

IDENTITY_KEY = b"gfscore"
GROUP_ELEMENTS = 1 << 24
"""Logits per row group, 64 MiB: larger files are read group by group."""


def write_table(path: Path | str, table: Table, frame: pd.DataFrame, *, identity: Mapping[str, Any]) -> None:
    """Write a data frame as a Table, atomically.

    `identity` maps names to plain values; it is stored in the file's metadata together with the table's name and
    version. Raises KeyError for a missing or unknown column, which is an error of the code, not of the input.
    """
    _write(path, table, [_arrays(table, frame)], identity)


def write_parts(path: Path | str, table: Table, frames: Sequence[pd.DataFrame], *, identity: Mapping[str, Any]) -> None:
    """Write data frames as one Table, atomically, each as a row group that TableFile can read alone."""
    _write(path, table, [_arrays(table, frame) for frame in frames], identity)


def _arrays(table, frame):
    names = table.column_names
    if list(frame.columns) != names:
        different = set(names).symmetric_difference(frame.columns) or "their order"
        raise KeyError(f"columns of table {table.name!r} differ: {different}")
    return [pa.array(frame[column].to_numpy(), type=kind, from_pandas=True) for column, kind, _ in table.columns]


def write_logits(
    path: Path | str,
    *,
    sample_id: ArrayLike,
    label: ArrayLike,
    logits: NDArray[np.floating],
    identity: Mapping[str, Any],
) -> None:
    """Write logits (N, K) float32 with sample ids (N,) and labels (N,), atomically."""
    n, k = logits.shape
    rows = max(1, GROUP_ELEMENTS // max(1, k))
    lists = [_list_array(logits[start : start + rows]) for start in range(0, n, rows)]
    arrays = [
        pa.array(np.asarray(sample_id).astype(str).tolist(), type=pa.string()),
        pa.array(np.asarray(label), type=pa.int32()),
        pa.chunked_array(lists, type=pa.list_(pa.float32())),
    ]
    _write(path, LOGITS, [arrays], identity, rows_per_group=rows)


def _list_array(rows):
    n, k = rows.shape
    flat = pa.array(np.ascontiguousarray(rows, dtype=np.float32).ravel())
    return pa.ListArray.from_arrays(pa.array(np.arange(0, (n + 1) * k, k, dtype=np.int32)), flat)


def write_attributes(path: Path | str, frame: pd.DataFrame, *, identity: Mapping[str, Any]) -> None:
    """Write the attributes of a dataset's samples, atomically.

    `frame` holds sample_id and one column per attribute: categories as str, None where missing. `identity` must hold
    `categories`, which maps each attribute to the ordered list of its categories.
    """
    names = list(frame.columns)
    columns = tuple((name, pa.string(), "category") for name in names)
    arrays = [pa.array(frame[name].to_numpy(dtype=object), type=pa.string(), from_pandas=True) for name in names]
    _write(path, ATTRIBUTES, [arrays], identity, columns=columns)


def read_attributes(
    path: Path | str, *, expect: Mapping[str, Any] | None = None
) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Read attributes: `(frame, categories)`, in the form that write_attributes takes.

    Rows are in the order of the dataset. Raises InputError as read_table does, and for a value outside the categories.
    """
    file = _open(path)
    _require_identity(file, path, ATTRIBUTES, expect or {})
    categories, schema = _identity(file, path).get("categories"), file.schema_arrow
    # Keys of the identity are in alphabetical order, the columns in the order of config.yaml.
    names = sorted(["sample_id", *categories]) if isinstance(categories, dict) else []
    if sorted(schema.names) != names or not all(pa.types.is_string(field.type) for field in schema):
        raise InputError(f"{path}: its columns are not those of its categories; {_remedy(path)}")
    frame = _decoded(path, file.read).to_pandas()
    frame = frame.astype(object).where(frame.notna(), None)
    # No checksum covers the footer, which holds the categories.
    for name, order in categories.items():
        foreign = set(frame[name]) - {None, *order}
        if foreign:
            raise InputError(f"{path}: {name}: {min(foreign)!r} is none of its categories; {_remedy(path)}")
    return frame, categories


def _write(path, table, parts, identity, *, columns=None, rows_per_group=None):
    # `parts`: for each row group, the arrays of the columns.
    declared = columns or table.columns
    metadata = {**identity, "table": table.name, "table_version": table.version}
    schema = pa.schema([pa.field(name, kind) for name, kind, _ in declared]).with_metadata(
        {IDENTITY_KEY: json.dumps(metadata, sort_keys=True)}
    )
    floats = [name for name, kind, _ in declared if pa.types.is_floating(kind)]
    floats += [f"{name}.list.element" for name, kind, _ in declared if kind == pa.list_(pa.float32())]
    with (
        atomic(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema,
            compression="zstd",
            # Without checksums a flipped bit in a number would go unnoticed.
            write_page_checksum=True,
            # Sample identifiers do not recur.
            use_dictionary=[name for name, kind, _ in declared if pa.types.is_string(kind) and name != "sample_id"],
            # Floats compress a tenth better with their bytes split into streams.
            column_encoding={name: "BYTE_STREAM_SPLIT" for name in floats},
        ) as writer,
    ):
        for arrays in parts:
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=rows_per_group)


def read_identity(path: Path | str) -> dict[str, Any]:
    """Identity metadata of a table; raises InputError when this workflow did not write the file."""
    return _identity(_open(path), path)


def _identity(file, path):
    metadata = file.schema_arrow.metadata or {}
    if IDENTITY_KEY not in metadata:
        raise InputError(f"{path}: has no identity metadata, so this workflow did not write it; {_remedy(path)}")
    try:
        identity = json.loads(metadata[IDENTITY_KEY])
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged identity metadata ({error}); {_remedy(path)}") from error
    if not isinstance(identity, dict):
        raise InputError(f"{path}: identity metadata are no mapping; {_remedy(path)}")
    return identity


def read_table(path: Path | str, table: Table, *, expect: Mapping[str, Any] | None = None) -> pd.DataFrame:
    """Read a Table as a data frame.

    `expect` maps names of the identity to the values that the file must have. Raises InputError, naming the file, when
    it is missing, damaged, another table or version, or of another identity.
    """
    return TableFile(path, table, expect=expect).read()


def _frame(read, table):
    frame = read.to_pandas()
    for name, kind, _ in table.columns:
        if pa.types.is_list(kind):
            frame[name] = [list(items) if items is not None else [] for items in frame[name]]
    return frame


class TableFile:
    """An open table: its `identity`, and its rows, together or one part of write_parts at a time."""

    def __init__(self, path: Path | str, table: Table, *, expect: Mapping[str, Any] | None = None) -> None:
        """Takes the arguments of read_table, and raises InputError as it does."""
        self._path, self._table, self._file = path, table, _checked(path, table, expect)
        self.identity: dict[str, Any] = _identity(self._file, path)

    def read(self) -> pd.DataFrame:
        """All rows as a data frame; raises InputError if the file is damaged."""
        return _frame(_decoded(self._path, self._file.read), self._table)

    def read_part(self, part: int) -> pd.DataFrame:
        """Rows of one part as a data frame; raises InputError if it is damaged."""
        return _frame(_decoded(self._path, partial(self._file.read_row_group, part, use_threads=False)), self._table)


def read_logits(
    path: Path | str, *, expect: Mapping[str, Any] | None = None
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.float32]]:
    """Read a logits file: `(sample_id (N,) str, label (N,) int32, logits (N, K) float32)`.

    Raises InputError as read_table does, for a file without rows, and for rows that differ in length.
    """
    file = _checked(path, LOGITS, expect)
    n = file.metadata.num_rows
    if not n:
        raise InputError(f"{path}: no samples; {_remedy(path)}")
    groups = (
        _decoded(path, partial(file.read_row_group, group, use_threads=False)) for group in range(file.num_row_groups)
    )
    first = _columns_of(next(groups), path)
    if len(first[0]) == n:
        return first
    # Row group by row group, so that only one copy of the logits is in memory.
    columns = [np.empty((n, *column.shape[1:]), column.dtype) for column in first]
    start = 0
    for part in chain([first], (_columns_of(group, path, columns[2].shape[1], start) for group in groups)):
        for column, values in zip(columns, part, strict=True):
            column[start : start + len(values)] = values
        start += len(part[0])
    sample_id, label, logits = columns
    return sample_id, label, logits


def _columns_of(table, path, classes=None, start=0):
    # `(sample_id, label, logits)` of rows, the first of which is row `start` of the file.
    rows = table.column("logits").combine_chunks()
    lengths = np.diff(rows.offsets.to_numpy())
    classes = lengths[0] if classes is None else classes
    if (lengths != classes).any():
        row = int(np.flatnonzero(lengths != classes)[0])
        raise InputError(f"{path}: row {start + row} has {lengths[row]} logits, row 0 has {classes}; {_remedy(path)}")
    return (
        table.column("sample_id").to_numpy(zero_copy_only=False),
        table.column("label").to_numpy(),
        rows.flatten().to_numpy(zero_copy_only=False).reshape(len(lengths), -1),
    )


def _remedy(path):
    return f"delete it and run the same command again, or add -R {path} to the command"


def _open(path):
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; run the workflow to create it")
    try:
        return opened_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a Parquet file, or truncated ({error}); {_remedy(path)}") from error


def _checked(path, table, expect):
    # The open file, if its identity and columns are those of the table.
    file = _open(path)
    _require_identity(file, path, table, expect or {})
    schema = file.schema_arrow
    if [(field.name, field.type) for field in schema] != [(column, kind) for column, kind, _ in table.columns]:
        raise InputError(f"{path}: its columns are not those of table {table.name!r}; {_remedy(path)}")
    return file


def _decoded(path, read):
    try:
        return read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: damaged ({error}); {_remedy(path)}") from error


def _require_identity(file, path, table, expect):
    identity = _identity(file, path)
    expected = {"table": table.name, "table_version": table.version, **expect}
    for name, value in expected.items():
        if identity.get(name) != value:
            raise InputError(
                f"{path}: its {name} is {identity.get(name)!r}, but {value!r} is expected; {_remedy(path)}"
            )


def typed_frame(table: Table, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Data frame of rows (mappings) as read_table would return it after they were written."""
    schema = pa.schema([pa.field(name, kind) for name, kind, _ in table.columns])
    return _frame(pa.Table.from_arrays(_arrays(table, frame_of(table, rows)), schema=schema), table)


def frame_of(table: Table, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Data frame of a table from mappings or another frame; missing keys become null, unknown ones raise KeyError."""
    names = table.column_names
    foreign = set(rows) if isinstance(rows, pd.DataFrame) else {key for row in rows for key in row}
    foreign -= set(names)
    if foreign:
        raise KeyError(f"table {table.name!r} has no column {', '.join(sorted(foreign))}")
    return pd.DataFrame(rows, columns=names)


# ---- Cache of data frames from run to run, keyed by a digest of their inputs and code; it may be deleted at any time.


WORTH_KEEPING = 1.0
"""Seconds of computation from which a frame is stored."""


class KeptFrames:
    """Folder of frames, each named after the SHA-256 of its inputs and of the code that computes it."""

    def __init__(self, folder: Path | str, *, code: Iterable[Path | str]) -> None:
        """`folder` need not exist; `code` are the source files that compute the frames."""
        self._folder = Path(folder)
        state = hashlib.sha256()
        for path in sorted(map(str, code)):
            state.update(path.encode() + b"\0" + Path(path).read_bytes() + b"\0")
        self._code = state.hexdigest()

    def get(self, table: Table, made_of: Mapping[str, Any], make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Frame of `table`: the stored one with the inputs `made_of` (plain values), else the result of `make`."""
        described = json.dumps([self._code, table.name, table.version, made_of], sort_keys=True)
        key = hashlib.sha256(described.encode()).hexdigest()
        path = self._folder / f"{key}.parquet"
        if path.is_file():
            try:
                return read_table(path, table, expect={"key": key})
            except InputError:
                print(f"{path}: damaged; computed again")
        started = time.monotonic()
        frame = make()
        if time.monotonic() - started > WORTH_KEEPING:
            write_table(path, table, frame, identity={"key": key})
        return frame


def stacked(table: Table, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of all frames, one below the other, with the columns of a table; those that no frame has are null."""
    if not frames:
        return pd.DataFrame(columns=table.column_names)
    return pd.concat(frames, ignore_index=True).reindex(columns=table.column_names)
