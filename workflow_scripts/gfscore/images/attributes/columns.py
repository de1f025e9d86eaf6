"""Attributes in columns of the Parquet files that hold the images."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.images.attribute_source import AttributeColumn, AttributeSettings, AttributeSource


class Columns(AttributeSettings):
    """Further columns of the Parquet files that hold images and labels."""

    source: Literal["columns"] = "columns"
    columns: list[AttributeColumn] = Field(
        min_length=1, description="Columns whose values are the groups, or numbers cut into groups."
    )


SOURCE = AttributeSource(name="columns", settings=Columns)


def open_source(settings: dict[str, Any], dataset: Any) -> Any:
    """Raw columns by sample identifier, as gfscore.images.sources.parquet defines identifiers.

    Raises InputError for a dataset of another source, and, naming the file, for a missing column.
    """
    import pandas as pd

    from gfscore.images.attribute_values import name_of

    if dataset.manifest["settings"]["source"] != "parquet":
        raise InputError(
            f"attributes of {dataset.manifest['dataset']}: the source `columns` reads Parquet datasets; use `table`"
        )
    path = Path(dataset.manifest["path"])
    files = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
    return pd.concat([_columns(file, [name_of(entry) for entry in settings["columns"]]) for file in files])


def _columns(file, names):
    from gfscore.images.encoded import opened

    for name in names:
        with opened(file, name) as parquet:
            rows = parquet.metadata.num_rows
    with opened(file, names[0]) as parquet:
        # Ignores pandas' metadata in the footer, which no checksum covers.
        frame = parquet.read(names).replace_schema_metadata().to_pandas()
    frame.index = [f"{file.stem}/{row:06d}" for row in range(rows)]
    return frame
