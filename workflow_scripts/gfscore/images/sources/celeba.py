"""CelebA, whose task is one of its 40 binary attributes."""

from functools import partial
from pathlib import Path

from gfscore.core.errors import InputError, unknown
from gfscore.core.regular import regular_bytes
from gfscore.images.celeba_files import read_attribute_list, read_partition
from gfscore.images.encoded import from_encoded

SETTINGS = {
    "path": {
        "description": "Folder with list_attr_celeba.txt, list_eval_partition.txt and the folder of images.",
        "type": "string",
        "minLength": 1,
    },
    "images": {"description": "Folder of images within it, img_align_celeba.", "type": "string", "minLength": 1},
    "split": {"description": "Part of the authors' partition.", "enum": ["train", "valid", "test"]},
    "task": {"description": "Attribute that is to be recognised.", "type": "string", "minLength": 1},
    "preprocessing": {"$ref": "#/$defs/preprocessing"},
}

PARTS = {"train": 0, "valid": 1, "test": 2}


def open_source(settings, path):
    """Images of one part of CelebA; label 1 has the attribute `task`, label 0 has not. Identifiers are file names.

    `settings`: `images`, `split`, `task` and `preprocessing`. Raises InputError, naming the file, for lists that are
    missing or damaged, an unknown attribute, and images that are missing. Source: Liu et al. 2015.
    """
    root, task = Path(path), settings["task"]
    attributes = read_attribute_list(root / "list_attr_celeba.txt")
    if task not in attributes:
        raise InputError(f"{root}/list_attr_celeba.txt: {unknown('attribute', task, list(attributes.columns))}")
    parts = read_partition(root / "list_eval_partition.txt")
    absent = [name for name in attributes.index if name not in parts]
    if absent:
        raise InputError(
            f"{root}/list_eval_partition.txt: {absent[0]} and {len(absent) - 1} other images of list_attr_celeba.txt "
            "are in no part; restore the file"
        )
    names = [name for name in attributes.index if parts[name] == PARTS[settings["split"]]]
    if not names:
        raise InputError(f"{root}/list_eval_partition.txt: no image of the split {settings['split']}; restore the file")
    folder = root / settings["images"]

    def blobs(rows):
        for row in rows:
            yield folder / names[row], partial(regular_bytes, folder / names[row])

    return from_encoded(
        blobs,
        (attributes.loc[names, task].to_numpy() == 1).astype(int),
        sample_id=names,
        preprocessing=settings["preprocessing"],
        class_names=(f"no {task}", task),
    )
