"""Image sets of encoded images (JPEG, PNG, ...), decoded by several threads a bounded number of images ahead."""

import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes
from gfscore.images.dataset_source import Preprocessing
from gfscore.images.decoding import describe, orientation_of, prepare
from gfscore.images.image_set import DIGITS, Copies, ImageFiles, ImageSet, labelled_name, whole_labels

WORKERS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
"""Number of decoding threads; Pillow and hashlib release the interpreter's lock."""
WAITING = 1 << 28
"""Bytes of decoded images that may wait for a batch to be complete, in addition to the batch."""
KEPT = 1 << 28
"""Bytes of decoded images that are kept for further passes at most."""
COVERS = "encoded images, labels, identifiers and preprocessing"


class DifferentSizes(InputError):
    """An image has another size than the first of its set."""


class DecodedImage(NamedTuple):
    """An image after decoding and preprocessing: its shape (H, W, C), and the SHA-256 of its shape and pixels."""

    shape: tuple[int, ...]
    digest: bytes


Blob = tuple[str, Callable[[], bytes]]
"""Name of an encoded image, for error messages, and a function that returns its bytes."""

Blobs = Callable[[NDArray[np.int64]], Iterable[Blob]]
"""Function that yields the encoded images of ascending rows (n,)."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def from_encoded(
    blobs: Blobs,
    labels: ArrayLike,
    *,
    sample_id: ArrayLike,
    preprocessing: Preprocessing,
    class_names: Sequence[str] | None = None,
    where: Path | str = "labels",
    files: ImageFiles | None = None,
) -> ImageSet:
    """Image set of encoded images, of which only a few batches are in memory at a time.

    Parameters
    ----------
    blobs : callable
        `blobs(rows)` yields, for ascending rows (n,), pairs (name, load): the name for error messages, and a function
        that returns the bytes.
    labels : array_like of shape (N,)
        Whole numbers, N >= 1.
    sample_id : array_like of shape (N,)
        Identifiers.
    preprocessing : CenterCrop, Squash or AsStored
        What `decoding.prepare` does to every image.
    class_names : sequence of str, optional
        The K names that the data give to labels 0..K-1.
    where : path or str
        File that errors about labels name.
    files : ImageFiles, optional
        Files of the images, if each has one.

    Returns
    -------
    ImageSet
        Its `digest` is the SHA-256 of the line "gfscore encoded images 1 C H W", the preprocessing in words and
        a newline, then per sample its identifier in UTF-8, a zero byte, the label as little-endian int32 and the 32
        bytes of the SHA-256 of the encoded image.

    Raises
    ------
    InputError
        For labels that are no whole numbers, and for a damaged first image.
    """
    # ASSUME: equal bytes decode to equal pixels; another version of Pillow's decoders may round differently by 1/255.
    names = np.asarray(sample_id, dtype=str)
    classes = whole_labels(np.asarray(labels), len(names), where)
    rows = np.arange(len(classes))
    return EncodedImages(
        sample_id=names,
        labels=classes,
        image_shape=_first_shape(blobs, rows, preprocessing),
        preprocessing=describe(preprocessing),
        class_names=class_names,
        digest_covers=COVERS,
        files=files,
        blobs=blobs,
        rows=rows,
        decoding=preprocessing,
    )


def from_files(
    folder: Path,
    names: Sequence[str],
    labels: ArrayLike,
    *,
    sample_id: ArrayLike,
    preprocessing: Preprocessing,
    class_names: Sequence[str] | None = None,
    where: Path | str = "labels",
    listing: Sequence[Path | str] = (),
) -> ImageSet:
    """Image set of encoded images in files, one each.

    Parameters
    ----------
    folder : Path
        Folder of the files.
    names : sequence of str
        Paths of the N images in it.
    labels, sample_id, preprocessing, class_names, where
        See from_encoded.
    listing : sequence of path
        Files and folders that say which images there are, beside the `path` of the dataset; see ImageFiles.

    Raises
    ------
    InputError
        See from_encoded.
    """

    def blobs(rows: NDArray[np.int64]) -> Iterator[Blob]:
        for row in rows:
            path = folder / names[row]
            yield str(path), partial(regular_bytes, path)

    identifiers = np.asarray(sample_id, dtype=str)
    paths = dict(zip(identifiers.tolist(), names, strict=True))
    return from_encoded(
        blobs,
        labels,
        sample_id=identifiers,
        preprocessing=preprocessing,
        class_names=class_names,
        where=where,
        files=ImageFiles(folder, paths, tuple(listing)),
    )


def in_order(function: Callable[[Item], Result], items: Iterable[Item], *, ahead: int) -> Iterator[Result]:
    """Yield function(item) in the order of `items`, computed by WORKERS threads.

    Parameters
    ----------
    function : callable
        Function of one item.
    items : iterable
        Read no further than `ahead` items in advance.
    ahead : int
        Largest number of items whose results are computed or wait.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(WORKERS) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # After an error, or when the reader stops early.
            for future in waiting:
                future.cancel()


