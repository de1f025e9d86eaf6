"""Images in class folders, such as the validation images of ImageNet."""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError, few
from gfscore.core.labels import are_numbers
from gfscore.core.settings import Text, Unique
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet


class ImageFolder(DatasetSettings):
    """A folder with one folder of images per class."""

    source: Literal["image_folder"] = "image_folder"
    path: Text = Field(description="Folder that holds one folder per class.")
    folders: Unique[Text] | None = Field(
        None, min_length=2, description="Class folders in label order; null for all of them, sorted by name."
    )
    list: Text | None = Field(
        None, description="Text file of the images to use, one relative path per line; null for all."
    )
    preprocessing: Preprocessing = Field(default_factory=as_stored)


def _claims(entry: Mapping[str, Any]) -> bool:
    if "path" not in entry or PurePath(str(entry["path"])).suffix:
        return False
    # Other sources that read folders have keys of their own.
    return not {"task", "variant", "corruption"} & set(entry)


SOURCE = DatasetSource(
    name="image_folder",
    settings=ImageFolder,
    claims=_claims,
    # A class that a list passes over is rather a mistake in the list.
    empty_classes=lambda settings: settings.list is None,
)


def open_source(settings: ImageFolder, path: Path | str) -> "ImageSet":
    """Images <class folder>/<file> under `path`, see `open_class_folders`."""
    from gfscore.images.listing import open_class_folders

    images = open_class_folders(
        path,
        folders=settings.folders,
        path_to_list=settings.list,
        preprocessing=settings.preprocessing,
    )
    numbers = list(images.class_names or ())
    renamed = settings.classes is not None and settings.classes != numbers
    if renamed and settings.folders is None and are_numbers(numbers) and numbers != sorted(numbers, key=int):
        raise InputError(
            f"{path}: the class folders are numbers, which sorted by name are {few(numbers)}, and `classes` gives them "
            "other names in this order; state the folders under `folders`, in the order of `classes`"
        )
    return images
