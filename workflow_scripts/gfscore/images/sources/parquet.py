"""Encoded images in Parquet files, in the layout of Hugging Face's datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Part, Preprocessing, as_stored

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class Parquet(DatasetSettings):
    """Parquet files with encoded images."""

    source: Literal["parquet"] = "parquet"
    path: Text = Field(description="Parquet file, or folder of them (shards).")
    image: Text = Field("image", description="Column of encoded images: bytes, or {bytes, path}.")
    label: Text = Field(
        "label", description="Column of labels: whole numbers from 0, or class names (then in alphabetical order)."
    )
    part: Part | None = Field(
        None, description="One part of a seeded two-way split, stratified by class; null for all samples."
    )
    preprocessing: Preprocessing = Field(default_factory=as_stored)


SOURCE = DatasetSource(
    name="parquet",
    settings=Parquet,
    claims=path_ends(".parquet"),
    # Hugging Face's metadata may name more classes than the rows have.
    empty_classes=lambda _settings: True,
)


def open_source(settings: Parquet, path: Path | str) -> ImageSet:
    """Images of one Parquet file, or of all of a folder, see `open_parquet_images`."""
    from gfscore.images.encoded_parquet import open_parquet_images

    return open_parquet_images(
        path,
        image=settings.image,
        label=settings.label,
        part=settings.part,
        preprocessing=settings.preprocessing,
    )
