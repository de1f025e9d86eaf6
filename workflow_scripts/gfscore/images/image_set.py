"""ImageSet, the labelled images of a source, and their corrupted copies."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

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

StoredBatch = NDArray[np.uint8] | NDArray[np.float32]
"""Images as a source stores them: pixels (n, H, W, C) uint8, or images (n, C, H, W) float32 in [0, 1]."""

Batch = TypeVar("Batch", bound=StoredBatch)


@dataclass(frozen=True, kw_only=True)
class Copies(ABC):
    """Corrupted copies of N images: one copy of every image for every condition.

    A subclass reads copies of one kind of storage.

    Attributes
    ----------
    conditions : tuple of Condition
        Pairs of corruption and severity.
    rows : ndarray of shape (N,), int64
        Positions of the N images in the files of the copies.
    form : str
        Shape and preprocessing of the copies, in words.
    """

    conditions: tuple[Condition, ...]
    rows: NDArray[np.int64]
    form: str

    @abstractmethod
    def corrupted(self, corruption: str, severity: int) -> NDArray[np.float32]:
        """Copies with one corruption at one severity, (N, C, H, W) float32 in [0, 1]."""

    @abstractmethod
    def contents(self, corruption: str, severity: int) -> Iterator[bytes | memoryview]:
        """Yield the content of these copies for a digest, without decoding them: pixels, or hashes of images."""

    def select(self, rows: NDArray[np.int64]) -> "Copies":
        """Copies of the images `rows` (n,)."""
        return replace(self, rows=self.rows[rows])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the copies by condition: of pixels (H, W, C) uint8, or of hashes of encoded images."""
        state = hashlib.sha256(f"gfscore corrupted copies 1 {self.form}\n".encode())
        for corruption, severity in self.conditions:
            state.update(f"{corruption}/{severity}\n".encode())
            for content in self.contents(corruption, severity):
                state.update(content)
        return state.hexdigest()


@dataclass(frozen=True)
class ImageFiles:
    """Files of the images of a source, one each.

    Attributes
    ----------
    folder : Path
        Folder of the files.
    names : mapping of str to str
        Paths in it by identifier: of all images of the source, also where a set has some of them.
    listing : tuple of Path or str
        Files and folders that say which images there are: lists, and the folder of the class folders.
    """

    folder: Path
    names: Mapping[str, str]
    listing: tuple[Path | str, ...]

    def path_of(self, sample_id: str) -> str:
        """Path of the image of a sample; of one that the source lacks, that which its identifier gives."""
        return os.path.join(self.folder, self.names.get(sample_id, sample_id))  # noqa: PTH118 - 50,000 names


