"""Names of measures that the configuration does not name: made of their settings, so that different settings never
share files.

Imports nothing heavy, because names are made whenever a run is planned.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from gfscore.core.settings import WHITE
from gfscore.measures import KINDS, complete
from gfscore.measures.declaration import Kind

SHORT = 4
"""Characters of a number that stands in a name as it is; a longer one as its share of white, where it is one."""

Value = str | float
"""A setting that a measure is named by."""


def name_of(entry: Mapping[str, Any]) -> str:
    """Name of a measure by its settings, "adversarial-linf-8of255".

    It consists of the kind and the settings that the kind is named by; where other settings differ from their defaults,
    four characters of the digest of all settings follow.

    Raises
    ------
    ValidationError
        For settings that the kind does not have (pydantic).
    """
    kind = KINDS[entry["kind"]]
    settings = complete(entry)
    naming: dict[str, Value] = {}
    for key in kind.named_by:
        value = _value_at(settings, key)
        if value is not None:
            naming[key] = value

    name = "-".join([kind.name, *map(_text_of, naming.values())])
    if settings == complete(_entry_of(kind.name, naming)):
        return name
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return f"{name}-{digest[:4]}"


def entry_named(name: str) -> dict[str, Any] | None:
    """Entry of the measure that `name_of` gives this name, which contains all its settings; None for any other name."""
    # The longest first, so that no kind takes the name of another that begins with its name.
    for kind in sorted(KINDS.values(), key=lambda kind: -len(kind.name)):
        if name != kind.name and not name.startswith(f"{kind.name}-"):
            continue
        for entry in _entries(kind, name[len(kind.name) + 1 :]):
            try:
                if name_of(entry) == name:
                    return entry
            except (ValidationError, ValueError):
                continue
    return None


def usual_names() -> list[str]:
    """Names of every kind of measure by its defaults, and by each choice of the first setting that it is named by."""
    names = []
    for kind in KINDS.values():
        names.append(name_of({"kind": kind.name}))
        for choice in _choices(kind):
            names.append(name_of({"kind": kind.name, kind.named_by[0]: choice}))
    return list(dict.fromkeys(names))


def _choices(kind: Kind[Any]) -> tuple[Any, ...]:
    if not kind.named_by:
        return ()
    field = kind.settings.model_fields.get(kind.named_by[0])
    if field is None or get_origin(field.annotation) is not Literal:
        return ()
    return get_args(field.annotation)


def _entries(kind: Kind[Any], text: str) -> Iterator[dict[str, Any]]:
    # Entries that the settings in a name may stand for: of any of the keys that the kind is named by, in their order.
    for count in range(len(kind.named_by) + 1):
        texts = _split(text, count)
        if len(texts) != count:
            continue
        values = list(map(_value_of, texts))
        for keys in combinations(kind.named_by, count):
            yield _entry_of(kind.name, dict(zip(keys, values, strict=True)))


def _split(text: str, count: int) -> list[str]:
    if not text:
        return []
    # A number may hold a hyphen, "1e-05".
    return text.split("-", maxsplit=max(count - 1, 0))


def _entry_of(kind: str, values: Mapping[str, Value]) -> dict[str, Any]:
    # Keys as in "smoothing.sigma".
    entry: dict[str, Any] = {"kind": kind}
    for key, value in values.items():
        *sections, setting = key.split(".")
        section = entry
        for name in sections:
            section = section.setdefault(name, {})
        section[setting] = value
    return entry


def _value_at(settings: Mapping[str, Any], key: str) -> Value | None:
    value: Any = settings
    for step in key.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _text_of(value: Value) -> str:
    if isinstance(value, str):
        return value
    text = f"{value:g}"
    steps = round(value * WHITE)
    if len(text) > SHORT and steps / WHITE == value:
        return f"{steps}of{WHITE}"
    return text if float(text) == value else repr(float(value))


def _value_of(text: str) -> Value:
    steps, _, white = text.partition("of")
    if steps.isdigit() and white == str(WHITE):
        return int(steps) / WHITE
    try:
        return float(text)
    except ValueError:
        return text
