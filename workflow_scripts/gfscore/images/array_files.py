"""Image sets of users' arrays, in an .npz file or as .npy files of a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few, unknown_name
from gfscore.core.files import atomic
from gfscore.core.labels import are_numbers, class_indices, classes_of_one_hot, without_point
from gfscore.core.names import numbered
from gfscore.images.image_set import ImageSet, from_arrays
from gfscore.tables.binary_files import declared_array, declared_header, opened, whole_array

ENDING = ".npy"

SIGNED: Literal["signed"] = "signed"
"""Value range of pixels from -1 to 1."""

ValueRange = Literal[1, 255, "signed"]
Channels = Literal["first", "last", "none"]

RANGE_REMEDY = "set value_range (gfscore audit: --value-range) to 1, 255 or signed"
CHANNELS_REMEDY = "set channels to first (N, C, H, W), last (N, H, W, C) or none (N, H, W)"

MOST_CHANNELS = 4

Array = NDArray[np.generic]
"""Array of whatever type a file declares."""

Result = TypeVar("Result")


def open_arrays(
    path: Path | str,
    *,
    image: str,
    label: str,
    value_range: ValueRange | None,
    channels: Channels | None,
    classes: Sequence[str] | None,
    prefix: str,
) -> ImageSet:
    """Images and labels of two arrays.

    Parameters
    ----------
    path : path or str
        File .npz, or folder of .npy files.
    image, label : str
        Names of the arrays. Labels are (N,), (N, 1) or one-hot (N, K); text counts as numbers where it is "0", "1",
        ..., else as names.
    value_range : {1, 255, "signed"} or None
        Pixel value of white where black is 0, or "signed" for pixels from -1 to 1; None: 255 for uint8, else 1.
    channels : {"first", "last", "none"} or None
        Axis of the colours: (N, C, H, W), (N, H, W, C), or (N, H, W) of grey images; None: the one of the two axes
        that has length 1 or 3.
    classes : sequence of str or None
        Class names in label order, for labels that are names; None for their alphabetical order.
    prefix : str
        Beginning of the identifiers, which end with the number of the row.

    Returns
    -------
    ImageSet
        Pixels brought to [0, 1]; with `class_names` where labels are names.

    Raises
    ------
    InputError
        Naming file and remedy, for a missing, truncated or damaged file, a missing array, pickled objects, different
        numbers of labels and images, pixels that are not finite or out of range, and labels of another kind.
    """
    x = read_array(path, image)
    y = read_array(path, label)
    images = _channels_first(x, channels, path)
    scale = value_range or (255 if x.dtype == np.uint8 else 1)
    _require_pixels(images, scale, path)

    # In float32 throughout and in one array, which alone takes four times the memory of uint8 pixels.
    pixels = np.array(images, dtype=np.float32, order="C")
    if scale == SIGNED:
        pixels += np.float32(1)
        pixels /= np.float32(2)
        preprocessing = "pixels from -1 to 1"
    else:
        pixels /= np.float32(scale)
        preprocessing = f"pixels divided by {scale}"

    where = f"{path}: {label}"
    labels = _plain_labels(y, len(images), where)
    class_names = None
    if labels.ndim == 1 and labels.dtype.kind == "U":
        class_names = tuple(classes or sorted(set(labels.tolist())))
        labels = class_indices(labels, class_names, where)
    return from_arrays(
        pixels,
        labels,
        sample_id=numbered(f"{prefix}-", len(images)),
        preprocessing=preprocessing,
        class_names=class_names,
        where=where,
    )


def _channels_first(x: Array, channels: Channels | None, path: Path | str) -> Array:
    # View of shape (N, C, H, W).
    if channels is None and x.ndim == 3:
        channels = "none"
    elif channels is None:
        first = x.ndim == 4 and x.shape[1] in (1, 3)
        last = x.ndim == 4 and x.shape[3] in (1, 3)
        if first == last:
            raise InputError(
                f"{path}: x has shape {x.shape}, which does not determine the channel axis; {CHANNELS_REMEDY}"
            )
        channels = "first" if first else "last"

    dimensions = 3 if channels == "none" else 4
    if x.ndim != dimensions:
        raise InputError(
            f"{path}: x has shape {x.shape}, but channels: {channels} means {dimensions} dimensions; {CHANNELS_REMEDY}"
        )
    images = x
    if channels == "last":
        images = np.moveaxis(x, -1, 1)
    elif channels == "none":
        images = x[:, None]
    if images.shape[1] > MOST_CHANNELS:
        raise InputError(
            f"{path}: x of shape {x.shape} has {images.shape[1]} channels, more than {MOST_CHANNELS}; "
            "set channels to first (N, C, H, W) or last (N, H, W, C)"
        )
    return images


def _require_pixels(images: Array, scale: ValueRange, path: Path | str) -> None:
    # Numbers (N, C, H, W) in the range that plausibly use it.
    if images.dtype.kind not in "fiu":
        raise InputError(f"{path}: x has dtype {images.dtype}; save numbers")
    if images.size == 0:
        raise InputError(f"{path}: x has shape {images.shape}: no pixels")

    black = -1 if scale == SIGNED else 0
    white = 1 if scale == SIGNED else int(scale)
    low = images.min(axis=(1, 2, 3))
    high = images.max(axis=(1, 2, 3))
    # NaN propagates through min and max, so it is refused here as well.
    finite = np.isfinite(low) & np.isfinite(high)
    wrong = np.flatnonzero(~(finite & (low >= black) & (high <= white)))
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{path}: row {row} has pixels from {low[row]} to {high[row]}, outside {black}..{white} "
            f"({wrong.size} such rows); {RANGE_REMEDY}, or rescale the images"
        )
    if scale == SIGNED and low.min() >= 0:
        raise InputError(f"{path}: no pixel is below {low.min()}, and signed means from -1 to 1; {RANGE_REMEDY}")
    if scale == 255 and high.max() <= 1:
        raise InputError(
            f"{path}: no pixel exceeds {high.max()}; with pixels in [0, 1] set value_range: 1 "
            "(gfscore audit: --value-range 1)"
        )


def _plain_labels(y: Array, number: int, where: str) -> Array:
    # One label per image from (n,), (n, 1) or one-hot (n, K); the texts "0", "1", ... become numbers.
    if y.dtype.kind == "b":
        y = y.astype(np.int8)
    if y.ndim == 2 and y.shape[0] == number and y.shape[1] > 1 and y.dtype.kind in "iuf":
        return classes_of_one_hot(y, where)
    if y.ndim > 1 and y.size == number == max(y.shape):
        y = y.reshape(number)
    if y.dtype.kind == "S":
        y = np.char.decode(y.astype(np.bytes_), "utf-8", "replace")
    if y.dtype.kind == "U":
        texts = without_point(y.ravel().tolist())
        if are_numbers(texts):
            y = np.array(texts, dtype=np.str_).astype(np.int64).reshape(y.shape)
    return y


def write_samples(path: Path | str, images: NDArray[np.float32], labels: NDArray[np.integer]) -> None:
    """Write images x and labels y to an .npz file, atomically; equal arguments give equal bytes."""
    # An open file, since numpy would append .npz to the temporary name.
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, x=images, y=labels)


@dataclass(frozen=True)
class DeclaredArray:
    """Name, shape and type of an array, as its header has them."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]

    def __str__(self) -> str:
        """Name and shape: x_test (10000, 28, 28)."""
        return f"{self.name} {self.shape}"


