"""Writer and reader of the Parquet tables of results/, and a cache of data frames.

Each file holds its identity (dataset, model, digests, versions) as key-value metadata, and the reader refuses a file
whose identity differs from the expected one.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.tables.binary_files import open_parquet
from gfscore.tables.table import ATTRIBUTES, LOGITS, Table

Identity = Mapping[str, object]
"""What a table is about: names and values that JSON can hold."""

IDENTITY_KEY = b"gfscore"
"""Key of the identity in a file's metadata."""

GROUP_ELEMENTS = 1 << 24
"""Logits per row group, 64 MiB: larger files are read group by group."""

WORTH_STORING = 1.0
"""Seconds of computation from which a frame is stored in a FrameCache."""


# ---- writing ----


def write_table(path: Path | str, table: Table, frame: pd.DataFrame, *, identity: Identity) -> None:
    """Write a data frame as a table, atomically.

    Parameters
    ----------
    path : Path or str
        File to write.
    table : Table
        `frame` has its columns, in their order, then those columns of its evidence that are to be stored.
    frame : DataFrame
        The rows.
    identity : mapping
        Stored in the file's metadata, together with the table's name and version.

    Raises
    ------
    KeyError
        For a missing or unknown column, which is an error of the code, not of the input.
    """
    write_parts(path, table, [frame], identity=identity)


def write_parts(path: Path | str, table: Table, frames: Sequence[pd.DataFrame], *, identity: Identity) -> None:
    """Write data frames as one table, atomically, each as a row group that TableFile can read alone."""
    if frames:
        table = table.with_evidence(frames[0].columns)
    groups = [_arrays(table, frame) for frame in frames]
    _write(path, table, table.schema, groups, identity)


def _arrays(table: Table, frame: pd.DataFrame) -> list[pa.Array]:
    names = table.column_names
    if list(frame.columns) != names:
        different = set(names).symmetric_difference(frame.columns) or "their order"
        raise KeyError(f"columns of table {table.name!r} differ: {different}")
    arrays = []
    for column in table.columns:
        arrays.append(pa.array(frame[column.name].to_numpy(), type=column.type, from_pandas=True))
    return arrays


def write_logits(
    path: Path | str,
    *,
    sample_id: ArrayLike,
    label: ArrayLike,
    logits: NDArray[np.floating],
    identity: Identity,
) -> None:
    """Write logits, atomically.

    Parameters
    ----------
    path : Path or str
        File to write.
    sample_id, label : array_like of shape (N,)
        Names and true classes of the samples.
    logits : ndarray of shape (N, K)
        Stored as float32.
    identity : mapping
        Stored in the file's metadata.
    """
    n, k = logits.shape
    rows = max(1, GROUP_ELEMENTS // max(1, k))
    lists = []
    for start in range(0, n, rows):
        block = logits[start : start + rows]
        flat = pa.array(np.ascontiguousarray(block, dtype=np.float32).ravel())
        offsets = pa.array(np.arange(0, (len(block) + 1) * k, k, dtype=np.int32))
        lists.append(pa.ListArray.from_arrays(offsets, flat))
    arrays = [
        pa.array(np.asarray(sample_id).astype(str).tolist(), type=pa.string()),
        pa.array(np.asarray(label), type=pa.int32()),
        pa.chunked_array(lists, type=pa.list_(pa.float32())),
    ]
    _write(path, LOGITS, LOGITS.schema, [arrays], identity, rows_per_group=rows)


def write_attributes(path: Path | str, frame: pd.DataFrame, *, identity: Identity) -> None:
    """Write the attributes of a dataset's samples, atomically.

    Parameters
    ----------
    path : Path or str
        File to write.
    frame : DataFrame
        sample_id and one column per attribute: categories as str, None where missing.
    identity : mapping
        Must hold `categories`, which maps each attribute to the ordered list of its categories.
    """
    names = list(frame.columns)
    schema = pa.schema([pa.field(name, pa.string()) for name in names])
    arrays = [pa.array(frame[name].to_numpy(dtype=object), type=pa.string(), from_pandas=True) for name in names]
    _write(path, ATTRIBUTES, schema, [arrays], identity)


def _write(
    path: Path | str,
    table: Table,
    schema: pa.Schema,
    groups: Sequence[Sequence[pa.Array]],
    identity: Identity,
    *,
    rows_per_group: int | None = None,
) -> None:
    # `groups`: for each row group, the arrays of the columns.
    metadata = {**identity, "table": table.name, "table_version": table.version}
    schema = schema.with_metadata({IDENTITY_KEY: json.dumps(metadata, sort_keys=True)})
    floats = []
    dictionaries = []
    for field in schema:
        if pa.types.is_floating(field.type):
            floats.append(field.name)
        elif field.type == pa.list_(pa.float32()):
            floats.append(f"{field.name}.list.element")
        # Sample identifiers do not recur.
        elif pa.types.is_string(field.type) and field.name != "sample_id":
            dictionaries.append(field.name)

    with atomic(path) as temporary:
        writer = pq.ParquetWriter(
            temporary,
            schema,
            compression="zstd",
            # Without checksums a flipped bit in a number would go unnoticed.
            write_page_checksum=True,
            use_dictionary=dictionaries,
            # Floats compress a tenth better with their bytes split into streams.
            column_encoding=dict.fromkeys(floats, "BYTE_STREAM_SPLIT"),
        )
        with writer:
            for arrays in groups:
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=rows_per_group)


