"""Files that were refused: set aside under another name, since each may be the only copy of something."""

import filecmp
import os
from itertools import count, takewhile
from pathlib import Path


def set_aside(file, path):
    """Rename a file that was refused as `path` to `<path>.rejected`, or a numbered name beside earlier ones.

    Returns the new name. Content that stands there already is kept once.
    """
    target = next(n for n in _names(path) if not os.path.lexists(n) or filecmp.cmp(file, n, shallow=False))
    file.replace(target)
    return target


def set_aside_before(path):
    """Files that were set aside as `path` in earlier runs, oldest first."""
    return [*takewhile(os.path.lexists, _names(path))]


def _names(path):
    return (Path(f"{path}.rejected{f'-{number}' if number > 1 else ''}") for number in count(1))
