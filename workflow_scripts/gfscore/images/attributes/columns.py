"""Attributes in columns of the Parquet files that hold the images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.lazy import pd
from gfscore.images.attribute_source import AttributeColumn, AttributeSettings, AttributeSource, column_name

if TYPE_CHECKING:
    from gfscore.images.attribute_values import Dataset


class Columns(AttributeSettings):
    """Further columns of the Parquet files that hold images and labels."""

    source: Literal["columns"] = "columns"
    columns: list[AttributeColumn] = Field(
        min_length=1, description="Columns whose values are the groups, or numbers cut into groups."
    )


SOURCE = AttributeSource(name="columns", settings=Columns)


def open_source(settings: Columns, dataset: Dataset) -> pd.DataFrame:
    """Raw columns by sample identifier, as gfscore.images.sources.parquet defines identifiers.

    Raises InputError for a dataset of another source, and, naming the file, for a missing column.
    """
    import pandas as pd

    from gfscore.images.encoded_parquet import opened, parquet_files_of, row_names

    if dataset.source != "parquet" or dataset.path is None:
        raise InputError(f"attributes of {dataset.name}: the source `columns` reads Parquet datasets; use `table`")
    names = [column_name(column) for column in settings.columns]
    frames = []
    for file in parquet_files_of(dataset.path):
        columns = {}
        for name in names:
            with opened(file, name) as parquet:
                # Ignores pandas' metadata in the footer, which no checksum covers.
                table = parquet.read([name]).replace_schema_metadata()
            columns[name] = table.to_pandas()[name]
        frame = pd.DataFrame(columns)
        frame.index = pd.Index(row_names(file, len(frame)))
        frames.append(frame)
    return pd.concat(frames)
