"""Checks of users' image arrays and labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few, unknown
from gfscore.core.labels import are_numbers, fault_of_labels
from gfscore.tables.binary_files import declared_array, declared_header, opened, whole_array

SIGNED = "signed"
"""Value range of pixels from -1 to 1."""

RANGE_REMEDY = "set value_range (gfscore audit: --value-range) to 1, 255 or signed"


def channels_first(x: NDArray[Any], channels: str, path: Path | str) -> NDArray[Any]:
    """View of `x` as (N, C, H, W); `channels` is the position of C: "first", "last", or "none" for (N, H, W)."""
    dimensions = {"first": 4, "last": 4, "none": 3}
    if x.ndim != dimensions[channels]:
        raise InputError(
            f"{path}: x has shape {x.shape}, but channels: {channels} means {dimensions[channels]} "
            "dimensions; set channels to first (N, C, H, W), last (N, H, W, C) or none (N, H, W)"
        )
    if channels == "last":
        x = np.moveaxis(x, -1, 1)
    images = x[:, None] if channels == "none" else x
    if images.shape[1] > 4:
        raise InputError(
            f"{path}: x of shape {x.shape} has {images.shape[1]} channels, more than 4; "
            "set channels to first (N, C, H, W) or last (N, H, W, C)"
        )
    return images


def channels_of(x: NDArray[Any], path: Path | str) -> str:
    """Position of the channels of `x` in the form of channels_first; InputError where the shape is ambiguous."""
    if x.ndim == 3:
        return "none"
    places = [name for name, axis in (("first", 1), ("last", 3)) if x.ndim == 4 and x.shape[axis] in (1, 3)]
    if len(places) != 1:
        raise InputError(
            f"{path}: x has shape {x.shape}, which does not determine the channel axis; set channels to first "
            "(N, C, H, W), last (N, H, W, C) or none (N, H, W)"
        )
    return places[0]


def require_pixels(images: NDArray[Any], scale: int | str, path: Path | str) -> None:
    """Raise InputError unless `images` (N, C, H, W) are numbers in [0, scale] that plausibly use that range.

    `scale` is 1, 255, or "signed" for [-1, 1].
    """
    if images.dtype.kind not in "fiu":
        raise InputError(f"{path}: x has dtype {images.dtype}; save numbers")
    if images.size == 0:
        raise InputError(f"{path}: x has shape {images.shape}: no pixels")
    low, high = images.min(axis=(1, 2, 3)), images.max(axis=(1, 2, 3))
    black, white = (-1, 1) if scale == SIGNED else (0, int(scale))
    # NaN propagates through min and max, so it is refused here as well.
    wrong = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low >= black) & (high <= white)))
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{path}: row {row} has pixels from {low[row]} to {high[row]}, outside {black}..{white} "
            f"({wrong.size} such rows); {RANGE_REMEDY}, or rescale the images"
        )
    if scale == 255 and high.max() <= 1:
        raise InputError(
            f"{path}: no pixel exceeds {high.max()}; with pixels in [0, 1] set value_range: 1 "
            "(gfscore audit: --value-range 1)"
        )


def plain_labels(y: NDArray[Any], n: int, where: Path | str) -> NDArray[Any]:
    """Labels (n,) of labels (n,), (n, 1) or one-hot (n, K), whose texts "0", "1", ... become numbers.

    Raises InputError, naming `where`, for other shapes, and for rows of K numbers that are not one 1 and zeros.
    """
    if y.dtype.kind == "b":
        y = y.astype(np.int8)
    if y.ndim == 2 and y.shape[0] == n and y.shape[1] > 1 and y.dtype.kind in "iuf":
        wrong = np.flatnonzero(((y != 0) & (y != 1)).any(axis=1) | (y.sum(axis=1) != 1))
        if wrong.size:
            raise InputError(
                f"{where}: shape {y.shape}, and row {wrong[0]} is not a single 1 among zeros; give one label per "
                "image, or one-hot rows"
            )
        return y.argmax(axis=1)
    if y.ndim > 1 and y.size == n == max(y.shape):
        y = y.reshape(n)
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    if y.dtype.kind == "U" and are_numbers(y.ravel().tolist()):
        y = y.astype(np.int64)
    return y


def whole_labels(y: NDArray[Any], n: int, where: Path | str) -> NDArray[np.int32]:
    """Labels (n,) as int32; InputError for another length, fractions, negative numbers and numbers beyond int32.

    `where` names the labels in errors: their file, and their name in it.
    """
    if y.shape != (n,):
        raise InputError(f"{where}: shape {y.shape} for {n} images; give one label per image")
    fault = fault_of_labels(y)
    if fault:
        raise InputError(f"{where}: {fault}")
    wrong = np.flatnonzero((y < 0) | (y > np.iinfo(np.int32).max))
    if wrong.size:
        raise InputError(f"{where}: row {wrong[0]} has label {y[wrong[0]]}; labels count from 0 to K-1")
    return y.astype(np.int32)


# ---- Arrays by name, in an .npz file or as .npy files of a folder.


ENDING = ".npy"

Result = TypeVar("Result")


@dataclass(frozen=True)
class DeclaredArray:
    """Name, shape and type of an array, as its header has them."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        """Name and shape: x_test (10000, 28, 28)."""
        return f"{self.name} {self.shape}"


def declared_arrays(path: Path | str) -> list[DeclaredArray]:
    """Arrays of an .npz file, or of the .npy files of a folder, in the order of their names; no pixel is read.

    Arrays of Python objects, which are not read, are listed too. Raises InputError, naming the file and the remedy, for
    damaged files.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith(ENDING) and not file.name.startswith("."))
        return [_read(file, _declared_in_npy) for file in files]
    return _read(path, _declared_in_npz)


