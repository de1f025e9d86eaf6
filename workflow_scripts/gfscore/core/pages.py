"""Pages that carry their own checksum: FAIL with other letters in its place is still a page.

They name the files that they were made from as well: a page beside a newer verdict is whole, and wrong.
"""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from gfscore.core.errors import InputError
from gfscore.core.files import sha256_of_file, write_text

LAST_LINE = re.compile(rb"<!-- SHA-256 of everything above: ([0-9a-f]{64}) -->\n\Z")
MADE_FROM = re.compile(rb"^<!-- Made from ([\w.-]+), SHA-256: ([0-9a-f]{64}) -->$", re.MULTILINE)


def write_page(path: Path | str, html: str, *, files: Iterable[object] = ()) -> None:
    """Write an HTML page atomically, with comments behind it: its SHA-256, and that of files it was made from.

    Of `files` (paths; folders and others than paths are passed over) those beside the page are named: the others are
    not handed on with it.
    """
    folder, given = Path(path).parent.resolve(), sorted({Path(name) for name in files if isinstance(name, str | Path)})
    beside = [name for name in given if name.is_file() and name.parent.resolve() == folder]
    made_from = [f"<!-- Made from {name.name}, SHA-256: {sha256_of_file(name)} -->\n" for name in beside]
    above = (html if html.endswith("\n") else html + "\n") + "".join(made_from)
    digest = hashlib.sha256(above.encode()).hexdigest()
    write_text(path, f"{above}<!-- SHA-256 of everything above: {digest} -->\n")


def require_unchanged_page(path: Path | str) -> None:
    """Raise InputError, naming the file, unless it is a page as write_page left it, and so are the files it names."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: not readable ({error.strerror}); ask for the file again") from error
    found = LAST_LINE.search(content[-200:])
    if not found:
        raise InputError(
            f"{path}: damaged, edited, or of an earlier version: its last line is no checksum; ask for the file again"
        )
    above = content[: len(content) - len(found[0])]
    if hashlib.sha256(above).hexdigest() != found[1].decode():
        raise InputError(f"{path}: damaged, or edited by hand: it does not have its checksum; ask for the file again")
    others = [name.decode() for name, digest in MADE_FROM.findall(above) if _digest(path, name) != digest.decode()]
    if others:
        raise InputError(
            f"{path}: made from another {', another '.join(others)} than lies beside it; ask for both again"
        )


def _digest(page, name):
    file = Path(page).parent / name.decode()
    return sha256_of_file(file) if file.is_file() else None
