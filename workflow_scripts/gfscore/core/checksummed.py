"""Text files that carry their own SHA-256, so that an edited page (FAIL replaced by PASS) is detected.

They also record the digests of the files that they were made from, so that a page beside a newer verdict is detected.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file, write_text

COMMENTS = {".html": "<!-- {} -->", ".yaml": "# {}"}
"""Comment syntax by file name suffix."""

LAST_LINE = re.compile(rb"\n[^\n]{0,5}SHA-256 of everything above: ([0-9a-f]{64})[^\n]{0,4}\n\Z")
MADE_FROM = re.compile(rb"^[^\n]{0,5}Made from ([\w.-]+), SHA-256: ([0-9a-f]{64})[^\n]{0,4}$", re.MULTILINE)


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


def _digest(path: Path | str, name: bytes) -> str | None:
    file = Path(path).parent / name.decode()
    return sha256_of_file(file) if file.is_file() else None
