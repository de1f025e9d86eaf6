"""Decoding of images to RGB, resizing and cropping.

The result equals that of torchvision's transforms of PIL images, on which published accuracies are based. Resizing is
antialiased. Transparency is dropped, as in those evaluations. The EXIF orientation is applied only where the settings
say so.
"""

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError


@dataclass
class MemoryBudget:
    """A number of bytes, `size`, that threads take and give back.

    A thread that asks for more than is left waits until others give back. One that asks for more than there is in all
    waits until it is alone.
    """

    size: int
    _used: int = field(default=0, init=False)
    _changed: Condition = field(default_factory=Condition, init=False, repr=False)

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Hold so many bytes."""
        with self._changed:
            self._changed.wait_for(lambda: self._used == 0 or self._used + size <= self.size)
            self._used += size
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()


FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF", "PPM")
"""Formats that are decoded; others, such as PostScript, would start an interpreter on untrusted input."""
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
"""Pillow's modes of at most 8 bits per channel that convert to RGB without loss of range."""

BITS_PER_SAMPLE = 258
"""TIFF tag."""

PIXELS_AFTER_RESIZING = 1 << 26
"""Largest number of pixels after resizing, unless the image has more itself; four bytes each."""

LARGEST_IMAGE = 120_000_000
"""Largest number of pixels of an image, by its header: more than most cameras take."""

BYTES_PER_PIXEL = 14
"""Memory that decoding takes at most: two images of Pillow, of four bytes, and two arrays, of three."""

DECODING = MemoryBudget(1 << 30)
"""Memory of all images that are being decoded at a time. A larger image is decoded alone."""

ORIENTATION = 0x0112
"""EXIF tag: how a viewer turns the stored pixels, 1 to 8, where 1 leaves them as they are."""

EXIF_MARKS = (b"Exif", b"eXIf", b"EXIF", b"Raw profile type", b"tiff:Orientation")
"""Bytes that an encoded image with an orientation holds one of."""


def describe(settings: Mapping[str, Any]) -> str:
    """Description of what `prepare` does with these settings; it is part of the dataset's digest."""
    method = settings["method"]
    decoded = "decoded to RGB, turned by EXIF" if settings.get("orientation") == "exif" else "decoded to RGB"
    if method == "none":
        return f"{decoded}, divided by 255"
    size, filtered = settings["size"], f"({settings['interpolation']}, antialiased)"
    if method == "squash":
        steps = f"squashed to {size}x{size} {filtered}"
    elif settings["resize"] is None:
        steps = f"centre crop {size}x{size}"
    else:
        steps = f"short side {settings['resize']} {filtered}, centre crop {size}x{size}"
    return f"{decoded}, {steps}, divided by 255"


def prepare(content: bytes, settings: Mapping[str, Any], *, name: str) -> NDArray[np.uint8]:
    """Pixels (H, W, 3) uint8 of an encoded image.

    `settings["method"]` is "center_crop" (shorter side resized to `resize` unless that is None, then the central
    `size` x `size`, black beyond the border), "squash" (resized to `size` x `size`, whatever the aspect ratio) or
    "none"; `interpolation` is "bilinear" or "bicubic". With `orientation` "exif" the stored pixels are turned by their
    EXIF orientation first. Raises InputError, naming `name`, for a damaged image, more than 8 bits per channel, more
    than one picture (animations, pages), and more than LARGEST_IMAGE pixels, which are not decoded.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            reason = _unsuited(image)
            if not reason:
                pixels = max(math.prod(image.size), settings.get("size", 0) ** 2)
                with DECODING.taken(BYTES_PER_PIXEL * pixels):
                    orientation = _orientation(image) if settings.get("orientation") == "exif" else 1
                    return np.asarray(_fitted(_turned(image.convert("RGB"), orientation), settings))
    # Decoders raise errors of many types for damaged bytes.
    except Exception as error:
        raise InputError(
            f"{name}: not a whole image ({type(error).__name__}: {error}); copy or download it again, or remove it"
        ) from error
    raise InputError(f"{name}: {reason}")


def orientation_of(content: bytes) -> int:
    """EXIF orientation of an encoded image, 1 to 8; 1 where it has none, or one that cannot be read.

    Also 1 for TIFF, which Pillow turns by itself, so that every reader of images by Pillow sees it turned.
    """
    from PIL import Image

    if not any(mark in content for mark in EXIF_MARKS):
        return 1
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            # PNG has EXIF behind the pixels, which are then decoded.
            pixels = math.prod(image.size)
            with DECODING.taken(BYTES_PER_PIXEL * pixels):
                return _orientation(image) if pixels <= LARGEST_IMAGE else 1
    # A damaged image is refused where it is decoded.
    except Exception:
        return 1


def _orientation(image):
    if image.format == "TIFF":
        return 1
    try:
        orientation = image.getexif().get(ORIENTATION, 1)
    # Malformed EXIF raises errors of many types; readers then show the image as stored.
    except Exception:
        return 1
    return orientation if orientation in range(1, 9) else 1


def _turned(image, orientation):
    from PIL.Image import Transpose

    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return image if orientation == 1 else image.transpose(turns[orientation])


def _unsuited(image):
    # Why an opened image is not a single picture of 8 bits per channel, by its header; None if it is.
    if math.prod(image.size) > LARGEST_IMAGE:
        return (
            f"{image.width}x{image.height} pixels, more than {LARGEST_IMAGE // 1_000_000} million; save it smaller, or "
            "remove it"
        )
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
