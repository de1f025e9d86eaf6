"""Messages for pydantic's validation errors, with the value, what is valid, and the nearest known name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError

from gfscore.core.errors import InputError, nearest, unknown
from gfscore.core.settings import LONGEST_NAME, NAME, NAME_FORM, never
from gfscore.workflow.config_files import DEFAULT, Marked, MarkedList, Place, listed, mark_of, shown

NAMES_MAY = "may contain only letters, digits and . _ + - and must not start with . or -"

EXPECTED_TYPES = {
    "int_type": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
}
"""Expected value, by the type of pydantic's error."""

BOUNDS = {
    "greater_than": ("gt", "not above", "more than"),
    "greater_than_equal": ("ge", "below", "at least"),
    "less_than": ("lt", "not below", "less than"),
    "less_than_equal": ("le", "above", "at most"),
}


class ConfigMistake(NamedTuple):
    """A mistake in a configuration: its path, and a message with the value and the remedy."""

    place: Place
    message: str


def mistakes_of(error: ValidationError, model: type[BaseModel], data: Any, at: Place) -> Iterator[ConfigMistake]:
    """Yield each mistake that pydantic found in `data`, an entry at the path `at` of the configuration.

    For a value with several valid forms, one message names them all, or what the nearest one lacks.
    """
    found: dict[Place, list[Any]] = {}
    for one in error.errors(include_url=False):
        found.setdefault(_place(one, data), []).append(one)
    meant = {
        (*place[:-1], nearest(place[-1], _keys_at(model, data, place[:-1])))
        for place, errors in found.items()
        if errors[0]["type"] == "extra_forbidden"
    }
    for place, errors in found.items():
        # A key that is spelled wrongly is not missing too.
        if errors[0]["type"] == "missing" and place in meant:
            continue
        near = [one for one in errors if one["type"] not in EXPECTED_TYPES] or errors
        yield ConfigMistake((*at, *place), _message(near, model, data, place))


def _place(error: Any, data: Any) -> Place:
    # Without the steps that pydantic inserts to distinguish the members of a union.
    place: list[str | int] = []
    part, steps = data, list(error["loc"])
    for number, step in enumerate(steps):
        last = number == len(steps) - 1 and error["type"] in ("missing", "extra_forbidden")
        known = isinstance(part, Mapping) and step in part
        known = known or (isinstance(part, list) and isinstance(step, int) and step < len(part))
        if known:
            part = part[step]
        if known or last:
            place.append(step)
    if error["type"] == "refused":
        place += error["ctx"]["at"]
    if error["type"].startswith("union_tag"):
        place.append(error["ctx"]["discriminator"].strip("'"))
    return tuple(place)


def _message(errors: list[Any], model: type[BaseModel], data: Any, place: Place) -> str:
    error = errors[0]
    kind = error["type"]
    if kind == "extra_forbidden":
        return unknown("key", place[-1], _keys_at(model, data, place[:-1]))
    if kind in BOUNDS:
        return _outside_bound(error, place)
    if kind in EXPECTED_TYPES:
        return _wrong_type(errors)
    return SENTENCES.get(kind, _other)(error, place)


def _outside_bound(error: Any, place: Place) -> str:
    key, what, remedy = BOUNDS[error["type"]]
    value, bound = error["input"], error["ctx"][key]
    if place[-1:] == ("confidence",) and value > 1:
        return f"{shown(value)} is above 1; write 95 percent as 0.95"
    return f"{shown(value)} is {what} {shown(bound)}; give {remedy} {shown(bound)}"


def _wrong_type(errors: list[Any]) -> str:
    value, kind = errors[0]["input"], errors[0]["type"]
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"{shown(value)} has a decimal point; write {int(value)}"
    if kind == "string_type" and not isinstance(value, dict | list) and value is not None:
        return f"{shown(value)} is not a string in YAML; put quotes around it"
    wanted = " or ".join(dict.fromkeys(EXPECTED_TYPES[one["type"]] for one in errors))
    return f"{shown(value)} does not fit; give {wanted}"


def _wrong_pattern(error: Any, _place: Place) -> str:
    value, pattern = error["input"], error["ctx"]["pattern"]
    if pattern == NAME:
        return f"name {value!r} {NAMES_MAY}; rename it"
    if "{64}" in pattern:
        return f"{value!r} is not a SHA-256 digest of 64 hexadecimal digits; copy it again"
    return f"{value!r} does not match {pattern}; correct it"


def _unknown_literal(error: Any, _place: Place) -> str:
    known = [name or number for name, number in re.findall(r"'([^']*)'|(\d+)", error["ctx"]["expected"])]
    return unknown("value", error["input"], known)


def _wrong_length(error: Any, _place: Place) -> str:
    short, context = error["type"].endswith("short"), error["ctx"]
    wanted = f"short; give at least {context['min_length']}" if short else f"long; give at most {context['max_length']}"
    return f"{shown(error['input'])} is too {wanted}"


def _other(error: Any, _place: Place) -> str:
    return f"{shown(error['input'])}: {error['msg']}; correct it"


