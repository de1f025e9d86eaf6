"""Image sets of encoded images (JPEG, PNG, ...), decoded by several threads a bounded number of images ahead."""

import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.regular import regular_bytes
from gfscore.images.arrays import whole_labels
from gfscore.images.decoding import describe, orientation_of, prepare
from gfscore.images.image_set import DecodedImage, ImageSet, unit_range

WORKERS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
"""Number of decoding threads; Pillow and hashlib release the interpreter's lock."""
WAITING = 1 << 28
"""Bytes of decoded images that may wait for a batch to be complete, beside those of the batch."""
COVERS = "encoded images, labels, identifiers and preprocessing"


class DifferentSizes(InputError):
    """An image has another size than the first of its set."""


Blob = tuple[str, Callable[[], bytes]]
"""Name of an encoded image, for error messages, and a function that returns its bytes."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def from_encoded(
    blobs: Callable[[NDArray[np.int64]], Iterable[Blob]],
    labels: ArrayLike,
    *,
    sample_id: ArrayLike,
    preprocessing: Mapping[str, Any],
    class_names: Sequence[str] | None = None,
    where: Path | str = "labels",
) -> ImageSet:
    """Image set of encoded images, of which only a few batches are in memory at a time.

    `blobs(rows)` yields, for ascending rows (n,), pairs (name, load): the name for error messages, and a function that
    returns the bytes; `labels` (N,), `sample_id` (N,), N >= 1; `preprocessing` as in `decoding.prepare`; `where` names
    the labels in errors. `content_digest` is the SHA-256 of the line "gfscore encoded images 1 C H W", the
    preprocessing in words and a newline, then per sample its identifier in UTF-8, a zero byte, the label as
    little-endian int32 and the 32 bytes of the SHA-256 of the encoded image.
    """
    # ASSUME: equal bytes decode to equal pixels; another version of Pillow's decoders may round differently by 1/255.
    words = describe(preprocessing)
    sample_id = np.asarray(sample_id, dtype=str)
    labels = whole_labels(np.asarray(labels), len(sample_id), where)

    def decode(blob: Blob) -> NDArray[np.uint8]:
        return prepare(_content(blob), preprocessing, name=blob[0])

    def hash_of(blob: Blob) -> bytes:
        return hashlib.sha256(_content(blob)).digest()

    def describe_decoded(blob: Blob) -> DecodedImage:
        pixels = decode(blob)
        state = hashlib.sha256("{} {} {}\n".format(*pixels.shape).encode())
        state.update(np.ascontiguousarray(pixels).data)
        return DecodedImage(pixels.shape, state.digest())

    def of_rows(rows: NDArray[np.int64]) -> ImageSet:
        def stream(batch_size: int) -> Iterator[NDArray[np.float32]]:
            # One batch ahead, so that images are decoded while the network computes.
            waiting = max(1, WAITING // math.prod(shape))
            images = in_order(decode, blobs(rows), ahead=min(batch_size + WORKERS, waiting))
            names = iter(sample_id[rows])
            while batch := list(islice(images, batch_size)):
                for image, name in zip(batch, names, strict=False):
                    _require_shape(image, shape, name)
                yield unit_range(np.stack(batch))

        def hashes() -> Iterator[bytes]:
            return in_order(hash_of, blobs(rows), ahead=4 * WORKERS)

        def decoded() -> Iterator[DecodedImage]:
            return in_order(describe_decoded, blobs(rows), ahead=4 * WORKERS)

        def orientations() -> Iterator[int]:
            return in_order(lambda blob: orientation_of(_content(blob)), blobs(rows), ahead=4 * WORKERS)

        def content_digest() -> str:
            state = hashlib.sha256("gfscore encoded images 1 {} {} {}\n{}\n".format(*shape, words).encode())
            for row, content in zip(rows, hashes(), strict=True):
                state.update(str(sample_id[row]).encode() + b"\0" + labels[row].astype("<i4").tobytes() + content)
            return state.hexdigest()

        height, width, channels = decode(next(iter(blobs(rows[:1])))).shape
        shape = (channels, height, width)
        return ImageSet(
            sample_id=sample_id[rows],
            labels=labels[rows],
            image_shape=shape,
            preprocessing=words,
            stream=stream,
            class_names=class_names,
            content_digest=content_digest,
            digest_covers=COVERS,
            choose=lambda part: of_rows(rows[part]),
            hashes=hashes,
            decoded=decoded,
            orientations=orientations,
        )

    return of_rows(np.arange(len(labels)))


def from_files(folder: Path, names: Sequence[str], labels: ArrayLike, **how: Any) -> ImageSet:
    """Image set of the files of these names in a folder, in their order; arguments as from_encoded."""

    def blobs(rows: NDArray[np.int64]) -> Iterator[Blob]:
        for path in (folder / names[row] for row in rows):
            yield str(path), partial(regular_bytes, path)

    return from_encoded(blobs, labels, **how)


def in_order(function: Callable[[Item], Result], items: Iterable[Item], *, ahead: int) -> Iterator[Result]:
    """Yield function(item) in the order of `items`, computed by WORKERS threads at most `ahead` items in advance."""
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


def _content(blob):
    name, load = blob
    try:
        return load()
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror or error}); restore it, or download it again"
        ) from error


def _require_shape(image, shape, name):
    if image.shape != (shape[1], shape[2], shape[0]):
        raise DifferentSizes(
            f"{name}: {image.shape[1]}x{image.shape[0]} pixels, but the first image has {shape[2]}x{shape[1]}; "
            "images of different sizes need the preprocessing center_crop or squash"
        )
