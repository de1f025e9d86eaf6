"""SHA-256 of files: comparison with pinned digests, checksums in text files and folders, a cache for large files.

A page carries its own SHA-256, so that an edit (FAIL replaced by PASS) is detected, and the digests of the files that
it was made from, so that a page beside a newer verdict is detected. A folder has the digests of its files in
checksums.json.

The cache holds a digest with the size, times and inode of its files, and is used only while these are the same.
Programs can set a file's time of modification but not the time of its last change (ctime), so a replacement of the same
size and time of modification is noticed. The gate never uses the cache. Planning does, so this module imports nothing
heavy.
"""

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

COMMENT_SYNTAX = {".html": "<!-- {} -->", ".yaml": "# {}"}
"""Comments of a text file by its suffix; {} stands for the words."""

CHECKSUM_LINE = re.compile(rb"\n[^\n]{0,5}SHA-256 of everything above: ([0-9a-f]{64})[^\n]{0,4}\n\Z")
"""Line in which a text file records its SHA-256."""

SOURCE_LINE = re.compile(rb"^(?:<!-- |# )Made from ([\w.-]+), SHA-256: ([0-9a-f]{64})(?: -->)?\n", re.MULTILINE)
"""Line in which a page records the SHA-256 of a file that it was made from."""

SOURCE_LINES_AT_END = re.compile(rb"(?:" + SOURCE_LINE.pattern + rb")*\Z", re.MULTILINE)
"""All lines of sources at the end. Further up, such a line is content: its removal could alter a comment."""

CACHE_FOLDER = Path("results/cache/digests")
"""Folder of the cache, one small file for each digest; may be deleted."""

CLOCK_RESOLUTION = 2
"""Seconds within which two changes may have the same time, with the coarsest clock of a file system."""


def sha256_of_file(path: Path | str) -> str:
    """SHA-256 of a file's bytes, lower-case hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_pinned(digest: str, pinned: str | None, *, where: Path | str, remedy: str) -> None:
    """Raise InputError, naming `where` and `remedy`, if a digest is pinned and `digest` differs from it."""
    if pinned is not None and pinned.lower() != digest:
        raise InputError(f"{where}: the data have digest {digest}, but config.yaml pins {pinned.lower()}; {remedy}")


# ---- text files ----


def write_checksummed(path: Path | str, text: str, *, files: Iterable[object] = ()) -> None:
    """Write a text file atomically, with its own SHA-256 and its sources' as comments at its end.

    Parameters
    ----------
    path : Path or str
        A page (.html) or configuration (.yaml).
    text : str
        Its content.
    files : iterable
        Its sources. Those that are files in the same folder are recorded; folders, files elsewhere and values that are
        no paths are ignored.
    """
    comment = COMMENT_SYNTAX[Path(path).suffix]
    folder = Path(path).parent.resolve()
    paths = sorted({Path(name) for name in files if isinstance(name, str | Path)})

    content = text if text.endswith("\n") else text + "\n"
    for source in paths:
        if source.is_file() and source.parent.resolve() == folder:
            content += comment.format(f"Made from {source.name}, SHA-256: {sha256_of_file(source)}") + "\n"
    digest = hashlib.sha256(content.encode()).hexdigest()
    last_line = comment.format(f"SHA-256 of everything above: {digest}")
    write_text(path, f"{content}{last_line}\n")


def require_checksum(path: Path | str) -> None:
    """Require that a text file and its recorded sources are as they were when write_checksummed wrote it.

    Raises
    ------
    InputError
        Naming the file, if it or a source has changed, is missing or, for the file itself, holds no checksum.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: not readable ({error.strerror}); request the file again") from error
    body, recorded = _split_checksum(content)
    if recorded is None:
        raise InputError(
            f"{path}: damaged, edited, or of an earlier version: its last line is no checksum; request the file again"
        )
    if hashlib.sha256(body).hexdigest() != recorded:
        raise InputError(f"{path}: damaged, or edited by hand: its checksum does not match; request the file again")

    changed = []
    for name, digest in SOURCE_LINE.findall(body):
        source = Path(path).parent / name.decode()
        if not source.is_file() or sha256_of_file(source) != digest.decode():
            changed.append(source.name)
    if changed:
        raise InputError(
            f"{path}: made from another version of {', '.join(changed)} than lies beside it; request all of them again"
        )


def without_checksums(content: bytes) -> bytes:
    """Content of a file without the lines that write_checksummed appended."""
    body, _ = _split_checksum(content)
    return SOURCE_LINES_AT_END.sub(b"", body, count=1).rstrip(b"\n") + b"\n"