# ---- reading ----


def read_table(
    path: Path | str, table: Table, *, expect: Identity | None = None, evidence: bool = False
) -> pd.DataFrame:
    """Read a table as a data frame.

    Parameters
    ----------
    path : Path or str
        File to read.
    table : Table
        The table that it must hold.
    expect : mapping, optional
        Names and values of the identity that the file must have.
    evidence : bool
        Whether to read the columns of bytes as well that the file has behind the others.

    Returns
    -------
    DataFrame
        The columns of the table; lists where their type is a list, empty for a missing one.

    Raises
    ------
    InputError
        Naming the file, when it is missing, damaged, another table or version, or of another identity.
    """
    return TableFile(path, table, expect=expect).read(evidence=evidence)


class TableFile:
    """An open table, whose rows are read together or one part of write_parts at a time.

    Parameters
    ----------
    path, table, expect
        See read_table.

    Attributes
    ----------
    identity : dict
        The identity of the file.

    Raises
    ------
    InputError
        See read_table.
    """

    def __init__(self, path: Path | str, table: Table, *, expect: Identity | None = None) -> None:
        """Open the file, and check its identity and columns."""
        self._path = path
        self._table = table
        self._file = _checked(path, table, expect)
        self.identity: dict[str, Any] = _identity(self._file, path)

    @property
    def parts(self) -> int:
        """Number of parts."""
        return self._file.num_row_groups

    def read(self, *, evidence: bool = False) -> pd.DataFrame:
        """All rows as a data frame; raises InputError if the file is damaged."""
        names = self._file.schema_arrow.names if evidence else self._table.column_names
        return _frame(_decoded(self._path, partial(self._file.read, columns=names)), self._table)

    def read_part(self, part: int) -> pd.DataFrame:
        """Rows of one part as a data frame; raises InputError if it is damaged."""
        return _frame(_row_group(self._file, self._path, part), self._table)


