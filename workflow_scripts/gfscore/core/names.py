"""Text that is shown: names of models and classes, which come from users and may hold any character, and URLs."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.lazy import pd

ELLIPSIS = "\u2026"
REPLACEMENT = "\ufffd"

JOINERS = "\u200c\u200d"
"""Characters within words of Persian and of Indian scripts, and within emoji; names that differ in them are refused."""

NOT_SETTLED = "not settled"
"""In place of a name where undecided samples leave several possible."""

LONGEST_IN_SENTENCE = 80
"""Characters of the name of a model or class in a sentence, which few names exceed: a cut one may stand for several."""


def _control_characters() -> dict[int, str]:
    ranges = (range(32), range(127, 160), range(0x202A, 0x202F), range(0x2066, 0x206A))
    table = {}
    for codes in ranges:
        table.update(dict.fromkeys(codes, REPLACEMENT))
    for white_space in "\t\n\r":
        del table[ord(white_space)]
    return table


CONTROL = _control_characters()
"""Control characters of terminals and of text direction, for str.translate."""


# ---- single names ----


def printable(name: object) -> str:
    """Name on one line, without control and direction-changing characters; "(unnamed)" when nothing is left."""
    characters = []
    for character in str(name):
        if character.isprintable() or character in JOINERS:
            characters.append(character)
        elif character.isspace():
            characters.append(" ")
        else:
            characters.append(REPLACEMENT)
    return re.sub(" +", " ", "".join(characters)).strip() or "(unnamed)"


def printable_all(names: Iterable[object]) -> list[str]:
    """Printable names in the same order."""
    return [printable(name) for name in names]


def on_one_line(text: str) -> str:
    """Text for a comment in a file: characters that are not printable, line breaks among them, are replaced."""
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)


def harmless(text: str) -> str:
    """Text of any number of lines without control characters of terminals, for logs and error messages."""
    return text.translate(CONTROL)


def require_utf8(name: str, *, where: object) -> None:
    """Raise InputError, naming the place, for a file name that is no UTF-8: no table or configuration can hold it."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{where}: the name {name!r} is no UTF-8; rename the file or folder") from error


def shell_word(word: str) -> str:
    """Word of a command as bash reads it back, on one line of printable characters.

    Two different words are never written alike.
    """
    if word.isprintable():
        return shlex.quote(word)
    escaped = ""
    for character in word:
        code = ord(character)
        if character in "\\'":
            escaped += f"\\{character}"
        elif character.isprintable():
            escaped += character
        elif 0xDC80 <= code <= 0xDCFF:
            # A byte of a file name that is no UTF-8, as Python holds it.
            escaped += f"\\{code - 0xDC00:03o}"
        elif code < 0x80:
            escaped += f"\\{code:03o}"
        else:
            escaped += f"\\U{code:08x}"
    return f"$'{escaped}'"


def visible(text: str) -> str:
    """Text in Unicode normal form NFKC, without invisible format characters (category Cf)."""
    if text.isascii():
        return text
    normal = unicodedata.normalize("NFKC", text)
    return "".join(character for character in normal if unicodedata.category(character) != "Cf")


def spelling(name: str) -> str:
    """What a reader can tell a name by: its visible text, with runs of blanks reduced to one."""
    return " ".join(visible(name).split())


def spelled_alike(names: Iterable[str], *, key: Callable[[str], Hashable] = spelling) -> tuple[str, str] | None:
    """First two different names that a reader cannot tell apart.

    Parameters
    ----------
    names : iterable of str
        Names, of which some may be equal.
    key : callable
        What a reader can tell a name by.

    Returns
    -------
    (str, str) or None
        The earlier name and the later one; None if there are none.
    """
    first_by_key: dict[Hashable, str] = {}
    for name in names:
        first = first_by_key.setdefault(key(name), name)
        if first != name:
            return first, name
    return None


def shortened(name: object, limit: int) -> str:
    """Printable name of at most `limit` characters; the middle is cut, since names differ mostly at their ends."""
    text = printable(name)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    head = limit - 1 - tail
    return text[:head] + ELLIPSIS + text[len(text) - tail :]


