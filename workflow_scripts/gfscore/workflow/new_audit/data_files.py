"""Data in files and folders: which source they are of, and a look at their images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few
from gfscore.images.dataset_source import PlainSettings, dataset_sources
from gfscore.images.datasets import ClassesWithoutSamples, open_images
from gfscore.images.encoded import EncodedImages
from gfscore.images.image_set import ImageSet
from gfscore.images.listing import is_image, left_behind
from gfscore.images.manifests import require_one_label
from gfscore.images.subsets import draw_of_each_class
from gfscore.networks.batch_invariance import spread_over
from gfscore.tables.binary_files import unreadable
from gfscore.workflow.new_audit.array_data import array_settings
from gfscore.workflow.new_audit.new_model import Resize
from gfscore.workflow.new_audit.paths import no_data, require_data
from gfscore.workflow.new_audit.request import Request
from gfscore.workflow.new_audit.table_data import (
    LABEL_COLUMNS,
    TABLE_ENDINGS,
    column_of,
    csv_settings,
    folder_and_label_of_each,
    other_than_usual,
)

SHOWN = (200, 1000)
"""Fewest and most labelled images that are shown to a model before anything is written, by their size."""

SHOWN_VALUES = 1 << 24
"""Pixel values of all these together, beyond the fewest."""

ALL = 2000
"""Data of up to so many images are decoded whole, so that a damaged one is found at once."""

SEED = 0

NO_CLASSES = {"train", "test", "val", "valid", "validation", "training", "testing", "images", "imgs", "img"}
"""Names of folders that are hardly names of classes."""

CIFAR_FILES = {
    "cifar10": {"test_batch", "test_batch.bin", "cifar-10-batches-py", "cifar-10-batches-bin"},
    "cifar100": {"cifar-100-python", "cifar-100-binary"},
}
"""Names of files and folders that a folder of CIFAR's own files has, by variant."""


@dataclass(frozen=True)
class NewData:
    """Labelled data of a new audit.

    Parameters
    ----------
    entry : mapping
        Settings of their source.
    words : str
        What kind of data they are.
    images : ImageSet
        N images, or labels alone.
    classes : sequence of str
        K names.
    uniform : bool
        Whether all images have the size of the first.
    """

    entry: PlainSettings
    words: str
    images: ImageSet
    classes: Sequence[str]
    uniform: bool = True

    @property
    def path(self) -> str:
        """File or folder of the data, which errors name."""
        return str(self.entry["path"])

    @property
    def counts(self) -> NDArray[np.int64]:
        """Samples of each class (K,)."""
        return np.bincount(self.images.labels, minlength=len(self.classes))


def find_data(file: str, request: Request) -> NewData:
    """Data of a file or folder, opened, with the options of the request on how to read it.

    Parameters
    ----------
    file : str
        File or folder.
    request : Request
        Its options --arrays, --value-range and --image-folder.

    Returns
    -------
    NewData
        With the settings of the source that reads them, N images and K names of classes.

    Raises
    ------
    InputError
        Naming the file and the remedy, for what is no data, fewer than 2 classes, damaged images, and options that
        these data have no use for.
    """
    path = Path(file)
    entry, words = _entry_of(path, request)
    options = (
        ("--arrays", request.arrays, "npz"),
        ("--value-range", request.value_range, "npz"),
        ("--image-folder", request.image_folder, "image_csv"),
    )
    for option, value, source in options:
        if value and entry["source"] != source:
            raise InputError(f"{option} {value}: {path} is read as {words}, which has no use for it; leave it out")
    return _open(entry, words, str(path))


def labels_of(file: str, classes: Sequence[str]) -> NewData:
    """Data of labels without images, from a file that may hold the logits too; `classes` names all classes."""
    entry = {"source": "labels", "path": file, "classes": list(classes)}
    return _open(entry, "labels without images", file)


