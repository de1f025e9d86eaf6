"""Names of the outputs of a model, in the files that tools write: text, JSON, YAML and CSV."""

from __future__ import annotations

import csv
import json
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

NUMBER_COLUMNS = {"index", "idx", "id", "number", "output", "class_id", "class_index", "label_id", "class_idx"}
NAME_COLUMNS = {"name", "class", "class_name", "label", "label_name", "category", "text", "description", "title"}

NUMBERED = re.compile(r"(\d{1,9})(?:\s*[:=,;.)|]\s*|\s+)(\S.*)")
"""A line that starts with the number of its output: 0 airplane, 0: airplane, 0,airplane."""


SHORT = reprlib.Repr()
"""Values as a message shows them: of nested lists the outermost."""
SHORT.maxlevel = 1


@dataclass(frozen=True)
class OutputNames:
    """One way to read the names of the outputs: `names` (K,) in the order of the outputs, and `words` on the way."""

    names: tuple[str, ...]
    words: str


def asked_names(asked: str) -> list[OutputNames]:
    """Every way to read the names that a user gives: separated by commas, or in a file.

    Raises InputError, naming the file and the remedy, for a file that cannot be read or holds no names.
    """
    path = Path(asked)
    if path.is_file():
        return names_in_file(path)
    names = [name.strip() for name in asked.split(",")]
    if len(names) == 1:
        raise InputError(
            f"--labels {asked}: there is no such file, and one name is too few; give a file, or names separated by "
            "commas"
        )
    return [OutputNames(tuple(names), "in the order of the list")]


def asked_order(asked: str) -> tuple[str, ...]:
    """The names that a user gives, as asked_names reads them; InputError where they may have two orders."""
    first, *others = asked_names(asked)
    for other in others:
        if other.names != first.names and sorted(other.names) == sorted(first.names):
            raise InputError(
                f"{asked}: the names have one order {first.words} ({few(first.names)}), and another, {other.words} "
                f"({few(other.names)}); write the file with a name in each line and nothing else"
            )
    return first.names


def names_in_file(path: Path) -> list[OutputNames]:
    """Every way to read the names in a file; two where a file may mean two orders, the likelier first.

    Text has a name in each line, or a number and a name; a wnid in front belongs to the name. JSON and YAML hold a
    list, or a mapping between numbers and names in either direction; CSV a column of numbers and one of names.
    Raises InputError, naming the file and the remedy, for a file that cannot be read or holds no names.
    """
    text = _text_of(path)
    if path.suffix == ".json":
        return names_in_structure(_json(text, path), path)
    if path.suffix in (".yaml", ".yml") or text.lstrip().startswith(("{", "[")):
        return names_in_structure(_yaml(text, path), path)
    if path.suffix in (".csv", ".tsv"):
        return _names_in_table(text, path)
    return _names_in_lines(text, path)


def _text_of(path):
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


def _json(text, path):
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); correct it, or write a name in a line") from error


def _without_repeats(pairs):
    mapping = {}
    for key, value in pairs:
        if key in mapping:
            raise ValueError(f"the key {key!r} stands twice")
        mapping[key] = value
    return mapping


def _yaml(text, path):
    try:
        return yaml.load(text, Loader=_Texts)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as YAML ({error}); correct it, or write a name in a line") from error


