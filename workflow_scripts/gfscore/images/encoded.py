"""Image sets of encoded images (JPEG, PNG, ...), decoded by several threads a bounded number of images ahead."""

from __future__ import annotations

import hashlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes, require_regular
from gfscore.core.labels import are_numbers
from gfscore.images.array_files import whole_labels
from gfscore.images.decoding import describe, orientation_of, prepare
from gfscore.images.image_set import DecodedImage, ImageSet, unit_range
from gfscore.tables.binary_files import opened_parquet

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile


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


# ---- Encoded images and labels in Parquet files, read a few rows at a time.


BATCH = 64
"""Rows read from Parquet at a time."""


@contextmanager
def opened(file: Path | str, column: str) -> Iterator[ParquetFile]:
    """Open a Parquet file with a given column; InputError, naming the file, if it is damaged or lacks the column."""
    import pyarrow as pa

    require_regular(file)
    try:
        with _whole(file) as parquet:
            names = parquet.schema_arrow.names
            if column not in names:
                raise InputError(f"{file}: no column {column}, only {', '.join(names)}; correct the name")
            if names.count(column) > 1:
                raise InputError(f"{file}: has {names.count(column)} columns {column}; rename one")
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error


def _whole(file):
    # Not around the yield above, since the caller may raise ValueError for other reasons.
    try:
        return opened_parquet(file)
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error


def encoded_images(file: Path | str, column: str, rows: NDArray[np.int64]) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield, for ascending `rows` (n,), the name of the row and a function that returns its encoded image.

    Row groups without any of the rows are not read. The function raises InputError for a row without bytes.
    """
    end = 0
    with opened(file, column) as parquet:
        for group in range(parquet.num_row_groups):
            start, end = end, end + parquet.metadata.row_group(group).num_rows
            wanted = set(rows[(rows >= start) & (rows < end)].tolist())
            batches = parquet.iter_batches(BATCH, row_groups=[group], columns=[column]) if wanted else ()
            for row, value in enumerate((value for batch in batches for value in batch[column]), start):
                if row in wanted:
                    yield f"{file}: row {row}", partial(_bytes_of, value, file, row)


def _bytes_of(value, file, row):
    content = value.as_py()
    content = content.get("bytes") if isinstance(content, dict) else content
    if not isinstance(content, bytes):
        raise InputError(f"{file}: row {row} holds no encoded image; save images as bytes, not as paths")
    return content


def labels_in(file: Path | str, column: str) -> NDArray[Any]:
    """Labels (n,) of a file, int32 or str; InputError for missing values and other types."""
    import pyarrow as pa

    with opened(file, column) as parquet:
        values = parquet.read([column])[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
    whole = str(values.type).removeprefix("u").startswith("int")
    text = str(values.type) in ("string", "large_string")
    if values.null_count or not (whole or text):
        raise InputError(
            f"{file}: column {column} is {values.type}, {values.null_count} null; give whole numbers or names"
        )
    return values.to_numpy().astype(str) if text else whole_labels(values.to_numpy(), len(values), f"{file}: {column}")


def class_indices(labels: list[NDArray[Any]], path: Path | str) -> tuple[list[NDArray[Any]], tuple[str, ...] | None]:
    """Labels of several files as class indices, and the sorted class names if labels are names, else None.

    Names that are numbers are sorted as such.

    Raises InputError, naming `path`, if labels are numbers in some files and names in others.
    """
    kinds = {values.dtype.kind for values in labels if len(values)}
    if len(kinds) > 1:
        raise InputError(f"{path}: labels are numbers in some files and names in others; write the files again")
    if "U" not in kinds:
        return labels, None
    names = np.unique(np.concatenate([values for values in labels if len(values)]))
    indices = [np.searchsorted(names, values) for values in labels]
    if not are_numbers(names.tolist()):
        return indices, tuple(names.tolist())
    # As text 10 comes before 2.
    order = np.argsort(names.astype(np.int64), kind="stable")
    place = np.argsort(order, kind="stable")
    return [place[values] for values in indices], tuple(names[order].tolist())