def read_array(path: Path | str, name: str) -> NDArray[Any]:
    """Array of this name; InputError, naming the file and the remedy, where it is missing or damaged."""
    path = Path(path)
    if path.is_dir():
        file = path / f"{name}{ENDING}"
        if Path(name).name != name or not file.is_file():
            raise InputError(
                f"{path}: {unknown('array', name, [array.name for array in declared_arrays(path)])}; an array is a "
                f"file NAME{ENDING} of this folder"
            )
        # Memory-mapped, because that compares the size in the header with the size of the file.
        return _read(file, lambda one: np.array(opened(one, mmap_mode="r")))

    def member(file: Path) -> NDArray[Any]:
        with opened(file) as archive:
            if name not in archive.files:
                raise InputError(
                    f"{file}: no array {name}, only {few(archive.files) or 'nothing'}; save it with "
                    "numpy.savez(path, x=images, y=labels)"
                )
            return whole_array(archive, name)

    return _read(path, member)


def _declared_in_npy(file):
    shape, dtype = declared_header(file)
    if dtype.hasobject:
        return DeclaredArray(file.name.removesuffix(ENDING), shape, dtype)
    array = opened(file, mmap_mode="r")
    return DeclaredArray(file.name.removesuffix(ENDING), array.shape, array.dtype)


def _declared_in_npz(file):
    with opened(file) as archive:
        return [DeclaredArray(name, *declared_array(archive, name, with_objects=True)) for name in archive.files]


def _read(path: Path, read: Callable[[Path], Result]) -> Result:
    try:
        return read(path)
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset in config.yaml") from error
    # A .npy file is no context manager, and damaged files raise errors of many types.
    except Exception as error:
        kind = "file of one array" if path.name.endswith(ENDING) else ".npz file"
        again = "copy or download it again, or save it again with numpy.savez(path, x=images, y=labels)"
        remedy = getattr(error, "remedy", again)
        raise InputError(f"{path}: not a whole {kind} without pickled objects ({error}); {remedy}") from error
