"""Reading files of configurations: where each key stands, what is no YAML, and what YAML allows and none must hold.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from gfscore.core.errors import InputError

MOST = 1_000_000
"""Values of a configuration, aliases written out; that of 2,000 models has some 100,000."""

LARGEST = 2**63 - 1
"""Of an integer, in either direction: what a table can hold."""

DEEPEST = 200
"""Brackets, or dashes of a line, within one another, beyond which libyaml does not read a file: it would fall over."""

DEFAULT = "default"
COMMAND_LINE = "--config"

Place = tuple[str | int, ...]
"""Keys and positions from the top of a configuration to one of its values."""


class Mark(NamedTuple):
    """Where a key stands: the file, or where else it comes from, and the line from 1, None outside of files."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        """As messages begin."""
        return self.file if self.line is None else f"{self.file}, line {self.line}"


class Marked(dict[str, Any]):
    """Mapping of a configuration that knows where each of its keys stands."""

    def __init__(self, values: Mapping[str, Any] | None = None, marks: Mapping[str, Mark] | None = None) -> None:
        """Mapping with these values, and marks of their keys."""
        super().__init__(values or {})
        self.marks: dict[str, Mark] = dict(marks or {})


class MarkedList(list[Any]):
    """List of a configuration that knows where each of its entries stands."""

    def __init__(self, values: Iterable[Any] = (), marks: Iterable[Mark] = ()) -> None:
        """List of these values, and their marks."""
        super().__init__(values)
        self.marks: list[Mark] = list(marks)


def read_configuration(paths: Iterable[Path | str], given: Mapping[str, Any]) -> Marked:
    """What the files say together, later ones over earlier ones, and above them what is `given` on the command line.

    Mappings are merged key by key, everything else is replaced. Raises InputError, naming file and line, for files that
    cannot be read, are no YAML in UTF-8, have no keys at their top, or one key twice in a mapping; for more than MOST
    values, aliases written out; and for numbers that nothing can compute with.
    """
    config = Marked()
    for path in paths:
        config = laid_over(config, read_file(path))
    config = laid_over(config, marked(_typed(given), Mark(COMMAND_LINE)))
    try:
        require_written_out(config)
        faults = [f"{mark}: {': '.join(map(str, path))}: {words}" for mark, path, words in _bad_numbers(config)]
    except RecursionError:
        raise InputError("the configuration is nested too deeply; correct its indentation and brackets") from None
    if faults:
        raise InputError(listed(faults))
    return config


def listed(mistakes: Iterable[str]) -> str:
    """Message that tells of mistakes in a configuration, one a line."""
    return "the configuration cannot be used:\n" + "\n".join(f"  - {mistake}" for mistake in dict.fromkeys(mistakes))


def read_file(path: Path | str) -> Marked:
    """Content of one file. Raises InputError as read_configuration does."""
    name = shown_path(path)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{name}: there is no such file; name one that exists, as in configs/") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror}); put a readable file there") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}, line {line}: is not UTF-8 text; save it as UTF-8") from error
    try:
        loader = _loader(text)
        loader.file = name
        data = loader.get_single_data()
    except RecursionError:
        raise InputError(f"{name}: is nested too deeply for a configuration; correct its brackets") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = Mark(name, mark.line + 1) if mark else Mark(name)
        what = error.problem if mark else " ".join(str(error).split())
        raise InputError(
            f"{where}: no YAML ({what}); look at that line and the one before: indent with spaces alone, put a "
            "blank after each colon, and close every bracket and quote"
        ) from error
    if not isinstance(data, Marked):
        found = "is empty" if data is None else "has no keys at its top"
        raise InputError(f"{name}: {found}; give it sections such as `audits:`, as config.yaml has")
    return data


def shown_path(path: Path | str) -> str:
    """Path of a file as messages name it: relative to the folder of the run where it lies within."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - links stay as the user named them
    relative = os.path.relpath(absolute)
    return absolute if relative.startswith("..") else relative


def laid_over(below: Any, above: Any, *, whole: tuple[str, ...] = ()) -> Any:
    """Mappings merged key by key, but those of the keys `whole`; everything else replaced; marks go with values."""
    if not (isinstance(below, Marked) and isinstance(above, Marked)):
        return above
    merged = Marked(below, below.marks | above.marks)
    for key, value in above.items():
        merged[key] = laid_over(below[key], value, whole=whole) if key in below and key not in whole else value
    return merged


def marked(data: Any, mark: Mark) -> Any:
    """Data whose mappings and lists are marked, all of it as coming from one place."""
    if isinstance(data, Mapping):
        values = {str(key): marked(value, mark) for key, value in data.items()}
        return Marked(values, dict.fromkeys(values, mark))
    if isinstance(data, list | tuple):
        return MarkedList([marked(value, mark) for value in data], [mark] * len(data))
    return data


