"""Files that were refused: set aside under another name, since each may be the only copy of something."""

import filecmp
import glob
import os
from contextlib import suppress
from itertools import count
from pathlib import Path


def set_aside(path):
    """Rename a file that was refused to `<path>.rejected`, or a numbered name beside earlier ones.

    Returns the new name. Content that stands there already is kept once.
    """
    target = next(name for name in _names(path) if not os.path.lexists(name) or _same(path, name))
    path.replace(target)
    return target


def set_aside_before(path):
    """Files that were refused as `path` in earlier runs, downloads among them."""
    return sorted(Path(path).parent.glob(f"{glob.escape(Path(path).name)}.rejected*"))


def _same(file, other):
    # What cannot be read, a link to nothing say, is not what is to be set aside.
    with suppress(OSError):
        return filecmp.cmp(file, other, shallow=False)
    return False


def _names(path):
    return (Path(f"{path}.rejected{f'-{number}' if number > 1 else ''}") for number in count(1))