def _split_checksum(content: bytes) -> tuple[bytes, str | None]:
    # Content above the checksum line, and the checksum; the whole content and None without such a line.
    checksum = CHECKSUM_LINE.search(content[-200:])
    if not checksum:
        return content, None
    return content[: len(content) - len(checksum[0]) + 1], checksum[1].decode()


# ---- folders ----


def write_digests(folder: Path | str) -> None:
    """Write checksums.json, which maps the names of a folder's files to their SHA-256."""
    write_json(Path(folder) / CHECKSUMS, {"sha256": _digests_of_files(folder)})


def changed_files(folder: Path | str) -> list[str]:
    """Files of a folder that differ from its checksums.json.

    Returns
    -------
    list of str
        One sentence each, beginning with the path; empty if none differs.

    Raises
    ------
    InputError
        Naming the file, when checksums.json is missing or changed itself.
    """
    path = Path(folder) / CHECKSUMS
    if not path.exists():
        raise InputError(f"{path}: missing, or from an earlier version; request the folder again")
    recorded = read_json(path).get("sha256")
    if not isinstance(recorded, dict):
        raise InputError(f"{path}: holds no digests of files; request the folder again")

    present = _digests_of_files(folder)
    sentences = []
    for name in sorted(recorded.keys() | present.keys()):
        if name not in present:
            fault = "missing"
        elif name not in recorded:
            fault = "added"
        elif recorded[name] != present[name]:
            fault = "edited or damaged"
        else:
            continue
        sentences.append(f"{Path(folder) / name}: {fault}, according to {CHECKSUMS}")
    return sentences


def _digests_of_files(folder: Path | str) -> dict[str, str]:
    digests = {}
    for path in sorted(Path(folder).iterdir()):
        # Hidden files belong to Snakemake or a desktop, not to the results.
        if path.is_file() and not path.name.startswith(".") and path.name != CHECKSUMS:
            digests[path.name] = sha256_of_file(path)
    return digests


# ---- cache ----


class Stored(NamedTuple):
    """A digest, and the files and folders that it was computed from."""

    digest: str
    paths: list[str]


def cached_sha256(path: Path | str) -> str:
    """SHA-256 (hex) of a file, computed again if the file has changed since it was stored."""
    stored = recall(str(path))
    if stored is not None:
        return stored.digest
    started = time.time()
    digest = sha256_of_file(path)
    store(str(path), digest, paths=[path], started=started)
    return digest


def recall(name: str) -> Stored | None:
    """Digest and paths stored under a name; None without a record, or if a file has changed since."""
    try:
        record = json.loads(_record_path(name).read_text(encoding="utf-8"))
        stored = Stored(record["digest"], record["paths"])
        signature, _ = _signature(stored.paths)
        unchanged = record["name"] == name and record["signature"] == signature
    # Nothing stored, a file that is gone, or a record that something else wrote.
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return stored if unchanged else None


def store(name: str, digest: str, *, paths: Iterable[Path | str], started: float) -> None:
    """Store a digest of files and folders under a name.

    Parameters
    ----------
    name : str
        The name for `recall`.
    digest : str
        Digest of the files.
    paths : iterable of Path or str
        The files, and folders whose lists of names are part of it.
    started : float
        Time at which reading began. A digest of files that changed later, or shortly before, is not stored.
    """
    names = list(map(str, paths))
    # A cache that cannot be written is no error: the files are read again next time.
    with suppress(OSError):
        signature, last_change = _signature(names)
        if last_change > started - CLOCK_RESOLUTION:
            return
        record = {"name": name, "digest": digest, "signature": signature, "paths": names}
        CACHE_FOLDER.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=CACHE_FOLDER, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(record, file)
        Path(temporary).replace(_record_path(name))


def _signature(paths: Iterable[str]) -> tuple[str, float]:
    # Digest of size, times, inode and path of each, and the time of the last change.
    state = hashlib.sha256()
    last_change = 0.0
    for path in paths:
        entry = os.stat(path)  # noqa: PTH116 - 50,000 paths
        state.update(f"{path}\0{entry.st_size} {entry.st_mtime_ns} {entry.st_ctime_ns} {entry.st_ino}\n".encode())
        last_change = max(last_change, entry.st_ctime)
    return state.hexdigest(), last_change


def _record_path(name: str) -> Path:
    key = hashlib.sha256(os.path.abspath(name).encode()).hexdigest()[:32]  # noqa: PTH100
    return CACHE_FOLDER / f"{key}.json"
