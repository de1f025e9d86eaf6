"""Reader of the pickles that CIFAR is published as, which calls none of the functions that a pickle may name."""

import os
import pickle
import pickletools
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gfscore.core.errors import InputError


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
