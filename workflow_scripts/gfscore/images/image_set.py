"""ImageSet, the labelled images that every source returns, and corrupted copies of them."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.images.array_files import whole_labels

DIGEST_BATCH = 256
DIGITS = 32


Condition = tuple[str, int]
"""A corruption and its severity."""


class DecodedImage(NamedTuple):
    """An image after decoding and preprocessing: its shape (H, W, C), and the SHA-256 of its shape and pixels."""

    shape: tuple[int, ...]
    digest: bytes


@dataclass(frozen=True)
class Copies:
    """Corrupted copies of N images: one of each for every condition, a pair of corruption and severity.

    `rows` (N,) are the positions of the images among all those that have copies; `read(condition, rows)` gives the
    copies of some, (n, C, H, W) float32 in [0, 1], and `stored(condition, rows)` yields bytes that stand for them
    without decoding; `form` says in words what shape they have and what was done to them.
    """

    conditions: tuple[Condition, ...]
    rows: NDArray[np.int64]
    read: Callable[[Condition, NDArray[np.int64]], NDArray[np.float32]]
    stored: Callable[[Condition, NDArray[np.int64]], Iterator[Any]]
    form: str

    def of(self, corruption: str, severity: int) -> NDArray[np.float32]:
        """Copies with one corruption at one severity, (N, C, H, W) float32 in [0, 1]."""
        return self.read((corruption, severity), self.rows)

    def select(self, rows: NDArray[np.int64]) -> "Copies":
        """Copies of the images `rows` (n,)."""
        return replace(self, rows=self.rows[rows])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the copies by condition: of pixels (H, W, C) uint8, or of the hashes of encoded ones."""
        state = hashlib.sha256(f"gfscore corrupted copies 1 {self.form}\n".encode())
        for corruption, severity in self.conditions:
            state.update(f"{corruption}/{severity}\n".encode())
            for content in self.stored((corruption, severity), self.rows):
                state.update(content)
        return state.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Their entry in the manifest of their dataset."""
        return {"digest": self.digest, "conditions": [list(condition) for condition in self.conditions]}


@dataclass(frozen=True)
class ImageSet:
    """N labelled images in a fixed order, read in batches.

    `sample_id` (N,) str, unique; `labels` (N,) int32; `image_shape` (C, H, W); `preprocessing` describes in words what
    was done to the stored pixels; `stream(batch_size)` yields float32 arrays (n, C, H, W) in [0, 1], n <= batch_size,
    in the order of `sample_id`, starting with the first sample at every call.

    More that a source may give: `class_names`, the K names that the data themselves give to labels 0..K-1;
    `copies`, corrupted copies of the images;
    `content_digest()`, a SHA-256 (hex) that stands for the data without decoding them, and `digest_covers`, what
    it is of, in words; `choose(rows)`, the ImageSet of some rows where skipping the others saves work;
    `hashes()`, which yields the SHA-256 (bytes) of each stored image where that needs no decoding. Of images that are
    stored encoded, `decoded()`, which yields a DecodedImage of each, whatever its size, and `orientations()`, which
    yields their EXIF orientations, 1 to 8.
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

    def __len__(self) -> int:
        """Return the number of samples N."""
        return len(self.labels)

    def batches(self, batch_size: int) -> Iterator[NDArray[np.float32]]:
        """Yield the images, (n, C, H, W) float32 in [0, 1], in order; InputError for another shape, dtype or range."""
        seen = 0
        for images in self.stream(batch_size):
            if images.dtype != np.float32 or images.shape[1:] != self.image_shape:
                raise InputError(
                    f"images from row {seen} on are {images.dtype} {images.shape[1:]}; "
                    f"expected float32 {self.image_shape}: check the preprocessing of this dataset"
                )
            # Negated, so that NaN, for which every comparison is false, is refused too.
            if not (images.min() >= 0 and images.max() <= 1):
                raise InputError(f"images from row {seen} on have pixels outside [0, 1]: check the value range")
            seen += len(images)
            yield images
        if seen != len(self):
            raise InputError(f"{seen} images for {len(self)} labels; give one label per image")

    def full_batches(self, batch_size: int) -> Iterator[NDArray[np.float32]]:
        """Yield the images in batches of exactly `batch_size`, except the last.

        The stream of a subset may yield smaller batches, so results could otherwise depend on the source.
        """
        waiting, count = [], 0
        for batch in self.batches(batch_size):
            waiting.append(batch)
            count += len(batch)
            while count >= batch_size:
                joined = np.concatenate(waiting)
                yield joined[:batch_size]
                waiting, count = [joined[batch_size:]], count - batch_size
        if count:
            yield np.concatenate(waiting)

    def select(self, rows: NDArray[np.int64]) -> "ImageSet":
        """Image set of the samples `rows` (n,), ascending and distinct, with their corrupted copies."""
        copies = self.copies and self.copies.select(rows)
        if self.choose is not None:
            return replace(self.choose(rows), copies=copies)

        def stream(batch_size: int) -> Iterator[NDArray[np.float32]]:
            start = 0
            for images in self.stream(batch_size):
                inside = rows[(rows >= start) & (rows < start + len(images))] - start
                start += len(images)
                if inside.size:
                    yield images[inside]

        def content_digest() -> str:
            return hashlib.sha256(f"gfscore rows 1 {self.digest} {' '.join(map(str, rows))}".encode()).hexdigest()

        return replace(
            self,
            sample_id=self.sample_id[rows],
            labels=self.labels[rows],
            stream=stream,
            content_digest=self.content_digest and content_digest,
            hashes=None,
            decoded=None,
            orientations=None,
            copies=copies,
        )

    def image_digests(self) -> NDArray[np.str_] | None:
        """First 32 hexadecimal digits of the SHA-256 of each image, (N,) str; None for labels without images.

        Of the encoded image where the source stores it encoded, else of its pixels as little-endian float32 in C order.
        Equal digests mean equal images; one image that is encoded in two ways has two, but one of `pixel_digests`.
        """
        if 0 in self.image_shape:
            return None
        hashes = self.hashes() if self.hashes else self._hashes_of_pixels()
        return np.array([content.hex()[:DIGITS] for content in hashes])

    def pixel_digests(self) -> NDArray[np.str_] | None:
        """First 32 hexadecimal digits of the SHA-256 of each image as networks see it, (N,) str; None without images.

        Of its pixels after decoding and preprocessing, so that images have one digest however they are encoded. Images
        that are stored as arrays have that of `image_digests`.
        """
        if 0 in self.image_shape or self.decoded is None:
            return self.image_digests()
        return np.array([image.digest.hex()[:DIGITS] for image in self.decoded()])

    def _hashes_of_pixels(self) -> Iterator[bytes]:
        for images in self.batches(DIGEST_BATCH):
            for image in images:
                yield hashlib.sha256(np.ascontiguousarray(image, dtype="<f4").tobytes()).digest()

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of samples, labels and identifiers in their order.

        The source's `content_digest` if it has one. Otherwise that of the line "gfscore image set 1 C H W", then per
        sample its identifier in UTF-8, a zero byte, the label as little-endian int32 and the pixels as little-endian
        float32 in C order.
        """
        if self.content_digest is not None:
            return self.content_digest()
        state = hashlib.sha256("gfscore image set 1 {} {} {}\n".format(*self.image_shape).encode())
        row = 0
        for images in self.batches(DIGEST_BATCH):
            for image in images:
                state.update(str(self.sample_id[row]).encode() + b"\0")
                state.update(self.labels[row].astype("<i4").tobytes())
                state.update(np.ascontiguousarray(image, dtype="<f4").tobytes())
                row += 1
        return state.hexdigest()


def from_arrays(images: ArrayLike, labels: ArrayLike, *, sample_id: ArrayLike, preprocessing: str) -> ImageSet:
    """Image set held in memory: `images` (N, C, H, W) float32 in [0, 1], `labels` (N,), `sample_id` (N,)."""
    images = np.ascontiguousarray(images, dtype=np.float32)

    def stream(batch_size: int) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(images), batch_size):
            yield images[start : start + batch_size]

    return ImageSet(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=whole_labels(np.asarray(labels), len(images), "labels"),
        image_shape=images.shape[1:],
        preprocessing=preprocessing,
        stream=stream,
    )


def from_pixels(
    pixels: NDArray[np.uint8],
    labels: ArrayLike,
    *,
    sample_id: ArrayLike,
    class_names: Sequence[str] | None = None,
    where: Path | str = "labels",
) -> ImageSet:
    """Image set of `pixels` (N, H, W, C) uint8, divided by 255; an array, or a memory map that is read batch by batch.

    Takes `labels` (N,) whole numbers, which `where` names in errors, and `sample_id` (N,) str.
    """

    def stream(batch_size: int) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(pixels), batch_size):
            yield unit_range(pixels[start : start + batch_size])

    _, height, width, channels = pixels.shape
    return ImageSet(
        sample_id=np.asarray(sample_id, dtype=str),
        labels=whole_labels(np.asarray(labels), len(pixels), where),
        image_shape=(channels, height, width),
        preprocessing="pixels divided by 255",
        stream=stream,
        class_names=class_names,
    )


def unit_range(pixels: ArrayLike) -> NDArray[np.float32]:
    """Images (n, C, H, W) float32 in [0, 1] from pixels (n, H, W, C) uint8."""
    return np.ascontiguousarray(np.moveaxis(np.asarray(pixels), -1, 1), dtype=np.float32) / np.float32(255)
