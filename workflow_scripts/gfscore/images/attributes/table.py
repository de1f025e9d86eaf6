"""Attributes in a separate file, Parquet or CSV, with one row per sample."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.lazy import pd
from gfscore.core.settings import Text
from gfscore.images.attribute_source import SAMPLE_ID, AttributeColumn, AttributeSettings, AttributeSource

if TYPE_CHECKING:
    from gfscore.images.attribute_values import Dataset


class Table(AttributeSettings):
    """A file with one row per sample."""

    source: Literal["table"] = "table"
    path: Text = Field(description="File of attributes: .parquet, .csv or .csv.gz.")
    key: Text = Field(SAMPLE_ID, description="Column of sample identifiers, as in the dataset.")
    columns: list[AttributeColumn] = Field(
        min_length=1, description="Columns whose values are the groups, or numbers cut into groups."
    )


SOURCE = AttributeSource(name="table", settings=Table)


def open_source(settings: Table, _dataset: Dataset) -> pd.DataFrame:
    """Raw columns of the file by sample identifier.

    In CSV only an empty cell is a missing value ("NA" and "None" are values, as in Parquet); a column of numbers is
    read as numbers. Raises InputError, naming the file, when it is missing, damaged, without the key, or has rows that
    are longer or shorter than its header.
    """
    from gfscore.tables.binary_files import ROW_NAMES, read_parquet, unreadable
    from gfscore.tables.csv_files import read_csv

    path = Path(settings.path)
    key = settings.key
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; check `path` of these attributes")
    try:
        if path.suffix == ".parquet":
            # Ignores pandas' metadata in the footer, which no checksum covers; an index becomes a column.
            frame = read_parquet(path).replace_schema_metadata().to_pandas()
        else:
            # pandas by itself takes NA, None, null and more for missing: regions and glasses are called so.
            frame = read_csv(path, text=(key,), missing=("",))
    # Damaged files fail inside the readers in many ways; each means the same to the user.
    except Exception as error:
        raise unreadable(path, path.suffix, error) from error

    if key not in frame:
        columns = list(map(str, frame.columns))
        remedy = "correct `key`"
        if any(map(ROW_NAMES.match, columns)):
            remedy += ", or write row names as a column of that name"
        raise InputError(f"{path}: no column {key!r}, only {', '.join(columns)}; {remedy}")
    names = frame[key].astype(str)
    # An empty cell of a CSV file is read as an empty text in the key column.
    missing = frame[key].isna() | (names == "")
    if missing.any():
        raise InputError(f"{path}: row {missing.to_numpy().argmax()} has no {key}; give one per row")
    return frame.set_index(names).drop(columns=key)
