"""Parquet files whose footers nobody vouches for."""

from collections import Counter
from pathlib import Path

from gfscore.tables.malformed import Malformed

PLAIN_ROWS = 10_000_000
"""Rows that any file may have; equal values in a row take next to no room, and this many no memory to speak of."""

ROWS_PER_BYTE = 10
"""Rows that a larger table may have for each byte of its file: rows of samples differ."""

PLAIN_VALUES = 25_000_000
"""Values that any file may have in all columns together, those of lists one by one: 200 MB as numbers of 64 bits."""

VALUES_PER_BYTE = 100
"""Values that a larger table may have for each byte of its file: whole columns may hold one value only."""

BATCH = 64
"""Rows read at a time where lists are counted."""


def opened_parquet(path):
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


def most_values(path):
    """Values that a file may have in all columns together."""
    return max(PLAIN_VALUES, VALUES_PER_BYTE * Path(path).stat().st_size)


def read_parquet(path):
    """Arrow table of a whole file, whose lists hold no more values than most_values says.

    Raises ValueError as opened_parquet does; Malformed for longer lists, for two columns of one name, and for lists
    inside of other values.
    """
    import pyarrow as pa

    with opened_parquet(path) as file:
        schema = file.schema_arrow
        repeated = next((name for name, times in Counter(schema.names).items() if times > 1), None)
        if repeated is not None:
            raise Malformed(f"two columns {repeated!r}", "rename one")
        # How many values such lists hold cannot be counted row by row, and equal ones take next to no room.
        nested = next((field for field in schema if _holds_lists(field.type, below=is_list(field.type))), None)
        if nested is not None:
            raise Malformed(f"column {nested.name!r} has lists within its values ({nested.type})", "leave it out")
        lists = [place for place, kind in enumerate(schema.types) if is_list(kind)]
        if not lists:
            return file.read()
        # Equal lists take next to no room in the file: only reading tells how many values they hold.
        batches, left = [], most_values(path)
        for batch in file.iter_batches(BATCH):
            left -= sum(len(batch.column(place).flatten()) for place in lists)
            if left < 0:
                fault = f"its lists hold more than {most_values(path)} values, too many for its size"
                raise Malformed(fault, "write it without compression and dictionary (use_dictionary=False)")
            batches.append(batch)
        return pa.Table.from_batches(batches, schema=schema)


def _holds_lists(kind, *, below):
    # Whether lists or mappings stand anywhere in a type, or anywhere below its outermost level.
    import pyarrow as pa

    if not below and (is_list(kind) or pa.types.is_map(kind)):
        return True
    return any(_holds_lists(kind.field(place).type, below=False) for place in range(kind.num_fields))


def is_list(kind):
    """Whether an Arrow type is one of lists, of any or of one length."""
    import pyarrow as pa

    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
