"""Settings of two kinds of data files: arrays of images and labels, and tables that list images and labels.

Of arrays, which are the images, which their labels, and what value white has; of tables, separator, columns, and the
folder of the images.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame

from gfscore.core.errors import InputError, few, unknown_name
from gfscore.core.settings import PlainSettings
from gfscore.images.array_files import SIGNED, DeclaredArray, declared_arrays, read_array
from gfscore.images.listing import NamedImages, left_behind, require_inside
from gfscore.images.sources.image_csv import SEPARATORS
from gfscore.images.sources.npz import IMAGE, LABEL
from gfscore.tables.binary_files import ROW_NAMES, unreadable
from gfscore.tables.csv_files import read_csv
from gfscore.tables.logit_files import LABELS

IMAGE_NAMES = {"x", "image", "images", "img", "imgs", "data", "input", "inputs", "pixels"}
LABEL_NAMES = {"y", "label", "labels", "target", "targets", "class", "classes"}
SPLITS = {
    "test": "test", "testing": "test", "train": "train", "training": "train", "val": "val", "valid": "val",
    "validation": "val", "dev": "val", "eval": "val",
}  # fmt: skip
"""Splits of data by the words for them in names of arrays, such as x_test and val_images."""

PLAUSIBLE_WHITE = 128
"""Least brightest pixel of floating-point images whose white is 255: those of scikit-learn's digits go up to 16."""

NEARLY = 0.9
"""Least share of -1 to 1 that pixels reach both ways where that is their range."""

IMAGE_COLUMNS = (
    "image", "img", "path", "file", "filename", "file_name", "filepath", "file_path", "image_path", "img_path",
    "image_name", "image_id", "name", "id", "id_code",
)  # fmt: skip
LABEL_COLUMNS = (*LABELS, "class", "category", "target", "fine_label", "class_name", "class_id")

TABLE_ENDINGS = (".csv", ".tsv")

MOST_FOLDERS = 2000
"""Folders below that of a table in which its images are looked for."""

MOST_OPTIONS = 4
"""Choices that a message lists."""

Pair = tuple[DeclaredArray, DeclaredArray]
"""Images, and their labels."""


# ---- arrays ----


def array_settings(path: Path, *, arrays: str | None, value_range: str | None) -> tuple[PlainSettings, str]:
    """Settings of the source npz for the arrays of a file or folder, and what they are in words.

    Parameters
    ----------
    path : Path
        A .npz file, or a folder of .npy files.
    arrays : str or None
        Names of images and labels, separated by a comma; None to find them.
    value_range : {"1", "255", "signed"} or None
        Value of white; None to tell it by the values.

    Raises
    ------
    InputError
        Naming the arrays with their shapes and the option that decides, where two pairs or two ranges may be meant.
    """
    declared = declared_arrays(path)
    if arrays:
        image, label = _named_pair(arrays, declared, path)
        words = ""
    else:
        (image, label), words = _fitting_pair(declared, path)
    x = read_array(path, image.name)
    where = f"{path}: {image.name}"
    scale: int | str
    if value_range == SIGNED:
        scale, range_words = SIGNED, "pixels from -1 to 1 as asked"
    elif value_range:
        scale, range_words = int(value_range), f"white {value_range} as asked"
    else:
        scale, range_words = _range(x, where)

    settings: dict[str, str | int] = {"source": "npz", "path": str(path)}
    if image.name != IMAGE:
        settings["image"] = image.name
    if label.name != LABEL:
        settings["label"] = label.name
    if scale != (255 if x.dtype == np.uint8 else 1):
        settings["value_range"] = scale
    _require_image_shape(x, where)
    return settings, f"arrays {image.name} and {label.name}{words}, {range_words}"


