"""Names of measures that nobody named: made of their settings, so that other settings never take the same files.

Imports nothing heavy, because names are made whenever a run is planned.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import reduce
from itertools import combinations
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from gfscore.core.settings import WHITE
from gfscore.measures import KINDS, complete

SHORT = 4
"""Characters of a number that stands in a name as it is; a longer one as its share of white, where it is one."""


def name_of(entry: Mapping[str, Any]) -> str:
    """Name of a measure by its settings, "adversarial-linf-8of255".

    It says its kind and the settings that the kind is named by; where others are not the usual ones, four characters of
    their digest follow. Raises pydantic's ValidationError for settings that mean nothing.
    """
    kind, settings = KINDS[entry["kind"]], complete(entry)
    said = {key: value for key in kind.named_by if (value := _value_at(settings, key)) is not None}
    name = "-".join([kind.name, *map(_text_of, said.values())])
    if settings == complete(_entry_of(kind.name, said)):
        return name
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return f"{name}-{digest[:4]}"


def entry_named(name: str) -> dict[str, Any] | None:
    """Settings of the measure whose name, as `name_of` makes it, says them all; None for any other name."""
    # The longest first, so that no kind takes the name of another that begins like it.
    for kind in sorted(KINDS.values(), key=lambda one: -len(one.name)):
        if name != kind.name and not name.startswith(f"{kind.name}-"):
            continue
        texts = name[len(kind.name) + 1 :]
        for count in range(len(kind.named_by) + 1):
            for keys in combinations(kind.named_by, count):
                parts = texts.split("-", maxsplit=count - 1) if count > 1 else [texts] if texts else []
                if len(parts) != count:
                    continue
                entry = _entry_of(kind.name, dict(zip(keys, map(_value_of, parts), strict=True)))
                try:
                    if name_of(entry) == name:
                        return entry
                except (ValidationError, ValueError):
                    continue
    return None


def usual_names() -> list[str]:
    """Names of every kind of measure by its defaults, and by each choice of the first setting that it is named by."""
    entries = []
    for kind in KINDS.values():
        field = kind.settings.model_fields.get(kind.named_by[0]) if kind.named_by else None
        choices = get_args(field.annotation) if field and get_origin(field.annotation) is Literal else ()
        entries += [{"kind": kind.name}, *({"kind": kind.name, kind.named_by[0]: choice} for choice in choices)]
    return list(dict.fromkeys(map(name_of, entries)))


def _entry_of(kind: str, said: Mapping[str, Any]) -> dict[str, Any]:
    entry: dict[str, Any] = {"kind": kind}
    for key, value in said.items():
        *above, last = key.split(".")
        part = reduce(lambda found, step: found.setdefault(step, {}), above, entry)
        part[last] = value
    return entry


def _value_at(settings: Any, key: str) -> Any:
    for step in key.split("."):
        settings = settings.get(step) if isinstance(settings, Mapping) else None
    return settings


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    plain = f"{value:g}"
    steps = value * WHITE
    whole = abs(steps - round(steps)) < 1e-9 and round(steps) / WHITE == value
    if whole and len(plain) > SHORT:
        return f"{round(steps)}of{WHITE}"
    return plain if float(plain) == value else repr(float(value))


def _value_of(text: str) -> Any:
    above, _, below = text.partition("of")
    if above.isdigit() and below == str(WHITE):
        return int(above) / WHITE
    try:
        return float(text)
    except ValueError:
        return text