def declared_arrays(path: Path | str) -> list[DeclaredArray]:
    """Names, shapes and types of users' arrays; no pixel is read.

    Parameters
    ----------
    path : path or str
        File .npz, or folder of .npy files.

    Returns
    -------
    list of DeclaredArray
        In the order of the file, or of the names in the folder. Arrays of Python objects, which are not read, are
        listed too.

    Raises
    ------
    InputError
        Naming the file and the remedy, for damaged files.
    """
    path = Path(path)
    if not path.is_dir():
        return _read(path, _declared_in_npz)
    arrays = []
    for file in sorted(path.iterdir()):
        if file.name.endswith(ENDING) and not file.name.startswith("."):
            arrays.append(_read(file, _declared_in_npy))
    return arrays


def read_array(path: Path | str, name: str) -> Array:
    """Array of this name; InputError, naming the file and the remedy, where it is missing or damaged."""
    path = Path(path)
    if not path.is_dir():
        return _read(path, lambda archive: _read_member(archive, name))

    file = path / f"{name}{ENDING}"
    if Path(name).name != name or not file.is_file():
        names = [array.name for array in declared_arrays(path)]
        raise InputError(
            f"{path}: {unknown_name('array', name, names)}; an array is a file NAME{ENDING} of this folder"
        )
    # Memory-mapped, because that compares the size in the header with the size of the file.
    return _read(file, lambda array: np.array(opened(array, mmap_mode="r")))


def _read_member(file: Path, name: str) -> Array:
    with opened(file) as archive:
        if name not in archive.files:
            raise InputError(
                f"{file}: no array {name}, only {few(archive.files) or 'nothing'}; name the array of "
                "images as `image` and that of labels as `label`, or save it with numpy.savez(path, x=images, y=labels)"
            )
        return whole_array(archive, name)


def _declared_in_npy(file: Path) -> DeclaredArray:
    name = file.name.removesuffix(ENDING)
    shape, dtype = declared_header(file)
    if dtype.hasobject:
        return DeclaredArray(name, shape, dtype)
    array = opened(file, mmap_mode="r")
    return DeclaredArray(name, array.shape, array.dtype)


def _declared_in_npz(file: Path) -> list[DeclaredArray]:
    arrays = []
    with opened(file) as archive:
        for name in archive.files:
            shape, dtype = declared_array(archive, name, with_objects=True)
            arrays.append(DeclaredArray(name, shape, dtype))
    return arrays


def _read(path: Path, read: Callable[[Path], Result]) -> Result:
    try:
        return read(path)
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset") from error
    # A .npy file is no context manager, and damaged files raise errors of many types.
    except Exception as error:
        kind = "file of one array" if path.name.endswith(ENDING) else ".npz file"
        save_again = "copy or download it again, or save it again with numpy.savez(path, x=images, y=labels)"
        remedy = getattr(error, "remedy", save_again)
        raise InputError(f"{path}: not a whole {kind} without pickled objects ({error}); {remedy}") from error
