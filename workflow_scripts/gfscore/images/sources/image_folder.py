"""A folder of class folders with images, such as the validation images of ImageNet."""

from functools import partial
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.regular import regular_bytes
from gfscore.images.encoded import from_encoded
from gfscore.images.listing import class_folders, images_in_list, images_of

SETTINGS = {
    "path": {"description": "Folder that holds one folder per class.", "type": "string", "minLength": 1},
    "folders": {
        "description": "Class folders in label order; null for all of them, sorted by name.",
        "oneOf": [
            {"type": "null"},
            {"type": "array", "minItems": 2, "uniqueItems": True, "items": {"type": "string", "minLength": 1}},
        ],
    },
    "list": {
        "description": "Text file that names the images to use, one relative path per line; null for all.",
        "type": ["string", "null"],
        "minLength": 1,
    },
    "preprocessing": {"$ref": "#/$defs/preprocessing"},
}


def open_source(settings, path):
    """Images <class folder>/<file> under `path`; the folders sorted by name count the labels.

    `settings`: `folders`, `list` and `preprocessing`, described in SETTINGS and `_preprocessing.prepare`.
    Identifiers are the paths relative to `path`; within a class they are sorted. Names that start with a dot
    are ignored. Raises InputError, naming folder or file, for missing and undeclared class folders, empty
    ones, files that are no images, and broken images.
    """
    return open_folder(path, settings)


def open_folder(root, settings, *, prefix=""):
    """Images under `root`, as `open_source`; `prefix` comes before every identifier."""
    if not root:
        raise InputError("an image folder needs a path; name it under `path` in config.yaml")
    root = Path(root)
    if settings["list"] is None:
        folders = class_folders(root, settings["folders"])
        names, labels = images_of(root, folders)
    else:
        names, labels, folders = images_in_list(settings["list"], root, settings["folders"])
    if not names:
        raise InputError(f"{root}: no class folders; put each class into a folder of its own, or write a `list`")

    def blobs(rows):
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