def read_logits(
    path: Path | str, *, expect: Identity | None = None
) -> tuple[NDArray[np.str_], NDArray[np.int32], NDArray[np.float32]]:
    """Read a file of logits.

    Parameters
    ----------
    path : Path or str
        File to read.
    expect : mapping, optional
        Names and values of the identity that the file must have.

    Returns
    -------
    sample_id : ndarray of shape (N,), str
        Names of the samples.
    label : ndarray of shape (N,), int32
        True classes.
    logits : ndarray of shape (N, K), float32
        Logits.

    Raises
    ------
    InputError
        See read_table; also for a file without rows, and for rows that differ in length.
    """
    file = _checked(path, LOGITS, expect)
    n = file.metadata.num_rows
    if not n:
        raise InputError(f"{path}: no samples; {_remedy(path)}")
    sample_id, label, logits = _logits_columns(_row_group(file, path, 0), path)
    if len(sample_id) == n:
        return sample_id, label, logits

    # Row group by row group, so that only one copy of the logits is in memory.
    classes = logits.shape[1]
    start = len(sample_id)
    columns = []
    for first in (sample_id, label, logits):
        column = np.empty((n, *first.shape[1:]), first.dtype)
        column[:start] = first
        columns.append(column)
    for group in range(1, file.num_row_groups):
        arrays = _logits_columns(_row_group(file, path, group), path, classes, start)
        stop = start + len(arrays[0])
        for column, array in zip(columns, arrays, strict=True):
            column[start:stop] = array
        start = stop
    return columns[0], columns[1], columns[2]


def _logits_columns(
    rows: pa.Table, path: Path | str, classes: int | None = None, start: int = 0
) -> tuple[NDArray[np.str_], NDArray[np.int32], NDArray[np.float32]]:
    # `(sample_id, label, logits)` of an Arrow table, the first row of which is row `start` of the file.
    lists = rows.column("logits").combine_chunks()
    lengths = np.diff(lists.offsets.to_numpy())
    classes = lengths[0] if classes is None else classes
    wrong = np.flatnonzero(lengths != classes)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(f"{path}: row {start + row} has {lengths[row]} logits, row 0 has {classes}; {_remedy(path)}")
    return (
        rows.column("sample_id").to_numpy(zero_copy_only=False),
        rows.column("label").to_numpy(),
        lists.flatten().to_numpy(zero_copy_only=False).reshape(len(lengths), -1),
    )


def read_attributes(path: Path | str, *, expect: Identity | None = None) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """Read the attributes of a dataset's samples.

    Parameters
    ----------
    path : Path or str
        File that write_attributes wrote.
    expect : mapping, optional
        Names and values of the identity that the file must have.

    Returns
    -------
    frame : DataFrame
        sample_id and one column per attribute, in the order of the dataset; None where a category is missing.
    categories : dict of str to list of str
        Ordered categories of each attribute.

    Raises
    ------
    InputError
        See read_table; also for a value outside the categories.
    """
    file = _open(path)
    _require_identity(file, path, ATTRIBUTES, expect)
    categories: Any = _identity(file, path).get("categories")
    schema = file.schema_arrow
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


def read_identity(path: Path | str) -> dict[str, Any]:
    """Identity of a table; raises InputError when this workflow did not write the file."""
    return _identity(_open(path), path)


def _open(path: Path | str) -> pq.ParquetFile:
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; run the workflow to create it")
    try:
        return open_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a Parquet file, or truncated ({error}); {_remedy(path)}") from error


def _checked(path: Path | str, table: Table, expect: Identity | None) -> pq.ParquetFile:
    # The open file, if its identity and columns are those of the table.
    file = _open(path)
    _require_identity(file, path, table, expect)
    stored = [(field.name, field.type) for field in file.schema_arrow]
    expected = table.with_evidence(file.schema_arrow.names).columns
    if stored != [(column.name, column.type) for column in expected]:
        raise InputError(f"{path}: its columns are not those of table {table.name!r}; {_remedy(path)}")
    return file


def _identity(file: pq.ParquetFile, path: Path | str) -> dict[str, Any]:
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


def _require_identity(file: pq.ParquetFile, path: Path | str, table: Table, expect: Identity | None) -> None:
    identity = _identity(file, path)
    expected = {"table": table.name, "table_version": table.version, **(expect or {})}
    for name, value in expected.items():
        if identity.get(name) != value:
            raise InputError(
                f"{path}: its {name} is {identity.get(name)!r}, but {value!r} is expected; {_remedy(path)}"
            )


