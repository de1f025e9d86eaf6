"""Decoding of images to RGB, resizing and cropping.

The result equals torchvision's transforms of PIL images, on which published accuracies are based. Resizing is
antialiased, except to the nearest pixel. Transparency is dropped, as in those evaluations. The EXIF orientation is
applied only where the settings say so.
"""

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.Image import Transpose

from gfscore.core.errors import InputError
from gfscore.images.dataset_source import AsStored, Preprocessing, Squash

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

ORIENTATION = 0x0112
"""EXIF tag: how a viewer turns the stored pixels, 1 to 8, where 1 leaves them as they are."""

UPRIGHT = 1
"""Orientation of an image that is shown as it is stored."""

TURNS = {
    2: Transpose.FLIP_LEFT_RIGHT,
    3: Transpose.ROTATE_180,
    4: Transpose.FLIP_TOP_BOTTOM,
    5: Transpose.TRANSPOSE,
    6: Transpose.ROTATE_270,
    7: Transpose.TRANSVERSE,
    8: Transpose.ROTATE_90,
}
"""What a viewer does to the stored pixels, by orientation."""

EXIF_MARKS = (b"Exif", b"eXIf", b"EXIF", b"Raw profile type", b"tiff:Orientation")
"""Bytes that an encoded image with an orientation holds one of."""


@dataclass
class MemoryBudget:
    """A number of bytes, `size`, that threads take and give back.

    A thread that asks for more than is free waits until others give back. One that asks for more than the whole budget
    waits until it is alone.
    """

    size: int
    _used: int = field(default=0, init=False)
    _changed: Condition = field(default_factory=Condition, init=False, repr=False)

    @contextmanager
    def reserved(self, size: int) -> Iterator[None]:
        """Take so many bytes, and give them back at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._used == 0 or self._used + size <= self.size)
            self._used += size
        try:
            yield
        finally:
            with self._changed:
                self._used -= size
                self._changed.notify_all()


DECODING = MemoryBudget(1 << 30)
"""Memory of all images that are being decoded at a time. A larger image is decoded alone."""


def describe(preprocessing: Preprocessing) -> str:
    """Description of what `prepare` does with these settings; it is part of the dataset's digest."""
    steps = ["decoded to RGB"]
    if preprocessing.orientation == "exif":
        steps.append("turned by EXIF")
    if not isinstance(preprocessing, AsStored):
        size = f"{preprocessing.size}x{preprocessing.size}"
        resampling = f"({preprocessing.interpolation}, antialiased)"
        if preprocessing.interpolation == "nearest":
            resampling = "(nearest)"
        if isinstance(preprocessing, Squash):
            steps.append(f"squashed to {size} {resampling}")
        else:
            if preprocessing.resize is not None:
                steps.append(f"short side {preprocessing.resize} {resampling}")
            steps.append(f"centre crop {size}")
    steps.append("divided by 255")
    return ", ".join(steps)


