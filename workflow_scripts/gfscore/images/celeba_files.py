"""Readers of CelebA's text files of attributes and of the partition."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gfscore.core.errors import InputError
from gfscore.core.regular import regular_bytes

if TYPE_CHECKING:
    from pandas import DataFrame


def read_attribute_list(path: Path | str) -> DataFrame:
    """Attributes of list_attr_celeba.txt: a data frame of 1 (present) and -1 (absent) by image name.

    The first line is the number of images, the second the names of the attributes. Raises InputError, naming the file
    and line, for another number of rows or values, values other than 1 and -1, repeated names, and names of images that
    are paths.
    """
    import pandas as pd

    lines = _lines(path)
    names = lines[1].split() if len(lines) > 1 else []
    rows = [line.split() for line in lines[2:]]
    # Compared as text, since int() refuses thousands of digits.
    if not names or lines[0].strip() != str(len(rows)):
        raise InputError(f"{path}: line 1 must be the number of images below, line 2 the attributes; restore the file")
    for number, row in enumerate(rows, start=3):
        if len(row) != len(names) + 1 or not set(row[1:]) <= {"1", "-1"}:
            raise InputError(
                f"{path}: line {number} is not an image followed by {len(names)} values 1 or -1; restore the file"
            )
        if "/" in row[0] or "\0" in row[0]:
            raise InputError(f"{path}: line {number}: {row[0]!r} is no file name; restore the file")
    _require_unique(names, path)
    _require_unique([row[0] for row in rows], path)
    values = np.array([row[1:] for row in rows], dtype=np.int8).reshape(len(rows), len(names))
    return pd.DataFrame(values, index=[row[0] for row in rows], columns=names)


def read_partition(path: Path | str) -> dict[str, int]:
    """Part of each image by list_eval_partition.txt: a mapping name -> 0 (training), 1 (validation) or 2 (test)."""
    parts = {}
    for number, line in enumerate(_lines(path), start=1):
        name, _, part = line.partition(" ")
        if part.strip() not in ("0", "1", "2"):
            raise InputError(f"{path}: line {number} is not an image followed by 0, 1 or 2; restore the file")
        if name in parts:
            raise InputError(f"{path}: line {number} names {name} a second time; restore the file")
        parts[name] = int(part)
    return parts


def _require_unique(names, path):
    if len(set(names)) < len(names):
        repeated = next(name for name, times in Counter(names).items() if times > 1)
        raise InputError(f"{path}: {repeated} is repeated; restore the file")


def _lines(path):
    try:
        text = regular_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); put CelebA's own file there") from error
    return [line for line in text.splitlines() if line.strip()]