def with_rows_to_show(data: NewData) -> tuple[NewData, NDArray[np.int64]]:
    """Data whose images were checked, and rows of some images of each class.

    Of more than ALL images only those of the rows are decoded, and the others are compared by their files.

    Parameters
    ----------
    data : NewData
        Images as they were opened.

    Returns
    -------
    data : NewData
        With `uniform` set by the sizes of the images.
    rows : ndarray
        (n,) int64, ascending.

    Raises
    ------
    InputError
        For a damaged image, and for one image under two labels.
    """
    labels = data.images.labels
    count = most_shown(data.images)
    rows = draw_of_each_class(labels, per_class=-(-count // len(data.classes)), seed=SEED)
    # Of many classes one of each is too many; those that are left out do not matter for what is checked.
    rows = rows[spread_over(len(rows), count)]
    checked_rows = np.arange(len(labels)) if len(labels) <= ALL else rows
    checked = data.images.select(checked_rows)
    digests = _digests_of_one_size(checked)
    if digests is None:
        data = replace(data, uniform=False)
    else:
        require_one_label(checked, digests, where=data.path)
    if len(labels) > ALL:
        require_labels_agree(data)
    return data, rows


def most_shown(images: ImageSet) -> int:
    """Labelled images of this size that are shown to a model at most before anything is written."""
    return int(np.clip(SHOWN_VALUES // np.prod(images.image_shape), *SHOWN))


def _digests_of_one_size(images: ImageSet) -> NDArray[np.generic] | None:
    # Digest of each image (n,), of its pixels; None where one has another size than the first.
    if not isinstance(images, EncodedImages):
        return images.image_digests()
    channels, height, width = images.image_shape
    digests = []
    for image in images.decoded():
        if image.shape != (height, width, channels):
            return None
        digests.append(image.digest)
    return np.array(digests, dtype=object)


def require_labels_agree(data: NewData) -> None:
    """Raise InputError for one image under two labels: of equal pixels, or, of more than ALL images, of equal files."""
    images = data.images
    digests = images.pixel_digests if len(images) <= ALL else images.image_digests()
    if digests is not None:
        require_one_label(images, digests, where=data.path)


def resized(data: NewData, resize: Resize) -> NewData:
    """Data whose images are brought to another size; InputError for a source that stores arrays.

    Parameters
    ----------
    data : NewData
        Images of any sizes.
    resize : Resize
        How they become squares of one size.
    """
    if data.entry["source"] not in ("image_folder", "image_csv", "parquet"):
        _, height, width = data.images.image_shape
        raise InputError(
            f"{data.path}: images of {width}x{height} pixels, which are stored as arrays, and the model takes "
            f"{resize.size}; store them in that size, or name a model for theirs"
        )
    # Names that the source finds are in the right order already.
    return _open(_prepared(data.entry, resize.entry()), data.words, data.path)


def turned(data: NewData) -> NewData:
    """Data whose encoded images are turned by their EXIF orientation."""
    turned_data = _open(_prepared(data.entry, {"orientation": "exif"}), data.words, data.path)
    return replace(turned_data, uniform=data.uniform)


def _prepared(entry: PlainSettings, changes: Mapping[str, str | int]) -> PlainSettings:
    preprocessing = {"method": "none", **entry.get("preprocessing", {}), **changes}
    return {**entry, "preprocessing": preprocessing}


def _open(entry: PlainSettings, words: str, path: str) -> NewData:
    source = dataset_sources()[entry["source"]]
    parsed = source.settings.model_validate(entry)
    settings = {**parsed.explicit(), "subset": None}
    classes = settings.pop("classes")
    try:
        images = open_images(settings, entry.get("path"), classes=classes)
    except ClassesWithoutSamples as error:
        raise InputError(
            f"{error.fault}. Labels count from 0, without gaps: where they start at 1, subtract 1; where some classes "
            "have no samples, write names in place of numbers"
        ) from error
    names = entry.get("classes") or images.class_names or source.class_names(parsed)
    if not names:
        names = map(str, range(int(images.labels.max()) + 1))
    if len(np.unique(images.labels)) < 2:
        raise InputError(f"{path}: holds one class; an audit compares classes: give data of at least two")
    return NewData(entry, words, images, list(names))


# ---- what a path is ----


def _entry_of(path: Path, request: Request) -> tuple[PlainSettings, str]:
    require_data(path)
    if path.is_dir():
        return _folder(path, request)
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
    raise no_data(path, [path])


def _folder(path: Path, request: Request) -> tuple[PlainSettings, str]:
    entries = [entry for entry in sorted(path.iterdir()) if not left_behind(entry.name)]
    names = {entry.name for entry in entries}
    for variant, files in CIFAR_FILES.items():
        if names & files:
            return {"source": "cifar", "path": str(path), "variant": variant}, f"{variant}, its test images"

    folders = [entry for entry in entries if entry.is_dir()]
    tables = [entry for entry in entries if entry.suffix in TABLE_ENDINGS]
    arrays = [entry for entry in entries if entry.suffix == ".npy"]
    shards = [entry for entry in entries if entry.suffix == ".parquet"]
    has_images = any(map(is_image, names))
    if shards:
        return _parquet(path, shards[0])
    if arrays and not folders and not has_images:
        return array_settings(path, arrays=request.arrays, value_range=request.value_range)
    if len(tables) > 1:
        raise InputError(
            f"{path}: holds {len(tables)} CSV files ({few([table.name for table in tables])}); give the one with labels"
        )
    if tables:
        listed = _listed_in(tables[0], folders, request, beside_images=has_images)
        if listed:
            return listed

    # Class folders.
    if folders and all(map(_holds_folders, folders)):
        raise InputError(f"{path}: holds folders of folders; give one with class folders, such as {folders[-1]}")
    if len(folders) == 1 and len(entries) == 1:
        raise InputError(f"{path}: holds one class folder, {folders[0].name}; an audit compares at least two classes")
    if not folders:
        raise no_data(path, entries)
    entry: dict[str, str | list[str]] = {"source": "image_folder", "path": str(path)}
    order = [folder.name for folder in folders]
    if all(name.isdecimal() for name in order):
        # Numbers of classes, which sorted as text may be in another order.
        by_number = sorted(order, key=int)
        if by_number != order:
            entry["folders"] = by_number
    return entry, "class folders"


def _listed_in(
    table: Path, folders: Sequence[Path], request: Request, *, beside_images: bool
) -> tuple[PlainSettings, str] | None:
    # Settings of a table that lists the images of its folder, None where these lie in class folders. InputError where
    # its labels are not the folders that its images lie in, and these may be classes too.
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


def _holds_folders(folder: Path) -> bool:
    entries = [entry for entry in folder.iterdir() if not left_behind(entry.name)]
    return bool(entries) and all(entry.is_dir() for entry in entries)


def _parquet(path: Path, first: Path) -> tuple[PlainSettings, str]:
    try:
        schema = pq.read_schema(first)
    except (pa.ArrowException, OSError) as error:
        raise unreadable(first, ".parquet", error) from error
    pictures: list[str] = []
    columns: list[str] = []
    for column in schema:
        if pa.types.is_struct(column.type) or pa.types.is_binary(column.type):
            pictures.append(column.name)
        else:
            columns.append(column.name)
    if len(pictures) != 1:
        raise InputError(
            f"{first}: {len(pictures)} columns of encoded images ({few(pictures) or 'none'}) where one is due, as "
            "Hugging Face's datasets write it"
        )
    label = column_of(first, columns, LABEL_COLUMNS)
    entry = {"source": "parquet", "path": str(path), **other_than_usual(image=pictures[0], label=label)}
    return entry, f"Parquet, columns {pictures[0]} and {label}"