def prepare(content: bytes, preprocessing: Preprocessing, *, name: str) -> NDArray[np.uint8]:
    """Pixels of an encoded image.

    Parameters
    ----------
    content : bytes
        The encoded image.
    preprocessing : CenterCrop, Squash or AsStored
        With CenterCrop the shorter side is resized to `resize`, unless that is None, and the central `size` x `size`
        cut out, black beyond the border; with Squash the image is resized to `size` x `size`, whatever its aspect
        ratio. With the orientation "exif" the stored pixels are turned by their EXIF orientation first.
    name : str
        Name of the image for errors.

    Returns
    -------
    ndarray of shape (H, W, 3), uint8

    Raises
    ------
    InputError
        Naming the image, when it is damaged, has more than 8 bits per channel, more than one picture (animations,
        pages), or more than LARGEST_IMAGE pixels, which are not decoded.
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            fault = _fault(image)
            if fault is None:
                pixels = math.prod(image.size)
                if not isinstance(preprocessing, AsStored):
                    pixels = max(pixels, preprocessing.size**2)
                with DECODING.reserved(BYTES_PER_PIXEL * pixels):
                    return np.asarray(_decoded(image, preprocessing))
    # Decoders raise errors of many types for damaged bytes.
    except Exception as error:
        raise InputError(
            f"{name}: not a whole image ({type(error).__name__}: {error}); copy or download it again, or remove it"
        ) from error
    raise InputError(f"{name}: {fault}")


def orientation_of(content: bytes) -> int:
    """EXIF orientation of an encoded image, 1 to 8; 1 where it has none, or one that cannot be read.

    Also 1 for TIFF, which Pillow turns by itself, so that every reader of images by Pillow sees it turned.
    """
    if not any(mark in content for mark in EXIF_MARKS):
        return UPRIGHT
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            # PNG has EXIF behind the pixels, which are then decoded.
            pixels = math.prod(image.size)
            with DECODING.reserved(BYTES_PER_PIXEL * pixels):
                return _orientation(image) if pixels <= LARGEST_IMAGE else UPRIGHT
    # A damaged image is refused where it is decoded.
    except Exception:
        return UPRIGHT


def _orientation(image: Image.Image) -> int:
    if image.format == "TIFF":
        return UPRIGHT
    try:
        orientation = image.getexif().get(ORIENTATION, UPRIGHT)
    # Malformed EXIF raises errors of many types; readers then show the image as stored.
    except Exception:
        return UPRIGHT
    return orientation if orientation in range(1, 9) else UPRIGHT


def _fault(image: Image.Image) -> str | None:
    # Why an opened image is not a single picture of 8 bits per channel, by its header.
    if math.prod(image.size) > LARGEST_IMAGE:
        return (
            f"{image.width}x{image.height} pixels, more than {LARGEST_IMAGE // 1_000_000} million; save it smaller, or "
            "remove it"
        )
    if image.mode not in MODES:
        return f"pixels of mode {image.mode}, more than 8 bits per channel; convert it to 8-bit RGB"
    # Pillow truncates these to 8 bits silently.
    bits = _bits_per_channel(image)
    if bits > 8:
        return f"{bits} bits per channel; convert it to 8-bit RGB"
    # Further pictures of a photograph (MPO) are previews and depth maps.
    frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
    if frames > 1:
        return f"holds {frames} pictures (an animation, or pages); save one of them as a separate image"
    return None


def _bits_per_channel(image: Image.Image) -> int:
    # 8 means 8 or fewer.
    if image.format == "TIFF":
        return max(image.tag_v2.get(BITS_PER_SAMPLE, (1,)))  # type: ignore[attr-defined]
    tiles = getattr(image, "tile", ())
    if not tiles:
        return 8
    codec, _, _, arguments = tiles[0]
    if image.format == "PPM" and codec.startswith("ppm") and isinstance(arguments, tuple):
        return int(arguments[1]).bit_length()
    if image.format == "PNG" and ";16" in arguments:
        return 16
    return 8


def _decoded(image: Image.Image, preprocessing: Preprocessing) -> Image.Image:
    orientation = _orientation(image) if preprocessing.orientation == "exif" else UPRIGHT
    picture = image.convert("RGB")
    if orientation != UPRIGHT:
        picture = picture.transpose(TURNS[orientation])
    if isinstance(preprocessing, AsStored):
        return picture

    size = preprocessing.size
    resampling = Image.Resampling[preprocessing.interpolation.upper()]
    if isinstance(preprocessing, Squash):
        return picture.resize((size, size), resampling)
    if preprocessing.resize is not None:
        # Sides are rounded down, as torchvision does.
        shorter = min(picture.size)
        width = picture.width * preprocessing.resize // shorter
        height = picture.height * preprocessing.resize // shorter
        # A strip of one pixel, which is a small file, would be enlarged to a width of 256 pixels.
        if width * height > max(PIXELS_AFTER_RESIZING, math.prod(picture.size)):
            raise ValueError(f"{picture.width}x{picture.height} pixels would be resized to {width}x{height}")
        picture = picture.resize((width, height), resampling)
    left = _margin(picture.width, size)
    top = _margin(picture.height, size)
    return picture.crop((left, top, left + size, top + size))


def _margin(side: int, size: int) -> int:
    # Where the central `size` pixels of a side begin; below 0 where the side is shorter.
    if side >= size:
        return round((side - size) / 2)
    return -((size - side) // 2)
