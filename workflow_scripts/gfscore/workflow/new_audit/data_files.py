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
from gfscore.tables.logit_files import LABELS

if TYPE_CHECKING:
    from gfscore.images.image_set import ImageSet

LOOKED_AT = (200, 1000)
"""Fewest and most labelled images that are shown to a model before anything is written, by their size."""

LOOKED_AT_VALUES = 1 << 24
"""Pixel values of all these together, beyond the fewest."""

ALL = 2000
"""Data of up to so many images are decoded whole, so that a damaged one is found at once."""

SEED = 0

IMAGE_COLUMNS = ("image", "img", "path", "file", "filename", "file_name", "filepath", "image_path", "name", "id")
LABEL_COLUMNS = (*LABELS, "class", "category", "target", "fine_label", "class_name")
KINDS = (
    "a folder of class folders, a folder of images with a CSV file of their labels, a .npz file with x and y, Parquet "
    "files with an image and a label column, or CIFAR's own files"
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


def find_data(given: str) -> FoundData:
    """Data of a file or folder, opened, every image decoded up to ALL of them.

    Raises InputError, naming the file and the remedy, for what is no data, fewer than 2 classes and damaged images.
    """
    path = Path(given)
    entry, words = _entry_of(path)
    return _opened(entry, words, str(path))


def labels_of(given: str, classes: Sequence[str]) -> FoundData:
    """Labels without images in a file, which may be that of the logits, of classes of these names."""
    entry: dict[str, Any] = {"source": "labels", "path": given, "classes": list(classes)}
    return _opened(entry, "labels without images", given)


def _opened(entry, words, path):
    from gfscore.images.dataset_source import dataset_sources
    from gfscore.images.datasets import open_images

    source = dataset_sources()[entry["source"]]
    parsed = source.settings.model_validate(entry)
    settings = {**parsed.explicit(), "subset": None}
    try:
        images = open_images(settings, entry.get("path"), classes=settings.pop("classes"))
    except InputError as error:
        if "no sample of class '0'" not in str(error):
            raise
        raise InputError(f"{error}. Labels count from 0: where they start at 1, subtract 1") from error
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
    from gfscore.images.datasets import require_one_label
    from gfscore.images.subsets import draw_of_each_class

    labels = data.images.labels
    count = int(np.clip(LOOKED_AT_VALUES // np.prod(data.images.image_shape), *LOOKED_AT))
    rows = draw_of_each_class(labels, per_class=-(-count // len(data.classes)), seed=SEED)
    # Of many classes one of each is too many; those that are left out change nothing in what is asked here.
    rows = rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(int)]
    checked = data.images.select(np.arange(len(labels)) if len(labels) <= ALL else rows)
    digests = _digests_of_one_size(checked)
    if digests is None:
        data = replace(data, uniform=False)
    else:
        require_one_label(checked, digests, where=data.entry["path"])
    if len(labels) > ALL:
        require_labels_agree(data)
    return data, rows


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
    from gfscore.images.datasets import require_one_label

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


def _entry_of(path: Path) -> tuple[dict[str, Any], str]:
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file or folder; data are {KINDS}")
    if path.suffix == ".npz":
        return {"source": "npz", "path": str(path)}, "arrays x and y"
    if path.suffix == ".parquet":
        return _parquet(path, path)
    if path.suffix == ".csv":
        return _csv(path)
    if path.name in ("test_batch", "test_batch.bin"):
        return _folder(path.parent)
    raise InputError(f"{path}: no kind of data; data are {KINDS}")


def _folder(path):
    inside = sorted(entry for entry in path.iterdir() if not left_behind(entry.name))
    names = {entry.name for entry in inside}
    for variant, marks in (
        ("cifar10", {"test_batch", "test_batch.bin", "cifar-10-batches-py", "cifar-10-batches-bin"}),
        ("cifar100", {"cifar-100-python", "cifar-100-binary"}),
    ):
        if names & marks:
            return {"source": "cifar", "path": str(path), "variant": variant}, f"{variant}, its test images"
    tables = [entry for entry in inside if entry.suffix == ".csv"]
    shards = [entry for entry in inside if entry.suffix == ".parquet"]
    folders = [entry for entry in inside if entry.is_dir()]
    if shards:
        return _parquet(path, shards[0])
    if len(tables) == 1 and (not folders or any(is_image(name) for name in names)):
        return _csv(tables[0])
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


def _holds_folders(folder):
    inside = [entry for entry in folder.iterdir() if not left_behind(entry.name)]
    return bool(inside) and all(entry.is_dir() for entry in inside)


def _csv(path):
    from gfscore.tables.csv_files import read_csv
    from gfscore.tables.malformed import unreadable

    try:
        frame = read_csv(path)
    # Damaged files raise errors of many types.
    except Exception as error:
        raise unreadable(path, ".csv", error) from error
    image, label = (_column(path, list(frame.columns), names) for names in (IMAGE_COLUMNS, LABEL_COLUMNS))
    entry = {"source": "image_csv", "path": str(path), **_unless({"image": image, "label": label})}
    return entry, f"images listed in {path.name}, columns {image} and {label}"


def _parquet(path, first):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gfscore.tables.malformed import unreadable

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
    label = _column(first, others, LABEL_COLUMNS)
    entry = {"source": "parquet", "path": str(path), **_unless({"image": pictures[0], "label": label})}
    return entry, f"Parquet, columns {pictures[0]} and {label}"


def _column(path, columns, names):
    found = next((name for name in names if name in columns), None)
    if found is None:
        raise InputError(
            f"{path}: no column {', '.join(names[:4])} or the like; it has {few(columns)}: rename one, or "
            "describe the data by hand (docs/add-a-dataset.md)"
        )
    return found


def _unless(columns):
    # Columns that are not called by their usual names.
    return {key: name for key, name in columns.items() if name != key}
