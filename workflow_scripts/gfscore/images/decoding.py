"""Decoding of images to RGB, resizing and cropping.

The result equals that of torchvision's transforms of PIL images, on which published accuracies are based. Resizing is
antialiased. EXIF rotation is not applied and transparency is dropped, as in those evaluations.
"""

import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
"""Formats that are decoded; others, such as PostScript, would start an interpreter on untrusted input."""
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Pillow's modes of at most 8 bits per channel that convert to RGB without loss of range."""

BITS_PER_SAMPLE = 258
"""TIFF tag."""

PIXELS_AFTER_RESIZING = 1 << 26
"""Largest number of pixels after resizing, unless the image has more itself; four bytes each."""


def describe(settings: Mapping[str, Any]) -> str:
    """Description of what `prepare` does with these settings; it is part of the dataset's digest."""
    method = settings["method"]
    if method == "none":
        return "decoded to RGB, divided by 255"
    size, filtered = settings["size"], f"({settings['interpolation']}, antialiased)"
    if method == "squash":
        steps = f"squashed to {size}x{size} {filtered}"
    elif settings["resize"] is None:
        steps = f"centre crop {size}x{size}"
    else:
        steps = f"short side {settings['resize']} {filtered}, centre crop {size}x{size}"
    return f"decoded to RGB, {steps}, divided by 255"


def prepare(content: bytes, settings: Mapping[str, Any], *, name: str) -> NDArray[np.uint8]:
    """Pixels (H, W, 3) uint8 of an encoded image.

    `settings["method"]` is "center_crop" (shorter side resized to `resize` unless that is None, then the central
    `size` x `size`, black beyond the border), "squash" (resized to `size` x `size`, whatever the aspect ratio) or
    "none"; `interpolation` is "bilinear" or "bicubic". Raises InputError, naming `name`, for a damaged image, more than
    8 bits per channel, and more than one picture (animations, pages).
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            reason = _unsuited(image)
            if not reason:
                return np.asarray(_fitted(image.convert("RGB"), settings))
    # Decoders raise errors of many types for damaged bytes.
    except Exception as error:
        raise InputError(
            f"{name}: not a whole image ({type(error).__name__}: {error}); copy or download it again, or remove it"
        ) from error
    raise InputError(f"{name}: {reason}")


def _unsuited(image):
    # Why an opened image is not a single picture of 8 bits per channel, by its header; None if it is.
    if image.mode not in MODES:
        return f"pixels of mode {image.mode}, more than 8 bits per channel; convert it to 8-bit RGB"
    # Pillow truncates these to 8 bits silently.
    bits = _bits(image)
    if bits > 8:
        return f"{bits} bits per channel; convert it to 8-bit RGB"
    # Further pictures of a photograph (MPO) are previews and depth maps.
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    if frames > 1:
        return f"holds {frames} pictures (an animation, or pages); save one of them as a separate image"
    return None


def _bits(image):
    # Bits per channel; 8 means 8 or fewer.
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
        # A strip of one pixel, which is a small file, would be enlarged to a width of 256 pixels.
        if width * height > max(PIXELS_AFTER_RESIZING, math.prod(image.size)):
            raise ValueError(f"{image.width}x{image.height} pixels would be resized to {width}x{height}")
        image = image.resize((width, height), resample)
    left, top = (_margin(side, size) for side in image.size)
    return image.crop((left, top, left + size, top + size))


def _margin(side, size):
    return round((side - size) / 2) if side >= size else -((size - side) // 2)
