"""Classes of samples: readable names of those named by codes, and labels of users converted to class indices."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path

from gfscore.core.errors import InputError, few
from gfscore.core.lazy import np, pd
from gfscore.core.mappings import positions

WNID = re.compile(r"n\d{8}")
"""WordNet ID of a noun, as ImageNet names its folders."""

WHOLE = "give whole numbers 0..K-1, the positions of the classes in `classes`"
"""Remedy for labels that are no class indices."""

LONGEST_NUMBER = 9
"""Digits of the longest text that is read as a number of a class, which has 32 bits."""

SHOWN = 80
"""Characters of a label that an error shows."""


# ---- readable names ----


def readable_class(name: str) -> str:
    """Class name with its meaning: "velvet (n04525038)" for an ImageNet wnid, any other name as it is."""
    meaning = imagenet_names().get(name)
    return f"{meaning} ({name})" if meaning else name


def readable_classes(names: Iterable[str]) -> list[str]:
    """Readable names in the same order; where all of them are wnids, the meaning alone ("velvet")."""
    names = list(map(str, names))
    meanings = imagenet_names()
    if set(names) <= meanings.keys():
        return [meanings[name] for name in names]
    return [readable_class(name) for name in names]


def classes_of(rows: pd.DataFrame) -> list[str]:
    """Readable names of the classes in a table, by class index; a class may have several rows."""
    classes = rows.drop_duplicates("class_index").sort_values("class_index")
    return readable_classes(classes["class_name"])


@cache
def imagenet_names() -> dict[str, str]:
    """Names of the 1,000 ImageNet classes by wnid, in the order of the class indices; every name is unique.

    Source: torchvision's category list, in the order of the sorted wnids, as timm lists them; each name was checked
    against the WordNet lemmas of its wnid that timm ships.
    """
    with resources.files("gfscore.core").joinpath("imagenet_classes.csv").open(encoding="utf-8") as file:
        return {row["wnid"]: row["name"] for row in csv.DictReader(file)}


def plain_name(name: str) -> str:
    """Class name by which spellings are compared: the meaning of a wnid, in lower case, with blanks for _ and -."""
    return re.sub(r"[\s_-]+", " ", imagenet_names().get(name, name)).strip().casefold()


# ---- labels of users ----


def classes_of_one_hot(labels: np.typing.NDArray[np.generic], where: Path | str) -> np.typing.NDArray[np.int64]:
    """Class (N,) of each row of one-hot labels (N, K); InputError, naming `where`, for a row of other numbers."""
    numbers = labels.astype(np.float64)
    other_values = ((numbers != 0) & (numbers != 1)).any(axis=1)
    wrong = np.flatnonzero(other_values | (numbers.sum(axis=1) != 1))
    if wrong.size:
        raise InputError(
            f"{where}: shape {labels.shape}, and row {wrong[0]} is not a single 1 among zeros; give one label per "
            "sample, or one-hot rows"
        )
    return numbers.argmax(axis=1)


def class_indices(
    labels: np.typing.NDArray[np.generic], classes: Sequence[str] | None, where: Path | str
) -> np.typing.NDArray[np.generic]:
    """Convert labels that are class names to class indices.

    Parameters
    ----------
    labels : ndarray of shape (N,)
        Class names; labels that are not text are returned unchanged (see `fault_of_labels`).
    classes : sequence of str, or None
        The K class names, None where none are listed.
    where : Path or str
        The file or array that errors name.

    Returns
    -------
    ndarray of shape (N,)
        Positions in `classes`, int64.

    Raises
    ------
    InputError
        For text where no classes are listed, for a name that may be a class or the index of another, and for the first
        row that is none of the classes, with the nearest one.
    """
    is_column_of_text = labels.ndim == 1 and labels.dtype.kind in "OSU"
    if not is_column_of_text or not any(isinstance(label, str | bytes) for label in labels):
        return labels
    names = []
    for label in labels.tolist():
        names.append(label.decode(errors="replace") if isinstance(label, bytes) else label)
    if not classes:
        row = next(row for row, name in enumerate(names) if isinstance(name, str))
        raise InputError(
            f"{where}: row {row} is {repr(names[row])[:SHOWN]}, a name, but the dataset lists no classes; list all "
            "names under its `classes`, in the order of the columns of logits"
        )

    index = positions(classes)
    # A class name such as "3" is ambiguous where it stands in another place: read as a number it means another class.
    ambiguous = set()
    for name, position in index.items():
        try:
            number = int(name)
        except ValueError:
            continue
        if number != position and 0 <= number < len(index):
            ambiguous.add(name)

    indices = np.empty(len(names), dtype=np.int64)
    for row, name in enumerate(names):
        if name in ambiguous:
            raise InputError(
                f"{where}: row {row} is {name!r}: the name of class {index[name]} and the index of another one; write "
                "all labels as whole numbers from 0"
            )
        if name not in index:
            raise InputError(
                f"{where}: row {row} is {repr(name)[:SHOWN]}, none of the {len(classes)} classes "
                f"({_hint(name, classes)}); write each label as in `classes` of the dataset, or all as whole numbers "
                "from 0"
            )
        indices[row] = index[name]
    return indices


def _hint(name: object, classes: Sequence[str]) -> str:
    empty = name is None or name in ("", "nan") or name != name  # noqa: PLR0124
    if empty:
        return "an empty cell, or a text that means a missing value"
    near = get_close_matches(name, classes, n=1) if isinstance(name, str) else []
    return f"the nearest is {near[0]!r}" if near else f"which are {few(classes)}"


def is_number(text: str) -> bool:
    """Whether a text may be the number of a class: a whole number from 0, such as "9"."""
    # int() refuses thousands of digits.
    return text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER


def are_numbers(texts: Iterable[str]) -> bool:
    """Whether all labels that are text are whole numbers from 0, such as "0" to "9"."""
    return all(map(is_number, texts))


def without_point(texts: Sequence[str]) -> Sequence[str]:
    """Texts of whole numbers from 0, such as "9" for "9.0", where all are such numbers; else the texts as they are."""
    plain = [re.sub(r"\.0+$", "", text) for text in texts]
    return plain if are_numbers(plain) else texts


def fault_of_labels(labels: np.typing.NDArray[np.generic]) -> str | None:
    """Why labels are no whole numbers.

    Parameters
    ----------
    labels : ndarray of shape (N,)
        Labels; class names are converted by `class_indices` first.

    Returns
    -------
    str or None
        The type, the first row at fault and the remedy; None if all labels are whole numbers.
    """
    if labels.dtype.kind in "iu":
        return None
    values = labels.tolist()
    if labels.dtype.kind == "f":
        numbers = labels.astype(np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers) | (numbers != np.round(numbers)))
        if not wrong.size:
            return None
        row = wrong[0]
        empty = " (an empty cell?)" if np.isnan(numbers[row]) else ""
        return f"dtype {labels.dtype}, row {row} is {values[row]}{empty}; {WHOLE}"
    if not values:
        return f"dtype {labels.dtype}; {WHOLE}"
    # In a column of text, numbers are text too: the first name is at fault.
    row = next((row for row, value in enumerate(values) if not str(value).strip().isdecimal()), 0)
    return f"dtype {labels.dtype}, row {row} is {repr(values[row])[:SHOWN]}; {WHOLE}"
