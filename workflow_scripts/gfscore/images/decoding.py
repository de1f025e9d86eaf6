"""From an encoded image to pixels: decoding to RGB, then resizing and cropping by name.

Computed as torchvision's transforms do on PIL images, because published accuracies rest on them. Resizing is
antialiased. Rotation tags (EXIF) are not applied and transparency is dropped, as in those evaluations.
"""

import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

METHODS = ("center_crop", "squash", "none")
FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
"""Formats that are decoded; others, such as PostScript, would start an interpreter on untrusted input."""
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Pillow's modes of 8 bits or fewer per channel, of which RGB is a plain conversion."""

BITS_PER_SAMPLE = 258
"""Tag of TIFF."""

PIXELS_AFTER_RESIZING = 1 << 26
"""At most, unless the image has more itself; four bytes each."""


def describe(settings: Mapping[str, Any]) -> str:
    """What `prepare` does under these settings, in words; InputError for settings that mean nothing."""
    method = settings["method"]
    if method not in METHODS:
        raise InputError(f"preprocessing method {method!r} is unknown; choose one of {', '.join(METHODS)}")
    if method == "none":
        return "decoded to RGB, divided by 255"
    if settings["interpolation"] not in ("bilinear", "bicubic"):
        raise InputError(f"interpolation {settings['interpolation']!r} is unknown; choose bilinear or bicubic")
    size, filtered = settings["size"], f"({settings['interpolation']}, antialiased)"
    if method == "squash":
        done = f"squashed to {size}x{size} {filtered}"
    elif settings["resize"] is None:
        done = f"centre crop {size}x{size}"
    elif settings["resize"] < size:
        raise InputError(
            f"preprocessing: a short side of {settings['resize']} is below the crop of {size}; raise `resize`"
        )
    else:
        done = f"short side {settings['resize']} {filtered}, centre crop {size}x{size}"
    return f"decoded to RGB, {done}, divided by 255"


def prepare(content: bytes, settings: Mapping[str, Any], *, name: str) -> NDArray[np.uint8]:
    """Pixels (H, W, 3) uint8 of an encoded image.

    `content` bytes; `settings["method"]` is "center_crop" (short side to `resize`, or as stored when that is
    None, then the central `size` x `size`, black beyond the border), "squash" (to `size` x `size`, whatever
    the aspect) or "none"; `interpolation` "bilinear" or "bicubic". Raises InputError, naming `name`, for
    bytes that are no whole image, for more than 8 bits per channel, and for more than one picture (animations, pages).
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            reason = _unsuited(image)
            if not reason:
                return np.asarray(_fitted(image.convert("RGB"), settings))
    # Decoders meet damaged bytes with exceptions of nearly every type.
    except Exception as error:
        raise InputError(
            f"{name}: not a whole image ({type(error).__name__}: {error}); copy or download it again, or remove it"
        ) from error
    raise InputError(f"{name}: {reason}")


def _unsuited(image):
    # Why an opened image is not one picture of 8 bits per channel, from its header; None when it is.
    if image.mode not in MODES:
        return f"pixels of mode {image.mode}, more than 8 bits per channel; convert it to 8-bit RGB"
    # Pillow cuts these to 8 bits without a word.
    bits = _bits(image)
    if bits > 8:
        return f"{bits} bits per channel; convert it to 8-bit RGB"
    # The further pictures of a photograph (MPO) are previews and depths.
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    if frames > 1:
        return f"holds {frames} pictures (an animation, or pages); save the one that is meant by itself"
    return None


def _bits(image):
    # Per channel; 8 stands for 8 or fewer.
    if image.format == "TIFF":
        return max(image.tag_v2.get(BITS_PER_SAMPLE, (1,)))
    codec, _, _, how = image.tile[0] if image.tile else ("", None, None, "")
    if image.format == "PPM" and codec.startswith("ppm") and isinstance(how, tuple):
        return int(how[1]).bit_length()
    return 16 if image.format == "PNG" and ";16" in how else 8


def _fitted(image, settings):
    from PIL import Image

    if settings["method"] == "none":
        return image
    resample = Image.Resampling[settings["interpolation"].upper()]
    size = settings["size"]
    if settings["method"] == "squash":
        return image.resize((size, size), resample)
    if settings["resize"] is not None:
        short = min(image.size)
        # Rounded down, as torchvision does.
        width, height = (side * settings["resize"] // short for side in image.size)
        # A strip of one pixel, a small file, would become one of 256.
        if width * height > max(PIXELS_AFTER_RESIZING, math.prod(image.size)):
            raise ValueError(f"{image.width}x{image.height} pixels would be resized to {width}x{height}")
        image = image.resize((width, height), resample)
    left, top = (_margin(side, size) for side in image.size)
    return image.crop((left, top, left + size, top + size))


def _margin(side, size):
    return round((side - size) / 2) if side >= size else -((size - side) // 2)
