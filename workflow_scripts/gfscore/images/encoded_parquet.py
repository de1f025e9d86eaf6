"""Encoded images and labels in Parquet files, in the layout of Hugging Face's datasets, read a few rows at a time."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.parquet import ParquetFile

from gfscore.core.errors import InputError, few
from gfscore.core.files import require_regular
from gfscore.core.labels import are_numbers, without_point
from gfscore.core.names import numbered
from gfscore.images.dataset_source import Part, Preprocessing
from gfscore.images.encoded import Blob, from_encoded
from gfscore.images.image_set import ImageSet, whole_labels
from gfscore.images.listing import visible
from gfscore.images.subsets import in_test_part
from gfscore.tables.binary_files import open_parquet

BATCH = 64
"""Rows read from Parquet at a time."""

Labels = NDArray[np.int32] | NDArray[np.str_]


def open_parquet_images(
    path: Path | str, *, image: str, label: str, part: Part | None, preprocessing: Preprocessing
) -> ImageSet:
    """Images of Parquet files, read one row group after another.

    Parameters
    ----------
    path : path or str
        Parquet file, or folder whose .parquet files are read in the order of their names.
    image : str
        Column of encoded images: bytes, or {bytes, path}.
    label : str
        Column of labels: whole numbers, or names, which are classes in alphabetical order.
    part : Part or None
        One part of a two-way split; None for all rows.
    preprocessing : CenterCrop, Squash or AsStored
        What is done to every image.

    Returns
    -------
    ImageSet
        Identifiers are "<file>/<row>"; class names come from the labels, or from Hugging Face's metadata.

    Raises
    ------
    InputError
        Naming the file, for damaged files, missing columns, and labels or images that are missing or of another type.
    """
    files = parquet_files_of(path)
    labels_by_file, class_names = _class_indices([_labels_in(file, label) for file in files], path)
    if not any(map(len, labels_by_file)):
        raise InputError(f"{path}: no rows; check `path` of this dataset")

    sizes = [len(labels) for labels in labels_by_file]
    starts = np.cumsum([0, *sizes])

    def blobs(rows: NDArray[np.int64]) -> Iterator[Blob]:
        for file, start, size in zip(files, starts, sizes, strict=False):
            inside = rows[(rows >= start) & (rows < start + size)] - start
            yield from _encoded_images(file, image, inside)

    names = []
    for file, size in zip(files, sizes, strict=True):
        names += row_names(file, size)
    images = from_encoded(
        blobs,
        np.concatenate(labels_by_file),
        sample_id=names,
        preprocessing=preprocessing,
        class_names=class_names or _class_names_of_files(files, label),
    )
    if part is None:
        return images

    strata = labels_by_file
    if part.within is not None:
        strata, _ = _class_indices([_labels_in(file, part.within) for file in files], path)
    in_test = in_test_part(np.concatenate(strata), share=part.test_share, seed=part.seed)
    return images.select(np.flatnonzero(in_test == (part.name == "test")))


def parquet_files_of(path: Path | str) -> list[Path]:
    """File at `path`, or the .parquet files of a folder in the order of their names; InputError where it has none."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    files = [path / entry.name for entry in visible(path) if entry.name.lower().endswith(".parquet")]
    if not files:
        raise InputError(f"{path}: no .parquet file in this folder; check `path` of this dataset")
    return files


def row_names(file: Path, rows: int) -> list[str]:
    """Identifiers of the rows of a file."""
    return numbered(f"{file.stem}/", rows)


