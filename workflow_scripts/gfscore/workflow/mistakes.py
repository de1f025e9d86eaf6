"""Mistakes in a configuration, in words: with the value and the remedy, and those that pydantic finds."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from gfscore.core.errors import nearest, unknown_name
from gfscore.core.settings import NAME
from gfscore.workflow.config_files import KeyPath, Marked, listed, mark_of, shown

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
"""Key of the bound in the context of pydantic's error, fault and remedy, by the type of the error."""


class ConfigMistake(NamedTuple):
    """A mistake in a configuration: its path, and a message with the value and the remedy."""

    key_path: KeyPath
    message: str


def message_of(mistakes: list[ConfigMistake], written: Marked) -> str:
    """Message that lists mistakes with file and line."""
    lines = []
    for key_path, message in mistakes:
        words = [*map(str, _displayed_key_path(key_path)), message]
        mark = mark_of(written, key_path)
        if mark:
            words.insert(0, str(mark))
        lines.append(": ".join(words))
    return listed(lines)


def _displayed_key_path(key_path: KeyPath) -> KeyPath:
    # Models as zoo/threat/name, the form that audits use.
    if key_path[:1] == ("models",) and len(key_path) > 3:
        return ("models", "/".join(map(str, key_path[1:4])), *key_path[4:])
    return key_path


# ---- mistakes that pydantic finds ----


def mistakes_of(
    error: ValidationError, model: type[BaseModel], entry: object, key_path: KeyPath
) -> Iterator[ConfigMistake]:
    """Yield each mistake that pydantic found in an entry.

    For a value with several valid forms, one message names them all, or what the nearest one lacks.

    Parameters
    ----------
    error : ValidationError
        Raised by the validation of the entry.
    model : type
        Settings that the entry was validated by.
    entry : mapping
        What the user wrote.
    key_path : tuple
        Path of the entry in the configuration.
    """
    by_key_path: dict[KeyPath, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        by_key_path.setdefault(_key_path_of(details, entry), []).append(details)

    # A key that is spelled wrongly is not missing too.
    spelled_wrongly = set()
    for inner, errors in by_key_path.items():
        if errors[0]["type"] == "extra_forbidden":
            keys = _keys_at(model, entry, inner[:-1])
            spelled_wrongly.add((*inner[:-1], nearest(str(inner[-1]), keys)))

    for inner, errors in by_key_path.items():
        if errors[0]["type"] == "missing" and inner in spelled_wrongly:
            continue
        nearest_form = [details for details in errors if details["type"] not in EXPECTED_TYPES]
        yield ConfigMistake((*key_path, *inner), _message(nearest_form or errors, model, entry, inner))


def _key_path_of(error: ErrorDetails, entry: object) -> KeyPath:
    # Without the steps that pydantic inserts to distinguish the members of a union.
    key_path: list[str | int] = []
    value: Any = entry
    steps = error["loc"]
    for number, step in enumerate(steps):
        is_last = number == len(steps) - 1
        if holds(value, step):
            key_path.append(step)
            value = value[step]
        elif is_last and error["type"] in ("missing", "extra_forbidden"):
            key_path.append(step)
    if error["type"] == "refused":
        key_path += error["ctx"]["at"]
    if error["type"].startswith("union_tag"):
        key_path.append(error["ctx"]["discriminator"].strip("'"))
    return tuple(key_path)


def holds(value: object, step: str | int) -> bool:
    """Whether a mapping has a key, or a list a position."""
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list) and isinstance(step, int) and step < len(value)


def _message(errors: list[ErrorDetails], model: type[BaseModel], entry: object, key_path: KeyPath) -> str:
    error = errors[0]
    kind = error["type"]
    if kind == "extra_forbidden":
        return unknown_name("key", key_path[-1], _keys_at(model, entry, key_path[:-1]))
    if kind in BOUNDS:
        return _outside_bound(error, key_path)
    if kind in EXPECTED_TYPES:
        return _wrong_type(errors)
    sentence = SENTENCES.get(kind, _other_mistake)
    return sentence(error, key_path)


