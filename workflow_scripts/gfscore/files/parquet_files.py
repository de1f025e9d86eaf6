"""Parquet files whose footers nobody vouches for."""

from pathlib import Path

PLAIN_ROWS = 10_000_000
"""Rows that any file may have; equal values in a row take next to no room, and this many no memory to speak of."""

ROWS_PER_BYTE = 10
"""Rows that a larger table may have for each byte of its file: rows of samples differ."""


def opened_parquet(path):
    """pyarrow's ParquetFile that verifies page checksums, once its number of rows can be true.

    Raises ValueError for a footer that promises more rows than PLAIN_ROWS and the file can hold, and whatever pyarrow
    raises for a file that is missing or damaged.
    """
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(path, page_checksum_verification=True)
    rows, size = parquet.metadata.num_rows, Path(path).stat().st_size
    groups = sum(parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups))
    if not 0 <= rows <= max(PLAIN_ROWS, ROWS_PER_BYTE * size) or groups != rows:
        parquet.close()
        raise ValueError(f"its footer promises {rows} rows, {groups} in all row groups, in a file of {size} bytes")
    return parquet
