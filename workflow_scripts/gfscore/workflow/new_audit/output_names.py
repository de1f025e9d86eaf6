"""Names of the outputs of a model, in the files that tools write: text, JSON, YAML and CSV."""

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
from gfscore.core.mappings import of_distinct_keys

MOST_TEXT = 1 << 22
"""Bytes of the largest file of names that is read."""

LISTS = (
    "id2label", "label2id", "names", "classes", "class_names", "labels", "label_names", "idx_to_class", "class_to_idx",
    "categories",
)  # fmt: skip
"""Keys of JSON and YAML files under which tools write the names."""

NAMES_TO_NUMBERS = ("label2id", "class_to_idx")
"""Keys of LISTS that hold the number of each name."""

NUMBERS_TO_NAMES = ("id2label", "idx_to_class")
"""Keys of LISTS that hold the name of each number."""

NUMBER_COLUMNS = {"index", "idx", "id", "number", "output", "class_id", "class_index", "label_id", "class_idx"}
"""Headers of a column with the numbers of the outputs, in a CSV file."""

NAME_COLUMNS = {"name", "class", "class_name", "label", "label_name", "category", "text", "description", "title"}
"""Headers of a column with the names of the outputs, in a CSV file."""

NUMBERED = re.compile(r"(\d{1,9})(?:\s*[:=,;.)|]\s*|\s+)(\S.*)")
"""A line that starts with the number of its output: 0 airplane, 0: airplane, 0,airplane."""

SHORTENED = reprlib.Repr()
"""Shortens values for messages; shows only the outermost of nested lists."""
SHORTENED.maxlevel = 1


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
        Naming the file and the remedy, for a file that cannot be read or holds no names; and for an empty name.
    """
    path = Path(option)
    try:
        is_file = path.is_file()
    except OSError:
        # A list of names may be longer than the name of a file.
        is_file = False
    if is_file:
        return names_in_file(path)

    names = [name.strip() for name in option.split(",")]
    if len(names) == 1:
        raise InputError(
            f"--labels {option}: there is no such file, and one name is too few; give a file, or names separated by "
            "commas"
        )
    if "" in names:
        raise InputError(
            f"--labels {option}: name {names.index('') + 1} of {len(names)} is empty; write the name of each output "
            "between commas"
        )
    return [OutputNames(tuple(names), "in the order of the list")]


def order_of_option(option: str) -> tuple[str, ...]:
    """Names in the likeliest order that `names_of_option` reads; InputError where another order is possible."""
    first, *others = names_of_option(option)
    for other in others:
        if other.names != first.names and sorted(other.names) == sorted(first.names):
            raise InputError(
                f"{option}: the names have one order {first.words} ({few(first.names)}), and another, {other.words} "
                f"({few(other.names)}); write the file with a name in each line and nothing else"
            )
    return first.names


def names_in_file(path: Path) -> list[OutputNames]:
    """Every way to read the names in a file, the likeliest first; a file may be ambiguous in their order.

    A text file has a name, or a number and a name, in each line; a wnid before a name belongs to it. JSON and YAML
    files hold a list, or a mapping between numbers and names in either direction. A CSV file has a column of names, and
    one of numbers unless it is the only column.

    Raises
    ------
    InputError
        Naming the file and the remedy, for a file that cannot be read or holds no names.
    """
    try:
        if path.stat().st_size > MOST_TEXT:
            raise InputError(f"{path}: too large for a file of names; give one with a name in each line")
        # utf-8-sig removes a byte order mark, as Windows editors write it.
        text = regular_bytes(path).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); write one name in a line, as UTF-8") from error
    if not text.strip():
        raise InputError(f"{path}: is empty; write the name of each output in a line")

    suffix = path.suffix.lower()
    if suffix == ".json":
        try:
            content = json.loads(text, object_pairs_hook=of_distinct_keys)
        except (ValueError, RecursionError) as error:
            message = f"{path}: cannot be read as JSON ({error}); correct it, or write a name in a line"
            raise InputError(message) from error
        return names_in_structure(content, path)
    # Python and JSON print a list or mapping in brackets; a bracket that is closed before other lines is in a name.
    first_line, *further_lines = text.strip().splitlines()
    in_brackets = first_line.startswith(("{", "[")) and not (further_lines and first_line.rstrip().endswith(("}", "]")))
    if suffix in (".yaml", ".yml") or in_brackets:
        return names_in_structure(_yaml(text, path), path)
    if suffix in (".csv", ".tsv"):
        return _names_in_table(text, path)
    return _names_in_lines(text, path)


# ---- JSON and YAML ----


def names_in_metadata(metadata: Mapping[str, str]) -> tuple[str, ...] | None:
    """Class names from a model's metadata (texts by key), as exporters write them; None if there are none."""
    for key in LISTS:
        text = metadata.get(key, "")
        if not text.lstrip().startswith(("{", "[")) or len(text) > MOST_TEXT:
            continue
        try:
            return _names_in(_yaml(text, key), key, key)[0].names
        except InputError:
            # Metadata are free text: an entry that cannot be read as names is about something else.
            continue
    return None


