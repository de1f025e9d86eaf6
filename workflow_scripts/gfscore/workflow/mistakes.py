"""Mistakes in a configuration, in words: with the value and the remedy, and those that pydantic finds."""

import re
from collections.abc import Iterator, Mapping
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
        words = [*map(str, key_path), message]
        if key_path[:1] == ("models",) and len(key_path) > 3:
            # A model as zoo/threat/name, the form that audits use.
            words[1:4] = ["/".join(words[1:4])]
        mark = mark_of(written, key_path)
        if mark:
            words.insert(0, str(mark))
        lines.append(": ".join(words))
    return listed(lines)


# ---- mistakes that pydantic finds ----


def mistakes_of(
    error: ValidationError, model: type[BaseModel], entry: object, key_path: KeyPath
) -> Iterator[ConfigMistake]:
    """Yield each mistake that pydantic found in an entry.

    For a value with several valid types, one message names them all; or, where the value has one of these types, what
    is wrong with it.

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
        errors_of_value = [details for details in errors if details["type"] not in EXPECTED_TYPES]
        yield ConfigMistake((*key_path, *inner), _message(errors_of_value or errors, model, entry, inner))


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
    if kind in BOUNDS:
        return _outside_bound(error, key_path)
    if kind in EXPECTED_TYPES:
        return _wrong_type(errors)

    value = error["input"]
    details = error.get("ctx", {})
    message = f"{shown(value)}: {error['msg']}; correct it"
    match kind:
        case "extra_forbidden":
            message = unknown_name("key", key_path[-1], _keys_at(model, entry, key_path[:-1]))
        case "refused":
            message = details["text"]
        case "value_error":
            message = str(details["error"])
        case "missing" | "union_tag_not_found":
            message = "is missing; give it"
        case "union_tag_invalid":
            choice = re.findall("'([^']*)'", details["expected_tags"])
            message = unknown_name(str(key_path[-1]), details["tag"], choice)
        case "literal_error":
            choice = [name or number for name, number in re.findall(r"'([^']*)'|(\d+)", details["expected"])]
            message = unknown_name("value", value, choice)
        case "string_pattern_mismatch":
            message = _wrong_pattern(value, details["pattern"])
        case "no_number":
            message = f"{shown(value)} does not fit; give {error['msg']}"
        case "too_short" | "string_too_short":
            message = f"{shown(value)} is too short; give at least {details['min_length']}"
        case "too_long" | "string_too_long":
            message = f"{shown(value)} is too long; give at most {details['max_length']}"
    return message


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


def _wrong_pattern(value: object, pattern: str) -> str:
    if pattern == NAME:
        return f"name {value!r} {NAMES_MAY}; rename it"
    if "{64}" in pattern:
        return f"{value!r} is not a SHA-256 digest of 64 hexadecimal digits; copy it again"
    return f"{value!r} does not match {pattern}; correct it"


# ---- keys that settings have at a path ----


def _keys_at(model: type[BaseModel], entry: object, key_path: KeyPath) -> list[str]:
    models = [model]
    value: Any = entry
    for step in key_path:
        value = value[step]
        if isinstance(step, str):
            models_of_key: list[type[BaseModel]] = []
            for inner in models:
                fields = _fields(inner)
                if step in fields:
                    models_of_key += _models_in(fields[step].annotation)
            models = models_of_key
        selected = [inner for inner in models if _selected_by(inner, value)]
        models = selected or models
    keys: list[str] = []
    for inner in models:
        keys += _fields(inner)
    return list(dict.fromkeys(keys))


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
