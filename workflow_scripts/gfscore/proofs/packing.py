"""Bytes of certificates and counterexamples, compressed."""

from __future__ import annotations

import lzma

from gfscore.core.errors import InputError

FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 2, "pb": 2}]
"""For numbers of four bytes each."""

LARGEST = 1 << 28
"""Bytes that anything unpacks to at most."""


def packed(content: bytes) -> bytes:
    """Compressed bytes."""
    return lzma.compress(content, format=lzma.FORMAT_RAW, filters=FILTERS)


def unpacked(content: bytes, what: str, *, largest: int = LARGEST) -> bytes:
    """What `packed` compressed, up to `largest` bytes; raises InputError naming `what` it is for anything else."""
    unpacking = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=FILTERS)
    try:
        result = unpacking.decompress(content, max_length=largest + 1)
    except (lzma.LZMAError, EOFError) as error:
        raise InputError(f"the {what} is damaged ({error}); make it again") from error
    if len(result) > largest or not unpacking.eof:
        raise InputError(f"the {what} is damaged: it is cut off, or larger than {largest:,} bytes; make it again")
    return result
