"""Reading of untrusted Parquet files in bounded memory: a file may claim far more values than it holds."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from gfscore.tables.malformed import MalformedError

if TYPE_CHECKING:
    from pyarrow import DataType, Table
    from pyarrow.parquet import ParquetFile

PLAIN_ROWS = 10_000_000
"""Rows that a file of any size may have; runs of equal values compress to almost nothing."""

ROWS_PER_BYTE = 10
"""Rows per byte of the file that a larger table may have."""

PLAIN_VALUES = 25_000_000
"""Values in all columns together that a file of any size may have: 200 MB as 64-bit numbers."""

VALUES_PER_BYTE = 100
"""Values per byte of the file that a larger table may have; a column may repeat one value."""

BYTES_PER_VALUE = 4
"""Bytes per value of lists, which hold logits in float32."""

BATCH = 64
"""Rows per batch when reading lists."""


def opened_parquet(path: Path | str) -> ParquetFile:
    """pyarrow's ParquetFile, with verification of page checksums, if its size is plausible.

    Raises ValueError for a footer that claims more rows than PLAIN_ROWS and ROWS_PER_BYTE allow or more values than
    most_values, and pyarrow's errors for a file that is missing or damaged.
    """
    import pyarrow.parquet as pq

    # Reading ahead slows small files by a tenth, and does not speed up large ones.
    parquet = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
    # The metadata of single columns is not read: with a damaged footer, that crashes the process.
    rows, columns, size = parquet.metadata.num_rows, parquet.metadata.num_columns, Path(path).stat().st_size
    groups = sum(parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups))
    fault = None
    if not 0 <= rows <= max(PLAIN_ROWS, ROWS_PER_BYTE * size) or groups != rows:
        fault = f"{rows} rows, {groups} in all row groups,"
    elif rows * columns > most_values(path):
        fault = f"{rows} rows of {columns} columns"
    if fault:
        parquet.close()
        raise ValueError(f"its footer claims {fault} in a file of {size} bytes")
    return parquet


def most_values(path: Path | str) -> int:
    """Largest number of values that a file may have in all columns together."""
    return max(PLAIN_VALUES, VALUES_PER_BYTE * Path(path).stat().st_size)


def read_parquet(path: Path | str) -> Table:
    """Arrow table of a whole file.

    Raises ValueError as opened_parquet does; MalformedError for repeated column names, and for lists or other nested
    values of more than BYTES_PER_VALUE * most_values bytes.
    """
    import pyarrow as pa

    with opened_parquet(path) as file:
        schema = file.schema_arrow
        repeated = next((name for name, times in Counter(schema.names).items() if times > 1), None)
        if repeated is not None:
            raise MalformedError(f"two columns {repeated!r}", "rename one")
        if not any(pa.types.is_nested(kind) for kind in schema.types):
            return file.read()
        # Equal lists compress to almost nothing: their size is known only after reading.
        batches, left = [], BYTES_PER_VALUE * most_values(path)
        for batch in file.iter_batches(BATCH):
            left -= batch.nbytes
            if left < 0:
                fault = "its lists hold more values than allowed for a file of its size"
                raise MalformedError(fault, "write it without compression and dictionary (use_dictionary=False)")
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=schema)


def is_list(kind: DataType) -> bool:
    """Whether an Arrow type is a list, of variable or fixed length."""
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