@dataclass(frozen=True, kw_only=True)
class ImageSet(ABC):
    """N labelled images in a fixed order, read in batches.

    A subclass reads images of one kind of storage: it has `stream`, and overrides what its storage can do without
    decoding or reading all images.

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
    class_names : sequence of str, optional
        Names of labels 0..K-1 in the data.
    digest_covers : str
        Data that the digest covers, in words.
    copies : Copies, optional
        Corrupted copies of the images.
    files : ImageFiles, optional
        Files of images that have one each; None for those that are stored together.
    """

    sample_id: NDArray[np.str_]
    labels: NDArray[np.int32]
    image_shape: tuple[int, int, int]
    preprocessing: str
    class_names: Sequence[str] | None = None
    digest_covers: str = "pixels, labels and identifiers"
    copies: Copies | None = None
    files: ImageFiles | None = None

    def __len__(self) -> int:
        """Return the number of samples N."""
        return len(self.labels)

    @abstractmethod
    def stream(self, batch_size: int) -> Iterator[StoredBatch]:
        """Yield the images as they are stored, n <= batch_size at a time, from the first sample on at every call.

        Pixels (n, H, W, C) uint8, of which `unit_range` makes images, or images (n, C, H, W) float32 in [0, 1].
        """

    def batches(self, batch_size: int) -> Iterator[NDArray[np.float32]]:
        """Yield the images, (n, C, H, W) float32 in [0, 1], in order; InputError for another shape, dtype or range."""
        return self._checked(map(_as_images, self.stream(batch_size)))

    def stored_batches(self, batch_size: int) -> Iterator[StoredBatch]:
        """Yield batches of pixels (n, H, W, C) uint8 if the source stores them, else of images, see `batches`."""
        return self._checked(self.stream(batch_size))

    def _checked(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        channels, height, width = self.image_shape
        count = 0
        for batch in batches:
            shape = (height, width, channels) if batch.dtype == np.uint8 else self.image_shape
            if batch.dtype not in (np.uint8, np.float32) or batch.shape[1:] != shape:
                raise InputError(
                    f"images from row {count} on are {batch.dtype} {batch.shape[1:]}; "
                    f"expected float32 {self.image_shape}: check the preprocessing of this dataset"
                )
            # Negated, so that NaN is refused too: every comparison with it is false.
            if batch.dtype == np.float32 and not (batch.min() >= 0 and batch.max() <= 1):
                raise InputError(f"images from row {count} on have pixels outside [0, 1]: check the value range")
            count += len(batch)
            yield batch
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

    def kept_in_memory(self) -> "ImageSet":
        """The same images, for several passes: decoded in the first alone, if memory has room for all of them."""
        return self

    def select(self, rows: NDArray[np.int64]) -> "ImageSet":
        """Image set of the samples `rows` (n,), ascending and distinct, with their corrupted copies."""
        copies = None if self.copies is None else self.copies.select(rows)
        part = self._part(rows, copies)
        # A subset takes over digests of pixels that are known, so that it decodes no image for them.
        digests = vars(self).get("pixel_digests")
        if digests is not None:
            vars(part)["pixel_digests"] = digests[rows]
        return part

    def _part(self, rows: NDArray[np.int64], copies: Copies | None) -> "ImageSet":
        return SelectedImages(
            sample_id=self.sample_id[rows],
            labels=self.labels[rows],
            image_shape=self.image_shape,
            preprocessing=self.preprocessing,
            class_names=self.class_names,
            digest_covers=self.digest_covers,
            copies=copies,
            whole=self,
            rows=rows,
        )

    def hashes(self) -> Iterator[bytes]:
        """Yield the SHA-256 of each image: encoded if it is stored so, else its pixels, see `image_digests`."""
        for pixels in self._pixel_bytes():
            yield hashlib.sha256(pixels).digest()

    def image_digests(self) -> NDArray[np.str_] | None:
        """First 32 hexadecimal digits of the SHA-256 of each image, (N,) str; None for labels without images.

        The digest is of the encoded image if the source stores it encoded, else of its pixels as little-endian float32
        in C order. Images with equal digests are equal, but equal images may have different digests if they are encoded
        differently; see `pixel_digests`.
        """
        if 0 in self.image_shape:
            return None
        return np.array([content.hex()[:DIGITS] for content in self.hashes()])

    @cached_property
    def pixel_digests(self) -> NDArray[np.str_] | None:
        """First 32 hexadecimal digits of the SHA-256 of each image as networks see it, (N,) str; None without images.

        The digest is of the pixels after decoding and preprocessing: it does not depend on the encoding. For images
        that are stored as arrays it is the one of `image_digests`.
        """
        return self.image_digests()

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of samples, labels and identifiers in their order.

        Of the line "gfscore image set 1 C H W", then per sample its identifier in UTF-8, a zero byte, the label as
        little-endian int32 and the pixels as little-endian float32 in C order, unless the storage has another one.
        """
        state = hashlib.sha256("gfscore image set 1 {} {} {}\n".format(*self.image_shape).encode())
        for row, pixels in enumerate(self._pixel_bytes()):
            state.update(labelled_name(self.sample_id[row], self.labels[row]))
            state.update(pixels)
        return state.hexdigest()

    def _pixel_bytes(self) -> Iterator[bytes]:
        for images in self.batches(DIGEST_BATCH):
            for image in images:
                yield np.ascontiguousarray(image, dtype="<f4").tobytes()


@dataclass(frozen=True, kw_only=True)
class SelectedImages(ImageSet):
    """Samples `rows` (n,), ascending, of an image set that is read as a whole."""

    whole: ImageSet
    rows: NDArray[np.int64]

    def stream(self, batch_size: int) -> Iterator[StoredBatch]:
        """Yield the images of each batch of the whole, which are fewer than `batch_size`."""
        start = 0
        for images in self.whole.stream(batch_size):
            end = start + len(images)
            inside = self.rows[(self.rows >= start) & (self.rows < end)] - start
            start = end
            if inside.size:
                yield images[inside]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the images; of labels without images that of the digest of the whole, and the rows."""
        if 0 not in self.image_shape:
            return super().digest
        numbers = " ".join(map(str, self.rows))
        return hashlib.sha256(f"gfscore rows 1 {self.whole.digest} {numbers}".encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class ArrayImages(ImageSet):
    """Images in one array, in memory or a memory map: see StoredBatch."""

    pixels: StoredBatch

    def stream(self, batch_size: int) -> Iterator[StoredBatch]:
        """Yield slices of the array."""
        for start in range(0, len(self.pixels), batch_size):
            yield self.pixels[start : start + batch_size]


@dataclass(frozen=True, kw_only=True)
class LabelsAlone(ImageSet):
    """Labels and identifiers of the file `path`, without images."""

    path: Path | str
    image_shape: tuple[int, int, int] = (0, 0, 0)
    preprocessing: str = "no images"
    digest_covers: str = "labels, identifiers"

    def stream(self, batch_size: int) -> Iterator[StoredBatch]:
        """Raise InputError."""
        raise InputError(
            f"{self.path}: labels without images; use only models of the sources logits or samples with it"
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of labels and identifiers."""
        state = hashlib.sha256(b"gfscore labels 1\n")
        for identifier, label in zip(self.sample_id, self.labels, strict=True):
            state.update(f"{identifier}\0{label}\n".encode())
        return state.hexdigest()


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
    return ArrayImages(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=whole_labels(np.asarray(labels), len(pixels), where),
        image_shape=pixels.shape[1:],
        preprocessing=preprocessing,
        pixels=pixels,
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
    _, height, width, channels = pixels.shape
    return ArrayImages(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=whole_labels(np.asarray(labels), len(pixels), where),
        image_shape=(channels, height, width),
        preprocessing="pixels divided by 255",
        pixels=pixels,
        class_names=class_names,
    )


def _as_images(stored: StoredBatch) -> NDArray[np.float32]:
    return unit_range(stored) if stored.dtype == np.uint8 else cast(NDArray[np.float32], stored)


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