class _Texts(yaml.BaseLoader):
    """Loader of YAML whose scalars are all texts, so that a class may be called "no" or 007, and whose keys differ."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise yaml.YAMLError(f"the key {reprlib.repr(key.value)} stands twice")
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def names_in_structure(content: Any, where: Path | str) -> list[OutputNames]:
    """Every way to read names in a list or mapping, or in what stands under one of the keys of LISTS.

    Raises InputError, naming `where`, where there are none, and where two keys give different names.
    """
    if not isinstance(content, Mapping):
        return _names_in(content, where)
    stated = [key for key in LISTS if isinstance(content.get(key), Mapping | list)]
    if not stated:
        return _names_in(content, where)
    first, *others = stated
    readings = _names_in(content[first], f"{where}: {first}", first)
    names = readings[0].names
    for key in others:
        if not _agrees(content[key], names, f"{where}: {key}", key):
            raise InputError(
                f"{where}: {first} and {key} name the outputs differently ({few(names)}; "
                f"{few([str(item) for item in content[key]])}); remove the wrong one"
            )
    return readings


def _agrees(content, names, where, key):
    if isinstance(content, Mapping) and all(_is_number(number) for number in content.values()):
        # Of two outputs with one name, as ImageNet has them, such a mapping holds one.
        return all(int(number) < len(names) and names[int(number)] == name for name, number in content.items())
    return any(reading.names == names for reading in _names_in(content, where, key))


def _names_in(content, where, key=""):
    """Names of a list, or of a mapping of numbers to names or names to numbers, which its key may tell."""
    suffix = f", under {key}" if key else ""
    if isinstance(content, list) and content:
        return [OutputNames(tuple(_name(item, where) for item in content), f"in the order of the list{suffix}")]
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{where}: no list of names, and no mapping of numbers to names; write a name in a line")
    directions = []
    if key not in ("label2id", "class_to_idx") and all(_is_number(number) for number in content):
        directions.append([(int(number), _name(name, where)) for number, name in content.items()])
    if key not in ("id2label", "idx_to_class") and all(_is_number(number) for number in content.values()):
        directions.append([(int(number), str(name)) for name, number in content.items()])
    readings, faults = [], []
    for pairs in directions:
        try:
            readings.append(OutputNames(_in_order(pairs, where), f"by their numbers{suffix}"))
        except InputError as error:
            faults.append(error)
    if faults and not readings:
        raise faults[0]
    if not readings:
        raise InputError(
            f"{where}: its keys {few([str(name) for name in content])} and their values are not numbers and names of "
            "outputs; write a name in a line"
        )
    return readings


def _name(item, where):
    # A wnid and a name, as imagenet_class_index.json has them, are one name here.
    parts = item if isinstance(item, list) else [item]
    if not parts or not all(isinstance(part, str) or _is_number(part) for part in parts):
        raise InputError(f"{where}: {SHORT.repr(item)} is no name of an output; write texts")
    return " ".join(map(str, parts))


def _is_number(value):
    if isinstance(value, str):
        return is_number(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _in_order(pairs: Sequence[tuple[int, str]], where: Path | str) -> tuple[str, ...]:
    """Names in the order of their numbers, which count all outputs from 0, or from 1."""
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


def _names_in_lines(text, where):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    readings = [OutputNames(tuple(lines), "a name in each line")]
    parts = [NUMBERED.fullmatch(line) for line in lines]
    pairs = [(int(part[1]), part[2].strip()) for part in parts if part]
    if len(pairs) < len(lines):
        return readings
    try:
        names = _in_order(pairs, where)
    except InputError:
        # Names such as "3 series" start with a number that counts nothing.
        return readings
    return [OutputNames(names, "by the number in front of each"), *readings]


def _names_in_table(text, path):
    """Names in a table with a column of numbers, whose header tells which it is where two columns may be."""
    separator = max(",;\t", key=text.splitlines()[0].count)
    try:
        rows = [row for row in csv.reader(text.splitlines(), delimiter=separator) if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV ({error}); correct it, or write a name in a line") from error
    width = len(rows[0])
    if any(len(row) != width for row in rows):
        raise InputError(f"{path}: rows of different lengths; give each a number and a name, or a name alone")
    if width == 1:
        names = [row[0].strip() for row in rows]
        readings = [OutputNames(tuple(names), "a name in each line")]
        if names[0].casefold() in NAME_COLUMNS:
            readings.insert(0, OutputNames(tuple(names[1:]), "a name in each line below the header"))
        return readings

    columns = [[row[at].strip() for row in rows] for at in range(width)]
    headers = [column[0].casefold() for column in columns]
    numbers = [at for at in range(width) if all(_is_number(cell) for cell in columns[at][1:]) and len(rows) > 1]
    titled = [at for at in numbers if headers[at] in NUMBER_COLUMNS]
    readings, faults = [], []
    for at in titled or numbers:
        first = 0 if _is_number(columns[at][0]) else 1
        names = _name_column(columns, headers, at, first, path)
        try:
            pairs = [(int(number), name) for number, name in zip(columns[at][first:], names, strict=True)]
            readings.append(OutputNames(_in_order(pairs, path), "by the column of numbers"))
        except InputError as error:
            faults.append(error)
    if readings:
        return readings
    if faults:
        raise faults[0]
    raise InputError(f"{path}: no column numbers the outputs 0, 1, 2, ...; add one, or write a name in a line")


def _name_column(columns, headers, number_column, first, path):
    others = [at for at in range(len(columns)) if at != number_column]
    if len(others) > 1:
        titled = [at for at in others if headers[at] in NAME_COLUMNS]
        if not first or len(titled) != 1:
            raise InputError(
                f"{path}: {len(others)} columns may hold the names ({few([columns[at][0] for at in others])}); keep "
                "one beside the numbers"
            )
        others = titled
    return columns[others[0]][first:]
