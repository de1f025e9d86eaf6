"""Write what the kinds of measures declare into docs/measures.md: what a value says, and the settings of each.

Run from anywhere: `.venv/bin/python tools/write_measures_page.py`.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The package need not be installed: its folder is the one that the workflow's scripts use.
sys.path.insert(0, str(ROOT / "workflow_scripts"))

from gfscore.core.files import write_text  # noqa: E402
from gfscore.core.numbers import end_of_range  # noqa: E402
from gfscore.measures import KINDS, complete, measure_of  # noqa: E402
from gfscore.measures.declaration import NetworkSettings  # noqa: E402
from page_blocks import with_block  # noqa: E402

PAGE = ROOT / "docs" / "measures.md"


def kinds_table() -> str:
    """Markdown table of the kinds, with the settings that they have by default."""
    rows = ["| kind | value of a sample | unit, range | needs | passes per sample |", "| --- | --- | --- | --- | --- |"]
    for name, kind in KINDS.items():
        measure = measure_of({"kind": name})
        low, high = measure.value_range
        needs = "gradients" if kind.gradients(kind.parse({"kind": name})) else "predictions"
        needs = needs if kind.needs == "network" else kind.needs
        ends = f"{end_of_range(low)} to {end_of_range(high)}"
        unit = measure.unit if ends in measure.unit else f"{measure.unit}, {ends}"
        rows.append(f"| `{name}` | {kind.value} | {unit} | {needs} | {kind.passes} |")
    return "\n".join(rows) + "\n"


def settings_tables() -> str:
    """Markdown of the settings of each kind: key, default, meaning."""
    parts = []
    for name, kind in KINDS.items():
        schema = kind.settings.model_json_schema()
        rows = [*_rows(schema, schema.get("$defs", {}), complete({"kind": name}))]
        table = ["| key | default | what it is |", "| --- | --- | --- |", *rows] if rows else ["No settings."]
        parts.append("\n".join([f"#### `{name}`", "", *table]) + "\n")
    return "\n".join(parts)


def _rows(schema: dict[str, Any], parts: dict[str, Any], given: Any, prefix: str = "") -> Iterator[str]:
    for name, setting in schema["properties"].items():
        if "const" in setting or name in NetworkSettings.model_fields:
            continue
        key, default = f"{prefix}{name}", given.get(name) if isinstance(given, dict) else setting.get("default")
        forms = [_resolved(form, parts) for form in _forms(setting)]
        objects = [form for form in forms if "properties" in form]
        named = [setting, *forms, *(form["items"] for form in forms if "items" in form)]
        choices = dict.fromkeys(f"`{choice}`" for form in named for choice in form.get("enum", ()))
        words = setting.get("description", "") + (f" One of {', '.join(choices)}." if len(choices) > 1 else "")
        kinds = [[part["const"] for part in form["properties"].values() if "const" in part] for form in objects]
        chosen = [name for names in kinds for name in names if isinstance(default, dict) and name in default.values()]
        said = f"`{chosen[0]}`" if chosen else "see below" if isinstance(default, dict) else _text(default)
        yield f"| `{key}` | {said} | {words} |"
        for form, named in zip(objects, kinds, strict=True):
            if named:
                own = "; ".join(_setting(*item) for item in form["properties"].items() if "const" not in item[1])
                yield f"| `{key}`: `{named[0]}` | {own} | {form.get('description', '')} |"
            else:
                yield from _rows(form, parts, default, prefix=f"{key}: ")


def _forms(setting: dict[str, Any]) -> list[dict[str, Any]]:
    inner = setting.get("items", setting)
    return inner.get("oneOf") or inner.get("anyOf") or [inner]


def _resolved(form: dict[str, Any], parts: dict[str, Any]) -> dict[str, Any]:
    return parts[form["$ref"].rsplit("/", 1)[1]] if "$ref" in form else form


def _setting(name: str, setting: dict[str, Any]) -> str:
    return f"{name}: {_text(setting['default'])}" if "default" in setting else name


def _text(value: Any) -> str:
    if isinstance(value, float):
        share = abs(255 * value - round(255 * value)) < 1e-9 < value < 1
        return f"`{round(255 * value)}/255`" if share else f"`{value:g}`"
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def page(text: str) -> str:
    """The page's text with these parts made anew; raises InputError where their lines are missing."""
    text = with_block(text, "kinds", kinds_table(), made_by="write_measures_page")
    return with_block(text, "settings", settings_tables(), made_by="write_measures_page")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write_text(PAGE, page(PAGE.read_text(encoding="utf-8")))
    print(f"wrote {PAGE.relative_to(ROOT)}")
