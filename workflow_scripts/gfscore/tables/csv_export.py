"""CSV copies of the tables of results/, safe to open in a spreadsheet."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gfscore.core.files import atomic
from gfscore.core.names import REPLACEMENT, harmless, visible
from gfscore.tables.parquet_tables import read_table, write_table
from gfscore.tables.table import Table

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet treat a text as a formula."""


def write_table_and_csv(path: Path | str, table: Table, frame: pd.DataFrame, *, identity: Mapping[str, Any]) -> None:
    """Write a table as write_table does, and a CSV copy in the same folder.

    The CSV is made from the table as it is read, so it can be reproduced from the Parquet file byte for byte.
    """
    write_table(path, table, frame, identity=identity)
    write_csv_beside(path, read_table(path, table))


def write_csv_beside(path_to_parquet: Path | str, frame: pd.DataFrame) -> None:
    """Write csv_text of a data frame next to a Parquet file, under the same name with the suffix .csv."""
    with atomic(Path(path_to_parquet).with_suffix(".csv")) as temporary:
        temporary.write_bytes(csv_text(frame).encode())


def csv_text(frame: pd.DataFrame) -> str:
    """Data frame as CSV: lists joined by '|', numbers in full precision, texts made safe by as_cell."""
    plain = frame.copy()
    for column in plain.select_dtypes(exclude=["number", "bool"]):
        items = plain[column].astype(object)
        if items.map(lambda item: isinstance(item, list)).any():
            plain[column] = items.map(as_cell)
        else:
            # Names recur: each is converted once.
            plain[column] = items.map({item: as_cell(item) for item in items.dropna().unique()})
    return plain.to_csv(index=False, lineterminator="\n")


def as_cell(item: Any) -> Any:
    """Value of a CSV cell without control characters; text that a spreadsheet takes for a formula gets an apostrophe.

    The same holds after a semicolon or a line break, where spreadsheets of many locales begin another cell, quoted or
    not. Numbers stored as text, such as a group "-1", are unchanged.
    """
    text = "|".join(item) if isinstance(item, list) else item
    if not isinstance(text, str) or _is_number(text):
        return text
    # Most readers end a row at a lone carriage return, which the writer does not quote.
    parts = (f"'{part}" if _is_formula(part) else part for part in _CELLS.split(text))
    return harmless("".join(parts)).replace("\r", REPLACEMENT)


_CELLS = re.compile("([;\n])")


def _is_formula(text):
    # Invisible characters before the sign do not stop a spreadsheet from evaluating it.
    return visible(text).startswith(FORMULA_SIGNS) and not _is_number(text)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
