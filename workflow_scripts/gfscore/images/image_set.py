"""ImageSet, the labelled images of a source, and their corrupted copies."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.labels import fault_of_labels

DIGEST_BATCH = 256
"""Images per batch for digests, which do not depend on it."""

DIGITS = 32
"""Hexadecimal digits of the digest of an image."""

Condition = tuple[str, int]
"""A corruption and its severity."""

Stored = bytes | memoryview
"""Content of images for a digest: their pixels, or the hash of an encoded image."""

Pixels = TypeVar("Pixels", NDArray[np.uint8], NDArray[np.float32])


class DecodedImage(NamedTuple):
    """An image after decoding and preprocessing: its shape (H, W, C), and the SHA-256 of its shape and pixels."""

    shape: tuple[int, ...]
    digest: bytes


@dataclass(frozen=True)
class Copies:
    """Corrupted copies of N images: one copy of every image for every condition.

    Attributes
    ----------
    conditions : tuple of Condition
        Pairs of corruption and severity.
    rows : ndarray of shape (N,), int64
        Positions of the N images in the files of the copies.
    read : callable
        `read(condition, rows)` returns the copies at rows (n,), (n, C, H, W) float32 in [0, 1].
    stored : callable
        `stored(condition, rows)` yields the content of these copies for a digest, without decoding them.
    form : str
        Shape and preprocessing of the copies, in words.
    """

    conditions: tuple[Condition, ...]
    rows: NDArray[np.int64]
    read: Callable[[Condition, NDArray[np.int64]], NDArray[np.float32]]
    stored: Callable[[Condition, NDArray[np.int64]], Iterator[Stored]]
    form: str

    def corrupted(self, corruption: str, severity: int) -> NDArray[np.float32]:
        """Copies with one corruption at one severity, (N, C, H, W) float32 in [0, 1]."""
        return self.read((corruption, severity), self.rows)

    def select(self, rows: NDArray[np.int64]) -> "Copies":
        """Copies of the images `rows` (n,)."""
        return replace(self, rows=self.rows[rows])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the copies by condition: of pixels (H, W, C) uint8, or of hashes of encoded images."""
        state = hashlib.sha256(f"gfscore corrupted copies 1 {self.form}\n".encode())
        for corruption, severity in self.conditions:
            state.update(f"{corruption}/{severity}\n".encode())
            for content in self.stored((corruption, severity), self.rows):
                state.update(content)
        return state.hexdigest()