def _named_pair(option: str, declared: Sequence[DeclaredArray], path: Path) -> Pair:
    names = [name.strip() for name in option.split(",")]
    if len(names) != 2:
        raise InputError(f"--arrays {option}: name two arrays, images and labels: --arrays x_test,y_test")
    by_name = {array.name: array for array in declared}
    for name in names:
        if name not in by_name:
            raise InputError(f"{path}: --arrays {option}: {unknown_name('array', name, list(by_name))}")
    image, label = names
    return by_name[image], by_name[label]


def _fitting_pair(declared: Sequence[DeclaredArray], path: Path) -> tuple[Pair, str]:
    # Images with their labels, and other data of the file in words: by their names, else by their shapes alone.
    pairs, words = _pairs_by_name(declared)
    if not pairs:
        pairs, words = _pairs_by_shape(declared), ", by their shapes"
    if len(pairs) == 1:
        return pairs[0], words

    listed = ", ".join(map(str, declared)) or "no array"
    if pairs:
        options = " or ".join(f"--arrays {image.name},{label.name}" for image, label in pairs[:MOST_OPTIONS])
        raise InputError(
            f"{path}: several arrays may be the images and labels: {listed}. Add {options} (make: ARRAYS=)"
        )
    for array in declared:
        if array.dtype.hasobject:
            # It may be the images, and is refused by the reader, with what to do.
            read_array(path, array.name)
    raise InputError(
        f"{path}: no array of images with an array of as many labels; it has {listed}. Save x of shape (N, H, W), "
        "(N, H, W, C) or (N, C, H, W) and y of shape (N,), with numpy.savez(path, x=images, y=labels)"
    )


def _pairs_by_name(declared: Sequence[DeclaredArray]) -> tuple[list[Pair], str]:
    # Those of the test set where there are several splits.
    pairs: list[tuple[str, Pair]] = []
    for image in filter(_holds_images, declared):
        for label in declared:
            split = _split_of(image, label)
            if split is not None and _one_label_each(image, label):
                pairs.append((split, (image, label)))
    splits = {split for split, _ in pairs}
    if "test" in splits and len(splits) > 1:
        test_pairs = [pair for split, pair in pairs if split == "test"]
        names = [split or "unnamed" for split in sorted(splits - {"test"})]
        return test_pairs, f", the test set beside {' and '.join(names)} data"
    return [pair for _, pair in pairs], ""


def _pairs_by_shape(declared: Sequence[DeclaredArray]) -> list[Pair]:
    pairs = []
    for image in filter(_holds_images, declared):
        for label in declared:
            if _one_label_each(image, label) and not _holds_images(label):
                pairs.append((image, label))
    return pairs


def _split_of(image: DeclaredArray, label: DeclaredArray) -> str | None:
    # Split that two arrays are of by their names, empty where these name none; None for other names.
    image_word, image_split = _word_and_split(image.name)
    label_word, label_split = _word_and_split(label.name)
    if image_word in IMAGE_NAMES and label_word in LABEL_NAMES and image_split == label_split:
        return image_split
    return None


def _word_and_split(name: str) -> tuple[str, str]:
    # Name of an array without the word for its split, and the split: x_test is x of test, trainX x of train.
    words = re.split(r"[\W_]+", name.casefold())
    for word in words:
        if word in SPLITS:
            remaining = [name for name in words if name != word]
            return "".join(remaining), SPLITS[word]
    joined = "".join(words)
    for word, split in SPLITS.items():
        for shorter in (joined.removeprefix(word), joined.removesuffix(word)):
            if shorter != joined and shorter in IMAGE_NAMES | LABEL_NAMES:
                return shorter, split
    return joined, ""


def _holds_images(array: DeclaredArray) -> bool:
    return len(array.shape) in (3, 4) and array.dtype.kind in "fiu"


def _one_label_each(image: DeclaredArray, label: DeclaredArray) -> bool:
    rows = image.shape[0]
    is_column = label.shape in ((rows,), (rows, 1))
    return is_column or (len(label.shape) == 2 and label.shape[0] == rows)


