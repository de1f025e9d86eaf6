"""A folder of class folders with images, such as the validation images of ImageNet."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Text, Unique
from gfscore.images.dataset_source import DatasetSettings, DatasetSource, Preprocessing, as_stored


class ImageFolder(DatasetSettings):
    """A folder of class folders with images."""

    source: Literal["image_folder"] = "image_folder"
    path: Text = Field(description="Folder that holds one folder per class.")
    folders: Unique[Text] | None = Field(
        None, min_length=2, description="Class folders in label order; null for all of them, sorted by name."
    )
    list: Text | None = Field(
        None, description="Text file that names the images to use, one relative path per line; null for all."
    )
    preprocessing: Preprocessing = Field(default_factory=as_stored)


def _claims(entry: Mapping[str, Any]) -> bool:
    # What else lies in folders is told by keys of its own.
    return (
        "path" in entry
        and not PurePath(str(entry["path"])).suffix
        and not {"task", "variant", "corruption"} & set(entry)
    )


SOURCE = DatasetSource(name="image_folder", settings=ImageFolder, claims=_claims)


def open_source(settings: dict[str, Any], path: Any) -> Any:
    """Images <class folder>/<file> under `path`; the folders sorted by name count the labels.

    `settings`: `folders`, `list` and `preprocessing`, described in ImageFolder and `_preprocessing.prepare`.
    Identifiers are the paths relative to `path`; within a class they are sorted. Names that start with a dot
    are ignored. Raises InputError, naming folder or file, for missing and undeclared class folders, empty
    ones, files that are no images, and broken images.
    """
    return open_folder(path, settings)


def open_folder(root: Any, settings: dict[str, Any], *, prefix: str = "") -> Any:
    """Images under `root`, as `open_source`; `prefix` comes before every identifier."""
    from gfscore.core.regular import regular_bytes
    from gfscore.images.encoded import from_encoded
    from gfscore.images.listing import class_folders, images_in_list, images_of

    if not root:
        raise InputError("an image folder needs a path; name it under `path` in config.yaml")
    root = Path(root)
    folders: Sequence[str] | None
    if settings["list"] is None:
        folders = class_folders(root, settings["folders"])
        names, labels = images_of(root, folders)
    else:
        names, labels, folders = images_in_list(settings["list"], root, settings["folders"])
    if not names:
        raise InputError(f"{root}: no class folders; put each class into a folder of its own, or write a `list`")

    def blobs(rows: Any) -> Any:
        for row in rows:
            yield root / names[row], partial(regular_bytes, root / names[row])

    return from_encoded(
        blobs,
        labels,
        sample_id=[prefix + name for name in names],
        preprocessing=settings["preprocessing"],
        class_names=folders and tuple(folders),
        where=settings["list"] or root,
    )
