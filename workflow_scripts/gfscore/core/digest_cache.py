"""Digests of large files and folders, read again only after a change that the file system shows.

A digest is stored with the size, times and inode of its files, and counts as long as these are the same. Programs can
set a file's time of modification, but not that of its last change (ctime), so that a replacement is noticed which keeps
size and time. The cache makes planning fast, so this module imports nothing heavy; a gate never uses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

FOLDER = Path("results/cache/digests")
"""Where digests are stored, one small file each; may be deleted."""

SETTLED = 2
"""Seconds after a change before which another one may have the same time: the coarsest clock of a file system."""


class Stored(NamedTuple):
    """A digest, and the files and folders that it was computed from."""

    digest: str
    paths: list[str]


def sha256(path: Path | str) -> str:
    """SHA-256 (hex) of a file, computed again if the file has changed since it was stored."""
    stored = recall(str(path))
    if stored is not None:
        return stored.digest
    started = time.time()
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    store(str(path), digest, paths=[path], started=started)
    return digest


def recall(name: str) -> Stored | None:
    """What was stored under a name; None if nothing was, or a file has changed since."""
    try:
        record = json.loads(_record_of(name).read_text(encoding="utf-8"))
        stored = Stored(record["digest"], record["paths"])
        signature, _ = _signature(stored.paths)
        return stored if record["name"] == name and record["signature"] == signature else None
    # Nothing stored, a file that is gone, or a record that something else wrote.
    except (OSError, ValueError, TypeError, KeyError):
        return None


def store(name: str, digest: str, *, paths: Iterable[Path | str], started: float) -> None:
    """Store a digest of files and folders (their lists of names), the reading of which began at the time `started`.

    Nothing is stored of files that changed after that or shortly before.
    """
    listed = [str(path) for path in paths]
    # Where nothing can be written, files are read again at the next time.
    with suppress(OSError):
        signature, last_change = _signature(listed)
        if last_change > started - SETTLED:
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=FOLDER, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"name": name, "digest": digest, "signature": signature, "paths": listed}, file)
        Path(temporary).replace(_record_of(name))


def _signature(paths):
    # Digest of size, times, inode and path of each, and the time of the last change.
    state, last_change = hashlib.sha256(), 0.0
    for path in paths:
        entry = os.stat(path)  # noqa: PTH116 - 50,000 paths
        state.update(f"{path}\0{entry.st_size} {entry.st_mtime_ns} {entry.st_ctime_ns} {entry.st_ino}\n".encode())
        last_change = max(last_change, entry.st_ctime)
    return state.hexdigest(), last_change


def _record_of(name):
    return FOLDER / f"{hashlib.sha256(os.path.abspath(name).encode()).hexdigest()[:32]}.json"  # noqa: PTH100
