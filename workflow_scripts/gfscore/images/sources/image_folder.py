"""Images in class folders, such as the validation images of ImageNet."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text, Unique
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored


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
    # Other sources that read folders have keys of their own.
    return (
        "path" in entry
        and not PurePath(str(entry["path"])).suffix
        and not {"task", "variant", "corruption"} & set(entry)
    )


def _has_no_list(settings: Mapping[str, Any]) -> bool:
    # A class that a list passes over is rather a mistake in the list.
    return settings.get("list") is None


SOURCE = DatasetSource(name="image_folder", settings=ImageFolder, claims=_claims, empty_classes=_has_no_list)


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images <class folder>/<file> under `path`; labels are the positions of the class folders, sorted by name.

    `settings`: `folders`, `list` and `preprocessing`, see ImageFolder and `decoding.prepare`. Identifiers are the paths
    relative to `path`, sorted within a class. Names that start with a dot are ignored. An empty class folder is a class
    without samples. Raises InputError, naming folder or file, for missing and undeclared class folders, files that are
    no images, and damaged images.
    """
    return open_folder(path, settings)


def open_folder(root: Any, settings: dict[str, Any], *, prefix: str = "") -> Any:
    """Images under `root` as `open_source` returns them, with `prefix` put before every identifier."""
    from gfscore.images.encoded import from_files
    from gfscore.images.listing import class_folders, images_in_list, images_of

    root = Path(root)
    folders: Sequence[str] | None
    if settings["list"] is None:
        folders = class_folders(root, settings["folders"])
        names, labels = images_of(root, folders)
    else:
        names, labels, folders = images_in_list(settings["list"], root, settings["folders"])
    if not names:
        what = "no images in its class folders" if folders else "no class folders"
        raise InputError(f"{root}: {what}; put the images of each class into a folder of its own")
    return from_files(
        root,
        names,
        labels,
        sample_id=[prefix + name for name in names],
        preprocessing=settings["preprocessing"],
        class_names=folders and tuple(folders),
        where=settings["list"] or root,
    )
