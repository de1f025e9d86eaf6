"""Files that users provide: whether they exist, and what identifies their content."""

import errno
import hashlib
import time
from pathlib import Path

from gfscore.core import digests
from gfscore.core.errors import InputError

MAX_HASHED_BYTES = 1 << 20
"""Largest size in bytes of a file that is hashed whenever a run is planned, as Snakemake itself does."""

MAX_CLOCK_DIFFERENCE = 60
"""Seconds by which the clocks of machines that share files may differ; Snakemake itself warns of less."""

RESULTS = "results/"
"""Start of the paths of files that the workflow makes."""

STATEMENT = "statement.json"
"""File of a bundle with the name and SHA-256 of every other file."""

INVALID_PATH = {errno.ENAMETOOLONG, errno.EINVAL}
"""Error codes of the system for paths that no file can have."""

OptionalFile = str | list[str]
"""Path of an input of a step; an empty list, as Snakemake expects it, where there is none."""

FileState = str | list[int] | None
"""Identifier of the content of a file: a digest, or size and time of modification; None for no file."""


def present(path: str | None) -> OptionalFile:
    """Path of a user's file as the input of a step; empty for a missing file.

    A missing file is left to the step that reads it, which reports it. As an input it would make Snakemake consider
    earlier outputs up to date, whatever path the configuration names. A path in results/ is returned as it is: a step
    makes it, possibly one of a workflow that imports this one.

    Raises
    ------
    InputError
        For a file in a folder without permission, a path that no file can have, and a time of modification more than
        MAX_CLOCK_DIFFERENCE in the future: no output would be newer.
    """
    if path and path.startswith(RESULTS):
        return path
    if not path or size_of(path) is None:
        return []

    ahead = Path(path).stat().st_mtime - time.time()
    if ahead > MAX_CLOCK_DIFFERENCE:
        raise InputError(
            f"{path}: its modification time is {ahead / 3600:.1f} hours in the future, so everything made from it "
            f"would be out of date; set it to now with: touch {path}"
        )
    return path


def size_of(path: str | None) -> int | None:
    """Size of a file in bytes; None for a missing one, a folder, or no path.

    Raises
    ------
    InputError
        For a file in a folder without permission, and a path that no file can have.
    """
    if not path:
        return None
    try:
        # is_file raises errors but for missing files and folders.
        if not Path(path).is_file():
            return None
        return Path(path).stat().st_size
    except OSError as error:
        if error.errno in INVALID_PATH:
            raise InputError(f"{path[:100]}: no file can have this path ({error.strerror}); correct it") from error
        raise InputError(
            f"{path}: cannot be accessed ({error.strerror}); make its folder accessible, or move it"
        ) from error


def state(path: OptionalFile | None) -> FileState:
    """Identifier of the content of a user's file, for the params of the step that reads it.

    Parameters
    ----------
    path : str, list or None
        File of the user, or of results/, or none.

    Returns
    -------
    str, list of int or None
        SHA-256 (hex) of a file up to MAX_HASHED_BYTES, so that a copy counts as the same file. For a larger one size in
        bytes and time of modification in nanoseconds; gfscore.workflow.replaced_files compares its content. None for a
        missing file and one in results/.
    """
    if not _is_users(path):
        return None
    status = Path(str(path)).stat()
    if status.st_size <= MAX_HASHED_BYTES:
        return hashlib.sha256(Path(str(path)).read_bytes()).hexdigest()
    return [status.st_size, status.st_mtime_ns]


def digest(path: OptionalFile | None) -> str | None:
    """SHA-256 (hex) of a user's file of any size; None for a missing file and one in results/."""
    if not _is_users(path):
        return None
    return digests.cached_sha256(str(path))


def _is_users(path: OptionalFile | None) -> bool:
    if not isinstance(path, str) or path.startswith(RESULTS):
        return False
    return size_of(path) is not None
