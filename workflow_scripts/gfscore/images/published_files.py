"""Readers of the files that the authors of CIFAR and CelebA publish.

CIFAR's Python version is made of pickles, which can run code when they are loaded. The reader here calls none of the
functions that a pickle may name.
"""

import os
import pickle
import pickletools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes

Variant = Literal["cifar10", "cifar100"]
Split = Literal["train", "test"]

BATCHES: dict[tuple[Variant, Split], list[str]] = {
    ("cifar10", "train"): [f"data_batch_{number}" for number in range(1, 6)],
    ("cifar10", "test"): ["test_batch"],
    ("cifar100", "train"): ["train"],
    ("cifar100", "test"): ["test"],
}
"""Files of a split, without the ending .bin of the binary version."""

FOLDERS: dict[Variant, list[str]] = {
    "cifar10": ["cifar-10-batches-py", "cifar-10-batches-bin"],
    "cifar100": ["cifar-100-python", "cifar-100-binary"],
}
"""Folders of the unpacked archives."""

LABEL_KEYS: dict[Variant, str] = {"cifar10": "labels", "cifar100": "fine_labels"}
NAME_KEYS: dict[Variant, tuple[str, str]] = {
    "cifar10": ("batches.meta", "label_names"),
    "cifar100": ("meta", "fine_label_names"),
}
"""File of the class names, and their key in it."""

LABEL_BYTES: dict[Variant, int] = {"cifar10": 1, "cifar100": 2}
"""Bytes before the pixels of an image in the binary version; of CIFAR-100 a coarse and a fine label."""

IMAGES: dict[Split, int] = {"train": 50_000, "test": 10_000}
SIDE = 32
PIXELS = 3 * SIDE * SIDE

PARTITION = {"train": 0, "valid": 1, "test": 2}
"""Numbers of CelebA's splits in list_eval_partition.txt."""


# CIFAR.


def read_cifar(
    path: Path | str, variant: Variant, split: Split
) -> tuple[NDArray[np.uint8], NDArray[np.integer], tuple[str, ...] | None]:
    """Images, labels and class names of CIFAR-10 or CIFAR-100, in the published order.

    Parameters
    ----------
    path : path or str
        Folder of the unpacked archive, or the folder that holds it; of the Python or the binary version.
    variant : {"cifar10", "cifar100"}
        Dataset; of CIFAR-100 with the 100 fine labels.
    split : {"train", "test"}
        50,000 training or 10,000 test images.

    Returns
    -------
    pixels : ndarray of shape (N, 32, 32, 3), uint8
    labels : ndarray of shape (N,)
    class_names : tuple of str or None
        None where the file of names is missing.

    Raises
    ------
    InputError
        Naming the file, for missing, truncated and malformed files.

    References
    ----------
    Krizhevsky 2009, "Learning multiple layers of features from tiny images".
    """
    folders = [Path(path), *(Path(path, name) for name in FOLDERS[variant])]
    pixels = []
    labels = []
    for file in _batch_files(folders, BATCHES[variant, split]):
        if file.suffix == ".bin":
            batch_pixels, batch_labels = _read_binary_batch(file, variant)
        else:
            batch_pixels, batch_labels = _read_pickled_batch(file, variant)
        pixels.append(batch_pixels)
        labels.append(batch_labels)

    number = sum(map(len, labels))
    if number != IMAGES[split]:
        raise InputError(f"{path}: {number} images, but {variant} {split} has {IMAGES[split]}; unpack it again")
    images = np.concatenate(pixels).reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return images, np.concatenate(labels), _class_names(folders, variant)


def _batch_files(folders: Sequence[Path], stems: Sequence[str]) -> list[Path]:
    for folder in folders:
        for ending in ("", ".bin"):
            files = [folder / f"{stem}{ending}" for stem in stems]
            if all(file.is_file() for file in files):
                return files
    inside = " or ".join(folder.name for folder in folders[1:])
    raise InputError(f"{folders[0]}: no complete set {stems[0]}[.bin] here or in {inside}; unpack the archive there")