def _row_group(file: pq.ParquetFile, path: Path | str, group: int) -> pa.Table:
    return _decoded(path, partial(file.read_row_group, group, use_threads=False))


def _decoded(path: Path | str, read: Callable[[], pa.Table]) -> pa.Table:
    try:
        return read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{path}: damaged ({error}); {_remedy(path)}") from error


def _remedy(path: Path | str) -> str:
    return f'delete it and run the same command again, or add ARGS="-R {path}" to make audit'


def _frame(rows: pa.Table, table: Table) -> pd.DataFrame:
    frame = rows.to_pandas()
    for column in table.columns:
        if pa.types.is_list(column.type):
            lists = [[] if items is None else list(items) for items in frame[column.name]]
            # Of no rows, pandas would make numbers.
            frame[column.name] = pd.Series(lists, index=frame.index, dtype=object)
    return frame


# ---- frames ----


def typed_frame(table: Table, rows: Sequence[Mapping[str, object]] | pd.DataFrame) -> pd.DataFrame:
    """Rows of a table, as read_table returns them once they are written.

    Parameters
    ----------
    table : Table
        Gives the columns, their order and types.
    rows : sequence of mapping, or DataFrame
        Values by column; what is missing becomes null.

    Raises
    ------
    KeyError
        For a column that the table does not have.
    """
    names = set(rows) if isinstance(rows, pd.DataFrame) else set().union(*rows)
    foreign = names.difference(table.column_names)
    if foreign:
        raise KeyError(f"table {table.name!r} has no column {', '.join(sorted(foreign))}")
    arrays = _arrays(table, pd.DataFrame(rows, columns=table.column_names))
    return _frame(pa.Table.from_arrays(arrays, schema=table.schema), table)


def stacked(table: Table, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Rows of several frames as one typed_frame of a table, one frame below the other."""
    if not frames:
        return typed_frame(table, [])
    return typed_frame(table, pd.concat(frames, ignore_index=True))


def stacked_tables(tables: Iterable[Table], frames: Mapping[str, Sequence[pd.DataFrame]]) -> dict[str, pd.DataFrame]:
    """Frames of each of these tables, by its name, as one frame; without rows for a table that has none."""
    return {table.name: stacked(table, frames.get(table.name, ())) for table in tables}


class FrameCache:
    """Folder of data frames from run to run, each named after the SHA-256 of its inputs and of the code that makes it.

    It may be deleted at any time.

    Parameters
    ----------
    folder : Path or str
        Need not exist.
    code : iterable of Path or str
        Source files that compute the frames.
    """

    def __init__(self, folder: Path | str, *, code: Iterable[Path | str]) -> None:
        """Read the code, whose digest is part of every key."""
        self._folder = Path(folder)
        state = hashlib.sha256()
        for path in sorted(map(str, code)):
            state.update(path.encode() + b"\0" + Path(path).read_bytes() + b"\0")
        self._code = state.hexdigest()

    def get(self, table: Table, made_of: Mapping[str, object], make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        """Frame of a table: the stored one, or the result of `make`.

        Parameters
        ----------
        table : Table
            Its columns.
        made_of : mapping
            The inputs, as values that JSON can hold.
        make : callable
            Computes the frame; the result is stored where that took longer than WORTH_STORING.

        Returns
        -------
        DataFrame
            The rows.
        """
        inputs = json.dumps([self._code, table.name, table.version, made_of], sort_keys=True)
        key = hashlib.sha256(inputs.encode()).hexdigest()
        path = self._folder / f"{key}.parquet"
        if path.is_file():
            try:
                return read_table(path, table, expect={"key": key})
            except InputError:
                print(f"{path}: damaged; computed again")
        started = time.monotonic()
        frame = make()
        if time.monotonic() - started > WORTH_STORING:
            write_table(path, table, frame, identity={"key": key})
        return frame
