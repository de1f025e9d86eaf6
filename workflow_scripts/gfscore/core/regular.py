"""Refusal of pipes and devices in place of regular files, because reading them may never end."""

import os
import stat
from pathlib import Path

from gfscore.core.errors import InputError


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
