"""Bytes of certificates and counterexamples, compressed, and archives of arrays in bounded memory."""

import io
import lzma
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.tables.binary_files import whole_array

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2}]
"""For numbers of four bytes each."""

LARGEST = 1 << 28
"""Bytes that anything unpacks to at most."""


def packed(content: bytes) -> bytes:
    """Compressed bytes."""
    return lzma.compress(content, format=lzma.FORMAT_RAW, filters=FILTERS)


def unpacked(content: bytes, what: str, *, largest: int = LARGEST) -> bytes:
    """Content that `packed` compressed, up to `largest` bytes; InputError, which calls it `what`, for anything else."""
    unpacking = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=FILTERS)
    try:
        result = unpacking.decompress(content, max_length=largest + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise InputError(f"the {what} is damaged ({error}); make it again") from error
    if len(result) > largest or not unpacking.eof:
        raise InputError(f"the {what} is damaged: it is cut off, or larger than {largest:,} bytes; make it again")
    return result


def arrays_of(content: bytes, *, largest: int = LARGEST) -> dict[str, NDArray[Any]]:
    """Arrays of a .npz file by name; ValueError where they claim to unpack to more than `largest` bytes.

    Raises other errors of numpy and zipfile for a file that is damaged, or of another kind.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        size = sum(member.file_size for member in file.zip.infolist())
        if size > largest:
            raise ValueError(f"it unpacks to {size:,} bytes, more than {largest:,}")
        return {name: whole_array(file, name) for name in file.files}
