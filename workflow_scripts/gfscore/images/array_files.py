"""Arrays by name, in an .npz file or as .npy files of a folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few, unknown
from gfscore.tables.numpy_files import declared_array, declared_header, opened, whole_array

ENDING = ".npy"

Result = TypeVar("Result")


@dataclass(frozen=True)
class DeclaredArray:
    """Name, shape and type of an array, as its header has them."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        """Name and shape: x_test (10000, 28, 28)."""
        return f"{self.name} {self.shape}"


def declared_arrays(path: Path | str) -> list[DeclaredArray]:
    """Arrays of an .npz file, or of the .npy files of a folder, in the order of their names; no pixel is read.

    Arrays of Python objects, which are not read, are listed too. Raises InputError, naming the file and the remedy, for
    damaged files.
    """
    path = Path(path)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.endswith(ENDING) and not file.name.startswith("."))
        return [_read(file, _declared_in_npy) for file in files]
    return _read(path, _declared_in_npz)


def read_array(path: Path | str, name: str) -> NDArray[Any]:
    """Array of this name; InputError, naming the file and the remedy, where it is missing or damaged."""
    path = Path(path)
    if path.is_dir():
        file = path / f"{name}{ENDING}"
        if Path(name).name != name or not file.is_file():
            raise InputError(
                f"{path}: {unknown('array', name, [array.name for array in declared_arrays(path)])}; an array is a "
                f"file NAME{ENDING} of this folder"
            )
        # Memory-mapped, because that compares the size in the header with the size of the file.
        return _read(file, lambda one: np.array(opened(one, mmap_mode="r")))

    def member(file: Path) -> NDArray[Any]:
        with opened(file) as archive:
            if name not in archive.files:
                raise InputError(
                    f"{file}: no array {name}, only {few(archive.files) or 'nothing'}; save it with "
                    "numpy.savez(path, x=images, y=labels)"
                )
            return whole_array(archive, name)

    return _read(path, member)


def _declared_in_npy(file):
    shape, dtype = declared_header(file)
    if dtype.hasobject:
        return DeclaredArray(file.name.removesuffix(ENDING), shape, dtype)
    array = opened(file, mmap_mode="r")
    return DeclaredArray(file.name.removesuffix(ENDING), array.shape, array.dtype)


def _declared_in_npz(file):
    with opened(file) as archive:
        return [DeclaredArray(name, *declared_array(archive, name, with_objects=True)) for name in archive.files]


def _read(path: Path, read: Callable[[Path], Result]) -> Result:
    try:
        return read(path)
    except InputError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file; check `path` of this dataset in config.yaml") from error
    # A .npy file is no context manager, and damaged files raise errors of many types.
    except Exception as error:
        kind = "file of one array" if path.name.endswith(ENDING) else ".npz file"
        again = "copy or download it again, or save it again with numpy.savez(path, x=images, y=labels)"
        remedy = getattr(error, "remedy", again)
        raise InputError(f"{path}: not a whole {kind} without pickled objects ({error}); {remedy}") from error
