"""Reading of configuration files in YAML, with the file and line of every key."""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gfscore.core.errors import InputError

MAX_VALUES = 1_000_000
"""Largest number of values of a configuration, aliases expanded; one with 2,000 models has about 100,000."""

MAX_INTEGER = 2**63 - 1
"""Largest absolute value of an integer: what a table can store."""

MAX_DEPTH = 200
"""Nesting depth of brackets, or of dashes in a line, beyond which libyaml is not used, since it would crash."""

LONGEST_SHOWN = 80
"""Characters of a value that a message shows."""

DEFAULT = "default"
COMMAND_LINE = "--config"

KeyPath = tuple[str | int, ...]
"""Path in a configuration: keys and positions from the top to a value."""


class Mark(NamedTuple):
    """Origin of a key: the file (or COMMAND_LINE) and the line, counted from 1, None outside files."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        """Start of a message."""
        return self.file if self.line is None else f"{self.file}, line {self.line}"


class Marked(dict[str, Any]):
    """Mapping of a configuration with the origin of each key in `marks`."""

    def __init__(self, values: Mapping[str, Any] | None = None, marks: Mapping[str, Mark] | None = None) -> None:
        """Create the mapping from values and the marks of their keys."""
        super().__init__(values or {})
        self.marks: dict[str, Mark] = dict(marks or {})


class MarkedList(list[Any]):
    """List of a configuration with the origin of each entry in `marks`."""

    def __init__(self, values: Iterable[Any] = (), marks: Iterable[Mark] = ()) -> None:
        """Create the list from values and their marks."""
        super().__init__(values)
        self.marks: list[Mark] = list(marks)


def read_configuration(paths: Iterable[Path | str], overrides: Mapping[str, Any]) -> Marked:
    """Configuration from files and the command line.

    Mappings are merged key by key, all other values are replaced.

    Parameters
    ----------
    paths : iterable of path
        Files, later ones overriding earlier ones.
    overrides : mapping
        Values of the command line, overriding all files.

    Raises
    ------
    InputError
        Naming file and line, for files that cannot be read, are not YAML in UTF-8, have no keys at the top or a
        duplicate key; for more than MAX_VALUES values, aliases expanded; and for numbers that are not finite or too
        large.
    """
    config = Marked()
    for path in paths:
        config = merge(config, read_file(path))
    config = merge(config, marked(_parsed_scalars(overrides), Mark(COMMAND_LINE)))

    faults = []
    try:
        require_bounded_size(config)
        for mark, key_path, fault in _invalid_numbers(config):
            faults.append(f"{mark}: {': '.join(map(str, key_path))}: {fault}")
    except RecursionError:
        raise InputError("the configuration is nested too deeply; correct its indentation and brackets") from None
    if faults:
        raise InputError(listed(faults))
    return config


def listed(mistakes: Iterable[str]) -> str:
    """Message with the mistakes in a configuration, one per line."""
    lines = [f"  - {mistake}" for mistake in dict.fromkeys(mistakes)]
    return "\n".join(["the configuration cannot be used:", *lines])


def read_file(path: Path | str) -> Marked:
    """Content of one file. Raises InputError, see read_configuration."""
    name = shown_path(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{name}: no such file; name an existing one, such as those in configs/") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); put a readable file there") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: is not UTF-8 text; save it as UTF-8") from error
    return parsed(text, name)


def parsed(text: str, name: str) -> Marked:
    """Content of a text that stands, or will stand, in a file of this name; InputError as read_configuration."""
    # libyaml, unless the text is nested so deeply that it would crash.
    depth = deepest = 0
    for bracket in re.finditer(r"[][{}]", text):
        depth = depth + 1 if bracket[0] in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    is_deep = deepest >= MAX_DEPTH or re.search(rf"([-?]\s+){{{MAX_DEPTH}}}", text)

    try:
        loader: Any = _Loader(text) if is_deep else _FastLoader(text)
        loader.file = name
        data = loader.get_single_data()
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply; correct its brackets") from None
    except yaml.YAMLError as error:
        line = getattr(error, "problem_mark", None)
        mark = Mark(name, line.line + 1) if line else Mark(name)
        problem = getattr(error, "problem", None) if line else " ".join(str(error).split())
        raise InputError(
            f"{mark}: not YAML ({problem}); check that line and the one before: indent with spaces only, put a "
            "space after each colon, and close every bracket and quote"
        ) from error
    if not isinstance(data, Marked):
        fault = "is empty" if data is None else "has no keys at the top"
        raise InputError(f"{name}: {fault}; give it sections such as `audits:`, as in config.yaml")
    return data


def shown_path(path: Path | str) -> str:
    """Path of a file for messages: relative to the current folder if it is inside."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - keeps links as the user named them
    relative = os.path.relpath(absolute)
    return absolute if relative.startswith("..") else relative


# ---- marked data ----


def merge(below: object, above: object, *, replaced: tuple[str, ...] = ()) -> Any:
    """Merge mappings key by key, except under the keys `replaced`; other values are replaced. Marks are kept.

    Parameters
    ----------
    below, above : Marked or any value
        What is overridden, and what overrides it.
    replaced : tuple of str
        Keys whose mappings replace those below as a whole.
    """
    if not (isinstance(below, Marked) and isinstance(above, Marked)):
        return above
    merged = Marked(below, {**below.marks, **above.marks})
    for key, value in above.items():
        if key in below and key not in replaced:
            merged[key] = merge(below[key], value, replaced=replaced)
        else:
            merged[key] = value
    return merged


