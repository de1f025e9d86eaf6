"""Reading the one kind of pickle that CIFAR is published as, without running what a pickle may name."""

import os
import pickle
import pickletools
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gfscore.core.errors import InputError


def load_plain(path: Path | str) -> dict[str, Any]:
    """Mapping from str to values of a pickle made of dicts, lists, numbers, texts, bytes and uint8 arrays.

    Python 2's byte strings stay bytes, except as keys. A pickle names functions to be called on loading; here
    such names lead to stand-ins of this module, or to a refusal before anything is called. Raises InputError,
    naming the file, for any other name, for a truncated or malformed file, and when it holds no dict.
    """
    try:
        with Path(path).open("rb") as file:
            _require_possible_memo(file)
            content = _Reader(file, encoding="bytes").load()
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset") from error
    # A malformed pickle ends in an exception of nearly any type.
    except Exception as error:
        raise InputError(f"{path}: not a whole pickle of CIFAR ({error}); unpack the archive again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds a {type(content).__name__}, not the dict of a CIFAR file; name another `path`")
    return {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in content.items()}


def load_names(path: Path | str, key: str) -> tuple[str, ...] | None:
    """Names, a tuple of str, that a pickle as in `load_plain` holds as a list under `key`; None for none of them."""
    names = load_plain(path).get(key, [])
    if not (isinstance(names, list) and all(isinstance(name, str | bytes) for name in names)):
        raise InputError(f"{path}: {key} is no list of names; unpack the archive again")
    try:
        return tuple(name.decode() if isinstance(name, bytes) else name for name in names) or None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {key} has a name that is no UTF-8 text; unpack the archive again") from error


def _require_possible_memo(file):
    # The reader makes a table as long as the largest number under which something is to be remembered. Each takes a
    # byte of the file at least, and whoever writes a pickle counts from 0.
    size = os.fstat(file.fileno()).st_size
    for operation, number, _ in pickletools.genops(file):
        if operation.name in ("PUT", "BINPUT", "LONG_BINPUT") and not (number is not None and 0 <= number < size):
            raise ValueError(f"value number {number} in {size} bytes")
    file.seek(0)


class _Reader(pickle.Unpickler):
    """Unpickler that knows three names, none of which leads outside this module."""

    def __init__(self, file: BinaryIO, **options: Any) -> None:
        super().__init__(file, **options)
        self.path = file.name

    def find_class(self, module: str, name: str) -> Any:
        known = _STAND_INS.get((module.replace("numpy._core", "numpy.core"), name))
        if known is None:
            raise InputError(
                f"{self.path}: the pickle asks for {module}.{name}, which CIFAR files do not need; nothing was run. "
                "Do not load this file elsewhere; get CIFAR from its authors"
            )
        return known


class _Name:
    """A name that a pickle may call and do nothing else with: no state, no attribute, no subclass."""

    __slots__ = ("_make",)

    def __init__(self, make):
        self._make = make

    def __call__(self, *arguments):
        """Make what the name stands for."""
        return self._make(*arguments)

    def __setstate__(self, state):
        """Refuse state, by which a pickle could change this object."""
        raise ValueError("state for a name")


class _Type:
    """Stand-in for numpy.dtype, of which only uint8 is accepted."""

    def __init__(self, name, *_):
        if name not in ("u1", b"u1"):
            raise ValueError(f"array of type {name!r}, expected u1 (uint8)")

    def __setstate__(self, state):
        """Ignore byte order and alignment: a byte has none."""


class _Bytes(np.ndarray):
    """Array that takes the state of a pickled array only if it is one of bytes in C order."""

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
    # Python 3 writes bytes into older pickles as a call of this.
    ("_codecs", "encode"): _Name(_bytes_of),
}