def _read_binary_batch(file: Path, variant: Variant) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    row_bytes = LABEL_BYTES[variant] + PIXELS
    content = np.fromfile(file, dtype=np.uint8)
    if len(content) == 0 or len(content) % row_bytes:
        raise InputError(f"{file}: {len(content)} bytes are not whole images of {row_bytes}; unpack it again")
    rows = content.reshape(-1, row_bytes)
    pixels = rows[:, LABEL_BYTES[variant] :]
    labels = rows[:, LABEL_BYTES[variant] - 1]
    return pixels, labels.astype(np.int32)


def _read_pickled_batch(file: Path, variant: Variant) -> tuple[NDArray[np.uint8], NDArray[np.integer]]:
    content = load_plain(file)
    key = LABEL_KEYS[variant]
    pixels = content.get("data")
    labels = content.get(key)
    is_whole = (
        isinstance(labels, list)
        and all(isinstance(label, int) and 0 <= label < 100 for label in labels)
        and isinstance(pixels, np.ndarray)
        and pixels.shape == (len(labels), PIXELS)
    )
    if not is_whole:
        raise InputError(f"{file}: no uint8 data (n, {PIXELS}) with n {key}; unpack {variant} again")
    return np.asarray(pixels), np.asarray(labels)


def _class_names(folders: Sequence[Path], variant: Variant) -> tuple[str, ...] | None:
    name, key = NAME_KEYS[variant]
    files = [folder / name for folder in folders]
    existing = [path for path in files if path.is_file()]
    if not existing:
        return None
    file = existing[0]
    names = load_plain(file).get(key, [])
    if not (isinstance(names, list) and all(isinstance(name, str | bytes) for name in names)):
        raise InputError(f"{file}: {key} is no list of names; unpack the archive again")
    try:
        decoded = tuple(name.decode() if isinstance(name, bytes) else name for name in names)
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: {key} has a name that is no UTF-8 text; unpack the archive again") from error
    return decoded or None


def load_plain(path: Path | str) -> dict[str, Any]:
    """Dict of a pickle that consists of dicts, lists, numbers, texts, bytes and uint8 arrays; keys become str.

    Byte strings of Python 2 remain bytes, except as keys. Functions named in the pickle are replaced by stand-ins of
    this module. Raises InputError, naming the file, for any other name, for a truncated or malformed file, and if it
    holds no dict.
    """
    try:
        with Path(path).open("rb") as file:
            _require_possible_memo(file)
            content = _Reader(file).load()
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset") from error
    # Malformed pickles raise errors of many types.
    except Exception as error:
        raise InputError(f"{path}: not a whole pickle of CIFAR ({error}); unpack the archive again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}, not the dict of a CIFAR file; name another `path`")
    return {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in content.items()}


def _require_possible_memo(file: BinaryIO) -> None:
    # The unpickler allocates a table as long as the largest memo index; an index cannot exceed the size of the file,
    # since indices count from 0 and each takes at least one byte.
    size = os.fstat(file.fileno()).st_size
    for operation, number, _ in pickletools.genops(file):
        if operation.name not in ("PUT", "BINPUT", "LONG_BINPUT"):
            continue
        if number is None or not 0 <= number < size:
            raise ValueError(f"value number {number} in {size} bytes")
    file.seek(0)


class _Reader(pickle.Unpickler):
    """Unpickler that resolves only the names in _STAND_INS."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="bytes")
        self.path = file.name

    def find_class(self, module: str, name: str) -> Callable[..., object]:
        stand_in = _STAND_INS.get((module.replace("numpy._core", "numpy.core"), name))
        if stand_in is None:
            raise InputError(
                f"{self.path}: the pickle names {module}.{name}, which CIFAR files do not need; nothing was run. "
                "Do not load this file elsewhere; download CIFAR from its authors"
            )
        return stand_in


class _Name:
    """A name that a pickle may only call: it has no state, no attributes and no subclasses."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., object]) -> None:
        self._make = make

    def __call__(self, *arguments: object) -> object:
        """Return the value that the name stands for."""
        return self._make(*arguments)

    def __setstate__(self, state: object) -> None:
        """Refuse state, with which a pickle could change this object."""
        raise ValueError("state for a name")


