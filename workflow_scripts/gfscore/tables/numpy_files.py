"""Reading of untrusted .npy and .npz files in bounded memory, without unpickling."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.regular import unpacks_too_far
from gfscore.tables.malformed import MalformedError


def opened(path: Path | str, **how: Any) -> Any:
    """Result of numpy.load for a .npy or .npz file, without unpickling; ValueError for any other file."""
    try:
        return np.load(path, allow_pickle=False, **how)
    except ValueError as error:
        # For an unknown format numpy assumes a pickle, and its message advises to allow pickles.
        if "unsafely" in str(error):
            raise ValueError("neither a .npy nor a .npz file") from error
        # In two spellings, as the file is read or mapped into memory.
        if "object" in str(error).lower():
            raise _of_objects("the array") from error
        raise


def declared_array(
    archive: np.lib.npyio.NpzFile, name: str, *, with_objects: bool = False
) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array of an open .npz file by its header, before any of its data are read.

    `with_objects`: also of an array of Python objects, which is not to be read.

    Raises
    ------
    ValueError
        Where the archive's directory, the array's header and the size of the file contradict each other, or the array
        unpacks too far (see gfscore.core.regular).
    """
    assert archive.zip is not None  # it is open
    member = archive.zip.getinfo(name if name in archive.zip.namelist() else f"{name}.npy")
    if unpacks_too_far(member.file_size, member.compress_size):
        raise ValueError(
            f"array {name} claims {member.file_size:,} bytes compressed to {member.compress_size:,}; if that is right, "
            "save it uncompressed, with numpy.savez"
        )
    with archive.zip.open(member) as file:
        # Version 3 is only for field names outside ASCII, which are not supported.
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        expected = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject and with_objects:
        return tuple(shape), dtype
    if dtype.hasobject:
        raise _of_objects(f"array {name}")
    if expected != member.file_size:
        raise ValueError(f"array {name} has {member.file_size} bytes, but its header implies {expected}")
    return tuple(shape), dtype


def declared_header(path: Path | str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array of a .npy file by its header; ValueError where that cannot be read."""
    with Path(path).open("rb") as file:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the format is not read")
        shape, _, dtype = _HEADERS[version](file)
    return tuple(shape), dtype


def whole_array(archive: np.lib.npyio.NpzFile, name: str) -> NDArray[Any]:
    """Array `name` of an open .npz file, read after its header was checked.

    Raises ValueError as `declared_array`, zipfile.BadZipFile for a wrong checksum, numpy's errors for damaged bytes.
    """
    declared_array(archive, name)
    array: NDArray[Any] = archive[name]
    return array


def _of_objects(array: str) -> MalformedError:
    # numpy's own message would advise to unpickle it.
    return MalformedError(
        f"{array} is of Python objects, which are not unpickled",
        "convert it to numbers, by array.astype(float), or to text, by array.astype(str), and save it again",
    )


_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
