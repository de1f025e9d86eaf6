"""Images and labels in arrays: an .npz file, or a folder of .npy files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from gfscore.core.settings import Text, path_ends
from gfscore.images.dataset_source import DatasetSettings, DatasetSource

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet

IMAGE = "x"
"""Name of the array of images where the entry names none."""

LABEL = "y"
"""Name of the array of labels where the entry names none."""


class Npz(DatasetSettings):
    """Images and labels in arrays."""

    source: Literal["npz"] = "npz"
    path: Text = Field(description="File .npz with the arrays, or folder with a file .npy for each.")
    image: Text | None = Field(None, description="Name of the array of images; null for x.")
    label: Text | None = Field(None, description="Name of the array of labels; null for y.")
    value_range: Literal[1, 255, "signed"] | None = Field(
        None,
        description="Pixel value of white where black is 0; signed for -1 to 1; null for 255 if pixels are uint8, "
        "else 1.",
    )
    channels: Literal["first", "last", "none"] | None = Field(
        None,
        description="Axis of the colour channels: first (N, C, H, W), last (N, H, W, C), none (N, H, W); null if the "
        "shape of x is unambiguous.",
    )

    absent: ClassVar[frozenset[str]] = DatasetSettings.absent | {"image", "label"}


SOURCE = DatasetSource(name="npz", settings=Npz, claims=path_ends(".npz"))


def open_source(settings: Npz, path: Path | str) -> ImageSet:
    """Images and labels of two arrays, see `open_arrays`; identifiers are "npz-000007" and so on."""
    from gfscore.images.array_files import open_arrays

    return open_arrays(
        path,
        image=settings.image or IMAGE,
        label=settings.label or LABEL,
        value_range=settings.value_range,
        channels=settings.channels,
        classes=settings.classes,
        prefix=settings.source,
    )
