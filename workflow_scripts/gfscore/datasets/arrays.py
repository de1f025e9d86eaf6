"""Images in an .npz file with arrays x and y: a user's own data, or the samples of a generator."""

import zipfile
import zlib

import numpy as np

from gfscore.datasets import from_arrays
from gfscore.errors import InputError

GENERATED = {"value_range": 1, "channels": "first"}
"""Layout of the files that train_generator writes."""


def open_source(settings, path):
    """Images x and labels y of an .npz file.

    `settings`: `value_range` (1 or 255, the pixel value that means white) and `channels` ("first" for (N, C,
    H, W), "last" for (N, H, W, C), "none" for grey (N, H, W)); the source `generated` needs neither. Pixels
    are divided by `value_range`. Raises InputError, naming the file and the remedy, for a missing, truncated
    or corrupt file, a missing array, pickled objects, another number of labels than images, pixels that are
    not finite or out of range, and labels that are not whole numbers.
    """
    layout = {**settings, **GENERATED} if settings["source"] == "generated" else settings
    x, y = _read(path)
    images = _channels_first(x, layout["channels"], path)
    scale = layout["value_range"]
    if scale not in (1, 255):
        raise InputError(f"{path}: value_range {scale!r} is not known; choose 1 or 255")
    _require_pixels(images, scale, path)
    return from_arrays(
        # In float32 throughout: x / 255 in float64 needs eight times the memory of uint8 pixels.
        images.astype(np.float32) / np.float32(scale),
        _whole_labels(y, len(images), path),
        sample_id=[f"{settings['source']}-{row:06d}" for row in range(len(images))],
        preprocessing=f"pixels divided by {scale}",
    )


def _read(path):
    if not path:
        raise InputError("an .npz dataset needs a path; name the file under `path` in config.yaml")
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [key for key in ("x", "y") if key not in file.files]
            if missing:
                raise InputError(
                    f"{path}: no array {' and '.join(missing)}, only {', '.join(file.files) or 'nothing'}; "
                    "save it with numpy.savez(path, x=images, y=labels)"
                )
            return file["x"], file["y"]
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset in config.yaml") from error
    # A bare .npy file gives an array, which is no context manager: TypeError or AttributeError.
    except (
        OSError,
        ValueError,
        EOFError,
        KeyError,
        TypeError,
        AttributeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(
            f"{path}: not a whole .npz file without pickled objects ({error}); "
            "copy or download it again, or save it anew with numpy.savez(path, x=images, y=labels)"
        ) from error


def _channels_first(x, channels, path):
    dimensions = {"first": 4, "last": 4, "none": 3}
    if channels not in dimensions:
        raise InputError(f"{path}: channels {channels!r} is not known; choose first, last or none")
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
            f"{path}: x of shape {x.shape} has {images.shape[1]} channels, which no image has; "
            "set channels to first (N, C, H, W) or last (N, H, W, C)"
        )
    return images


def _require_pixels(images, scale, path):
    if images.dtype.kind not in "fiu":
        raise InputError(f"{path}: x has dtype {images.dtype}; save numbers")
    if images.size == 0:
        raise InputError(f"{path}: x has shape {images.shape}: no pixels")
    low, high = images.min(axis=(1, 2, 3)), images.max(axis=(1, 2, 3))
    # NaN passes through min and max, so it lands here as well.
    wrong = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high) & (low >= 0) & (high <= scale)))
    if wrong.size:
        row = wrong[0]
        raise InputError(
            f"{path}: row {row} has pixels from {low[row]} to {high[row]}, outside 0..{scale} "
            f"({wrong.size} such rows); set value_range, or rescale the images"
        )
    if scale == 255 and high.max() <= 1:
        raise InputError(f"{path}: no pixel exceeds {high.max()}; with pixels in [0, 1] set value_range: 1")


def _whole_labels(y, n, path):
    if y.shape != (n,):
        raise InputError(f"{path}: y has shape {y.shape} for {n} images; give one label per image")
    if y.dtype.kind not in "iu" and not (y.dtype.kind == "f" and np.all(np.isfinite(y)) and np.all(y == np.round(y))):
        raise InputError(f"{path}: y has dtype {y.dtype}; give whole numbers 0..K-1")
    wrong = np.flatnonzero((y < 0) | (y > np.iinfo(np.int32).max))
    if wrong.size:
        raise InputError(f"{path}: row {wrong[0]} has label {y[wrong[0]]}; labels count from 0")
    return y.astype(np.int32)
