"""Images and their labels listed in a CSV file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from gfscore.core.settings import Text
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class ImageCsv(DatasetSettings):
    """A CSV file that names images and their labels."""

    source: Literal["image_csv"] = "image_csv"
    path: Text = Field(description="CSV file with a row per image.")
    images: Text | None = Field(
        None, description="Folder that the names of the images are relative to; null for that of the CSV file."
    )
    image: Text = Field("image", description="Column with the names of the images.")
    label: Text = Field(
        "label", description="Column of labels: whole numbers from 0, or class names (then in alphabetical order)."
    )
    separator: Literal["comma", "semicolon", "tab"] | None = Field(
        None, description="What stands between the cells; null for a comma."
    )
    preprocessing: Preprocessing = Field(default_factory=as_stored)

    absent: ClassVar[frozenset[str]] = DatasetSettings.absent | {"separator"}


SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t"}
"""Characters between cells, by the value of the setting `separator`."""

SOURCE = DatasetSource(name="image_csv", settings=ImageCsv)


def open_source(settings: ImageCsv, path: Path | str) -> ImageSet:
    """Images in the order of the CSV file; a sample's identifier is the name of its image there."""
    from gfscore.images.listing import open_images_of_csv

    folder = Path(settings.images) if settings.images else Path(path).parent
    return open_images_of_csv(
        path,
        root=folder,
        image=settings.image,
        label=settings.label,
        separator=SEPARATORS[settings.separator or "comma"],
        classes=settings.classes,
        preprocessing=settings.preprocessing,
    )
