"""Names of measures that the configuration leaves unnamed.

A name is made of the measure's settings, so that measures with different settings never share files.

Imports nothing heavy, because names are made whenever a run is planned.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from gfscore.core.settings import FEW_CHARACTERS, WHITE, PlainSettings
from gfscore.measures import KINDS, complete
from gfscore.measures.declaration import Kind

Value = str | float
"""Value of a setting that stands in a name."""


def name_of(entry: PlainSettings) -> str:
    """Name of a measure made of its settings, such as "adversarial-linf-8of255".

    It consists of the kind and the values of the settings in `Kind.named_by`. Where other settings differ from their
    defaults, four characters of the digest of all settings follow.

    Raises
    ------
    ValidationError
        For settings that the kind does not have (pydantic).
    """
    kind = KINDS[entry["kind"]]
    settings = complete(entry)
    values: dict[str, Value] = {}
    for key in kind.named_by:
        # A key such as "smoothing.sigma" is the setting sigma in the section smoothing.
        value: Any = settings
        for section in key.split("."):
            value = value.get(section) if isinstance(value, Mapping) else None
        if value is not None:
            values[key] = value

    texts = [_text_of(value) for value in values.values()]
    name = "-".join([kind.name, *texts])
    entry_of_name = _entry_of(kind.name, values)
    if settings == complete(entry_of_name):
        return name
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    return f"{name}-{digest[:4]}"


def entry_named(name: str) -> PlainSettings | None:
    """Entry of the measure with a name made by `name_of`.

    None for a name that some settings are missing from (it ends in a digest), and for any that `name_of` never makes.
    """
    # The longest first, since the name of one kind may begin with the name of another.
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
    """Names of every kind with its defaults, and with each choice of the first setting in its name."""
    names = []
    for kind in KINDS.values():
        names.append(name_of({"kind": kind.name}))
        if not kind.named_by:
            continue
        first_setting = kind.named_by[0]
        field = kind.settings.model_fields.get(first_setting)
        # Where the type of the setting lists its values.
        if field is not None and get_origin(field.annotation) is Literal:
            for choice in get_args(field.annotation):
                names.append(name_of({"kind": kind.name, first_setting: choice}))
    return list(dict.fromkeys(names))


def _entries(kind: Kind[Any], text: str) -> Iterator[PlainSettings]:
    # Entries that may have this text after the kind in their name. A setting without a value is left out of a name, so
    # that the text does not tell which keys its values belong to: every choice of keys is tried, in their order.
    for count in range(len(kind.named_by) + 1):
        # A number may hold a hyphen, "1e-05".
        texts = text.split("-", maxsplit=max(count - 1, 0)) if text else []
        if len(texts) != count:
            continue
        values = [_value_of(text) for text in texts]
        for keys in combinations(kind.named_by, count):
            yield _entry_of(kind.name, dict(zip(keys, values, strict=True)))


def _entry_of(kind: str, values: Mapping[str, Value]) -> PlainSettings:
    entry: dict[str, Any] = {"kind": kind}
    for key, value in values.items():
        *sections, setting = key.split(".")
        section = entry
        for name in sections:
            section = section.setdefault(name, {})
        section[setting] = value
    return entry


def _text_of(value: Value) -> str:
    if isinstance(value, str):
        return value
    text = f"{value:g}"
    pixel_steps = round(value * WHITE)
    if len(text) > FEW_CHARACTERS and pixel_steps / WHITE == value:
        return f"{pixel_steps}of{WHITE}"
    return text if float(text) == value else repr(float(value))


def _value_of(text: str) -> Value:
    pixel_steps, _, white = text.partition("of")
    if pixel_steps.isdigit() and white == str(WHITE):
        return int(pixel_steps) / WHITE
    try:
        return float(text)
    except ValueError:
        return text
