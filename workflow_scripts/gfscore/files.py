"""Writing files so that a killed job leaves no half file behind, and digests of files."""

import hashlib
import json
import math
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from gfscore.errors import InputError


@contextmanager
def atomic(path):
    """Give a temporary path in the target's folder; on success flush it to disk and rename it to `path`.

    On an exception the temporary file is removed and `path` is left as it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(temporary)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes files for the owner only; results are shared like any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Write a UTF-8 text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path, data):
    """Write JSON atomically, keys in the given order; NaN becomes null, so that every reader can parse it.

    Numpy scalars and arrays are written as numbers and lists. Raises ValueError for an infinite number.
    """
    write_text(path, json.dumps(_without_nan(data), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path):
    """Read a JSON file; raises InputError naming the file when it is missing or malformed."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}); delete it, so that it is made again") from error


def sha256_of_file(path):
    """SHA-256 of a file's bytes, lower-case hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _without_nan(data):
    if isinstance(data, np.generic | np.ndarray):
        data = data.tolist()
    if isinstance(data, dict):
        return {key: _without_nan(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_nan(value) for value in data]
    if isinstance(data, float) and math.isnan(data):
        return None
    return data