def _typed(data: Any) -> Any:
    # Snakemake leaves what stands within braces on the command line as texts.
    if isinstance(data, Mapping):
        return {key: _typed(value) for key, value in data.items()}
    if isinstance(data, list):
        return [_typed(value) if isinstance(value, dict | list) else value for value in data]
    if not isinstance(data, str):
        return data
    try:
        found = yaml.safe_load(data)
    except yaml.YAMLError:
        return data
    return found if found is None or isinstance(found, bool | int | float) else data


def mark_of(config: Any, path: Place) -> Mark | None:
    """Where a key of a configuration stands, or the nearest one above it that does; None for none."""
    mark, part = None, config
    for step in path:
        if isinstance(part, Marked) and step in part:
            mark = part.marks.get(str(step), mark)
        elif isinstance(part, MarkedList) and isinstance(step, int) and step < len(part):
            mark = part.marks[step]
        else:
            break
        part = part[step]
    return mark


def require_written_out(config: Any) -> None:
    """Raise InputError for a configuration that contains itself, or has more than MOST values, aliases written out."""
    if _values(config, {}) > MOST:
        raise InputError(
            f"the configuration holds more than {MOST:,} values once every alias (*name) is written out, or one that "
            "contains itself; use fewer aliases"
        )


def children(data: Any) -> Iterable[tuple[Any, Any]]:
    """Keys or positions of a mapping or list, and what stands there; nothing for anything else."""
    return data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()


def shown(value: Any) -> str:
    """A value as YAML writes it on one line, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _values(data: Any, known: dict[int, int]) -> int:
    if not isinstance(data, dict | list):
        return 1
    if id(data) not in known:
        # Until it is known it counts as endless, which it is if it is met again meanwhile.
        known[id(data)] = MOST + 1
        known[id(data)] = min(1 + sum(_values(part, known) for _, part in children(data)), MOST + 1)
    return known[id(data)]


def _bad_numbers(data: Any, path: Place = ()) -> Iterator[tuple[Mark, Place, str]]:
    # YAML's .nan and .inf pass every comparison or fail it silently; larger integers fit no table.
    for key, part in children(data):
        mark = data.marks[key]
        if isinstance(part, float) and not math.isfinite(part):
            yield mark, (*path, key), f"{part} is no finite number; give one"
        elif isinstance(part, int) and abs(part) > LARGEST:
            words = f"an integer of {len(str(abs(part)))} digits is larger than any that is computed with; correct it"
            yield mark, (*path, key), words
        yield from _bad_numbers(part, (*path, key))


class _Constructor:
    """What both loaders make of YAML: marked mappings and lists."""

    file = ""

    def mapping(self: Any, node: Any) -> Iterator[Marked]:
        made = Marked()
        yield made
        self.require_once(node)
        # What `<<` takes over keeps the lines where it is written.
        self.flatten_mapping(node)
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                what = f"the key {shown(key)} is no text to YAML"
                raise InputError(f"{Mark(self.file, line)}: {what}; put quotes around what you wrote")
            made[key] = self.construct_object(value_node)
            made.marks[key] = Mark(self.file, line)

    def sequence(self: Any, node: Any) -> Iterator[MarkedList]:
        made = MarkedList()
        yield made
        for value_node in node.value:
            made.append(self.construct_object(value_node))
            made.marks.append(Mark(self.file, value_node.start_mark.line + 1))

    def require_once(self: Any, node: Any) -> None:
        # YAML forbids a key that stands twice, but readers take the last one silently.
        lines: dict[tuple[str, str], int] = {}
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode) or key_node.value == "<<":
                continue
            name, line = (key_node.tag, key_node.value), key_node.start_mark.line + 1
            if name in lines:
                raise InputError(
                    f"{Mark(self.file, line)}: the key {key_node.value!r} stands in line {lines[name]} of the same "
                    "entry already, and only one of them would count; remove one"
                )
            lines[name] = line


class _Loader(_Constructor, yaml.SafeLoader):
    pass


class _FastLoader(_Constructor, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    pass


for _one in (_Loader, _FastLoader):
    _one.add_constructor("tag:yaml.org,2002:map", _Constructor.mapping)
    _one.add_constructor("tag:yaml.org,2002:seq", _Constructor.sequence)


def _loader(text: str) -> Any:
    depth = deepest = 0
    for bracket in re.finditer(r"[][{}]", text):
        depth = depth + 1 if bracket[0] in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    harmless = deepest < DEEPEST and not re.search(rf"([-?]\s+){{{DEEPEST}}}", text)
    return _FastLoader(text) if harmless else _Loader(text)
