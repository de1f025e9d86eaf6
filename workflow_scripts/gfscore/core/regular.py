"""Files that reading would not end of: pipes and devices, and archives that unpack to far more than their size."""

import os
import stat
from pathlib import Path

from gfscore.core.errors import InputError

MOST_UNPACKED = 1 << 28
"""Bytes that a part of an archive may unpack to whatever it takes in the file."""

LARGEST_RATIO = 50
"""Largest compression ratio of a larger part. Images and logits have about 2, weights 1, and deflate at most 1032."""


def unpacks_too_far(unpacked: int, packed: int) -> bool:
    """Whether `packed` bytes of an archive claim to unpack to more bytes than arrays and weights do."""
    return unpacked > max(MOST_UNPACKED, LARGEST_RATIO * packed)


def require_regular(path: Path | str, *, or_folder: bool = False) -> None:
    """Raise InputError if `path`, links followed, exists and is no regular file (or folder, with `or_folder`)."""
    path = Path(path)
    if path.exists() and not (path.is_file() or (or_folder and path.is_dir())):
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{path}: is no regular file but {kind}; name the file itself")


def regular_bytes(path: Path | str, *, follow_links: bool = True) -> bytes:
    """Bytes of a file; OSError for one that is missing or no regular file, or, unless they are followed, a link."""
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    chosen = os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | chosen)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("a pipe or a device, not a regular file")
        return file.read()