def marked(data: object, mark: Mark) -> Any:
    """Data as marked mappings and lists, all with the same mark."""
    if isinstance(data, Mapping):
        values = {str(key): marked(value, mark) for key, value in data.items()}
        return Marked(values, dict.fromkeys(values, mark))
    if isinstance(data, list | tuple):
        return MarkedList([marked(value, mark) for value in data], [mark] * len(data))
    return data


def mark_of(config: object, key_path: KeyPath) -> Mark | None:
    """Mark of the value at a path, or else of the nearest value above it that has one; None without any."""
    mark = None
    value: Any = config
    for step in key_path:
        if isinstance(value, Marked) and step in value:
            mark = value.marks.get(str(step), mark)
        elif isinstance(value, MarkedList) and isinstance(step, int) and step < len(value):
            mark = value.marks[step]
        else:
            break
        value = value[step]
    return mark


def children(data: object) -> Iterable[tuple[Any, Any]]:
    """Keys or positions of a mapping or list with their values; nothing for other data."""
    if isinstance(data, dict):
        return data.items()
    return enumerate(data) if isinstance(data, list) else ()


def shown(value: object) -> str:
    """A value as one line of YAML, truncated after LONGEST_SHOWN characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _parsed_scalars(data: object) -> object:
    # Snakemake leaves values within braces on the command line as strings.
    if isinstance(data, Mapping):
        return {key: _parsed_scalars(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_parsed_scalars(value) if isinstance(value, dict | list) else value for value in data]
    if not isinstance(data, str):
        return data
    try:
        value = yaml.safe_load(data)
    except yaml.YAMLError:
        return data
    return value if value is None or isinstance(value, bool | int | float) else data


# ---- size and numbers ----


def require_bounded_size(config: object) -> None:
    """Raise InputError for an alias that holds itself, or more than MAX_VALUES values with aliases expanded."""
    if _count(config, {}) > MAX_VALUES:
        raise InputError(
            f"the configuration has more than {MAX_VALUES:,} values with all aliases (*name) expanded, or an alias "
            "that contains itself; use fewer aliases"
        )


def _count(data: object, counts: dict[int, int]) -> int:
    # Values of data with aliases expanded; `counts` are those of mappings and lists by their identity.
    if not isinstance(data, dict | list):
        return 1
    if id(data) not in counts:
        # Infinite until it is counted, since meeting it again before means that it contains itself.
        counts[id(data)] = MAX_VALUES + 1
        values = 1 + sum(_count(value, counts) for _, value in children(data))
        counts[id(data)] = min(values, MAX_VALUES + 1)
    return counts[id(data)]


def _invalid_numbers(data: Marked | MarkedList, key_path: KeyPath = ()) -> Iterator[tuple[Mark, KeyPath, str]]:
    # NaN and infinity would pass range checks silently; larger integers do not fit into tables.
    for key, value in children(data):
        mark, path_of_value = data.marks[key], (*key_path, key)
        if isinstance(value, float) and not math.isfinite(value):
            yield mark, path_of_value, f"{value} is not a finite number; give one"
        elif isinstance(value, int) and abs(value) > MAX_INTEGER:
            message = f"an integer of {len(str(abs(value)))} digits is too large; correct it"
            yield mark, path_of_value, message
        yield from _invalid_numbers(value, path_of_value)


# ---- YAML ----


class _Constructor:
    """Constructors of marked mappings and lists for both loaders."""

    file = ""

    def mapping(self: Any, node: Any) -> Iterator[Marked]:
        mapping = Marked()
        yield mapping
        self.require_once(node)
        # Values merged by `<<` keep the lines of their definition.
        self.flatten_mapping(node)
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise InputError(f"{Mark(self.file, line)}: the key {shown(key)} is not a string; put quotes around it")
            mapping[key] = self.construct_object(value_node)
            mapping.marks[key] = Mark(self.file, line)

    def sequence(self: Any, node: Any) -> Iterator[MarkedList]:
        values = MarkedList()
        yield values
        for value_node in node.value:
            values.append(self.construct_object(value_node))
            values.marks.append(Mark(self.file, value_node.start_mark.line + 1))

    def require_once(self: Any, node: Any) -> None:
        # YAML forbids duplicate keys, but its loaders silently use the last one.
        lines: dict[tuple[str, str], int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
                continue
            name = (key_node.tag, key_node.value)
            line = key_node.start_mark.line + 1
            if name in lines:
                raise InputError(
                    f"{Mark(self.file, line)}: duplicate key {key_node.value!r}, also in line {lines[name]} of the "
                    "same entry; remove one"
                )
            lines[name] = line


class _Loader(_Constructor, yaml.SafeLoader):
    pass


class _FastLoader(_Constructor, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    pass


for _loader_class in (_Loader, _FastLoader):
    _loader_class.add_constructor("tag:yaml.org,2002:map", _Constructor.mapping)
    _loader_class.add_constructor("tag:yaml.org,2002:seq", _Constructor.sequence)