@dataclass(frozen=True, kw_only=True)
class EncodedImages(ImageSet):
    """Images that are stored encoded, and decoded when they are read.

    Attributes
    ----------
    blobs : callable
        See from_encoded.
    rows : ndarray of shape (N,), int64
        Rows of the N images in the source, ascending.
    decoding : CenterCrop, Squash or AsStored
        What `decoding.prepare` does to every image.
    keeps : bool
        Whether the first whole pass keeps the decoded images for the next ones.
    """

    blobs: Blobs
    rows: NDArray[np.int64]
    decoding: Preprocessing
    keeps: bool = False

    def stream(self, batch_size: int) -> Iterator[NDArray[np.uint8]]:
        """Yield decoded pixels (n, H, W, C), of exactly `batch_size` images except the last."""
        if not self.keeps:
            yield from self._decode(batch_size)
            return
        pixels = vars(self).get("_pixels")
        if pixels is not None:
            for start in range(0, len(self), batch_size):
                yield pixels[start : start + batch_size]
            return

        channels, height, width = self.image_shape
        pixels = np.empty((len(self), height, width, channels), dtype=np.uint8)
        start = 0
        for batch in self._decode(batch_size):
            pixels[start : start + len(batch)] = batch
            start += len(batch)
            yield batch
        vars(self)["_pixels"] = pixels

    def _decode(self, batch_size: int) -> Iterator[NDArray[np.uint8]]:
        decode = partial(_pixels, preprocessing=self.decoding)
        # One batch ahead, so that images are decoded while the network computes.
        waiting = max(1, WAITING // math.prod(self.image_shape))
        images = in_order(decode, self.blobs(self.rows), ahead=min(batch_size + WORKERS, waiting))
        names = iter(self.sample_id)
        channels, height, width = self.image_shape
        while batch := list(islice(images, batch_size)):
            for image, name in zip(batch, names, strict=False):
                if image.shape != (height, width, channels):
                    raise DifferentSizes(
                        f"{name}: {image.shape[1]}x{image.shape[0]} pixels, but the first image has {width}x{height}; "
                        "images of different sizes need the preprocessing center_crop or squash"
                    )
            yield np.stack(batch)

    def kept_in_memory(self) -> ImageSet:
        """The same images, decoded in the first of several passes alone, if all together take at most KEPT bytes."""
        return replace(self, keeps=len(self) * math.prod(self.image_shape) <= KEPT)

    def _part(self, rows: NDArray[np.int64], copies: Copies | None) -> ImageSet:
        # Images that are not asked for are not read.
        chosen = self.rows[rows]
        part = replace(
            self,
            sample_id=self.sample_id[rows],
            labels=self.labels[rows],
            image_shape=_first_shape(self.blobs, chosen, self.decoding),
            copies=copies,
            rows=chosen,
        )
        if "_hashes" in vars(self):
            vars(part)["_hashes"] = [self._hashes[row] for row in rows]
        return part

    def hashes(self) -> Iterator[bytes]:
        """Yield the SHA-256 of each encoded image, which is not decoded."""
        return iter(self._hashes)

    @cached_property
    def _hashes(self) -> list[bytes]:
        # Kept, as the digest of the set and those of its images are made of the same ones.
        return list(self._of_each(_hash))

    def decoded(self) -> Iterator[DecodedImage]:
        """Yield what each image is after decoding, whatever its size."""
        return self._of_each(partial(_decoded_image, preprocessing=self.decoding))

    def orientations(self) -> Iterator[int]:
        """Yield the EXIF orientation of each image, 1 to 8."""
        return self._of_each(_orientation)

    @cached_property
    def pixel_digests(self) -> NDArray[np.str_]:
        """Digests of the decoded images, (N,) str, see ImageSet."""
        return np.array([image.digest.hex()[:DIGITS] for image in self.decoded()])

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of encoded images, labels and identifiers, see from_encoded."""
        shape = "{} {} {}".format(*self.image_shape)
        state = hashlib.sha256(f"gfscore encoded images 1 {shape}\n{self.preprocessing}\n".encode())
        for name, label, content in zip(self.sample_id, self.labels, self.hashes(), strict=True):
            state.update(labelled_name(name, label) + content)
        return state.hexdigest()

    def _of_each(self, function: Callable[[Blob], Result]) -> Iterator[Result]:
        return in_order(function, self.blobs(self.rows), ahead=4 * WORKERS)


def _first_shape(blobs: Blobs, rows: NDArray[np.int64], preprocessing: Preprocessing) -> tuple[int, int, int]:
    # (C, H, W) of the first image of some rows.
    first = next(iter(blobs(rows[:1])))
    height, width, channels = _pixels(first, preprocessing).shape
    return channels, height, width


def _pixels(blob: Blob, preprocessing: Preprocessing) -> NDArray[np.uint8]:
    name, _ = blob
    return prepare(_content(blob), preprocessing, name=name)


def _hash(blob: Blob) -> bytes:
    return hashlib.sha256(_content(blob)).digest()


def _decoded_image(blob: Blob, preprocessing: Preprocessing) -> DecodedImage:
    pixels = _pixels(blob, preprocessing)
    state = hashlib.sha256("{} {} {}\n".format(*pixels.shape).encode())
    state.update(np.ascontiguousarray(pixels).data)
    return DecodedImage(pixels.shape, state.digest())


def _orientation(blob: Blob) -> int:
    return orientation_of(_content(blob))


def _content(blob: Blob) -> bytes:
    name, load = blob
    try:
        return load()
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror or error}); restore it, or download it again"
        ) from error
