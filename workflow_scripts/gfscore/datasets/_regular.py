"""Regular files alone: a pipe or a device under the name of a file would be waited for, or read, for ever."""

import os
import stat
from pathlib import Path

from gfscore.errors import InputError


def require_regular(path):
    """Refuse, by InputError, what is there but neither a file nor a folder, after links; what is missing passes."""
    path = Path(path)
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: is neither a file nor a folder but a pipe or a device; put the file itself there")


def regular_bytes(path):
    """Bytes of a file; OSError for one that is missing, or no regular file."""
    # A pipe that nobody writes to is then opened at once.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("a pipe or a device, not a regular file")
        return file.read()
