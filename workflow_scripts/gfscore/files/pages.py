"""Pages that carry their own checksum: FAIL with other letters in its place is still a page."""

import hashlib
import re
from pathlib import Path

from gfscore.errors import InputError
from gfscore.files import write_text

LAST_LINE = re.compile(rb"<!-- SHA-256 of everything above: ([0-9a-f]{64}) -->\n\Z")


def write_page(path, html):
    """Write an HTML page atomically, with a comment behind it that holds the SHA-256 of all that stands above."""
    above = html if html.endswith("\n") else html + "\n"
    digest = hashlib.sha256(above.encode()).hexdigest()
    write_text(path, f"{above}<!-- SHA-256 of everything above: {digest} -->\n")


def require_unchanged_page(path):
    """Raise InputError, naming the file, unless it is a page as write_page left it."""
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