def _range(x: NDArray[np.generic], where: str) -> tuple[int | str, str]:
    # Value of white, or SIGNED, that pixels have by their type and values, and words on it. InputError for values that
    # fit no range, and with the option for those that fit two.
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError(f"{where}: pixels from {low} to {high}; find out where they are not finite, and save it again")
    spread = f"{low:.4g} to {high:.4g}"
    if low >= 0 and high <= 1:
        return 1, f"white 1, as pixels are from {spread}"
    if low >= 0 and high <= 255 and (x.dtype == np.uint8 or high >= PLAUSIBLE_WHITE):
        return 255, f"white 255, as pixels are from {spread}"
    if -1 <= low <= -NEARLY and NEARLY <= high <= 1:
        return SIGNED, f"black -1 and white 1, as pixels are from {spread}"
    if low >= 0 and high <= 255:
        raise InputError(
            f"{where}: pixels from {spread}, whose white may be 255 or {high:.4g}; add --value-range 255 (make: "
            f"VALUE_RANGE=255), or divide them by {high:.4g} and save them again"
        )
    if low >= -1 and high <= 1:
        raise InputError(
            f"{where}: pixels from {spread}, whose black may be -1 or 0; add --value-range signed (make: "
            "VALUE_RANGE=signed), or clip them to 0 to 1 and save them again"
        )
    raise InputError(
        f"{where}: pixels from {spread}, which are normalised, or no pixels; save them before the normalisation, from "
        "0 to 1 or 0 to 255 (what the network needs is found, or told by --preprocessing)"
    )


def _require_image_shape(x: NDArray[np.generic], where: str) -> None:
    # Arrays (N, ...) of which no axis, or more than one, may be that of the channels, are refused.
    if x.ndim == 3:
        return
    axes = [axis for axis in (1, 3) if x.shape[axis] in (1, 3)]
    if len(axes) != 1:
        fault = "two axes may be the channels" if axes else "no axis has 1 or 3 channels"
        raise InputError(
            f"{where}: shape {x.shape}, of which {fault}; save grey images as (N, H, W), colour ones as (N, H, W, 3) "
            "or (N, 3, H, W), or as PNG files in class folders"
        )


# ---- tables ----


def csv_settings(path: Path, *, folder: str | None) -> tuple[PlainSettings, str]:
    """Settings of the source image_csv for a table, and what it is in words.

    Parameters
    ----------
    path : Path
        The table.
    folder : str or None
        Folder of the images; None for the one in which all names are found, that of the table or one below it.

    Raises
    ------
    InputError
        Naming the file and the option that decides, for columns and images that are not found, and for images that may
        be in two folders.
    """
    separator = _separator(path)
    frame = _table(path, separator)
    columns = [str(name) for name in frame.columns]
    words = ""
    if _counts_rows(frame):
        columns = columns[1:]
        words = ", without the first one, which counts the rows"
    image, label = _columns(columns, path)
    root, root_words = _image_folder(frame[image].tolist(), path, folder)

    settings = {"source": "image_csv", "path": str(path)}
    if root is not None:
        settings["images"] = str(root)
    settings.update(other_than_usual(image=image, label=label))
    if separator != "comma":
        settings["separator"] = separator
    return settings, f"images listed in {path.name}, columns {image} and {label}{words}{root_words}"


def column_of(path: Path, columns: Sequence[str], names: Sequence[str]) -> str:
    """The column with the first of these names, in any case; InputError where there is none."""
    column = _first_of(columns, names)
    if column is None:
        usual = ", ".join(names[:MOST_OPTIONS])
        raise InputError(f"{path}: no column {usual} or the like; it has {few(columns)}: rename one")
    return column


def other_than_usual(**columns: str) -> dict[str, str]:
    """Settings for columns that are not called by their usual names."""
    return {key: name for key, name in columns.items() if name != key}


def folder_and_label_of_each(settings: PlainSettings) -> list[tuple[str, str]]:
    """First folder of the path, and label, of each image that a table of these settings lists."""
    frame = _table(Path(settings["path"]), settings.get("separator", "comma"))
    names = frame[settings.get("image", "image")]
    labels = frame[settings.get("label", "label")]
    folders = [name.partition("/")[0] for name in names]
    return list(zip(folders, labels, strict=True))


