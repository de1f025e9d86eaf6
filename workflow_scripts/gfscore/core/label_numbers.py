"""Labels of samples as users write them: numbers of classes, or their names."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few

WHOLE = "give whole numbers 0..K-1, which count the classes in the order of `classes`"
"""Remedy for labels that are no numbers of classes."""

SHOWN = 80
"""Characters of a label that an error shows."""


def numbered(labels: NDArray[Any], classes: Sequence[str] | None, where: Path | str) -> NDArray[Any]:
    """Labels (N,) as numbers where they are names of classes, which count in the order of `classes` (K names or None).

    Labels of another type stay as they are, for `not_whole` to judge: only text is a name. Raises InputError, naming
    `where`, for text where no classes are listed, and for the first row that is none of them, with the nearest one.
    """
    if labels.ndim != 1 or labels.dtype.kind not in "OSU" or not any(isinstance(v, str | bytes) for v in labels):
        return labels
    names = [name.decode(errors="replace") if isinstance(name, bytes) else name for name in labels.tolist()]
    if not classes:
        row = next(row for row, name in enumerate(names) if isinstance(name, str))
        raise InputError(
            f"{where}: row {row} is {repr(names[row])[:SHOWN]}, a name, but the dataset lists no classes; list all "
            "names under its `classes` in config.yaml, in the order in which logits count them"
        )
    number = {name: place for place, name in enumerate(classes)}
    # Read as a number, as the same column without its names would be, such a label may mean another class.
    others = {name for name, place in number.items() if _place(name) in range(len(classes)) and _place(name) != place}
    unclear = next((name for name in names if name in others), None)
    if unclear is not None:
        raise InputError(
            f"{where}: row {names.index(unclear)} is {unclear!r}: the name of class {number[unclear]} and the place of "
            "another one; write all labels as whole numbers from 0"
        )
    foreign = next((row for row, name in enumerate(names) if name not in number), None)
    if foreign is not None:
        name = names[foreign]
        empty = name is None or name in ("", "nan") or name != name  # noqa: PLR0124
        near = get_close_matches(name, classes, n=1) if isinstance(name, str) and not empty else []
        hint = "an empty cell, or a name that means a missing value" if empty else _known(near, classes)
        raise InputError(
            f"{where}: row {foreign} is {repr(name)[:SHOWN]}, none of the {len(classes)} classes ({hint}); write each "
            "label as `classes` of the dataset does, or all as whole numbers from 0"
        )
    return np.array([number[name] for name in names], dtype=np.int64)


def _place(name):
    try:
        return int(name)
    except ValueError:
        return None


def _known(near, classes):
    return f"the nearest is {near[0]!r}" if near else f"which are {few(classes)}"


def not_whole(labels: NDArray[Any]) -> str | None:
    """What keeps labels (N,) from being whole numbers, in words that name the first such row, with the remedy, or None.

    For labels without a list of classes; with one, `numbered` comes first.
    """
    if labels.dtype.kind in "iu":
        return None
    fault, values = f"dtype {labels.dtype}", labels.tolist()
    if labels.dtype.kind == "f":
        wrong = np.flatnonzero(~np.isfinite(labels) | (labels != np.round(labels)))
        if not wrong.size:
            return None
        fault += f", row {wrong[0]} is {values[wrong[0]]}"
        return f"{fault}{' (an empty cell?)' if np.isnan(labels[wrong[0]]) else ''}; {WHOLE}"
    if values:
        # Beside one name the numbers of a column of text are text as well.
        row = next((row for row, value in enumerate(values) if not str(value).strip().isdecimal()), 0)
        fault += f", row {row} is {repr(values[row])[:SHOWN]}"
    return f"{fault}; {WHOLE}"