@contextmanager
def opened(file: Path | str, column: str) -> Iterator[ParquetFile]:
    """Open a Parquet file with a given column; InputError, naming the file, if it is damaged or lacks the column."""
    require_regular(file)
    try:
        parquet = open_parquet(file)
    except InputError:
        raise
    except (ValueError, pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error

    # A ValueError from here on may be the caller's, raised for other reasons.
    try:
        with parquet:
            names = parquet.schema_arrow.names
            if column not in names:
                raise InputError(f"{file}: no column {column}, only {', '.join(names)}; correct the name")
            if names.count(column) > 1:
                raise InputError(f"{file}: has {names.count(column)} columns {column}; rename one")
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{file}: not a whole Parquet file ({error}); copy or download it again") from error


def _encoded_images(file: Path, column: str, rows: NDArray[np.int64]) -> Iterator[Blob]:
    # Row groups without any of the ascending rows (n,) are not read.
    with opened(file, column) as parquet:
        end = 0
        for group in range(parquet.num_row_groups):
            start = end
            end += parquet.metadata.row_group(group).num_rows
            chosen = set(rows[(rows >= start) & (rows < end)].tolist())
            if not chosen:
                continue
            for row, value in enumerate(_values_of(parquet, column, group), start):
                if row in chosen:
                    yield f"{file}: row {row}", partial(_bytes_of, value, file, row)


def _values_of(parquet: ParquetFile, column: str, group: int) -> Iterator[pa.Scalar]:
    for batch in parquet.iter_batches(BATCH, row_groups=[group], columns=[column]):
        yield from batch[column]


def _bytes_of(value: pa.Scalar, file: Path, row: int) -> bytes:
    content = value.as_py()
    if isinstance(content, dict):
        content = content.get("bytes")
    if not isinstance(content, bytes):
        raise InputError(f"{file}: row {row} holds no encoded image; save images as bytes, not as paths")
    return content


def _labels_in(file: Path, column: str) -> Labels:
    # Labels (n,), whole numbers or names.
    with opened(file, column) as parquet:
        values = parquet.read([column])[column]
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
    integers = pa.types.is_integer(values.type)
    text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if values.null_count or not (integers or text):
        raise InputError(
            f"{file}: column {column} is {values.type}, {values.null_count} null; give whole numbers or names"
        )
    if text:
        return values.to_numpy().astype(str)
    return whole_labels(values.to_numpy(), len(values), f"{file}: {column}")


def _class_indices(
    labels_by_file: Sequence[Labels], path: Path | str
) -> tuple[Sequence[NDArray[np.generic]], tuple[str, ...] | None]:
    # Labels of several files as class indices, and the class names in alphabetical order where labels are names; names
    # that are numbers in the order of the numbers.
    filled = list(filter(len, labels_by_file))
    kinds = {labels.dtype.kind for labels in filled}
    if len(kinds) > 1:
        raise InputError(f"{path}: labels are numbers in some files and names in others; write the files again")
    if "U" not in kinds:
        return labels_by_file, None

    names = np.unique(np.concatenate(filled))
    indices = [np.searchsorted(names, labels) for labels in labels_by_file]
    numbers = np.array(without_point(names.tolist()))
    if not are_numbers(numbers.tolist()):
        return indices, tuple(names.tolist())
    # As text 10 comes before 2.
    order = np.argsort(numbers.astype(np.int64), kind="stable")
    position = np.argsort(order, kind="stable")
    return [position[values] for values in indices], tuple(numbers[order].tolist())


def _class_names_of_files(files: Sequence[Path], column: str) -> tuple[str, ...] | None:
    # Class names that the metadata of the files give, which must be the same in all that give any.
    names = None
    for file in files:
        names_of_file = _class_names_in_metadata(file, column)
        if names is not None and names_of_file not in (None, names):
            raise InputError(
                f"{file}: the metadata name the classes of {column} {few(names_of_file)}, other files of this folder "
                f"{few(names)}; write the files again with one order of the classes"
            )
        names = names or names_of_file
    return names


def _class_names_in_metadata(file: Path, column: str) -> tuple[str, ...] | None:
    with opened(file, column) as parquet:
        metadata = parquet.schema_arrow.metadata or {}
    stored = metadata.get(b"huggingface")
    if stored is None:
        return None
    try:
        features = json.loads(stored).get("info", {}).get("features", {})
        names = features.get(column, {}).get("names") or []
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"names are {names}")
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(
            f"{file}: its metadata `huggingface` do not list the class names ({error}); write the file again"
        ) from error
    return tuple(names) or None
