"""Reader of the pickles that CIFAR is published as, which calls none of the functions that a pickle may name."""

from __future__ import annotations

import os
import pickle
import pickletools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from gfscore.core.errors import InputError
from gfscore.core.files import regular_bytes

if TYPE_CHECKING:
    from pandas import DataFrame


def load_plain(path: Path | str) -> dict[str, Any]:
    """Dict of a pickle that consists of dicts, lists, numbers, texts, bytes and uint8 arrays; keys become str.

    Byte strings of Python 2 remain bytes, except as keys. Functions named in the pickle are replaced by stand-ins of
    this module. Raises InputError, naming the file, for any other name, for a truncated or malformed file, and if it
    holds no dict.
    """
    try:
        with Path(path).open("rb") as file:
            _require_possible_memo(file)
            content = _Reader(file, encoding="bytes").load()
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


def load_names(path: Path | str, key: str) -> tuple[str, ...] | None:
    """List of names under `key` of a pickle (see `load_plain`) as a tuple; None if it is missing or empty."""
    names = load_plain(path).get(key, [])
    if not (isinstance(names, list) and all(isinstance(name, str | bytes) for name in names)):
        raise InputError(f"{path}: {key} is no list of names; unpack the archive again")
    try:
        return tuple(name.decode() if isinstance(name, bytes) else name for name in names) or None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {key} has a name that is no UTF-8 text; unpack the archive again") from error


def _require_possible_memo(file):
    # The unpickler allocates a table as long as the largest memo index; an index cannot exceed the size of the file,
    # since indices count from 0 and each takes at least one byte.
    size = os.fstat(file.fileno()).st_size
    for operation, number, _ in pickletools.genops(file):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and not (number is not None and 0 <= number < size):
            raise ValueError(f"value number {number} in {size} bytes")
    file.seek(0)


class _Reader(pickle.Unpickler):
    """Unpickler that resolves only the names in _STAND_INS."""

    def __init__(self, file: BinaryIO, **options: Any) -> None:
        super().__init__(file, **options)
        self.path = file.name

    def find_class(self, module: str, name: str) -> Any:
        known = _STAND_INS.get((module.replace("numpy._core", "numpy.core"), name))
        if known is None:
            raise InputError(
                f"{self.path}: the pickle names {module}.{name}, which CIFAR files do not need; nothing was run. "
                "Do not load this file elsewhere; download CIFAR from its authors"
            )
        return known


class _Name:
    """A name that a pickle may only call: it has no state, no attributes and no subclasses."""

    __slots__ = ("_make",)

    def __init__(self, make):
        self._make = make

    def __call__(self, *arguments):
        """Return the value that the name stands for."""
        return self._make(*arguments)

    def __setstate__(self, state):
        """Refuse state, with which a pickle could change this object."""
        raise ValueError("state for a name")


class _Type:
    """Stand-in for numpy.dtype, of which only uint8 is accepted."""

    def __init__(self, name, *_):
        if name not in ("u1", b"u1"):
            raise ValueError(f"array of type {name!r}, expected u1 (uint8)")

    def __setstate__(self, state):
        """Ignore byte order and alignment: a byte has none."""


class _Bytes(np.ndarray):
    """Array that accepts the state of a pickled array only for uint8 in C order."""

    def __setstate__(self, state):
        _, shape, kind, fortran, content = state
        if not isinstance(kind, _Type) or fortran or not isinstance(content, bytes):
            raise ValueError("array that is not of bytes in C order")
        super().__setstate__((1, shape, np.dtype(np.uint8), False, content))  # type: ignore[arg-type]


def _empty(*_):
    return np.zeros(0, dtype=np.uint8).view(_Bytes)


def _bytes_of(text, encoding):
    if encoding not in ("latin1", b"latin1"):
        raise ValueError(f"text encoded as {encoding!r}")
    return (text if isinstance(text, str) else text.decode("utf-8")).encode("latin1")


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _Name(_empty),
    ("numpy", "ndarray"): _Name(_empty),
    ("numpy", "dtype"): _Name(_Type),
    # Python 3 writes bytes in older pickle protocols as a call of this function.
    ("_codecs", "encode"): _Name(_bytes_of),
}


# ---- Readers of CelebA's text files of attributes and of the partition.


def read_attribute_list(path: Path | str) -> DataFrame:
    """Attributes of list_attr_celeba.txt: a data frame of 1 (present) and -1 (absent) by image name.

    The first line is the number of images, the second the names of the attributes. Raises InputError, naming the file
    and line, for another number of rows or values, values other than 1 and -1, repeated names, and names of images that
    are paths.
    """
    import pandas as pd

    lines = _lines(path)
    names = lines[1].split() if len(lines) > 1 else []
    rows = [line.split() for line in lines[2:]]
    # Compared as text, since int() refuses thousands of digits.
    if not names or lines[0].strip() != str(len(rows)):
        raise InputError(f"{path}: line 1 must be the number of images below, line 2 the attributes; restore the file")
    for number, row in enumerate(rows, start=3):
        if len(row) != len(names) + 1 or not set(row[1:]) <= {"1", "-1"}:
            raise InputError(
                f"{path}: line {number} is not an image followed by {len(names)} values 1 or -1; restore the file"
            )
        if "/" in row[0] or "\0" in row[0]:
            raise InputError(f"{path}: line {number}: {row[0]!r} is no file name; restore the file")
    _require_unique(names, path)
    _require_unique([row[0] for row in rows], path)
    values = np.array([row[1:] for row in rows], dtype=np.int8).reshape(len(rows), len(names))
    return pd.DataFrame(values, index=[row[0] for row in rows], columns=names)


def read_partition(path: Path | str) -> dict[str, int]:
    """Part of each image by list_eval_partition.txt: a mapping name -> 0 (training), 1 (validation) or 2 (test)."""
    parts = {}
    for number, line in enumerate(_lines(path), start=1):
        name, _, part = line.partition(" ")
        if part.strip() not in ("0", "1", "2"):
            raise InputError(f"{path}: line {number} is not an image followed by 0, 1 or 2; restore the file")
        if name in parts:
            raise InputError(f"{path}: line {number} names {name} a second time; restore the file")
        parts[name] = int(part)
    return parts


def _require_unique(names, path):
    if len(set(names)) < len(names):
        repeated = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"{path}: {repeated} is repeated; restore the file")


def _lines(path):
    try:
        text = regular_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); put CelebA's own file there") from error
    return [line for line in text.splitlines() if line.strip()]
