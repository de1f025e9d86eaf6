"""Atomic writes, which leave no partial file behind when a job is killed; JSON files; checks of files before reading.

Planning uses this module, so it imports nothing heavy.
"""

import errno
import hashlib
import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from gfscore.core.errors import InputError
from gfscore.core.mappings import of_distinct_keys

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of a disk that cannot be written to: full, over quota, read-only."""

CHECKSUM = "checksum"
"""Last key of every JSON file: SHA-256 of the rest, since a flipped bit in a number is still a number."""

LOGIT_ENDINGS = (".parquet", ".npz", ".npy", ".csv", ".csv.gz")
"""Endings of users' files of logits."""

MOST_UNPACKED = 1 << 28
"""Bytes that any part of an archive may unpack to, however small it is in the file."""

LARGEST_RATIO = 50
"""Largest compression ratio of a larger part. Images and logits have about 2, weights 1; deflate reaches 1032."""


# ---- writing ----


@contextmanager
def atomic(path: Path | str) -> Iterator[Path]:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : Path or str
        File to write; its folder is made.

    Yields
    ------
    Path
        A temporary file in the same folder, to be written to. On success it is flushed to disk and renamed to `path`;
        on an exception it is removed, and `path` is left as it was.

    Raises
    ------
    OSError
        Naming `path`, where the disk cannot be written to.
    """
    path = Path(path)
    with naming_target(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        with naming_target(path):
            yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        # mkstemp makes files for the owner only; results are shared like any other file.
        temporary.chmod(0o666 & ~umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def naming_target(path: Path) -> Iterator[None]:
    """Context in which an error of the disk (NO_ROOM) names the target `path`.

    The original error names the temporary file, or the source of a copy.
    """
    try:
        yield
    except OSError as error:
        if error.errno in NO_ROOM:
            raise OSError(error.errno, os.strerror(error.errno), str(path)) from error
        raise


def umask() -> int:
    """Permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def require_free(path: Path, *, overwrite: bool) -> None:
    """Raise InputError if a file stands where one is to be written, unless it is to be replaced."""
    if path.exists() and not overwrite:
        raise InputError(f"{path}: stands already; add --force to replace it, or --to for another place")


def write_text(path: Path | str, text: str) -> None:
    """Write a UTF-8 text file atomically."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


# ---- JSON ----


def write_json(path: Path | str, data: Mapping[str, object]) -> None:
    """Write a mapping as JSON atomically, followed by its CHECKSUM.

    Parameters
    ----------
    path : Path or str
        File to write.
    data : mapping
        Written with its keys in their order; NaN becomes null, numpy's scalars and arrays become numbers and lists.

    Raises
    ------
    ValueError
        For an infinite number.
    """
    # Through JSON once, so that the checksum is taken over keys as text, as a reader gets them.
    plain = json.loads(json.dumps(_without_nan(data), allow_nan=False))
    plain.pop(CHECKSUM, None)
    plain[CHECKSUM] = _checksum(plain)
    text = json.dumps(plain, indent=2, ensure_ascii=False)
    write_text(path, text + "\n")


def read_json(path: Path | str) -> dict[str, Any]:
    """Mapping that write_json wrote, without CHECKSUM.

    Raises
    ------
    InputError
        Naming the file, when it is missing, malformed (also by a repeated key or NaN), no mapping, or was changed since
        it was written.
    """
    remedy = "delete it and run the workflow again"
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = json.loads(text, object_pairs_hook=of_distinct_keys, parse_constant=refuse_non_finite)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}); {remedy}") from error
    if not isinstance(data, dict):
        raise InputError(f"{path}: holds a {type(data).__name__}, not a mapping; {remedy}")
    if data.pop(CHECKSUM, None) != _checksum(data):
        raise InputError(f"{path}: damaged, or edited by hand: its checksum does not match; {remedy}")
    return data


def refuse_non_finite(text: str) -> NoReturn:
    """Raise ValueError for NaN and infinities, which are no JSON but which Python reads; for `parse_constant`."""
    raise ValueError(f"{text} is no number of JSON")


def _checksum(data: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _without_nan(data: Any) -> Any:
    # Numbers and arrays of numpy have tolist.
    if hasattr(data, "tolist"):
        data = data.tolist()
    if isinstance(data, dict):
        return {key: _without_nan(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_nan(value) for value in data]
    if isinstance(data, float) and math.isnan(data):
        return None
    return data


# ---- files that are too large or never end ----


def unpacks_too_far(unpacked: int, packed: int) -> bool:
    """Whether `packed` bytes of an archive claim to unpack to more bytes than arrays and weights do."""
    return unpacked > max(MOST_UNPACKED, LARGEST_RATIO * packed)


def require_regular(path: Path | str, *, or_folder: bool = False) -> None:
    """Raise InputError if a path exists, links followed, and is no regular file (or folder, with `or_folder`)."""
    path = Path(path)
    if not path.exists() or path.is_file():
        return
    if path.is_dir():
        if or_folder:
            return
        kind = "a folder"
    else:
        kind = "a pipe or a device"
    raise InputError(f"{path}: is no regular file but {kind}; name the file itself")


def regular_bytes(path: Path | str, *, follow_links: bool = True) -> bytes:
    """Bytes of a regular file; OSError for a missing file, a pipe, a device, and, without `follow_links`, a link."""
    # Without O_NONBLOCK, opening a pipe waits for a writer.
    further_flags = os.O_NONBLOCK if follow_links else os.O_NONBLOCK | os.O_NOFOLLOW
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | further_flags)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("a pipe or a device, not a regular file")
        return file.read()
