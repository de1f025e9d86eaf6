"""Names of the outputs of a model, in the files that tools write: text, JSON, YAML and CSV."""

from __future__ import annotations

import csv
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from gfscore.core.errors import InputError, few
from gfscore.core.files import regular_bytes
from gfscore.core.labels import is_number

MOST_TEXT = 1 << 22
"""Bytes of the largest file of names that is read."""

LISTS = (
    "id2label", "label2id", "names", "classes", "class_names", "labels", "label_names", "class_to_idx", "idx_to_class",
    "categories",
)  # fmt: skip
"""Keys of JSON and YAML files under which tools write the names."""

NAMES_TO_NUMBERS = ("label2id", "class_to_idx")
NUMBERS_TO_NAMES = ("id2label", "idx_to_class")

NUMBER_COLUMNS = {"index", "idx", "id", "number", "output", "class_id", "class_index", "label_id", "class_idx"}
NAME_COLUMNS = {"name", "class", "class_name", "label", "label_name", "category", "text", "description", "title"}

NUMBERED = re.compile(r"(\d{1,9})(?:\s*[:=,;.)|]\s*|\s+)(\S.*)")
"""A line that starts with the number of its output: 0 airplane, 0: airplane, 0,airplane."""

SHORT = reprlib.Repr()
"""Values as a message shows them: of nested lists the outermost."""
SHORT.maxlevel = 1


@dataclass(frozen=True)
class OutputNames:
    """One way to read the names of the outputs.

    Parameters
    ----------
    names : tuple of str
        K names in the order of the outputs.
    words : str
        How they were read.
    """

    names: tuple[str, ...]
    words: str


def names_of_option(option: str) -> list[OutputNames]:
    """Every way to read the value of --labels: names separated by commas, or a file.

    Raises
    ------
    InputError
        Naming the file and the remedy, for a file that cannot be read or holds no names.
    """
    path = Path(option)
    if path.is_file():
        return names_in_file(path)
    names = [name.strip() for name in option.split(",")]
    if len(names) == 1:
        raise InputError(
            f"--labels {option}: there is no such file, and one name is too few; give a file, or names separated by "
            "commas"
        )
    return [OutputNames(tuple(names), "in the order of the list")]


def order_of_option(option: str) -> tuple[str, ...]:
    """The names that `names_of_option` reads first; InputError where they may have two orders."""
    first, *others = names_of_option(option)
    for other in others:
        if other.names != first.names and sorted(other.names) == sorted(first.names):
            raise InputError(
                f"{option}: the names have one order {first.words} ({few(first.names)}), and another, {other.words} "
                f"({few(other.names)}); write the file with a name in each line and nothing else"
            )
    return first.names


def names_in_file(path: Path) -> list[OutputNames]:
    """Every way to read the names in a file; two where a file may mean two orders, the likelier first.

    Text has a name in each line, or a number and a name; a wnid in front belongs to the name. JSON and YAML hold a
    list, or a mapping between numbers and names in either direction; CSV a column of numbers and one of names.

    Raises
    ------
    InputError
        Naming the file and the remedy, for a file that cannot be read or holds no names.
    """
    text = _text_of(path)
    if path.suffix == ".json":
        return names_in_structure(_json(text, path), path)
    if path.suffix in (".yaml", ".yml") or text.lstrip().startswith(("{", "[")):
        return names_in_structure(_yaml(text, path), path)
    if path.suffix in (".csv", ".tsv"):
        return _names_in_table(text, path)
    return _names_in_lines(text, path)


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_TEXT:
            raise InputError(f"{path}: too large for a file of names; give one with a name in each line")
        # utf-8-sig removes a byte order mark, as Windows editors write it.
        text = regular_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); write one name in a line, as UTF-8") from error
    if not text.strip():
        raise InputError(f"{path}: is empty; write the name of each output in a line")
    return text


# ---- JSON and YAML ----


