"""Arrays out of .npz archives whose headers nobody vouches for."""

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_RATIO = 1032
"""Bytes that deflate can make of one; an archive that promises more lies (RFC 1951: 258 bytes of 2 bits)."""


def opened(path: Path | str, **how: Any) -> Any:
    """What numpy.load gives for a .npy or .npz file, with nothing unpickled; ValueError for a file that is neither."""
    try:
        return np.load(path, allow_pickle=False, **how)
    except ValueError as error:
        # numpy takes what it does not know for a pickle, and says how to run it.
        if "unsafely" in str(error):
            raise ValueError("neither a .npy nor a .npz file") from error
        raise


def whole_array(archive: np.lib.npyio.NpzFile, name: str) -> NDArray[Any]:
    """Array `name` of an open .npz file (numpy.lib.npyio.NpzFile), after comparing what its headers promise.

    Memory is asked for only when the archive's directory, the array's shape and the file can all be true: so it is
    bounded by LARGEST_RATIO times the size of the file. Raises ValueError otherwise, zipfile.BadZipFile for another
    checksum, and whatever the reader raises for damaged bytes.
    """
    assert archive.zip is not None  # it is open
    member = archive.zip.getinfo(name if name in archive.zip.namelist() else f"{name}.npy")
    if member.file_size > LARGEST_RATIO * max(member.compress_size, 1):
        raise ValueError(f"array {name} promises {member.file_size} bytes out of {member.compress_size}")
    with archive.zip.open(member) as file:
        # Version 3 is for arrays with field names outside ASCII, which nothing here has.
        shape, _, dtype = _HEADERS[np.lib.format.read_magic(file)](file)
        promised = file.tell() + math.prod(shape) * dtype.itemsize
    # Objects have no size of their own and are refused by the reader.
    if not dtype.hasobject and promised != member.file_size:
        raise ValueError(f"array {name} has {member.file_size} bytes, its header promises {promised}")
    return archive[name]


_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
