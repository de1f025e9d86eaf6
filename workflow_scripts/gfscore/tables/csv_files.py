"""CSV files: users' files, plain or gzipped, read in bounded memory; and copies of the tables of results/."""

import csv
import gzip
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pandas as pd

from gfscore.core.files import atomic
from gfscore.core.names import REPLACEMENT, harmless, visible
from gfscore.tables.binary_files import WITHOUT_ROW_NAMES, MalformedError, require_different_names
from gfscore.tables.parquet_tables import read_table, write_table
from gfscore.tables.table import Table

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

AS_UTF_8 = "save it as UTF-8"
"""Remedy for text in another encoding, such as Latin-1 or the UTF-16 of some spreadsheets."""

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet treat a text as a formula."""

_CELLS = re.compile("([;\n])")
"""Where spreadsheets of many locales begin another cell, quoted or not."""


# ---- reading ----


def read_csv(
    path: Path | str, *, separator: str = ",", text: Sequence[str] = (), missing: Sequence[str] = MISSING
) -> pd.DataFrame:
    """Data frame of a CSV file in which every row has as many fields as the header.

    Parameters
    ----------
    path : Path or str
        File to read; a name ending in .gz is decompressed.
    separator : str
        A key of SEPARATORS.
    text : sequence of str
        Columns that are read as text whatever they hold ("NA" and "007" are sample names).
    missing : sequence of str
        Texts that are missing values in all other columns.

    Returns
    -------
    DataFrame
        The rows.

    Raises
    ------
    ValueError
        For a longer or shorter row, a quoted cell longer than the module csv takes, and more text than a file of its
        size may hold; MalformedError, which has a remedy, for another separator or encoding, row names without a
        header, repeated column names and a blank line in one column; pandas' errors for damaged bytes.
    """
    with _opened(path) as file:
        most_characters = max(PLAIN_TEXT, TEXT_PER_BYTE * Path(path).stat().st_size)
        header = _header_of_rectangle(_lines(file, most_characters), separator)

    # Per column, because a converter does not keep pandas from replacing names such as "NA" by missing values.
    types: dict[str, type] = {}
    missing_by_column: dict[str, Sequence[str]] = {}
    for position, name in enumerate(header):
        if name in text:
            types[name] = str
        else:
            missing_by_column[name or f"Unnamed: {position}"] = missing
    with warnings.catch_warnings(), _opened(path) as file:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            file,
            sep=separator,
            dtype=types,
            na_values=missing_by_column,
            keep_default_na=False,
            # Otherwise pandas takes surplus fields for row names and shifts every column by one.
            index_col=False,
            # By pieces, each piece of a column would get a type of its own, and "1" become 1.0 in some of them.
            low_memory=False,
        )


def _opened(path: Path | str) -> IO[str]:
    # newline="" leaves line ends to the parsers, since a quoted field may hold one.
    if Path(path).name.endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return Path(path).open(encoding="utf-8-sig", newline="")


def _lines(file: IO[str], most_characters: int) -> Iterator[str]:
    # A single line may hold the whole text, so each is read up to the number of characters that remain.
    remaining = most_characters
    while True:
        try:
            line = file.readline(remaining + 1)
        except UnicodeDecodeError as error:
            raise MalformedError(f"its text is not UTF-8: {error}", AS_UTF_8) from error
        if not line:
            return
        # UTF-16 without a byte order mark decodes as UTF-8, to letters with zero bytes between them.
        if "\0" in line:
            raise MalformedError("it holds zero bytes, as text in UTF-16 does", AS_UTF_8)
        remaining -= len(line)
        if remaining < 0:
            raise ValueError(f"more than {most_characters} characters, which are too many for the size of this file")
        yield line


def _header_of_rectangle(lines: Iterator[str], separator: str) -> list[str]:
    # Refuses lines of which one has another number of fields than the header.
    blank_characters = " \t\r\n".replace(separator, "")
    header: list[str] = []
    number = 0
    row = 0
    blank = None
    for line in lines:
        number += 1
        if not line.strip(blank_characters):
            blank = blank or number
            continue
        # In a file of one column a blank line is an empty cell. pandas would skip it, and the values below would belong
        # to other samples.
        if blank and len(header) == 1:
            raise MalformedError(f"line {blank} is blank", "write what belongs there, or take the line out")
        row += 1
        blank = None

        # Quotes are rare, and counting is ten times as fast as parsing.
        if header and '"' not in line:
            fields = line.count(separator) + 1
        else:
            reader = csv.reader(chain([line], lines), delimiter=separator)
            try:
                cells = next(reader)
            except csv.Error as error:
                raise ValueError(f"row {row}: {error}") from error
            # A quoted cell may go on over several lines.
            number += reader.line_num - 1
            fields = len(cells)
            if not header:
                _require_separator(cells, separator)
                header = cells
        if fields != len(header):
            surplus_is_a_name = not line.rstrip("\r\n").endswith(separator)
            if row == 2 and fields == len(header) + 1 and surplus_is_a_name:
                raise MalformedError(
                    f"row 2 has {fields} fields, the header {len(header)}, as in files with row names",
                    WITHOUT_ROW_NAMES,
                )
            raise ValueError(f"row {row} has {fields} fields, the header {len(header)}")
        if fields > MOST_COLUMNS:
            raise ValueError(f"{fields} columns, more than {MOST_COLUMNS}")
    require_different_names([name for name in header if name])
    return header


def _require_separator(header: list[str], separator: str) -> None:
    # A header of a single cell that holds another separator was split at the wrong one.
    if len(header) != 1:
        return
    for candidate, name in SEPARATORS.items():
        if candidate in header[0] and candidate != separator:
            expected = SEPARATORS[separator]
            raise MalformedError(
                f"its cells are separated by {name}, not {expected}",
                f"write it with {expected} between cells and points in numbers",
            )


# ---- writing ----


def write_table_and_csv(path: Path | str, table: Table, frame: pd.DataFrame, *, identity: Mapping[str, object]) -> None:
    """Write a table, and a CSV copy in the same folder; see write_table.

    The CSV is made from the table as it is read, so it can be reproduced from the Parquet file byte for byte.
    """
    write_table(path, table, frame, identity=identity)
    write_csv_beside(path, read_table(path, table))


def write_csv_beside(path_to_parquet: Path | str, frame: pd.DataFrame) -> None:
    """Write csv_text of a data frame next to a Parquet file, under the same name with the suffix .csv."""
    with atomic(Path(path_to_parquet).with_suffix(".csv")) as temporary:
        temporary.write_bytes(csv_text(frame).encode())


def csv_text(frame: pd.DataFrame) -> str:
    """Data frame as CSV, safe to open in a spreadsheet.

    Parameters
    ----------
    frame : DataFrame
        Columns of numbers, texts and lists of texts.

    Returns
    -------
    str
        Lists joined by '|', numbers in full precision, texts made safe by as_cell.
    """
    plain = frame.copy()
    for column in plain.select_dtypes(exclude=["number", "bool"]):
        items = plain[column].astype(object)
        if items.map(lambda item: isinstance(item, list)).any():
            plain[column] = items.map(as_cell)
        else:
            # Names recur: each is converted once.
            cells = {item: as_cell(item) for item in items.dropna().unique()}
            plain[column] = items.map(cells)
    return plain.to_csv(index=False, lineterminator="\n")


def as_cell(item: Any) -> Any:
    """Value of a CSV cell, safe to open in a spreadsheet.

    Parameters
    ----------
    item : object
        A value, or a list of texts.

    Returns
    -------
    object
        Text without control characters, in which an apostrophe precedes what a spreadsheet would take for a formula, at
        the start or after a semicolon or a line break. Numbers are unchanged, also those stored as text, such as the
        name "-1" of a group.
    """
    text = "|".join(item) if isinstance(item, list) else item
    if not isinstance(text, str):
        return text
    cells = []
    for cell in _CELLS.split(text):
        # Invisible characters before the sign do not stop a spreadsheet from evaluating it.
        is_formula = visible(cell).startswith(FORMULA_SIGNS) and not _is_number(cell)
        cells.append(f"'{cell}" if is_formula else cell)
    # Most readers end a row at a lone carriage return, which the writer does not quote.
    return harmless("".join(cells)).replace("\r", REPLACEMENT)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