def _outside_bound(error: ErrorDetails, key_path: KeyPath) -> str:
    key, fault, remedy = BOUNDS[error["type"]]
    value, bound = error["input"], error["ctx"][key]
    if key_path[-1:] == ("confidence",) and value > 1:
        return f"{shown(value)} is above 1; write 95 percent as 0.95"
    return f"{shown(value)} is {fault} {shown(bound)}; give {remedy} {shown(bound)}"


def _wrong_type(errors: list[ErrorDetails]) -> str:
    value, kind = errors[0]["input"], errors[0]["type"]
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"{shown(value)} has a decimal point; write {int(value)}"
    if kind == "string_type" and not isinstance(value, dict | list) and value is not None:
        return f"{shown(value)} is not a string in YAML; put quotes around it"
    expected = [EXPECTED_TYPES[error["type"]] for error in errors]
    return f"{shown(value)} does not fit; give {' or '.join(dict.fromkeys(expected))}"


def _wrong_pattern(error: ErrorDetails, _key_path: KeyPath) -> str:
    value, pattern = error["input"], error["ctx"]["pattern"]
    if pattern == NAME:
        return f"name {value!r} {NAMES_MAY}; rename it"
    if "{64}" in pattern:
        return f"{value!r} is not a SHA-256 digest of 64 hexadecimal digits; copy it again"
    return f"{value!r} does not match {pattern}; correct it"


def _unknown_literal(error: ErrorDetails, _key_path: KeyPath) -> str:
    choice = [name or number for name, number in re.findall(r"'([^']*)'|(\d+)", error["ctx"]["expected"])]
    return unknown_name("value", error["input"], choice)


def _unknown_tag(error: ErrorDetails, key_path: KeyPath) -> str:
    choice = re.findall("'([^']*)'", error["ctx"]["expected_tags"])
    return unknown_name(str(key_path[-1]), error["ctx"]["tag"], choice)


def _too_short(error: ErrorDetails, _key_path: KeyPath) -> str:
    return f"{shown(error['input'])} is too short; give at least {error['ctx']['min_length']}"


def _too_long(error: ErrorDetails, _key_path: KeyPath) -> str:
    return f"{shown(error['input'])} is too long; give at most {error['ctx']['max_length']}"


def _other_mistake(error: ErrorDetails, _key_path: KeyPath) -> str:
    return f"{shown(error['input'])}: {error['msg']}; correct it"


SENTENCES: dict[str, Callable[[ErrorDetails, KeyPath], str]] = {
    "refused": lambda error, key_path: error["ctx"]["text"],
    "value_error": lambda error, key_path: str(error["ctx"]["error"]),
    "missing": lambda error, key_path: "is missing; give it",
    "union_tag_not_found": lambda error, key_path: "is missing; give it",
    "union_tag_invalid": _unknown_tag,
    "literal_error": _unknown_literal,
    "string_pattern_mismatch": _wrong_pattern,
    "no_number": lambda error, key_path: f"{shown(error['input'])} does not fit; give {error['msg']}",
    "too_short": _too_short,
    "string_too_short": _too_short,
    "too_long": _too_long,
    "string_too_long": _too_long,
}
"""Message for the other errors of pydantic, by their type."""


# ---- keys that settings have at a path ----


def _keys_at(model: type[BaseModel], entry: object, key_path: KeyPath) -> list[str]:
    models = [model]
    value: Any = entry
    for step in key_path:
        value = value[step]
        if isinstance(step, str):
            models = _models_of_key(models, step)
        selected = [inner for inner in models if _selected_by(inner, value)]
        models = selected or models
    keys: list[str] = []
    for inner in models:
        keys += _fields(inner)
    return list(dict.fromkeys(keys))


def _models_of_key(models: list[type[BaseModel]], key: str) -> list[type[BaseModel]]:
    inner_models: list[type[BaseModel]] = []
    for model in models:
        fields = _fields(model)
        if key in fields:
            inner_models += _models_in(fields[key].annotation)
    return inner_models


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    # Fields by the keys that the configuration has for them.
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is not Literal:
        for argument in get_args(annotation):
            yield from _models_in(argument)


def _selected_by(model: type[BaseModel], value: object) -> bool:
    # Whether a key of the value, such as `method` or `family`, selects this model.
    if not isinstance(value, Mapping):
        return False
    for name, info in _fields(model).items():
        if get_origin(info.annotation) is Literal and value.get(name) in get_args(info.annotation):
            return True
    return False