class _Type:
    """Stand-in for numpy.dtype, of which only uint8 is accepted."""

    def __init__(self, name: object, *_: object) -> None:
        if name not in ("u1", b"u1"):
            raise ValueError(f"array of type {name!r}, expected u1 (uint8)")

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and alignment: a byte has none."""


class _Bytes(np.ndarray):
    """Array that accepts the state of a pickled array only for uint8 in C order."""

    def __setstate__(self, state):
        _, shape, kind, fortran, content = state
        if not isinstance(kind, _Type) or fortran or not isinstance(content, bytes):
            raise ValueError("array that is not of bytes in C order")
        super().__setstate__((1, shape, np.dtype(np.uint8), False, content))  # type: ignore[arg-type]


def _empty(*_: object) -> _Bytes:
    return np.zeros(0, dtype=np.uint8).view(_Bytes)


def _bytes_of(text: str | bytes, encoding: object) -> bytes:
    if encoding not in ("latin1", b"latin1"):
        raise ValueError(f"text encoded as {encoding!r}")
    decoded = text if isinstance(text, str) else text.decode("utf-8")
    return decoded.encode("latin1")


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _Name(_empty),
    ("numpy", "ndarray"): _Name(_empty),
    ("numpy", "dtype"): _Name(_Type),
    # Python 3 writes bytes in older pickle protocols as a call of this function.
    ("_codecs", "encode"): _Name(_bytes_of),
}


# CelebA.


def read_attribute_list(path: Path | str) -> pd.DataFrame:
    """Attributes of CelebA's images by list_attr_celeba.txt.

    Parameters
    ----------
    path : path or str
        The file. Its first line is the number of images, the second the names of the attributes.

    Returns
    -------
    DataFrame
        1 (present) or -1 (absent), int8; a row per image, with its name as index, and a column per attribute.

    Raises
    ------
    InputError
        Naming file and line, for another number of rows or values, values other than 1 and -1, repeated names, and
        names of images that are paths.

    References
    ----------
    Liu et al. 2015, "Deep learning face attributes in the wild".
    """
    lines = _lines(path)
    attributes = lines[1].split() if len(lines) > 1 else []
    rows = lines[2:]
    # Compared as text, since int() refuses thousands of digits.
    if not attributes or lines[0].strip() != str(len(rows)):
        raise InputError(f"{path}: line 1 must be the number of images below, line 2 the attributes; restore the file")

    names = []
    matrix = np.empty((len(rows), len(attributes)), dtype=np.int8)
    for row, line in enumerate(rows):
        number = row + 3
        name, *values = line.split()
        if len(values) != len(attributes) or not set(values) <= {"1", "-1"}:
            raise InputError(
                f"{path}: line {number} is not an image followed by {len(attributes)} values 1 or -1; restore the file"
            )
        if "/" in name or "\0" in name:
            raise InputError(f"{path}: line {number}: {name!r} is no file name; restore the file")
        names.append(name)
        matrix[row] = values
    _require_unique(attributes, path)
    _require_unique(names, path)
    return pd.DataFrame(matrix, index=names, columns=attributes)


def read_partition(path: Path | str) -> dict[str, int]:
    """Split of each image by CelebA's list_eval_partition.txt: name -> a value of PARTITION."""
    partition: dict[str, int] = {}
    for number, line in enumerate(_lines(path), start=1):
        name, _, split = line.partition(" ")
        if split.strip() not in ("0", "1", "2"):
            raise InputError(f"{path}: line {number} is not an image followed by 0, 1 or 2; restore the file")
        if name in partition:
            raise InputError(f"{path}: line {number} names {name} a second time; restore the file")
        partition[name] = int(split)
    return partition


def _require_unique(names: Sequence[str], path: Path | str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{path}: {name} is repeated; restore the file")


def _lines(path: Path | str) -> list[str]:
    try:
        text = regular_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); put CelebA's own file there") from error
    return [line for line in text.splitlines() if line.strip()]
