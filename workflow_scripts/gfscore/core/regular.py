"""Regular files alone: a pipe or a device under the name of a file would be waited for, or read, for ever."""

import os
import stat
from pathlib import Path

from gfscore.core.errors import InputError


def require_regular(path: Path | str, *, or_folder: bool = False) -> None:
    """Refuse, by InputError, what is there but no file, after links; what is missing passes, and folders may."""
    path = Path(path)
    if path.exists() and not (path.is_file() or (or_folder and path.is_dir())):
        found = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{path}: is no regular file but {found}; name the file itself")


def regular_bytes(path: Path | str) -> bytes:
    """Bytes of a file; OSError for one that is missing, or no regular file."""
    # A pipe that nobody writes to is then opened at once.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("a pipe or a device, not a regular file")
        return file.read()
