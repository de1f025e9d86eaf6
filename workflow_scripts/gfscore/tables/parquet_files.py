"""Parquet files whose footers nobody vouches for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from gfscore.tables.malformed import Malformed

if TYPE_CHECKING:
    from pyarrow import DataType, Table
    from pyarrow.parquet import ParquetFile

PLAIN_ROWS = 10_000_000
"""Rows that any file may have; equal values in a row take next to no room, and this many no memory to speak of."""

ROWS_PER_BYTE = 10
"""Rows that a larger table may have for each byte of its file: rows of samples differ."""

PLAIN_VALUES = 25_000_000
"""Values that any file may have in all columns together: 200 MB as numbers of 64 bits."""

VALUES_PER_BYTE = 100
"""Values that a larger table may have for each byte of its file: whole columns may hold one value only."""

BYTES_PER_VALUE = 4
"""Of lists, which hold logits in float32."""

BATCH = 64
"""Rows read at a time where there are lists."""


def opened_parquet(path: Path | str) -> ParquetFile:
    """pyarrow's ParquetFile that verifies page checksums, once its number of rows can be true.

    Raises ValueError for a footer that promises more rows than PLAIN_ROWS and the file can hold, or more values than
    most_values says where every row has one in each column, and whatever pyarrow raises for a file that is missing or
    damaged.
    """
    import pyarrow.parquet as pq

    # Reading ahead would take a tenth of the time of a small file, and nothing off that of a large one.
    parquet = pq.ParquetFile(path, page_checksum_verification=True, pre_buffer=False)
    # Of the columns' own numbers nothing is asked: where a footer is damaged, that ends the process.
    rows, columns, size = parquet.metadata.num_rows, parquet.metadata.num_columns, Path(path).stat().st_size
    groups = sum(parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups))
    fault = None
    if not 0 <= rows <= max(PLAIN_ROWS, ROWS_PER_BYTE * size) or groups != rows:
        fault = f"{rows} rows, {groups} in all row groups,"
    elif rows * columns > most_values(path):
        fault = f"{rows} rows of {columns} columns"
    if fault:
        parquet.close()
        raise ValueError(f"its footer promises {fault} in a file of {size} bytes")
    return parquet


def most_values(path: Path | str) -> int:
    """Values that a file may have in all columns together."""
    return max(PLAIN_VALUES, VALUES_PER_BYTE * Path(path).stat().st_size)


def read_parquet(path: Path | str) -> Table:
    """Arrow table of a whole file.

    Raises ValueError as opened_parquet does; Malformed for two columns of one name, and where lists, or other values
    that hold values, have more than BYTES_PER_VALUE for each that most_values says.
    """
    import pyarrow as pa

    with opened_parquet(path) as file:
        schema = file.schema_arrow
        repeated = next((name for name, times in Counter(schema.names).items() if times > 1), None)
        if repeated is not None:
            raise Malformed(f"two columns {repeated!r}", "rename one")
        if not any(pa.types.is_nested(kind) for kind in schema.types):
            return file.read()
        # Equal lists take next to no room in the file: only reading tells how much they hold.
        batches, left = [], BYTES_PER_VALUE * most_values(path)
        for batch in file.iter_batches(BATCH):
            left -= batch.nbytes
            if left < 0:
                fault = "its lists hold more than a file of its size may"
                raise Malformed(fault, "write it without compression and dictionary (use_dictionary=False)")
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=schema)


def is_list(kind: DataType) -> bool:
    """Whether an Arrow type is one of lists, of any or of one length."""
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
