"""Reading of .npy, .npz and .parquet files of others, in bounded memory and without unpickling.

A file may claim far more values than it holds; its header is compared with its size before its data are read.
"""

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import unpacks_too_far

Header = tuple[tuple[int, ...], np.dtype[np.generic]]
"""Shape and type of an array, as its header declares them."""

ROW_NAMES = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?$")
"""Names that pandas and Parquet give to an unnamed column of row names."""

WITHOUT_ROW_NAMES = "write the file without row names (R: row.names = FALSE, pandas: index=False)"
"""Remedy for a table with such a column."""

PLAIN_ROWS = 10_000_000
"""Rows that a Parquet file of any size may have; runs of equal values compress to almost nothing."""

ROWS_PER_BYTE = 10
"""Rows per byte of the file that a larger table may have."""

PLAIN_VALUES = 25_000_000
"""Values in all columns together that a Parquet file of any size may have: 200 MB as 64-bit numbers."""

VALUES_PER_BYTE = 100
"""Values per byte of the file that a larger table may have; a column may repeat one value."""

BYTES_PER_VALUE = 4
"""Bytes per value of lists, which hold logits in float32."""

BATCH = 64
"""Rows per batch when reading lists."""

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Readers of array headers by version; version 3 is only for field names outside ASCII, which are not supported."""


class MalformedError(ValueError):
    """A fault of an undamaged file: it needs its own `remedy`, since copying it again changes nothing."""

    def __init__(self, fault: str, remedy: str) -> None:
        """`fault` is the text of the error."""
        super().__init__(fault)
        self.remedy = remedy


def unreadable(path: Path | str, kind: str, error: Exception) -> InputError:
    """InputError for a file of format `kind` (".csv") that a reader rejected, with the error's remedy if it has one."""
    remedy = getattr(error, "remedy", "write the file again")
    return InputError(f"{path}: not readable as {kind} ({error}); {remedy}")


# ---- .npy and .npz ----


def opened(path: Path | str, *, mmap_mode: Literal["r"] | None = None) -> Any:
    """Open a .npy or .npz file with numpy.load, without unpickling.

    Parameters
    ----------
    path : Path or str
        File to open.
    mmap_mode : "r", optional
        Maps an array into memory, which also compares the size in its header with the size of the file.

    Returns
    -------
    ndarray or NpzFile
        An archive is to be closed.

    Raises
    ------
    ValueError
        For a file of another format; MalformedError for Python objects, and for one of both formats that is named as
        the other.
    """
    try:
        content = np.load(path, allow_pickle=False, mmap_mode=mmap_mode)
    except ValueError as error:
        # For an unknown format numpy assumes a pickle, and its message advises to allow pickles.
        if "unsafely" in str(error):
            raise ValueError("neither a .npy nor a .npz file") from error
        # In two spellings, as the file is read or mapped into memory.
        if "object" in str(error).lower():
            raise _of_objects("the array") from error
        raise
    if isinstance(content, np.lib.npyio.NpzFile):
        if Path(path).suffix == ".npy":
            content.close()
            raise MalformedError("it is an archive of arrays", "rename it to end in .npz")
    elif Path(path).suffix == ".npz":
        raise MalformedError("it is one array, no archive", "rename it to end in .npy")
    return content


def declared_array(archive: np.lib.npyio.NpzFile, name: str, *, with_objects: bool = False) -> Header:
    """Shape and type of an array of an open .npz file by its header, before any of its data are read.

    Parameters
    ----------
    archive : NpzFile
        The open file.
    name : str
        Name of the array.
    with_objects : bool
        Whether an array of Python objects, which is not to be read, has an answer too.

    Returns
    -------
    shape : tuple of int
        Shape of the array.
    dtype : numpy.dtype
        Its type.

    Raises
    ------
    ValueError
        Where the archive's directory, the array's header and the size of the file contradict each other, or the array
        unpacks too far (see gfscore.core.files).
    """
    assert archive.zip is not None  # it is open
    member = archive.zip.getinfo(name if name in archive.zip.namelist() else f"{name}.npy")
    if unpacks_too_far(member.file_size, member.compress_size):
        raise ValueError(
            f"array {name} claims {member.file_size:,} bytes compressed to {member.compress_size:,}; if that is right, "
            "save it uncompressed, with numpy.savez"
        )
    with archive.zip.open(member) as file:
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        expected_size = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        if with_objects:
            return tuple(shape), dtype
        raise _of_objects(f"array {name}")
    if expected_size != member.file_size:
        raise ValueError(f"array {name} has {member.file_size} bytes, but its header implies {expected_size}")
    return tuple(shape), dtype


