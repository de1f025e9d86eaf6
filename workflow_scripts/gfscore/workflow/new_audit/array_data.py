"""Settings of data in arrays: which are the images, which their labels, and what value white has."""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, unknown_name
from gfscore.core.mappings import by_name
from gfscore.core.settings import PlainSettings
from gfscore.images.array_files import SIGNED, DeclaredArray, declared_arrays, read_array
from gfscore.images.sources.npz import IMAGE, LABEL
from gfscore.workflow.new_audit.request import MOST_OPTIONS

IMAGE_NAMES = {"x", "image", "images", "img", "imgs", "data", "input", "inputs", "pixels"}
LABEL_NAMES = {"y", "label", "labels", "target", "targets", "class", "classes"}
SPLITS = {
    "test": "test", "testing": "test", "train": "train", "training": "train", "val": "val", "valid": "val",
    "validation": "val", "dev": "val", "eval": "val",
}  # fmt: skip
"""Splits of data by the words for them in names of arrays, such as x_test and val_images."""

LEAST_BRIGHTEST_OF_255 = 128
"""Floating-point images whose brightest pixel is darker than this may have another white than 255, as scikit-learn's
digits have 16."""

SIGNED_REACH = 0.9
"""Pixels are taken to be from -1 to 1 where they reach at least this far below and above 0."""


Pair = tuple[DeclaredArray, DeclaredArray]
"""An array of images, and one of their labels."""


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
        names = [name.strip() for name in arrays.split(",")]
        if len(names) != 2:
            raise InputError(f"--arrays {arrays}: name two arrays, images and labels: --arrays x_test,y_test")
        array_of_name = by_name(declared)
        for name in names:
            if name not in array_of_name:
                raise InputError(f"{path}: --arrays {arrays}: {unknown_name('array', name, list(array_of_name))}")
        image, label = array_of_name[names[0]], array_of_name[names[1]]
        words = ""
    else:
        (image, label), words = _fitting_pair(declared, path)

    x = read_array(path, image.name)
    where = f"{path}: {image.name}"
    white: int | str
    if value_range == SIGNED:
        white, range_words = SIGNED, "pixels from -1 to 1 as asked"
    elif value_range:
        white, range_words = int(value_range), f"white {value_range} as asked"
    else:
        white, range_words = _value_of_white(x, where)

    settings: dict[str, str | int] = {"source": "npz", "path": str(path)}
    if image.name != IMAGE:
        settings["image"] = image.name
    if label.name != LABEL:
        settings["label"] = label.name
    if white != (255 if x.dtype == np.uint8 else 1):
        settings["value_range"] = white

    axes = [axis for axis in (1, 3) if x.ndim == 4 and x.shape[axis] in (1, 3)]
    if x.ndim != 3 and len(axes) != 1:
        fault = "two axes may be the channels" if axes else "no axis has 1 or 3 channels"
        raise InputError(
            f"{where}: shape {x.shape}, of which {fault}; save grey images as (N, H, W), colour ones as (N, H, W, 3) "
            "or (N, 3, H, W), or as PNG files in class folders"
        )
    return settings, f"arrays {image.name} and {label.name}{words}, {range_words}"


def _fitting_pair(declared: Sequence[DeclaredArray], path: Path) -> tuple[Pair, str]:
    # Images with their labels, and in words how they were told from other arrays: by their names, those of the test set
    # where there are several splits, else by their shapes alone.
    candidates = []
    for image in filter(_holds_images, declared):
        for label in declared:
            if len(label.shape) in (1, 2) and label.shape[0] == image.shape[0]:
                candidates.append((image, label))

    by_split: dict[str, list[Pair]] = {}
    for image, label in candidates:
        image_word, split = _word_and_split(image.name)
        label_word, label_split = _word_and_split(label.name)
        if image_word in IMAGE_NAMES and label_word in LABEL_NAMES and split == label_split:
            by_split.setdefault(split, []).append((image, label))
    pairs, words = list(chain.from_iterable(by_split.values())), ""
    if "test" in by_split and len(by_split) > 1:
        names = [split or "unnamed" for split in sorted(by_split) if split != "test"]
        pairs, words = by_split["test"], f", the test set beside {' and '.join(names)} data"
    elif not pairs:
        pairs = [pair for pair in candidates if not _holds_images(pair[1])]
        words = ", by their shapes"
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


def _word_and_split(name: str) -> tuple[str, str]:
    # Name of an array without the word for its split, and the split: x_test is x of test, trainX x of train.
    words = re.split(r"[\W_]+", name.casefold())
    for word in words:
        if word in SPLITS:
            remaining = [other for other in words if other != word]
            return "".join(remaining), SPLITS[word]
    joined = "".join(words)
    for word, split in SPLITS.items():
        for shorter in (joined.removeprefix(word), joined.removesuffix(word)):
            if shorter != joined and shorter in IMAGE_NAMES | LABEL_NAMES:
                return shorter, split
    return joined, ""


def _holds_images(array: DeclaredArray) -> bool:
    return len(array.shape) in (3, 4) and array.dtype.kind in "fiu"


def _value_of_white(x: NDArray[np.generic], where: str) -> tuple[int | str, str]:
    # Value of white, or SIGNED, that pixels have by their type and values, and words on it. InputError for values that
    # fit no range, and with the option for those that fit two.
    low, high = (float(x.min()), float(x.max())) if x.size else (0.0, 0.0)
    if not (np.isfinite(low) and np.isfinite(high)):
        raise InputError(f"{where}: pixels from {low} to {high}; find out where they are not finite, and save it again")
    spread = f"{low:.4g} to {high:.4g}"
    if low >= 0 and high <= 1:
        return 1, f"white 1, as pixels are from {spread}"
    if low >= 0 and high <= 255 and (x.dtype == np.uint8 or high >= LEAST_BRIGHTEST_OF_255):
        return 255, f"white 255, as pixels are from {spread}"
    if -1 <= low <= -SIGNED_REACH and SIGNED_REACH <= high <= 1:
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
