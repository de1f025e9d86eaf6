"""Complete configuration of one audit as a file, with the origin of each value."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from gfscore.core.digests import require_checksum
from gfscore.core.errors import InputError
from gfscore.core.names import on_one_line, without_queries, without_query
from gfscore.workflow import plan
from gfscore.workflow.config_files import Place, read_configuration
from gfscore.workflow.configuration import require_consistent
from gfscore.workflow.resolution import Resolution
from gfscore.workflow.resolving import WHOLE, resolve

HEAD = """\
# Complete configuration of the audit {audit}, with the origin of each value: default, a file, or the command line.
# To run it again: snakemake --configfile with this file.
"""

FILES = "# Configuration files that it has values of, later ones overriding earlier ones: "
GIVEN = "# Values of --config, which override them: "
"""Starts of the lines that hold them, as JSON."""

PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]+)*|\d+/\d+")
"""Strings that need no quotes in YAML, except RESERVED: names, paths and fractions."""

RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}


def of_audit(config: dict[str, Any], audit: str) -> dict[str, Any]:
    """Part of a complete configuration that an audit depends on, with entries for RobustBench's models."""
    models: dict[str, Any] = {}
    for model in plan.models_of_tasks(config, audit):
        entries = models.setdefault(plan.zoo_of(config, model["dataset"]), {}).setdefault(model["threat"], {})
        entries[model["model"]] = plan.entry_of(config, **model)
    return {
        "run": [audit],
        "audits": {audit: config["audits"][audit]},
        "datasets": {name: _within(config["datasets"][name], models) for name in plan.datasets_of(config, audit)},
        "models": models,
        "measures": plan.measures_of(config, audit),
        "mappers": {mapper: config["mappers"][mapper] for mapper in plan.mappers_of(config, audit)},
        **{section: config[section] for section in WHOLE},
    }


def _within(dataset, zoos):
    # One that the audit only trains or compares with may name another zoo, whose models are not written.
    return dataset if dataset["models_of"] in (*zoos, None) else {**dataset, "models_of": None}


def rendered(resolution: Resolution, audit: str) -> str:
    """Text of results/audits/<audit>/config.yaml; a function of the values and their origins.

    Queries of URLs are left out, since they may contain keys.
    """
    # Which other audits ran along with this one does not matter to it.
    given = {name: value for name, value in without_queries(resolution.given).items() if name != "run"}
    lines = list(_lines(of_audit(resolution.config, audit), resolution, ()))
    # Nor do files of which it has no value.
    stated = {line.rpartition(" # ")[2] for line in lines}
    files = [file for file in resolution.files if on_one_line(file) in stated] or list(resolution.files)
    head = [f"{FILES}{json.dumps(files)}"]
    if given:
        head.append(f"{GIVEN}{json.dumps(given)}")
    return HEAD.format(audit=audit) + "\n".join([*head, *lines]) + "\n"


def origins(text: str) -> tuple[list[str], dict[str, Any]] | None:
    """Files and values of --config, but `run`, that a text of `rendered` names; None for one of an earlier version."""
    stated = {}
    for line in text.splitlines():
        for start in (FILES, GIVEN):
            if line.startswith(start):
                stated[start] = json.loads(line.removeprefix(start))
    return (stated[FILES], stated.get(GIVEN, {})) if FILES in stated else None


def _lines(data: dict[str, Any], resolution: Resolution, place: Place, indent: str = "") -> Iterator[str]:
    for key, value in data.items():
        here = (*place, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{_text(key)}:"
            yield from _lines(value, resolution, here, f"{indent}  ")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            yield f"{indent}{_text(key)}:"
            for position, item in enumerate(value):
                yield from _item(item, resolution, (*here, position), f"{indent}  ")
        else:
            hidden = key == "url" and isinstance(value, str)
            shown = flow(without_query(value) if hidden else value)
            yield f"{indent}{_text(key)}: {shown} # {on_one_line(str(resolution.origin(here)))}"


def _item(item: Any, resolution: Resolution, place: Place, indent: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield f"{indent}- {flow(item)} # {on_one_line(str(resolution.origin(place)))}"
        return
    lines = list(_lines(item, resolution, place, f"{indent}  "))
    yield f"{indent}- {lines[0].lstrip()}"
    yield from lines[1:]


def flow(value: Any) -> str:
    """Plain data as YAML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        # YAML would read 1e-05 as a string.
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return json.dumps(value)


def _text(value: str) -> str:
    if PLAIN.fullmatch(value) and value.lower() not in RESERVED:
        return value
    if value.isprintable():
        return json.dumps(value, ensure_ascii=False)
    # Line breaks of Unicode, which YAML reads otherwise than JSON.
    return yaml.safe_dump(value, default_style='"', width=math.inf).removesuffix("\n")


# ---- The resolved configuration of an audit, as it lies beside the audit.


LARGEST = 1 << 24
"""Bytes of a configuration that is read."""


def resolved_configuration(path: Path, audit: str) -> dict[str, Any]:
    """Configuration that results/audits/<audit>/config.yaml holds, every value written.

    Raises InputError for a file that write_configuration did not write: one that was edited, that leaves a value out,
    or holds more than the audit asks for. No file that it names is opened.
    """
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path}: larger than {LARGEST:,} bytes; no configuration is")
    require_checksum(path)
    asked = read_configuration([path], {})
    written: Any = deepcopy(asked)
    complete = written.get("run") == [audit] and [*written.get("audits", {})] == [audit]
    # Names of files, or patterns, in place of models would be looked for.
    if not complete or not all(_has(written["models"], name) for name in written["audits"][audit]["models"]):
        raise InputError(f"{path}: not the resolved configuration of the audit {audit!r}; ask for both again")
    resolution = resolve(asked)
    require_consistent(resolution, thorough=False)
    if of_audit(resolution.config, audit) != written:
        raise InputError(f"{path}: not every value of the audit stands there, or more than these; ask for it again")
    return resolution.config


def _has(models: Any, name: str) -> bool:
    for step in name.split("/"):
        if not isinstance(models, Mapping) or step not in models:
            return False
        models = models[step]
    return name.count("/") == 2
