"""Write rules/schemas/config.schema.json, by which editors complete and check configurations: made of the settings.

    python tools/write_config_schema.py [--check]

With --check the file is compared instead, and the exit status is 1 where it is stale. The workflow itself checks a
configuration by the settings, not by this file.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.settings import NAME  # noqa: E402
from gfscore.images.attribute_source import attribute_sources  # noqa: E402
from gfscore.images.dataset_source import dataset_sources  # noqa: E402
from gfscore.measures import KINDS  # noqa: E402
from gfscore.networks.model_source import model_sources  # noqa: E402
from gfscore.projection.mappers.declared import mapper_kinds  # noqa: E402
from gfscore.workflow.audit_settings import AuditSettings  # noqa: E402
from gfscore.workflow.resolving import SETTINGS  # noqa: E402
from gfscore.workflow.resolving_entries import DEFAULTS, THREATS  # noqa: E402

PATH = ROOT / "rules/schemas/config.schema.json"


def schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a configuration."""
    kinds = {
        "datasets": ("source", dataset_sources()),
        "attributes": ("source", attribute_sources()),
        "models": ("source", model_sources()),
        "measures": ("kind", KINDS),
        "mappers": ("kind", mapper_kinds()),
    }
    definitions = {}
    for section, (tag, known) in kinds.items():
        definitions[section] = _entries(section, tag, {name: kind.settings for name, kind in known.items()})
    definitions["whole"] = _parts("whole", {**SETTINGS, "audit": AuditSettings})
    for entry in definitions["datasets"]["parts"].values():
        if "attributes" in entry.get("properties", {}):
            entry["properties"]["attributes"] = {"anyOf": [{"type": "null"}, _ref("attributes", "entry")]}
    # What an entry leaves out may stand among the settings that its zoo shares.
    definitions["models"] = _without_required(definitions["models"])
    audit = definitions["whole"][_name_in(definitions["whole"], "audit")]
    audit["properties"]["measures"]["items"] = {"anyOf": [{"type": "string"}, _ref("measures", "entry")]}
    names = {"propertyNames": {"pattern": NAME}}
    zoo = {DEFAULTS: _ref("models", "entry")}
    zoo |= {threat: {**names, "additionalProperties": _ref("models", "entry")} for threat in THREATS}
    sections = {
        "run": {
            "description": "Audits to run; all where it is left out.",
            "items": {"type": "string"},
            "type": "array",
        },
        "audits": {**names, "additionalProperties": _ref("whole", "audit")},
        "datasets": {**names, "additionalProperties": _ref("datasets", "entry")},
        "models": {**names, "additionalProperties": {"properties": zoo, "additionalProperties": False}},
        "measures": {**names, "additionalProperties": _ref("measures", "entry")},
        "mappers": {**names, "additionalProperties": _ref("mappers", "entry")},
        **{section: _ref("whole", section) for section in SETTINGS},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of an audit",
        "type": "object",
        "properties": sections,
        "additionalProperties": False,
        "$defs": definitions,
    }


def _entries(section: str, tag: str, models: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    # An entry by the one of several models that its tag names; without the tag it may be any of them.
    parts = _parts(f"{section}/parts", models)
    choices = [
        {"if": {"properties": {tag: {"const": name}}, "required": [tag]}, "then": parts.pop(name)} for name in models
    ]
    known = {tag: {"enum": list(models)}}
    keys = sorted({field.alias or name for model in models.values() for name, field in model.model_fields.items()})
    entry = {"type": "object", "properties": known, "propertyNames": {"enum": keys}, "allOf": choices}
    return {"entry": entry, "parts": parts}


def _parts(place: str, models: Mapping[str, type[BaseModel]]) -> dict[str, Any]:
    # Definitions of models and all that they consist of, and the models by their own names.
    inputs = [(model, "validation") for model in models.values()]
    references, made = models_json_schema(inputs, ref_template=f"#/$defs/{place}/{{model}}")
    definitions = _without_titles(made.get("$defs", {}))
    return definitions | {name: references[model, "validation"] for name, model in models.items()}


def _ref(*steps: str) -> dict[str, str]:
    return {"$ref": "#/$defs/" + "/".join(steps)}


def _name_in(definitions: Mapping[str, Any], name: str) -> str:
    return definitions[name]["$ref"].rpartition("/")[2]


def _without_titles(data: Any) -> Any:
    if isinstance(data, list):
        return [_without_titles(item) for item in data]
    if not isinstance(data, dict):
        return data
    return {key: _without_titles(value) for key, value in data.items() if key != "title" or not isinstance(value, str)}


def _without_required(data: Any) -> Any:
    if isinstance(data, list):
        return [_without_required(item) for item in data]
    if not isinstance(data, dict):
        return data
    choice = "if" in data
    return {
        key: value if choice and key == "if" else _without_required(value)
        for key, value in data.items()
        if key != "required" or not isinstance(value, list)
    }


def _text(data: dict[str, Any], depth: int) -> str:
    # One line for each definition: a change of one is a change of its line.
    if not depth or not isinstance(data, dict):
        return json.dumps(data, ensure_ascii=False)
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {_text(value, depth - 1)}" for key, value in data.items()) + "\n}"


def main() -> int:
    """Write the file, or compare it; the exit status."""
    text = _text(schema(), 4) + "\n"
    if "--check" not in sys.argv[1:]:
        PATH.write_text(text, encoding="utf-8")
        return 0
    if PATH.is_file() and PATH.read_text(encoding="utf-8") == text:
        return 0
    print(f"{PATH.relative_to(ROOT)} is stale; write it again: python tools/write_config_schema.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