def _separator(path: Path) -> str:
    # The first of SEPARATORS that stands in the header; a tab in files that say so by their ending.
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline(1 << 20)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); write it again as UTF-8") from error
    if path.suffix == ".tsv":
        return "tab"
    for separator, character in SEPARATORS.items():
        if character in header:
            return separator
    return "comma"


def _table(path: Path, separator: str) -> DataFrame:
    # Table whose cells are texts.
    character = SEPARATORS[separator]
    try:
        columns = list(read_csv(path, separator=character).columns)
        return read_csv(path, separator=character, text=columns)
    # Damaged files raise errors of many types.
    except Exception as error:
        raise unreadable(path, path.suffix, error) from error


def _counts_rows(frame: DataFrame) -> bool:
    # Whether the first column has no name and counts the rows, from 0 or 1, as pandas writes its index.
    if frame.shape[1] < 3 or not ROW_NAMES.match(str(frame.columns[0])):
        return False
    numbers = [str(number) for number in range(len(frame) + 1)]
    return frame.iloc[:, 0].astype(str).tolist() in (numbers[:-1], numbers[1:])


def _columns(columns: Sequence[str], path: Path) -> tuple[str, str]:
    # Columns of the images and of the labels; of two columns one is enough to tell the other.
    image = _first_of(columns, IMAGE_COLUMNS)
    label = _first_of(columns, LABEL_COLUMNS)
    if len(columns) == 2 and image is None and label is not None:
        (image,) = (name for name in columns if name != label)
        return image, label
    if len(columns) == 2 and label is None and image is not None:
        (label,) = (name for name in columns if name != image)
        return image, label
    return column_of(path, columns, IMAGE_COLUMNS), column_of(path, columns, LABEL_COLUMNS)


def _first_of(columns: Sequence[str], names: Sequence[str]) -> str | None:
    # Exact names first.
    by_name = {name.strip().casefold(): name for name in reversed(columns)}
    by_name.update({name: name for name in columns})
    for name in names:
        if name in by_name:
            return by_name[name]
    return None


def _image_folder(names: Sequence[str], path: Path, option: str | None) -> tuple[Path | None, str]:
    # Folder of the images, None for that of the table, and words on it.
    require_inside(names, path)
    if option:
        if not Path(option).is_dir():
            raise InputError(f"{option}: there is no such folder; correct --image-folder")
        NamedImages(option).files_of(names, path)
        return Path(option), f", in {option}"
    missing = NamedImages(path.parent).first_missing(names)
    if missing is None:
        return None, ""

    fitting = []
    for folder in _folders_below(path.parent):
        if NamedImages(folder).first_missing(names) is None:
            fitting.append(folder)
    if len(fitting) == 1:
        return fitting[0], f", in {fitting[0]}"
    if fitting:
        options = " or ".join(f"--image-folder {folder}" for folder in fitting[:MOST_OPTIONS])
        raise InputError(
            f"{path}: its images are in {len(fitting)} folders ({few([str(folder) for folder in fitting])}); add "
            f"{options} (make: IMAGE_FOLDER=)"
        )
    raise InputError(
        f"{path}: row {missing} names {names[missing]!r}, and no folder beside it has an image of that name and of all "
        "others; complete the images, or add --image-folder (make: IMAGE_FOLDER=), the folder that the names count from"
    )


def _folders_below(folder: Path) -> list[Path]:
    # Folders in a folder and in these, in the order of their names.
    folders = _folders_in(folder)
    deeper = []
    for inside in folders:
        deeper += list(islice(_folders_in(inside), MOST_FOLDERS))
    return [*folders, *deeper][:MOST_FOLDERS]


def _folders_in(folder: Path) -> list[Path]:
    return sorted(entry for entry in folder.iterdir() if entry.is_dir() and not left_behind(entry.name))
