"""Names of models and classes as text for people: they come from outside and may hold anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

ELLIPSIS = "\u2026"
REPLACEMENT = "\ufffd"

STEERING = {
    code: REPLACEMENT
    for codes in (range(32), range(127, 160), range(0x202A, 0x202F), range(0x2066, 0x206A))
    for code in codes
    if chr(code) not in "\t\n\r"
}
"""Characters that steer a terminal or turn the direction of text, for str.translate."""


def printable(name: object) -> str:
    """Name on one line, without control and direction-changing characters; "(unnamed)" when nothing is left."""
    text = "".join(c if c.isprintable() else " " if c.isspace() else REPLACEMENT for c in str(name))
    return re.sub(" +", " ", text).strip() or "(unnamed)"


def visible(text: str) -> str:
    """Text in one spelling in Unicode (NFKC), without the format characters (Cf), which show nothing themselves."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def spelling(name: str) -> str:
    """What people can tell a name by: its visible text, however many blanks stand in it or around it."""
    return " ".join(visible(name).split())


def spelled_alike(names: Iterable[str], *, key: Callable[[str], Hashable] = spelling) -> tuple[str, str] | None:
    """The first two different names, `(name, other)`, that `key` makes the same; None where there are none."""
    found: dict[Hashable, str] = {}
    for name in names:
        other = found.setdefault(key(name), name)
        if other != name:
            return other, name
    return None


def harmless(text: str) -> str:
    """Text of any number of lines without characters that steer a terminal, for logs and error messages."""
    return text.translate(STEERING)


def shortened(name: object, limit: int) -> str:
    """Printable name of at most `limit` characters; the middle goes, since names tell themselves apart at the ends."""
    text = printable(name)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return text[: limit - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def shortened_all(names: Iterable[object], limit: int) -> list[str]:
    """Shortened names in the same order; names that only differ in what was cut get a number behind."""
    result: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        text = shortened(name, limit)
        seen[text] = seen.get(text, 0) + 1
        result.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return result


def model_labels(frame: DataFrame) -> list[str]:
    """Label of each row's model: its name, preceded by threat or data set where the name alone is ambiguous.

    Takes a data frame with dataset, threat and model. Returns a list of str, one per row.
    """
    identities = frame[["dataset", "threat", "model"]].drop_duplicates()
    for columns in (["model"], ["threat", "model"], ["dataset", "threat", "model"]):
        if not identities.duplicated(columns).any():
            break
    return ["/".join(parts) for parts in frame[columns].astype(str).itertuples(index=False)]


def marked_labels(frame: DataFrame, guessing: Collection[str], *, limit: int) -> list[str]:
    """The same, shortened to `limit`, with a remark behind those of `guessing`: labels "threat/model"."""
    marks = [f"{row.threat}/{row.model}" in guessing for row in frame.itertuples()]
    return [
        f"{shortened(label, limit)} [may be guessing]" if marked else shortened(label, limit)
        for label, marked in zip(model_labels(frame), marks, strict=True)
    ]


def model_count(frame: DataFrame) -> int:
    """How many models the rows of a data frame with dataset, threat and model are about."""
    return len(frame[["dataset", "threat", "model"]].drop_duplicates())


def without_threat(labels: Sequence[str]) -> list[str]:
    """Labels "threat/model" as the model's name alone, where that is unambiguous; the same order."""
    names = [label.split("/", 1)[-1] for label in labels]
    return names if len(set(names)) == len(names) else list(labels)


def class_phrase(name: object) -> str:
    """Class in a sentence: a bare number or letter reads "class 8", any other name stands alone."""
    text = shortened(name, 40)
    return f"class {text}" if len(text) <= 2 or text.isdigit() else text


def enumeration(words: Iterable[str]) -> str:
    """Words joined as in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def capitalised(sentence: str) -> str:
    """Sentence with "class" at its start in upper case; names keep their spelling."""
    return f"C{sentence[1:]}" if sentence.startswith("class ") else sentence
