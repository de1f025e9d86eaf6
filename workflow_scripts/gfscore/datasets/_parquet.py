"""Encoded images out of Parquet files, a few rows in memory at a time."""

from contextlib import contextmanager
from functools import partial

from gfscore.errors import InputError

BATCH = 64
"""Rows decoded from Parquet's own encoding at a time."""


@contextmanager
def opened(file, column):
    """Open a Parquet file that has a column; InputError, naming the file, when it is damaged or has none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
            if column not in parquet.schema_arrow.names:
                raise InputError(f"{file}: no column {column}, only {', '.join(parquet.schema_arrow.names)}")
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error


def encoded_images(file, column, rows):
    """Yield, for `rows` (n,) ascending, the name of the row and a function that returns its encoded image.

    Row groups without a wanted row are not read. The function raises InputError for a row without bytes.
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