def shortened_all(names: Iterable[object], limit: int) -> list[str]:
    """Shortened names in the same order, with a number after those that are still alike.

    Names that `shortened` cuts alike are cut elsewhere, so that they keep the piece in which they differ.
    """
    texts = printable_all(names)
    short = [shortened(text, limit) for text in texts]
    cut_alike: dict[str, list[str]] = {}
    for text, short_text in zip(texts, short, strict=True):
        cut_alike.setdefault(short_text, []).append(text)

    result: list[str] = []
    times: dict[str, int] = {}
    for text, short_text in zip(texts, short, strict=True):
        alike = cut_alike[short_text]
        shown = short_text
        if len(set(alike)) > 1:
            shown = _shortened_around(text, _first_difference(alike), limit)
        times[shown] = times.get(shown, 0) + 1
        result.append(shown if times[shown] == 1 else f"{shown} ({times[shown]})")
    return result


def _first_difference(texts: Sequence[str]) -> int:
    # Position of the first character that is not the same in all texts.
    for position, characters in enumerate(zip(*texts, strict=False)):
        if len(set(characters)) > 1:
            return position
    return min(len(text) for text in texts)


def _shortened_around(text: str, position: int, limit: int) -> str:
    # A quarter of the letters come from the start, the others from two letters before the position on.
    head = limit // 4
    room = limit - head - 1
    tail = text[position - 2 :]
    if len(tail) > room:
        tail = tail[: room - 1] + ELLIPSIS
    return text[:head] + ELLIPSIS + tail


# ---- models ----


def model_labels(frame: pd.DataFrame) -> list[str]:
    """Labels of models, as short as they are unambiguous.

    Parameters
    ----------
    frame : DataFrame
        With the columns dataset, threat and model.

    Returns
    -------
    list of str
        One per row: the model's name, preceded by threat and dataset where the name alone is ambiguous.
    """
    identities = frame[["dataset", "threat", "model"]].drop_duplicates()
    columns = ["dataset", "threat", "model"]
    for shorter in (["model"], ["threat", "model"]):
        if not identities.duplicated(shorter).any():
            columns = shorter
            break
    return ["/".join(names) for names in frame[columns].astype(str).itertuples(index=False)]


def model_count(frame: pd.DataFrame) -> int:
    """Number of different models in a data frame with the columns dataset, threat and model."""
    return len(frame[["dataset", "threat", "model"]].drop_duplicates())


def without_threat(labels: Sequence[str]) -> list[str]:
    """Labels "threat/model" reduced to the model's name where that is unambiguous, in the same order."""
    names = [label.split("/", 1)[-1] for label in labels]
    return names if len(set(names)) == len(names) else list(labels)


# ---- sentences ----


def class_phrase(name: object) -> str:
    """Class in a sentence: "class 8" for a number or a name of one or two characters; any other name stands alone."""
    text = shortened(name, LONGEST_IN_SENTENCE)
    return f"class {text}" if len(text) <= 2 or text.isdigit() else text


def enumeration(words: Iterable[str]) -> str:
    """Words joined as in a sentence: "a", "a and b", "a, b and c"."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def with_ties(names: Sequence[str]) -> str:
    """The first of the names that share a place, and how many others do: "a", "a (tied with 2 others)".

    NOT_SETTLED without a name.
    """
    if len(names) == 0:
        return NOT_SETTLED
    return f"{names[0]}{words_of_ties(len(names) - 1)}"


def words_of_ties(others: int) -> str:
    """What follows the name of one of several that share a place: " (tied with 2 others)", or nothing."""
    if others == 0:
        return ""
    return f" (tied with {others:,} other{'' if others == 1 else 's'})"


def numbered(prefix: str, rows: int, *, digits: int = 6) -> list[str]:
    """Names of the rows of data without names, counted from 0: "row-000007" for the prefix "row-"."""
    return [f"{prefix}{row:0{digits}d}" for row in range(rows)]


def upper_first(text: str) -> str:
    """Text with its first letter in upper case and all others as they are."""
    return text[:1].upper() + text[1:]


def capitalised(sentence: str) -> str:
    """Sentence that begins with "Class" where it began with "class"; a name at its start keeps its spelling."""
    return f"C{sentence[1:]}" if sentence.startswith("class ") else sentence


# ---- URLs ----


def without_query(url: object) -> str:
    """URL with its query string, which may hold an access token, replaced by `?...`."""
    start, mark, _ = str(url).partition("?")
    return f"{start}?..." if mark else start


def without_queries(data: Any) -> Any:
    """Copy of plain data (mappings, lists, scalars) in which every value of a key `url` went through without_query."""
    if isinstance(data, list):
        return [without_queries(value) for value in data]
    if not isinstance(data, dict):
        return data
    copy = {}
    for key, value in data.items():
        if key == "url" and isinstance(value, str):
            copy[key] = without_query(value)
        else:
            copy[key] = without_queries(value)
    return copy
