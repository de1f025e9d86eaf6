"""Reading of untrusted CSV files, plain or gzipped, in bounded memory."""

from __future__ import annotations

import csv
import gzip
import warnings
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from gfscore.tables.malformed import AS_UTF_8, WITHOUT_ROW_NAMES, MalformedError

if TYPE_CHECKING:
    from pandas import DataFrame

PLAIN_TEXT = 1 << 24
"""Number of characters that a file of any size may hold, 16 MiB."""

TEXT_PER_BYTE = 100
"""Characters per byte of the file that a larger text may hold; numbers and names compress to about a tenth."""

MOST_COLUMNS = 100_000
"""Largest number of columns; each takes about a thousand bytes of memory."""

MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA",
    "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
"""Texts that mean a missing number, as in pandas."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""Separators of cells and their names."""


def read_csv(
    path: Path | str, *, separator: str = ",", text: Sequence[str] = (), missing: Sequence[str] = MISSING
) -> DataFrame:
    """Data frame of a CSV file in which every row has as many fields as the header.

    Columns called as `text` says are read as text whatever they hold ("NA" and "007" are sample names); the texts in
    `missing` are missing values in all other columns. Names ending in .gz are decompressed. Raises ValueError for a
    longer or shorter row and for more text than a file of its size may hold; MalformedError, which has a remedy, for
    another separator or encoding, row names without a header, repeated column names and a blank line between rows;
    pandas' errors for damaged bytes.
    """
    import pandas as pd

    with _opened(path) as file:
        header = _require_rectangle(_lines(file, _most(path)), separator)
    # Per column, because a converter does not keep pandas from replacing names such as "NA" by missing values.
    missing_by_column = {name or f"Unnamed: {place}": missing for place, name in enumerate(header) if name not in text}
    names = {"dtype": {name: str for name in text if name in header}, "na_values": missing_by_column}
    # Without index_col=False, pandas takes surplus fields for row names and shifts every column by one.
    with warnings.catch_warnings(), _opened(path) as file:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(file, sep=separator, index_col=False, keep_default_na=False, **names)


def _opened(path):
    # newline="" leaves line ends to the parsers, since a quoted field may hold one.
    opened = gzip.open if Path(path).name.endswith(".gz") else open
    return opened(path, "rt", encoding="utf-8-sig", newline="")


def _most(path):
    return max(PLAIN_TEXT, TEXT_PER_BYTE * Path(path).stat().st_size)


def _lines(file, most):
    # A single line may hold the whole text, so each is read up to the remaining allowance.
    left = most
    while line := _line(file, left + 1):
        left -= len(line)
        if left < 0:
            raise ValueError(f"more than {most} characters, which are too many for the size of this file")
        yield line


def _line(file, most):
    try:
        line = file.readline(most)
    except UnicodeDecodeError as error:
        raise MalformedError(f"its text is not UTF-8: {error}", AS_UTF_8) from error
    # UTF-16 without a byte order mark decodes as UTF-8, to letters with zero bytes between them.
    if "\0" in line:
        raise MalformedError("it holds zero bytes, as text in UTF-16 does", AS_UTF_8)
    return line


def _require_rectangle(lines, separator):
    # Header (list of names) of lines that all have as many fields as it.
    header: list[str] = []
    for row, line in enumerate(_without_blanks_at_the_end(lines), 1):
        # Quotes are rare, and counting is ten times as fast as parsing.
        if header and '"' not in line:
            fields = line.count(separator) + 1
        else:
            cells = next(csv.reader(chain([line], lines), delimiter=separator))
            header, fields = header or _separated(cells, separator), len(cells)
        if fields != len(header):
            if row == 2 and fields == len(header) + 1 and not line.rstrip("\r\n").endswith(separator):
                raise MalformedError(
                    f"row 2 has {fields} fields, the header {len(header)}, as in files with row names",
                    WITHOUT_ROW_NAMES,
                )
            raise ValueError(f"row {row} has {fields} fields, the header {len(header)}")
        if fields > MOST_COLUMNS:
            raise ValueError(f"{fields} columns, more than {MOST_COLUMNS}")
    repeated = [name for name, times in Counter(header).items() if name and times > 1]
    if repeated:
        raise MalformedError(f"two columns {repeated[0]!r}", "rename one")
    return header


def _without_blanks_at_the_end(lines):
    # pandas skips blank lines, which assigns the rows below them to other samples.
    blank = None
    for number, line in enumerate(lines, 1):
        if not line.strip(" \r\n"):
            blank = blank or number
        elif blank:
            raise MalformedError(f"line {blank} is blank", "write what belongs there, or take the line out")
        else:
            yield line


def _separated(header, separator):
    # The header, unless it is a single cell that holds another separator.
    for other, name in SEPARATORS.items():
        if len(header) == 1 and other in header[0] and other != separator:
            expected = SEPARATORS[separator]
            raise MalformedError(
                f"its cells are separated by {name}, not {expected}",
                f"write it with {expected} between cells and points in numbers",
            )
    return header
