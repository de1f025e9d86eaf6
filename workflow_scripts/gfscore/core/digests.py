"""Text files that carry their own SHA-256, so that an edited page (FAIL replaced by PASS) is detected.

They also record the digests of the files that they were made from, so that a page beside a newer verdict is detected.
A folder of other files has its digests in checksums.json.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json, write_text

CHECKSUMS = "checksums.json"
"""File of a folder that records the SHA-256 of all others."""

COMMENTS = {".html": "<!-- {} -->", ".yaml": "# {}"}
"""Comment syntax by file name suffix."""

LAST_LINE = re.compile(rb"\n[^\n]{0,5}SHA-256 of everything above: ([0-9a-f]{64})[^\n]{0,4}\n\Z")
MADE_FROM = re.compile(rb"^[^\n]{0,5}Made from ([\w.-]+), SHA-256: ([0-9a-f]{64})[^\n]{0,4}$", re.MULTILINE)


def sha256_of_file(path: Path | str) -> str:
    """SHA-256 of a file's bytes, lower-case hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_pinned(digest: str, pinned: str | None, *, where: Path | str, remedy: str) -> None:
    """Raise InputError, naming `where` and `remedy`, if a digest is pinned and `digest` differs from it."""
    if pinned is not None and pinned.lower() != digest:
        raise InputError(f"{where}: the data have digest {digest}, but config.yaml pins {pinned.lower()}; {remedy}")


def write_checksummed(path: Path | str, text: str, *, files: Iterable[object] = ()) -> None:
    """Write a page (.html) or configuration (.yaml) atomically and append its SHA-256 as a comment.

    Those of `files` that lie in the same folder are recorded with their SHA-256 too; folders, files elsewhere and
    values that are no paths are ignored.
    """
    comment = COMMENTS[Path(path).suffix]
    folder, paths = Path(path).parent.resolve(), sorted({Path(name) for name in files if isinstance(name, str | Path)})
    beside = [name for name in paths if name.is_file() and name.parent.resolve() == folder]
    made_from = [comment.format(f"Made from {name.name}, SHA-256: {sha256_of_file(name)}") + "\n" for name in beside]
    above = (text if text.endswith("\n") else text + "\n") + "".join(made_from)
    digest = hashlib.sha256(above.encode()).hexdigest()
    write_text(path, f"{above}{comment.format(f'SHA-256 of everything above: {digest}')}\n")


def require_checksum(path: Path | str) -> None:
    """Raise InputError, naming the file, if it or a file recorded in it changed since write_checksummed wrote it."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: not readable ({error.strerror}); request the file again") from error
    checksum = LAST_LINE.search(content[-200:])
    if not checksum:
        raise InputError(
            f"{path}: damaged, edited, or of an earlier version: its last line is no checksum; request the file again"
        )
    above = content[: len(content) - len(checksum[0]) + 1]
    if hashlib.sha256(above).hexdigest() != checksum[1].decode():
        raise InputError(f"{path}: damaged, or edited by hand: its checksum does not match; request the file again")
    others = [name.decode() for name, digest in MADE_FROM.findall(above) if _digest(path, name) != digest.decode()]
    if others:
        raise InputError(
            f"{path}: made from another version of {', '.join(others)} than lies beside it; request all of them again"
        )


def without_checksums(content: bytes) -> bytes:
    """Content of a file without the lines that write_checksummed appended."""
    checksum = LAST_LINE.search(content[-200:])
    above = content[: len(content) - len(checksum[0]) + 1] if checksum else content
    return MADE_FROM.sub(b"", above).rstrip(b"\n") + b"\n"


def _digest(path: Path | str, name: bytes) -> str | None:
    file = Path(path).parent / name.decode()
    return sha256_of_file(file) if file.is_file() else None


# ---- folders ----


def write_digests(folder: Path | str) -> None:
    """Write checksums.json, which maps the names of a folder's files to their SHA-256."""
    write_json(Path(folder) / CHECKSUMS, {"sha256": _digests(folder)})


def changed_files(folder: Path | str) -> list[str]:
    """Files that differ from checksums.json: one sentence each, beginning with the path; an empty list if none does.

    Raises InputError, naming the file, when checksums.json is missing or changed itself.
    """
    if not (Path(folder) / CHECKSUMS).exists():
        raise InputError(f"{Path(folder) / CHECKSUMS}: missing, or from an earlier version; request the folder again")
    recorded, present = read_json(Path(folder) / CHECKSUMS).get("sha256"), _digests(folder)
    if not isinstance(recorded, dict):
        raise InputError(f"{Path(folder) / CHECKSUMS}: holds no digests of files; request the folder again")
    words = {name: "edited or damaged" for name in recorded.keys() & present if recorded[name] != present[name]}
    words |= dict.fromkeys(recorded.keys() - present, "missing")
    words |= dict.fromkeys(present.keys() - recorded.keys(), "added")
    return [f"{Path(folder) / name}: {word}, according to {CHECKSUMS}" for name, word in sorted(words.items())]


def _digests(folder):
    # Hidden files belong to Snakemake or a desktop, not to the results.
    files = sorted(path for path in Path(folder).iterdir() if path.is_file() and not path.name.startswith("."))
    return {path.name: sha256_of_file(path) for path in files if path.name != CHECKSUMS}


# ---- Digests of large files and folders, read again only after a change that the file system shows. A digest is
# stored with the size, times and inode of its files, and counts as long as these are the same. Programs can set a
# file's time of modification, but not that of its last change (ctime), so that a replacement is noticed which
# keeps size and time. The cache makes planning fast, so this module imports nothing heavy; a gate never uses it.


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
