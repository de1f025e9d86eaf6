"""Readable class names for datasets that name their classes by codes."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError, few

WNID = re.compile(r"n\d{8}")
"""WordNet ID of a noun, as ImageNet names its folders."""


def readable_class(name: str) -> str:
    """Class name with its meaning: "velvet (n04525038)" for an ImageNet wnid, any other name as it is."""
    meaning = imagenet_names().get(name)
    return f"{meaning} ({name})" if meaning else name


def readable_classes(names: Iterable[str]) -> list[str]:
    """Readable names in the same order; where all of them are wnids, the meaning alone ("velvet")."""
    names = [str(name) for name in names]
    if names and all(WNID.fullmatch(name) and name in imagenet_names() for name in names):
        return [imagenet_names()[name] for name in names]
    return [readable_class(name) for name in names]


def classes_of(rows: DataFrame) -> list[str]:
    """Readable names of the classes in a table, by class index; a class may have several rows."""
    return readable_classes(rows.drop_duplicates("class_index").sort_values("class_index")["class_name"])


@cache
def imagenet_names() -> dict[str, str]:
    """Names of the 1,000 ImageNet classes by wnid, in the order of the class indices; every name is unique.

    Source: torchvision's category list, checked against WordNet by tools/write_imagenet_names.py.
    """
    with resources.files("gfscore.core").joinpath("imagenet_classes.csv").open(encoding="utf-8") as file:
        return {row["wnid"]: row["name"] for row in csv.DictReader(file)}


# ---- Labels of samples as users write them, class indices or class names, converted to class indices.


WHOLE = "give whole numbers 0..K-1, the positions of the classes in `classes`"
"""Remedy for labels that are no class indices."""

LONGEST_NUMBER = 9
"""Digits of the longest text that is read as a number of a class, which has 32 bits."""

SHOWN = 80
"""Characters of a label that an error shows."""


def class_indices(labels: NDArray[Any], classes: Sequence[str] | None, where: Path | str) -> NDArray[Any]:
    """Labels (N,) that are class names, replaced by their positions in `classes` (K names, or None if not listed).

    Labels that are not text are returned unchanged (see `fault_of_labels`). Raises InputError, naming `where`, for text
    where no classes are listed, and for the first row that is none of them, with the nearest class.
    """
    if labels.ndim != 1 or labels.dtype.kind not in "OSU" or not any(isinstance(v, str | bytes) for v in labels):
        return labels
    names = [name.decode(errors="replace") if isinstance(name, bytes) else name for name in labels.tolist()]
    if not classes:
        row = next(row for row, name in enumerate(names) if isinstance(name, str))
        raise InputError(
            f"{where}: row {row} is {repr(names[row])[:SHOWN]}, a name, but the dataset lists no classes; list all "
            "names under its `classes` in config.yaml, in the order of the columns of logits"
        )
    index = {name: position for position, name in enumerate(classes)}
    # A class name such as "3" is ambiguous: read as a number it may mean another class.
    ambiguous = {
        name for name, k in index.items() if _as_integer(name) in range(len(classes)) and _as_integer(name) != k
    }
    unclear = next((name for name in names if name in ambiguous), None)
    if unclear is not None:
        raise InputError(
            f"{where}: row {names.index(unclear)} is {unclear!r}: the name of class {index[unclear]} and the index of "
            "another one; write all labels as whole numbers from 0"
        )
    foreign = next((row for row, name in enumerate(names) if name not in index), None)
    if foreign is not None:
        name = names[foreign]
        empty = name is None or name in ("", "nan") or name != name  # noqa: PLR0124
        near = get_close_matches(name, classes, n=1) if isinstance(name, str) and not empty else []
        known = f"the nearest is {near[0]!r}" if near else f"which are {few(classes)}"
        hint = "an empty cell, or a text that means a missing value" if empty else known
        raise InputError(
            f"{where}: row {foreign} is {repr(name)[:SHOWN]}, none of the {len(classes)} classes ({hint}); write each "
            "label as in `classes` of the dataset, or all as whole numbers from 0"
        )
    return np.array([index[name] for name in names], dtype=np.int64)


def is_number(text: str) -> bool:
    """Whether a text is a whole number from 0 that may be that of a class, such as "9"."""
    # int() refuses thousands of digits.
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether all labels that are text are whole numbers from 0, such as "0" to "9"."""
    return all(map(is_number, texts))


def _as_integer(name):
    try:
        return int(name)
    except ValueError:
        return None


def fault_of_labels(labels: NDArray[Any]) -> str | None:
    """Why labels (N,) are no whole numbers, with the first such row and the remedy; None if they are.

    Class names are converted by `class_indices` first.
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
        # In a column of text, numbers are text too: the first name is at fault.
        row = next((row for row, value in enumerate(values) if not str(value).strip().isdecimal()), 0)
        fault += f", row {row} is {repr(values[row])[:SHOWN]}"
    return f"{fault}; {WHOLE}"