SENTENCES: dict[str, Callable[[Any, Place], str]] = {
    "refused": lambda error, place: error["ctx"]["text"],
    "value_error": lambda error, place: str(error["ctx"]["error"]),
    "missing": lambda error, place: "is missing; give it",
    "union_tag_not_found": lambda error, place: "is missing; give it",
    "union_tag_invalid": lambda error, place: unknown(
        str(place[-1]), error["ctx"]["tag"], re.findall("'([^']*)'", error["ctx"]["expected_tags"])
    ),
    "literal_error": _unknown_literal,
    "string_pattern_mismatch": _wrong_pattern,
    "no_number": lambda error, place: f"{shown(error['input'])} does not fit; give {error['msg']}",
    **dict.fromkeys(("too_short", "too_long", "string_too_short", "string_too_long"), _wrong_length),
}
"""Message for the other errors of pydantic, by their type."""


def _keys_at(model: type[BaseModel], data: Any, place: Place) -> list[str]:
    # Keys of the settings at a path.
    models, part = [model], data
    for step in place:
        part = part[step]
        if isinstance(step, str):
            fields = [field for one in models for name, field in _fields(one) if name == step]
            models = [inner for field in fields for inner in _models_in(field.annotation)]
        named = [one for one in models if _selected_by(one, part)]
        models = named or models
    return list(dict.fromkeys(name for one in models for name, _ in _fields(one)))


def _fields(model: type[BaseModel]) -> Iterable[tuple[str, Any]]:
    return [(field.alias or name, field) for name, field in model.model_fields.items()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _models_in(part)


def _selected_by(model: type[BaseModel], data: Any) -> bool:
    # Whether a key of the data, such as `method` or `family`, selects this model.
    return isinstance(data, Mapping) and any(
        get_origin(field.annotation) is Literal and data.get(name) in get_args(field.annotation)
        for name, field in _fields(model)
    )


# ---- State of resolving a configuration: what the user wrote, the resolved values, and the mistakes.


@dataclass(frozen=True)
class Resolution:
    """A complete configuration, and the values that the user wrote.

    `config` maps sections to plain values, in a fixed order; `written` has the values that the user wrote, with their
    marks, at the same paths. `files` are the configuration files, later ones overriding earlier ones, and `given` the
    values of --config, which override them.
    """

    config: dict[str, Any]
    written: Marked
    files: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def origin(self, place: Place) -> str:
        """Origin of a value: name of a file, --config, or "default"."""
        part: Any = self.written
        step: Any
        for step in place:
            known = step in part if isinstance(part, Marked) else isinstance(part, MarkedList) and step < len(part)
            if not known:
                return DEFAULT
            part = part[step]
        mark = mark_of(self.written, place)
        return mark.file if mark else DEFAULT


def message_of(mistakes: list[ConfigMistake], written: Any) -> str:
    """Message that lists mistakes with file and line."""
    return listed(
        ": ".join([str(mark), *rest]) if mark else ": ".join(rest)
        for place, message in mistakes
        for mark, rest in [(mark_of(written, place), [*map(str, _displayed_place(place)), message])]
    )


def _displayed_place(place: Place) -> Place:
    # Models as zoo/threat/name, the form that audits use.
    if place[:1] == ("models",) and len(place) > 3:
        return ("models", "/".join(map(str, place[1:4])), *place[4:])
    return place


@dataclass
class State:
    """Intermediate state: resolved values `config` from `written`, and `mistakes` so far.

    `written` is changed: measures and model files that audits name directly become entries, and the defaults of a zoo
    are merged into its entries.
    """

    written: Marked
    config: dict[str, Any]
    mistakes: list[ConfigMistake] = field(default_factory=list)

    def stop_at_mistakes(self) -> None:
        """Raise InputError if there are mistakes so far."""
        if self.mistakes:
            raise InputError(message_of(self.mistakes, self.written))

    def add_mistake(self, message: str, *place: str | int) -> None:
        """Add a mistake at a path."""
        self.mistakes.append(ConfigMistake(place, message))

    def require_mapping(self, *place: str) -> None:
        """Ensure a mapping at a path: replace null, or any other value (which is a mistake), with an empty one."""
        part: Any = self.written
        for step in place[:-1]:
            part = part[step]
        entry = part.get(place[-1])
        if not isinstance(entry, Marked):
            if entry is not None:
                self.add_mistake(f"{shown(entry)} does not fit; give a mapping", *place)
            part[place[-1]] = Marked()

    def entries(self, section: str, *above: str) -> Iterator[tuple[str, Marked]]:
        """Yield the entries with valid names of a section, or of a part of one."""
        part = self.written[section]
        for step in above:
            part = part[step]
        for name in list(part):
            if not NAME_FORM.fullmatch(name) or len(name) > LONGEST_NAME:
                self.add_mistake(f"name {name!r} {NAMES_MAY}; rename it", section, *above, name)
                continue
            self.require_mapping(section, *above, name)
            yield name, part[name]

    def parsed(self, model: type[BaseModel], entry: Any, place: Place) -> Any:
        """Parsed settings of an entry; None if it has mistakes."""
        try:
            return model.model_validate(entry)
        except ValidationError as error:
            self.mistakes += mistakes_of(error, model, entry, place)
        return None

    def choose(self, what: str, entry: Mapping[str, Any], known: Mapping[str, Any], place: Place) -> Any:
        """The kind or source (`what`) in `known` that an entry names or that claims it; None, a mistake, if none."""
        name = entry.get(what)
        if name is None:
            claiming = [one for one in known.values() if getattr(one, "claims", never)(entry)]
            if len(claiming) == 1:
                return claiming[0]
            choice = ", ".join(one.name for one in claiming or known.values())
            self.add_mistake(f"is missing; give one of {choice}", *place, what)
        elif not isinstance(name, str) or name not in known:
            self.add_mistake(unknown(what, name, known), *place, what)
        else:
            return known[name]
        return None
