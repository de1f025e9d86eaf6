"""Display of names of models and classes, which come from users and may hold any character."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    from pandas import DataFrame
from typing import Any

ELLIPSIS = "\u2026"
REPLACEMENT = "\ufffd"

CONTROL = {
    code: REPLACEMENT
    for codes in (range(32), range(127, 160), range(0x202A, 0x202F), range(0x2066, 0x206A))
    for code in codes
    if chr(code) not in "\t\n\r"
}
"""Control characters of terminals and of text direction, for str.translate."""


def printable(name: object) -> str:
    """Name on one line, without control and direction-changing characters; "(unnamed)" when nothing is left."""
    text = "".join(c if c.isprintable() else " " if c.isspace() else REPLACEMENT for c in str(name))
    return re.sub(" +", " ", text).strip() or "(unnamed)"


def on_one_line(text: str) -> str:
    """Text for a comment in a file: characters that are not printable, line breaks among them, are replaced."""
    return "".join(character if character.isprintable() else REPLACEMENT for character in text)


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
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character):
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte of a file name that is no UTF-8, as Python holds it.
        return f"\\{code - 0xDC00:03o}"
    return f"\\{code:03o}" if code < 0x80 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Text in Unicode normal form NFKC, without invisible format characters (category Cf)."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKC", text) if unicodedata.category(c) != "Cf")


def spelling(name: str) -> str:
    """What a reader can tell a name by: its visible text, with runs of blanks reduced to one."""
    return " ".join(visible(name).split())


def spelled_alike(names: Iterable[str], *, key: Callable[[str], Hashable] = spelling) -> tuple[str, str] | None:
    """First two different names, `(name, other)`, with the same `key`; None if there are none."""
    seen: dict[Hashable, str] = {}
    for name in names:
        other = seen.setdefault(key(name), name)
        if other != name:
            return other, name
    return None


def harmless(text: str) -> str:
    """Text of any number of lines without control characters of terminals, for logs and error messages."""
    return text.translate(CONTROL)


def shortened(name: object, limit: int) -> str:
    """Printable name of at most `limit` characters; the middle is cut, since names differ mostly at their ends."""
    text = printable(name)
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 2
    return text[: limit - 1 - tail] + ELLIPSIS + text[len(text) - tail :]


def shortened_all(names: Iterable[object], limit: int) -> list[str]:
    """Shortened names in the same order; names that differ only in what was cut get a number appended."""
    result: list[str] = []
    seen: dict[str, int] = {}
    for name in names:
        text = shortened(name, limit)
        seen[text] = seen.get(text, 0) + 1
        result.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return result


def model_labels(frame: DataFrame) -> list[str]:
    """Label of each row's model: its name, preceded by threat and dataset where the name alone is ambiguous.

    `frame` has the columns dataset, threat and model. Returns one str per row.
    """
    identities = frame[["dataset", "threat", "model"]].drop_duplicates()
    for columns in (["model"], ["threat", "model"], ["dataset", "threat", "model"]):
        if not identities.duplicated(columns).any():
            break
    return ["/".join(parts) for parts in frame[columns].astype(str).itertuples(index=False)]


def model_count(frame: DataFrame) -> int:
    """Number of different models in a data frame with the columns dataset, threat and model."""
    return len(frame[["dataset", "threat", "model"]].drop_duplicates())


def without_threat(labels: Sequence[str]) -> list[str]:
    """Labels "threat/model" reduced to the model's name where that is unambiguous, in the same order."""
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


# ---- URLs as messages and results show them: without the query string, which may hold an access token.


def without_query(url: object) -> str:
    """URL with its query string replaced by `?...`."""
    start, mark, _ = str(url).partition("?")
    return start + (mark and "?...")


def without_queries(data: Any) -> Any:
    """Copy of plain data (mappings, lists, scalars) in which every value of a key `url` went through without_query."""
    if isinstance(data, dict):
        return {
            key: without_query(value) if key == "url" and isinstance(value, str) else without_queries(value)
            for key, value in data.items()
        }
    return [without_queries(value) for value in data] if isinstance(data, list) else data