def names_in_metadata(metadata: Mapping[str, str]) -> tuple[str, ...] | None:
    """Names in the metadata of a model, texts by key, as detectors and exporters write them; None where none are."""
    for key in LISTS:
        text = metadata.get(key, "")
        if not text.lstrip().startswith(("{", "[")) or len(text) > MOST_TEXT:
            continue
        try:
            return _names_in(_yaml(text, key), key, key)[0].names
        except InputError:
            # Metadata are free text: what holds no names says nothing of the outputs.
            continue
    return None


def _json(text: str, path: Path) -> object:
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); correct it, or write a name in a line") from error


def _without_repeats(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    mapping = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the key {key!r} stands twice")
        mapping[key] = value
    return mapping


def _yaml(text: str, path: Path | str) -> object:
    try:
        return yaml.load(text, Loader=_Texts)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as YAML ({error}); correct it, or write a name in a line") from error


class _Texts(yaml.BaseLoader):
    """Loader of YAML whose scalars are all texts, so that a class may be called "no" or 007, and whose keys differ."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise yaml.YAMLError(f"the key {reprlib.repr(key.value)} stands twice")
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def names_in_structure(content: object, where: Path | str) -> list[OutputNames]:
    """Every way to read names in a list or mapping, or in what stands under one of the keys of LISTS.

    Raises
    ------
    InputError
        Naming `where`, where there are none, and where two keys give different names.
    """
    if not isinstance(content, Mapping):
        return _names_in(content, where)
    keys = [key for key in LISTS if isinstance(content.get(key), Mapping | list)]
    if not keys:
        return _names_in(content, where)
    first, *others = keys
    readings = _names_in(content[first], f"{where}: {first}", first)
    names = readings[0].names
    for key in others:
        if not _agrees(content[key], names, f"{where}: {key}", key):
            raise InputError(
                f"{where}: {first} and {key} name the outputs differently ({few(names)}; "
                f"{few([str(item) for item in content[key]])}); remove the wrong one"
            )
    return readings


def _agrees(content: object, names: Sequence[str], where: str, key: str) -> bool:
    if isinstance(content, Mapping) and all(_is_number(number) for number in content.values()):
        # Of two outputs with one name, as ImageNet has them, such a mapping holds one.
        return all(int(number) < len(names) and names[int(number)] == name for name, number in content.items())
    return any(reading.names == names for reading in _names_in(content, where, key))


def _names_in(content: object, where: Path | str, key: str = "") -> list[OutputNames]:
    # Names of a list, or of a mapping of numbers to names or names to numbers, which its key may tell.
    suffix = f", under {key}" if key else ""
    if isinstance(content, list) and content:
        names = [_name(item, where) for item in content]
        return [OutputNames(tuple(names), f"in the order of the list{suffix}")]
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{where}: no list of names, and no mapping of numbers to names; write a name in a line")

    directions = []
    if key not in NAMES_TO_NUMBERS and all(map(_is_number, content)):
        directions.append([(int(number), _name(name, where)) for number, name in content.items()])
    if key not in NUMBERS_TO_NAMES and all(map(_is_number, content.values())):
        directions.append([(int(number), str(name)) for name, number in content.items()])
    readings = []
    faults = []
    for pairs in directions:
        try:
            readings.append(OutputNames(_in_order(pairs, where), f"by their numbers{suffix}"))
        except InputError as error:
            faults.append(error)
    if readings:
        return readings
    if faults:
        raise faults[0]
    raise InputError(
        f"{where}: its keys {few([str(name) for name in content])} and their values are not numbers and names of "
        "outputs; write a name in a line"
    )


def _name(item: object, where: Path | str) -> str:
    # A wnid and a name, as imagenet_class_index.json has them, are one name.
    words = item if isinstance(item, list) else [item]
    if not words or not all(isinstance(word, str) or _is_number(word) for word in words):
        raise InputError(f"{where}: {SHORT.repr(item)} is no name of an output; write texts")
    return " ".join(map(str, words))


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return is_number(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _in_order(pairs: Sequence[tuple[int, str]], where: Path | str) -> tuple[str, ...]:
    # Names in the order of their numbers, which count all outputs from 0, or from 1.
    names: dict[int, str] = {}
    for number, name in pairs:
        if number in names:
            raise InputError(f"{where}: {names[number]!r} and {name!r} are both output {number}; correct one of them")
        names[number] = name
    start = min(names)
    missing = [number for number in range(start, start + len(names)) if number not in names]
    if missing or start not in (0, 1):
        absent = missing[0] if missing else 0
        raise InputError(f"{where}: no name of output {absent}; number the outputs 0, 1, 2, ..., each once")
    return tuple(names[number] for number in sorted(names))


# ---- lines and tables ----


def _names_in_lines(text: str, where: Path) -> list[OutputNames]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    in_lines = OutputNames(tuple(lines), "a name in each line")
    pairs = []
    for line in lines:
        match = NUMBERED.fullmatch(line)
        if match is None:
            return [in_lines]
        pairs.append((int(match[1]), match[2].strip()))
    try:
        names = _in_order(pairs, where)
    except InputError:
        # Names such as "3 series" start with a number that counts nothing.
        return [in_lines]
    return [OutputNames(names, "by the number in front of each"), in_lines]


def _names_in_table(text: str, path: Path) -> list[OutputNames]:
    # Names in a table with a column of numbers, whose header tells which it is where two columns may be.
    rows = _rows_of(text, path)
    if len(rows[0]) == 1:
        return _names_in_column([row[0].strip() for row in rows])

    columns = [[row[index].strip() for row in rows] for index in range(len(rows[0]))]
    headers = [column[0].casefold() for column in columns]
    numbers = []
    for index, column in enumerate(columns):
        if len(column) > 1 and all(map(_is_number, column[1:])):
            numbers.append(index)
    titled = [index for index in numbers if headers[index] in NUMBER_COLUMNS]
    readings = []
    faults = []
    for index in titled or numbers:
        first = 0 if _is_number(columns[index][0]) else 1
        names = _name_column(columns, headers, index, first, path)
        try:
            pairs = [(int(number), name) for number, name in zip(columns[index][first:], names, strict=True)]
            readings.append(OutputNames(_in_order(pairs, path), "by the column of numbers"))
        except InputError as error:
            faults.append(error)
    if readings:
        return readings
    if faults:
        raise faults[0]
    raise InputError(f"{path}: no column numbers the outputs 0, 1, 2, ...; add one, or write a name in a line")


def _rows_of(text: str, path: Path) -> list[list[str]]:
    # Rows of a table that are not empty, all of one length.
    separator = max(",;\t", key=text.splitlines()[0].count)
    rows = []
    try:
        for row in csv.reader(text.splitlines(), delimiter=separator):
            if any(cell.strip() for cell in row):
                rows.append(row)
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV ({error}); correct it, or write a name in a line") from error
    if any(len(row) != len(rows[0]) for row in rows):
        raise InputError(f"{path}: rows of different lengths; give each a number and a name, or a name alone")
    return rows


def _names_in_column(names: Sequence[str]) -> list[OutputNames]:
    readings = [OutputNames(tuple(names), "a name in each line")]
    if names[0].casefold() in NAME_COLUMNS:
        readings.insert(0, OutputNames(tuple(names[1:]), "a name in each line below the header"))
    return readings


def _name_column(
    columns: Sequence[Sequence[str]], headers: Sequence[str], number_column: int, first: int, path: Path
) -> Sequence[str]:
    # The names, from a row on: of two columns the other one, of several that with the header of names.
    others = [index for index in range(len(columns)) if index != number_column]
    if len(others) > 1:
        titled = [index for index in others if headers[index] in NAME_COLUMNS]
        if not first or len(titled) != 1:
            raise InputError(
                f"{path}: {len(others)} columns may hold the names "
                f"({few([columns[index][0] for index in others])}); keep one beside the numbers"
            )
        others = titled
    return columns[others[0]][first:]