@dataclass(frozen=True)
class ImageSet:
    """N labelled images in a fixed order, read in batches.

    Attributes
    ----------
    sample_id : ndarray of shape (N,), str
        Identifiers, each once.
    labels : ndarray of shape (N,), int32
        Classes 0..K-1.
    image_shape : tuple of int
        (C, H, W); (0, 0, 0) for labels without images.
    preprocessing : str
        What was done to the stored pixels, in words.
    stream : callable
        `stream(batch_size)` yields arrays (n, C, H, W) float32 in [0, 1], n <= batch_size, in the order of `sample_id`,
        from the first sample on at every call.
    class_names : sequence of str, optional
        Names of labels 0..K-1 in the data.
    content_digest : callable, optional
        `content_digest()` returns a SHA-256 (hex) of the data for which no image is decoded.
    digest_covers : str
        Data that the digest covers, in words.
    choose : callable, optional
        `choose(rows)` returns the ImageSet of some rows, for sources that need not read the others.
    hashes : callable, optional
        `hashes()` yields the SHA-256 (bytes) of each stored image, for sources that need not decode it.
    decoded : callable, optional
        `decoded()` yields a DecodedImage of each image that is stored encoded, whatever its size.
    orientations : callable, optional
        `orientations()` yields the EXIF orientation, 1 to 8, of each image that is stored encoded.
    copies : Copies, optional
        Corrupted copies of the images.
    stored : callable, optional
        `stored(batch_size)` yields batches of pixels (n, H, W, C) uint8, for sources that store them; `unit_range`
        makes the images of them.
    """

    sample_id: NDArray[np.str_]
    labels: NDArray[np.int32]
    image_shape: tuple[int, int, int]
    preprocessing: str
    stream: Callable[[int], Iterator[NDArray[np.float32]]]
    class_names: Sequence[str] | None = None
    content_digest: Callable[[], str] | None = None
    digest_covers: str = "pixels, labels and identifiers"
    choose: Callable[[NDArray[np.int64]], "ImageSet"] | None = None
    hashes: Callable[[], Iterator[bytes]] | None = None
    decoded: Callable[[], Iterator[DecodedImage]] | None = None
    orientations: Callable[[], Iterator[int]] | None = None
    copies: Copies | None = None
    stored: Callable[[int], Iterator[NDArray[np.uint8]]] | None = None

    def __len__(self) -> int:
        """Return the number of samples N."""
        return len(self.labels)

    def batches(self, batch_size: int) -> Iterator[NDArray[np.float32]]:
        """Yield the images, (n, C, H, W) float32 in [0, 1], in order; InputError for another shape, dtype or range."""
        count = 0
        for images in self.stream(batch_size):
            if images.dtype != np.float32 or images.shape[1:] != self.image_shape:
                raise InputError(
                    f"images from row {count} on are {images.dtype} {images.shape[1:]}; "
                    f"expected float32 {self.image_shape}: check the preprocessing of this dataset"
                )
            # Negated, so that NaN is refused too: every comparison with it is false.
            if not (images.min() >= 0 and images.max() <= 1):
                raise InputError(f"images from row {count} on have pixels outside [0, 1]: check the value range")
            count += len(images)
            yield images
        self._require_count(count)

    def stored_batches(self, batch_size: int) -> Iterator[NDArray[np.uint8] | NDArray[np.float32]]:
        """Yield batches of pixels (n, H, W, C) uint8 if the source stores them, else of images, see `batches`."""
        if self.stored is None:
            yield from self.batches(batch_size)
            return
        count = 0
        for pixels in self.stored(batch_size):
            count += len(pixels)
            yield pixels
        self._require_count(count)

    def _require_count(self, count: int) -> None:
        if count != len(self):
            raise InputError(f"{count} images for {len(self)} labels; give one label per image")

    def full_batches(self, batch_size: int) -> Iterator[NDArray[np.float32]]:
        """Yield the images in batches of exactly `batch_size`, except the last.

        The stream of a subset may yield smaller batches, so results could otherwise depend on the source.
        """
        waiting: list[NDArray[np.float32]] = []
        count = 0
        for batch in self.batches(batch_size):
            waiting.append(batch)
            count += len(batch)
            while count >= batch_size:
                joined = np.concatenate(waiting)
                yield joined[:batch_size]
                waiting = [joined[batch_size:]]
                count -= batch_size
        if count:
            yield np.concatenate(waiting)

    def select(self, rows: NDArray[np.int64]) -> "ImageSet":
        """Image set of the samples `rows` (n,), ascending and distinct, with their corrupted copies."""
        part = self._part(rows)
        # A subset takes over digests of pixels that are known, so that it decodes no image for them.
        digests = vars(self).get("pixel_digests")
        if digests is not None:
            vars(part)["pixel_digests"] = digests[rows]
        return part

    def _part(self, rows: NDArray[np.int64]) -> "ImageSet":
        copies = self.copies
        if copies is not None:
            copies = copies.select(rows)
        if self.choose is not None:
            return replace(self.choose(rows), class_names=self.class_names, copies=copies)

        def content_digest() -> str:
            numbers = " ".join(map(str, rows))
            return hashlib.sha256(f"gfscore rows 1 {self.digest} {numbers}".encode()).hexdigest()

        return replace(
            self,
            sample_id=self.sample_id[rows],
            labels=self.labels[rows],
            stream=partial(_selected, self.stream, rows),
            stored=None if self.stored is None else partial(_selected, self.stored, rows),
            content_digest=None if self.content_digest is None else content_digest,
            hashes=None,
            decoded=None,
            orientations=None,
            copies=copies,
        )

    def image_digests(self) -> NDArray[np.str_] | None:
        """First 32 hexadecimal digits of the SHA-256 of each image, (N,) str; None for labels without images.

        The digest is of the encoded image if the source stores it encoded, else of its pixels as little-endian float32
        in C order. Images with equal digests are equal, but equal images may have different digests if they are encoded
        differently; see `pixel_digests`.
        """
        if 0 in self.image_shape:
            return None
        if self.hashes is not None:
            hashes = self.hashes()
        else:
            hashes = (hashlib.sha256(pixels).digest() for pixels in self._pixel_bytes())
        return np.array([content.hex()[:DIGITS] for content in hashes])

    @cached_property
    def pixel_digests(self) -> NDArray[np.str_] | None:
        """First 32 hexadecimal digits of the SHA-256 of each image as networks see it, (N,) str; None without images.

        The digest is of the pixels after decoding and preprocessing: it does not depend on the encoding. For images
        that are stored as arrays it is the one of `image_digests`.
        """
        if 0 in self.image_shape or self.decoded is None:
            return self.image_digests()
        return np.array([image.digest.hex()[:DIGITS] for image in self.decoded()])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of samples, labels and identifiers in their order.

        The `content_digest` if there is one. Otherwise the SHA-256 of the line "gfscore image set 1 C H W", then per
        sample its identifier in UTF-8, a zero byte, the label as little-endian int32 and the pixels as little-endian
        float32 in C order.
        """
        if self.content_digest is not None:
            return self.content_digest()
        state = hashlib.sha256("gfscore image set 1 {} {} {}\n".format(*self.image_shape).encode())
        for row, pixels in enumerate(self._pixel_bytes()):
            state.update(labelled_name(self.sample_id[row], self.labels[row]))
            state.update(pixels)
        return state.hexdigest()

    def _pixel_bytes(self) -> Iterator[bytes]:
        for images in self.batches(DIGEST_BATCH):
            for image in images:
                yield np.ascontiguousarray(image, dtype="<f4").tobytes()


def _selected(stream: Callable[[int], Iterator[Pixels]], rows: NDArray[np.int64], batch_size: int) -> Iterator[Pixels]:
    # Images of a stream at some rows, ascending.
    start = 0
    for images in stream(batch_size):
        end = start + len(images)
        inside = rows[(rows >= start) & (rows < end)] - start
        start = end
        if inside.size:
            yield images[inside]


def from_arrays(
    images: ArrayLike,
    labels: ArrayLike,
    *,
    sample_id: ArrayLike,
    preprocessing: str,
    class_names: Sequence[str] | None = None,
    where: Path | str = "labels",
) -> ImageSet:
    """Image set held in memory.

    Parameters
    ----------
    images : array_like of shape (N, C, H, W)
        Pixels in [0, 1]; kept as float32.
    labels : array_like of shape (N,)
        Whole numbers.
    sample_id : array_like of shape (N,)
        Identifiers.
    preprocessing : str
        What was done to the stored pixels, in words.
    class_names : sequence of str, optional
        The K names that the data give to labels 0..K-1.
    where : path or str
        File that errors about labels name.
    """
    pixels = np.ascontiguousarray(images, dtype=np.float32)

    def stream(batch_size: int) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(pixels), batch_size):
            yield pixels[start : start + batch_size]

    return ImageSet(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=whole_labels(np.asarray(labels), len(pixels), where),
        image_shape=pixels.shape[1:],
        preprocessing=preprocessing,
        stream=stream,
        class_names=class_names,
    )


def from_pixels(
    pixels: NDArray[np.uint8],
    labels: ArrayLike,
    *,
    sample_id: ArrayLike,
    class_names: Sequence[str] | None = None,
    where: Path | str = "labels",
) -> ImageSet:
    """Image set of stored pixels, divided by 255.

    Parameters
    ----------
    pixels : ndarray of shape (N, H, W, C), uint8
        In memory, or a memory map, which is read batch by batch.
    labels : array_like of shape (N,)
        Whole numbers.
    sample_id : array_like of shape (N,)
        Identifiers.
    class_names : sequence of str, optional
        The K names that the data give to labels 0..K-1.
    where : path or str
        File that errors about labels name.
    """

    def stored(batch_size: int) -> Iterator[NDArray[np.uint8]]:
        for start in range(0, len(pixels), batch_size):
            yield pixels[start : start + batch_size]

    def stream(batch_size: int) -> Iterator[NDArray[np.float32]]:
        return map(unit_range, stored(batch_size))

    _, height, width, channels = pixels.shape
    return ImageSet(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=whole_labels(np.asarray(labels), len(pixels), where),
        image_shape=(channels, height, width),
        preprocessing="pixels divided by 255",
        stream=stream,
        stored=stored,
        class_names=class_names,
    )


def unit_range(pixels: ArrayLike) -> NDArray[np.float32]:
    """Images (n, C, H, W) float32 in [0, 1] from pixels (n, H, W, C) uint8."""
    channels_first = np.moveaxis(np.asarray(pixels), -1, 1)
    return np.ascontiguousarray(channels_first, dtype=np.float32) / np.float32(255)


def labelled_name(sample_id: str, label: np.int32) -> bytes:
    """Identifier in UTF-8, a zero byte and the label as little-endian int32, for digests of datasets."""
    return str(sample_id).encode() + b"\0" + label.astype("<i4").tobytes()


def whole_labels(labels: NDArray[Any], number: int, where: Path | str) -> NDArray[np.int32]:
    """Labels as int32.

    Parameters
    ----------
    labels : ndarray
        One label per image.
    number : int
        Number of images.
    where : path or str
        File of the labels, and their name in it, for errors.

    Returns
    -------
    ndarray of shape (number,), int32

    Raises
    ------
    InputError
        If their number is not the number of images, and for fractions, negative numbers and numbers beyond int32.
    """
    if labels.shape != (number,):
        raise InputError(f"{where}: shape {labels.shape} for {number} images; give one label per image")
    fault = fault_of_labels(labels)
    if fault:
        raise InputError(f"{where}: {fault}")
    wrong = np.flatnonzero((labels < 0) | (labels > np.iinfo(np.int32).max))
    if wrong.size:
        row = wrong[0]
        raise InputError(f"{where}: row {row} has label {labels[row]}; labels count from 0 to K-1")
    return labels.astype(np.int32)
