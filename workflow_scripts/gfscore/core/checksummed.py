"""Texts that carry their own checksum: a page with FAIL replaced by PASS is still a page.

They name the files that they were made from as well: a page beside a newer verdict is whole, and wrong.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file, write_text

COMMENTS = {".html": "<!-- {} -->", ".yaml": "# {}"}
"""How a comment is written in each kind of file, by the ending of its name."""

LAST_LINE = re.compile(rb"\n[^\n]{0,5}SHA-256 of everything above: ([0-9a-f]{64})[^\n]{0,4}\n\Z")
MADE_FROM = re.compile(rb"^[^\n]{0,5}Made from ([\w.-]+), SHA-256: ([0-9a-f]{64})[^\n]{0,4}$", re.MULTILINE)


def write_checksummed(path: Path | str, text: str, *, files: Iterable[object] = ()) -> None:
    """Write a page (.html) or configuration (.yaml) atomically, with comments behind it: its SHA-256, and its sources'.

    Of `files` (paths; folders and others than paths are passed over) those beside it are named with their SHA-256: the
    others are not handed on with it.
    """
    comment = COMMENTS[Path(path).suffix]
    folder, given = Path(path).parent.resolve(), sorted({Path(name) for name in files if isinstance(name, str | Path)})
    beside = [name for name in given if name.is_file() and name.parent.resolve() == folder]
    made_from = [comment.format(f"Made from {name.name}, SHA-256: {sha256_of_file(name)}") + "\n" for name in beside]
    above = (text if text.endswith("\n") else text + "\n") + "".join(made_from)
    digest = hashlib.sha256(above.encode()).hexdigest()
    write_text(path, f"{above}{comment.format(f'SHA-256 of everything above: {digest}')}\n")


def require_checksum(path: Path | str) -> None:
    """Raise InputError, naming the file, unless it is as write_checksummed left it, and so are the files it names."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: not readable ({error.strerror}); ask for the file again") from error
    found = LAST_LINE.search(content[-200:])
    if not found:
        raise InputError(
            f"{path}: damaged, edited, or of an earlier version: its last line is no checksum; ask for the file again"
        )
    above = content[: len(content) - len(found[0]) + 1]
    if hashlib.sha256(above).hexdigest() != found[1].decode():
        raise InputError(f"{path}: damaged, or edited by hand: it does not have its checksum; ask for the file again")
    others = [name.decode() for name, digest in MADE_FROM.findall(above) if _digest(path, name) != digest.decode()]
    if others:
        raise InputError(
            f"{path}: made from another {', another '.join(others)} than lies beside it; ask for both again"
        )


def _digest(path: Path | str, name: bytes) -> str | None:
    file = Path(path).parent / name.decode()
    return sha256_of_file(file) if file.is_file() else None