def declared_header(path: Path | str) -> Header:
    """Shape and type of the array of a .npy file by its header; ValueError where that cannot be read."""
    with Path(path).open("rb") as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format is not read")
        shape, _, dtype = _HEADERS[version](file)
    return tuple(shape), dtype


def whole_array(archive: np.lib.npyio.NpzFile, name: str) -> NDArray[np.generic]:
    """Array `name` of an open .npz file, read after its header was checked.

    Raises ValueError as `declared_array`, zipfile.BadZipFile for a wrong checksum, numpy's errors for damaged bytes.
    """
    declared_array(archive, name)
    array: NDArray[np.generic] = archive[name]
    return array


def _of_objects(array: str) -> MalformedError:
    # numpy's own message would advise to unpickle it.
    return MalformedError(
        f"{array} is of Python objects, which are not unpickled",
        "convert it to numbers, by array.astype(float), or to text, by array.astype(str), and save it again",
    )


# ---- .parquet ----


def open_parquet(path: Path | str) -> pq.ParquetFile:
    """Open a Parquet file if its size is plausible, with verification of page checksums.

    Parameters
    ----------
    path : Path or str
        File to open.

    Returns
    -------
    pyarrow.parquet.ParquetFile
        To be closed.

    Raises
    ------
    ValueError
        For a footer that claims more rows than PLAIN_ROWS and ROWS_PER_BYTE allow, or more values than most_values;
        pyarrow's errors for a file that is missing or damaged.
    """
    # Reading ahead slows small files by a tenth, and does not speed up large ones.
    parquet = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
    # The metadata of single columns is not read: with a damaged footer, that crashes the process.
    rows = parquet.metadata.num_rows
    columns = parquet.metadata.num_columns
    size = Path(path).stat().st_size
    rows_of_groups = sum(parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups))
    claim = None
    if not 0 <= rows <= max(PLAIN_ROWS, ROWS_PER_BYTE * size) or rows_of_groups != rows:
        claim = f"{rows} rows, {rows_of_groups} in all row groups,"
    elif rows * columns > most_values(path):
        claim = f"{rows} rows of {columns} columns"
    if claim:
        parquet.close()
        raise ValueError(f"its footer claims {claim} in a file of {size} bytes")
    return parquet


def most_values(path: Path | str) -> int:
    """Largest number of values that a file may have in all columns together."""
    return max(PLAIN_VALUES, VALUES_PER_BYTE * Path(path).stat().st_size)


def read_parquet(path: Path | str) -> pa.Table:
    """Arrow table of a whole Parquet file.

    Raises
    ------
    ValueError
        See open_parquet; MalformedError for repeated column names, and for lists or other nested values of more than
        BYTES_PER_VALUE * most_values bytes.
    """
    with open_parquet(path) as file:
        schema = file.schema_arrow
        require_different_names(schema.names)
        if not any(pa.types.is_nested(kind) for kind in schema.types):
            return file.read()
        # Equal lists compress to almost nothing: their size is known only after reading.
        allowance = BYTES_PER_VALUE * most_values(path)
        batches = []
        for batch in file.iter_batches(BATCH):
            allowance -= batch.nbytes
            if allowance < 0:
                fault = "its lists hold more values than allowed for a file of its size"
                raise MalformedError(fault, "write it without compression and dictionary (use_dictionary=False)")
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=schema)


def require_different_names(names: list[str]) -> None:
    """Raise MalformedError for two columns of one name."""
    for name, times in Counter(names).items():
        if times > 1:
            raise MalformedError(f"two columns {name!r}", "rename one")


def is_list(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a list, of variable or fixed length."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
