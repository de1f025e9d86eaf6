"""Data in files and folders: which source they are of, and a look at their images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.images.listing import is_image, left_behind
from gfscore.networks.batch_invariance import spread_over
from gfscore.workflow.new_audit.data_formats import ENDINGS as TABLE_ENDINGS
from gfscore.workflow.new_audit.data_formats import (
    LABEL_COLUMNS,
    array_settings,
    column_of,
    csv_settings,
    folder_and_label_of_each,
    other_than_usual,
)
from gfscore.workflow.new_audit.request import Request

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet

LOOKED_AT = (200, 1000)
"""Fewest and most labelled images that are shown to a model before anything is written, by their size."""

LOOKED_AT_VALUES = 1 << 24
"""Pixel values of all these together, beyond the fewest."""

ALL = 2000
"""Data of up to so many images are decoded whole, so that a damaged one is found at once."""

SEED = 0

NO_CLASSES = {"train", "test", "val", "valid", "validation", "training", "testing", "images", "imgs", "img"}
"""Names of folders that are hardly names of classes."""

KINDS = (
    "a folder of class folders, a folder of images with a CSV file of their labels, images and labels as arrays in a "
    ".npz file or as .npy files of a folder, Parquet files with an image and a label column, or CIFAR's own files"
)


@dataclass(frozen=True)
class FoundData:
    """Labelled data: `entry`, settings of their source; `words`; `images`, the ImageSet; `classes`, K names.

    `uniform`: whether all images have the size of the first; `several`: whether they were brought to one from several.
    """

    entry: Mapping[str, Any]
    words: str
    images: ImageSet
    classes: Sequence[str]
    uniform: bool = True
    several: bool = False

    @property
    def counts(self) -> NDArray[np.int64]:
        """Samples of each class (K,)."""
        return np.bincount(self.images.labels, minlength=len(self.classes))


def find_data(given: str, request: Request) -> FoundData:
    """Data of a file or folder, opened, with the options of the request that say how to read it.

    Raises InputError, naming the file and the remedy, for what is no data, fewer than 2 classes, damaged images, and
    options that these data have no use for.
    """
    path = Path(given)
    entry, words = _entry_of(path, request)
    source = entry["source"]
    for option, value, sources in (
        ("--arrays", request.arrays, ("npz",)),
        ("--value-range", request.value_range, ("npz",)),
        ("--image-folder", request.image_folder, ("image_csv",)),
    ):
        if value and source not in sources:
            raise InputError(f"{option} {value}: {path} is read as {words}, which has no use for it; leave it out")
    return _opened(entry, words, str(path))


def labels_of(given: str, classes: Sequence[str]) -> FoundData:
    """Labels without images in a file, which may be that of the logits, of classes of these names."""
    entry: dict[str, Any] = {"source": "labels", "path": given, "classes": list(classes)}
    return _opened(entry, "labels without images", given)


def _opened(entry: Mapping[str, Any], words: str, path: str) -> FoundData:
    from gfscore.images.dataset_source import dataset_sources
    from gfscore.images.datasets import ClassesWithoutSamples, open_images

    source = dataset_sources()[entry["source"]]
    parsed = source.settings.model_validate(entry)
    settings = {**parsed.explicit(), "subset": None}
    try:
        images = open_images(settings, entry.get("path"), classes=settings.pop("classes"))
    except ClassesWithoutSamples as error:
        raise InputError(
            f"{error.fault}. Labels count from 0, without gaps: where they start at 1, subtract 1; where some classes "
            "have no samples, write names in place of numbers"
        ) from error
    known = entry.get("classes") or images.class_names or source.class_names(parsed)
    classes = list(known or map(str, range(int(images.labels.max()) + 1)))
    if len(np.unique(images.labels)) < 2:
        raise InputError(f"{path}: holds one class; an audit compares classes: give data of at least two")
    return FoundData(entry, words, images, classes)


def looked_at(data: FoundData) -> tuple[FoundData, NDArray[np.int64]]:
    """Data that say whether all images have one size, and rows (n,) of LOOKED_AT images, of each class alike.

    Raises InputError for a damaged image and for one image under two labels. Of more than ALL images only those of the
    rows are decoded, and the others are compared by their files.
    """
    from gfscore.images.manifests import require_one_label
    from gfscore.images.subsets import draw_of_each_class

    labels = data.images.labels
    count = most_looked_at(data.images)
    rows = draw_of_each_class(labels, per_class=-(-count // len(data.classes)), seed=SEED)
    # Of many classes one of each is too many; those that are left out change nothing in what is asked here.
    rows = rows[spread_over(len(rows), count)]
    checked = data.images.select(np.arange(len(labels)) if len(labels) <= ALL else rows)
    digests = _digests_of_one_size(checked)
    if digests is None:
        data = replace(data, uniform=False)
    else:
        require_one_label(checked, digests, where=data.entry["path"])
    if len(labels) > ALL:
        require_labels_agree(data)
    return data, rows


def most_looked_at(images: ImageSet) -> int:
    """Labelled images of this size that are shown to a model at most before anything is written."""
    return int(np.clip(LOOKED_AT_VALUES // np.prod(images.image_shape), *LOOKED_AT))


def _digests_of_one_size(images: ImageSet) -> NDArray[Any] | None:
    """Digest of each image (n,), of its pixels; None where one has another size than the first."""
    if images.decoded is None:
        return images.image_digests()
    channels, height, width = images.image_shape
    digests = []
    for image in images.decoded():
        if image.shape != (height, width, channels):
            return None
        digests.append(image.digest)
    return np.array(digests, dtype=object)


def require_labels_agree(data: FoundData) -> None:
    """Raise InputError for one image under two labels: of equal pixels, or, of more than ALL images, of equal files."""
    from gfscore.images.manifests import require_one_label

    images = data.images
    digests = images.pixel_digests() if len(images) <= ALL else images.image_digests()
    if digests is not None:
        require_one_label(images, digests, where=data.entry["path"])


def resized(data: FoundData, preprocessing: Mapping[str, Any]) -> FoundData:
    """Data whose images are brought to another size; InputError for a source that stores arrays."""
    if data.entry["source"] not in ("image_folder", "image_csv", "parquet"):
        _, height, width = data.images.image_shape
        raise InputError(
            f"{data.entry['path']}: images of {width}x{height} pixels, which are stored as arrays, and the model takes "
            f"{preprocessing['size']}; store them in that size, or name a model for theirs"
        )
    # Names that the source finds are in the right order already.
    again = _opened(_prepared(data.entry, preprocessing), data.words, data.entry["path"])
    again, _ = looked_at(again)
    return replace(again, several=not data.uniform)


def turned(data: FoundData) -> FoundData:
    """Data whose encoded images are turned by their EXIF orientation."""
    again = _opened(_prepared(data.entry, {"orientation": "exif"}), data.words, data.entry["path"])
    return replace(again, uniform=data.uniform, several=data.several)


def _prepared(entry: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    preprocessing = {"method": "none", **entry.get("preprocessing", {}), **changes}
    return {**entry, "preprocessing": preprocessing}


# ---- what a path is ----


def _entry_of(path: Path, request: Request) -> tuple[dict[str, Any], str]:
    if path.is_dir():
        return _folder(path, request)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file or folder; data are {KINDS}")
    if path.suffix == ".npz":
        return array_settings(path, arrays=request.arrays, value_range=request.value_range)
    if path.suffix == ".npy":
        raise InputError(f"{path}: one array; give the folder of the arrays of images and labels, {path.parent}")
    if path.suffix == ".parquet":
        return _parquet(path, path)
    if path.suffix in TABLE_ENDINGS:
        return csv_settings(path, folder=request.image_folder)
    if path.name in ("test_batch", "test_batch.bin"):
        return _folder(path.parent, request)
    raise InputError(f"{path}: no kind of data; data are {KINDS}")


def _folder(path, request):
    inside = sorted(entry for entry in path.iterdir() if not left_behind(entry.name))
    names = {entry.name for entry in inside}
    for variant, marks in (
        ("cifar10", {"test_batch", "test_batch.bin", "cifar-10-batches-py", "cifar-10-batches-bin"}),
        ("cifar100", {"cifar-100-python", "cifar-100-binary"}),
    ):
        if names & marks:
            return {"source": "cifar", "path": str(path), "variant": variant}, f"{variant}, its test images"
    tables = [entry for entry in inside if entry.suffix in TABLE_ENDINGS]
    arrays = [entry for entry in inside if entry.suffix == ".npy"]
    shards = [entry for entry in inside if entry.suffix == ".parquet"]
    folders = [entry for entry in inside if entry.is_dir()]
    if shards:
        return _parquet(path, shards[0])
    if arrays and not folders and not any(is_image(name) for name in names):
        return array_settings(path, arrays=request.arrays, value_range=request.value_range)
    if len(tables) == 1:
        listed = _listed_in(tables[0], folders, request, beside_images=any(is_image(name) for name in names))
        if listed:
            return listed
    if len(tables) > 1:
        raise InputError(
            f"{path}: holds {len(tables)} CSV files ({few([t.name for t in tables])}); give the one with labels"
        )
    if folders and all(_holds_folders(folder) for folder in folders):
        raise InputError(f"{path}: holds folders of folders; give one with class folders, such as {folders[-1]}")
    if len(folders) == 1 and len(inside) == 1:
        raise InputError(f"{path}: holds one class folder, {folders[0].name}; an audit compares at least two classes")
    if not folders:
        raise InputError(f"{path}: no data; data are {KINDS}")
    entry: dict[str, Any] = {"source": "image_folder", "path": str(path)}
    order = [folder.name for folder in folders]
    if all(name.isdecimal() for name in order) and sorted(order, key=int) != order:
        # Numbers of classes, which sorted as text would be in another order.
        entry["folders"] = sorted(order, key=int)
    return entry, "class folders"


def _listed_in(
    table: Path, folders: Sequence[Path], request: Request, *, beside_images: bool
) -> tuple[dict[str, Any], str] | None:
    """Settings of a table that lists the images of its folder, None where these lie in class folders.

    Raises InputError where its labels are not the folders that its images lie in, and these may be classes too.
    """
    if beside_images or len(folders) < 2 or request.image_folder:
        return csv_settings(table, folder=request.image_folder)
    try:
        entry, words = csv_settings(table, folder=None)
    except InputError:
        # Any other table may lie beside class folders.
        return None
    labelled_folders = folder_and_label_of_each(entry)
    names = {folder.name for folder in folders}
    if not all(folder in names for folder, _ in labelled_folders):
        return entry, words
    if all(folder == label for folder, label in labelled_folders):
        return None
    if names <= NO_CLASSES:
        return entry, words
    raise InputError(
        f"{table}: its labels are not the folders of its images ({few(sorted(names))}), and both may be the classes; "
        f"give {table} in place of {table.parent}, or move it elsewhere for classes by folder"
    )


def _holds_folders(folder):
    inside = [entry for entry in folder.iterdir() if not left_behind(entry.name)]
    return bool(inside) and all(entry.is_dir() for entry in inside)


def _parquet(path, first):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gfscore.tables.binary_files import unreadable

    try:
        schema = pq.read_schema(first)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(first, ".parquet", error) from error
    pictures = [field.name for field in schema if pa.types.is_struct(field.type) or pa.types.is_binary(field.type)]
    others = [field.name for field in schema if field.name not in pictures]
    if len(pictures) != 1:
        raise InputError(
            f"{first}: {len(pictures)} columns of encoded images ({few(pictures) or 'none'}) where one is due, as "
            "Hugging Face's datasets write it"
        )
    label = column_of(first, others, LABEL_COLUMNS)
    entry = {"source": "parquet", "path": str(path), **other_than_usual(image=pictures[0], label=label)}
    return entry, f"Parquet, columns {pictures[0]} and {label}"
