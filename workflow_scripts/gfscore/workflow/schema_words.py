"""What a broken rule of the schema means for who writes config.yaml, in words instead of JSON Schema's.

Imports nothing heavy, because every run of Snakemake reads it.
"""

import json
import re
from functools import reduce

from gfscore.core.errors import unknown

PLAIN = {
    "null": "null",
    "object": "a mapping",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
}
"""Types of JSON Schema, as they are asked for."""

ENTRIES = {"string": "texts", "number": "numbers"}
"""The same of the entries of a list."""

TAGS = ("method", "family", "name")
"""Keys that say which of several forms a mapping has."""

LONGEST = 80
"""Characters of a refused value that are shown."""


def nearest_form(error):
    """Of a mapping that has none of several forms, what it lacks of the one that its kind or method names.

    The error itself where no form, or more than one, comes nearest.
    """
    while error.validator == "oneOf" and isinstance(error.instance, dict):
        forms = {}
        for found in error.context:
            forms.setdefault(found.relative_schema_path[0], []).append(found)
        near = [form for form in forms.values() if not any(e.validator == "type" and not e.relative_path for e in form)]
        if len(near) > 1:
            near = [form for form in near if not any(map(_is_of_another_kind, form))]
        if len(near) != 1:
            break
        error = near[0][0]
    return error


def _is_of_another_kind(error):
    return error.validator in ("const", "enum") and list(error.relative_path) in [[tag] for tag in TAGS]


def words_of(error, definitions):
    """What a value that breaks the schema should have been, where JSON Schema's own words would be of no help.

    `error` is that of jsonschema, `definitions` the `$defs` that its schema refers to.
    """
    value, place = error.instance, list(error.absolute_path)
    if place[-1:] == ["gate"] and not value and error.validator in ("type", "minItems"):
        return f"{shown(value)} holds no rule, but every audit has at least one; docs/configuring.md shows some"
    if error.validator == "type":
        return _words_of_type(value, error.schema, definitions)
    if error.validator == "oneOf":
        return _words_of_forms(error, definitions)
    return _words_of_value(value, error)


def _words_of_value(value, error):
    if list(error.absolute_path)[-1:] == ["confidence"] and value > 1:
        return f"{shown(value)} is above 1; write 95 percent as 0.95"
    if error.validator == "uniqueItems":
        twice = next(entry for place, entry in enumerate(value) if entry in value[:place])
        return f"{shown(twice)} stands more than once; name it once"
    if error.validator == "pattern" and error.validator_value == "^[0-9a-fA-F]{64}$":
        return f"{value!r} is no SHA-256 of 64 digits from 0 to f"
    return error.message


def _words_of_forms(error, definitions):
    forms = [_resolved(form, definitions) for form in error.validator_value]
    choice = " or ".join(dict.fromkeys(words_of_form(form, definitions) for form in forms))
    if not error.context:
        return f"give {choice}, not both"
    for tag in TAGS if isinstance(error.instance, dict) else ():
        kinds = [form.get("properties", {}).get(tag, {}) for form in forms]
        known = [name for kind in kinds for name in kind.get("enum", [kind["const"]] if "const" in kind else [])]
        if tag in error.instance and known and error.instance[tag] not in known:
            return unknown(tag, error.instance[tag], known)
    return f"{shown(error.instance)} does not fit; give {choice}"


def _words_of_type(value, schema, definitions):
    wanted = _listed(schema["type"])
    if "string" in wanted and not isinstance(value, dict | list):
        return f"{shown(value)} is no text to YAML; put quotes around what you wrote"
    quotient = re.fullmatch(r"(\d{1,9}) ?/ ?([1-9]\d{0,8})", value) if isinstance(value, str) else None
    if quotient and "number" in wanted:
        return f"YAML does not divide; write {value} as {int(quotient[1]) / int(quotient[2]):.4g}"
    if "integer" in wanted and isinstance(value, float) and value.is_integer():
        return f"{shown(value)} has a decimal point; write {int(value)}"
    return f"{shown(value)} does not fit; give {_choice(schema, definitions)}"


def shown(value):
    """A value as YAML writes it on one line, cut where it is long."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except TypeError:
        # YAML allows dates and lists as keys, JSON does not.
        text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def words_of_form(form, definitions):
    """One of several forms that an entry may have: "a mapping with samples, seed"."""
    form = _resolved(form, definitions)
    if "enum" in form or "const" in form:
        return ", ".join(map(shown, form.get("enum", [form.get("const")])))
    if "required" in form:
        return f"a mapping with {', '.join(form['required'])}"
    return _choice(form, definitions)


def _choice(form, definitions):
    if form.get("type") == "array":
        kind = _resolved(form.get("items", {}), definitions).get("type")
        return f"a list of {ENTRIES[kind]}" if isinstance(kind, str) and kind in ENTRIES else "a list"
    return " or ".join(PLAIN[kind] for kind in _listed(form["type"]))


def _resolved(form, definitions):
    while "$ref" in form:
        steps = form["$ref"].removeprefix("#/$defs/").split("/")
        form = reduce(lambda part, step: part[step], steps, definitions)
    return form


def _listed(types):
    return [types] if isinstance(types, str) else types