def _yaml(text: str, path: Path | str) -> object:
    try:
        return yaml.load(text, Loader=_Texts)
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read as YAML ({error}); correct it, or write a name in a line") from error


class _Texts(yaml.BaseLoader):
    """Loader of YAML that reads every scalar as text, so that a class may be called "no" or 007, and each key once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        keys = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise yaml.YAMLError(f"the key {reprlib.repr(key.value)} stands twice")
                keys.add(key.value)
        return super().construct_mapping(node, deep)


def names_in_structure(content: object, where: Path | str) -> list[OutputNames]:
    """Every way to read names in a list or mapping, or in the values of its keys that are in LISTS.

    Raises
    ------
    InputError
        For content without names, and where two keys give different names; names `where`.
    """
    if not isinstance(content, Mapping):
        return _names_in(content, where)
    # An empty list or mapping says nothing.
    keys = [key for key in LISTS if isinstance(content.get(key), Mapping | list) and content[key]]
    if not keys:
        return _names_in(content, where)

    first, *others = keys
    readings = _names_in(content[first], f"{where}: {first}", first)
    for key in others:
        agreeing = []
        for reading in readings:
            if _agrees(content[key], reading.names, f"{where}: {key}", key):
                agreeing.append(reading)
        if not agreeing:
            raise InputError(
                f"{where}: {first} and {key} name the outputs differently ({SHORTENED.repr(content[first])}; "
                f"{SHORTENED.repr(content[key])}); remove the wrong one"
            )
        readings = agreeing
    return readings


def _agrees(content: object, names: Sequence[str], where: str, key: str) -> bool:
    # Whether a list or mapping under `key` may be read as these names.
    names_repeat = len(set(names)) < len(names)
    if names_repeat and key in NAMES_TO_NUMBERS and isinstance(content, Mapping):
        # Two of ImageNet's classes are called crane: a mapping from names has the number of one of them.
        numbered_names = set(enumerate(names))
        for name, number in content.items():
            if not _is_number(number) or (int(number), name) not in numbered_names:
                return False
        return content.keys() == set(names)
    return any(reading.names == names for reading in _names_in(content, where, key))


def _names_in(content: object, where: Path | str, key: str = "") -> list[OutputNames]:
    # Of a list, or of a mapping. Names may be its keys or its values, where `key` does not tell which.
    suffix = f", under {key}" if key else ""
    if isinstance(content, list) and content:
        names = [_name(item, where) for item in content]
        return [OutputNames(tuple(names), f"in the order of the list{suffix}")]
    if not isinstance(content, Mapping) or not content:
        raise InputError(f"{where}: no list of names, and no mapping of numbers to names; write a name in a line")

    candidates = []
    if key not in NAMES_TO_NUMBERS and all(map(_is_number, content)):
        candidates.append([(int(number), _name(name, where)) for number, name in content.items()])
    if key not in NUMBERS_TO_NAMES and all(map(_is_number, content.values())):
        candidates.append([(int(number), _name(name, where)) for name, number in content.items()])
    if candidates:
        return _numbered_readings(candidates, f"by their numbers{suffix}", where)
    raise InputError(
        f"{where}: its keys {few(list(map(str, content)))} and their values are not numbers and names of "
        "outputs; write a name in a line"
    )


def _name(item: object, where: Path | str) -> str:
    # A wnid and a name, as imagenet_class_index.json has them, are one name.
    words = item if isinstance(item, list) else [item]
    are_texts = all(isinstance(word, str | int) and not isinstance(word, bool) for word in words)
    name = " ".join(map(str, words)) if are_texts else ""
    if not name.strip():
        raise InputError(f"{where}: {SHORTENED.repr(item)} is no name of an output; write texts")
    return name


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return is_number(value)
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _numbered_readings(
    candidates: Sequence[Sequence[tuple[int, str]]], words: str, where: Path | str
) -> list[OutputNames]:
    # Names of the candidates whose numbers count all outputs; without any, the error of the first candidate.
    readings = []
    errors = []
    for pairs in candidates:
        try:
            readings.append(OutputNames(_in_order(pairs, where), words))
        except InputError as error:
            errors.append(error)
    if not readings:
        raise errors[0]
    return readings


def _in_order(pairs: Sequence[tuple[int, str]], where: Path | str) -> tuple[str, ...]:
    # Names in the order of their numbers, which count all outputs from 0, or from 1.
    names: dict[int, str] = {}
    for number, name in pairs:
        if number in names:
            raise InputError(f"{where}: {names[number]!r} and {name!r} are both output {number}; correct one of them")
        names[number] = name
    start = min(names)
    consecutive = range(start, start + len(names))
    missing = [number for number in consecutive if number not in names]
    if missing or start not in (0, 1):
        first_missing = missing[0] if missing else 0
        raise InputError(f"{where}: no name of output {first_missing}; number the outputs 0, 1, 2, ..., each once")
    return tuple(names[number] for number in consecutive)


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
        # Names such as "3 series" start with a number that is no number of an output.
        return [in_lines]
    return [OutputNames(names, "by the number in front of each"), in_lines]


def _names_in_table(text: str, path: Path) -> list[OutputNames]:
    # Separated by what separates most cells of the first line, or else by what gives a table: in a file without a
    # header, names may hold commas.
    lines = [line for line in text.splitlines() if line.strip()]
    if path.suffix.lower() == ".tsv":
        return _names_in_cells(lines, "\t", path)
    separators = [separator for separator in ",;\t" if separator in lines[0]] or [","]
    separators.sort(key=lines[0].count, reverse=True)
    errors = []
    for separator in separators:
        try:
            return _names_in_cells(lines, separator, path)
        except InputError as error:
            errors.append(error)
    raise errors[0]


def _names_in_cells(lines: Sequence[str], separator: str, path: Path) -> list[OutputNames]:
    # Names in a table of one column, or beside a column of numbers. Where several columns hold numbers, the headers
    # tell which one numbers the outputs.
    rows = []
    try:
        for row in csv.reader(lines, delimiter=separator):
            rows.append([cell.strip() for cell in row])
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV ({error}); correct it, or write a name in a line") from error
    rows = [row for row in rows if any(row)]
    if any(len(row) != len(rows[0]) for row in rows):
        raise InputError(f"{path}: rows of different lengths; give each a number and a name, or a name alone")

    # Headers, if there are any, are the first cells.
    columns = list(zip(*rows, strict=True))
    if len(columns) == 1:
        (names_in_column,) = columns
        readings = [OutputNames(names_in_column, "a name in each line")]
        if names_in_column[0].casefold() in NAME_COLUMNS:
            if len(names_in_column) == 1:
                raise InputError(f"{path}: holds no names below its header; write the name of each output in a line")
            readings.insert(0, OutputNames(names_in_column[1:], "a name in each line below the header"))
        return readings

    headers = [column[0].casefold() for column in columns]
    number_columns = []
    for index, column in enumerate(columns):
        if len(column) > 1 and all(map(_is_number, column[1:])):
            number_columns.append(index)
    if not number_columns:
        raise InputError(f"{path}: no column numbers the outputs 0, 1, 2, ...; add one, or write a name in a line")
    titled = [index for index in number_columns if headers[index] in NUMBER_COLUMNS]

    candidates = []
    for index in titled or number_columns:
        first_row = 0 if _is_number(columns[index][0]) else 1
        numbers = [int(number) for number in columns[index][first_row:]]
        names = [_name(name, path) for name in _name_column(columns, headers, index, first_row, path)]
        candidates.append(list(zip(numbers, names, strict=True)))
    return _numbered_readings(candidates, "by the column of numbers", path)


def _name_column(
    columns: Sequence[Sequence[str]], headers: Sequence[str], number_column: int, first_row: int, path: Path
) -> Sequence[str]:
    # Names that the numbers belong to, without a header: of several columns, those under the only header of names.
    candidates = [index for index in range(len(columns)) if index != number_column]
    if len(candidates) > 1:
        titled = [index for index in candidates if headers[index] in NAME_COLUMNS]
        if first_row == 0 or len(titled) != 1:
            raise InputError(
                f"{path}: {len(candidates)} columns may hold the names "
                f"({few([columns[index][0] for index in candidates])}); keep one beside the numbers"
            )
        candidates = titled
    return columns[candidates[0]][first_row:]
