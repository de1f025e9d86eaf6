"""Complete configuration of one audit as a file, results/audits/<audit>/config.yaml, with the origin of each value."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gfscore.core.digests import require_checksum
from gfscore.core.errors import InputError
from gfscore.core.mappings import only, without
from gfscore.core.names import on_one_line, without_queries, without_query
from gfscore.core.settings import NAME_FORM, PlainSettings
from gfscore.measures import entries_of
from gfscore.workflow.config_files import KeyPath, Marked, read_configuration
from gfscore.workflow.configuration import require_consistent
from gfscore.workflow.plan import PlannedAudit, Run
from gfscore.workflow.resolution import Resolution
from gfscore.workflow.resolving import SETTINGS, resolve

HEAD = """\
# Complete configuration of the audit {audit}, with the origin of each value: default, a file, or the command line.
# To run it again: snakemake --configfile with this file. What `exports` states is not in it.
"""

FILES = "# Configuration files that it has values of, later ones overriding earlier ones: "
"""Start of the line that lists the files, as JSON."""

OVERRIDES = "# Values of --config, which override them: "
"""Start of the line that holds the values of --config, as JSON."""

PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]+)*|\d+/\d+")
"""Strings that need no quotes in YAML, except RESERVED: names, paths and fractions."""

RESERVED = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}

LARGEST_FILE = 1 << 24
"""Largest size in bytes of a file that is read."""


def audit_folder(audit: str) -> Path:
    """Folder of an audit of results/; InputError for what is not the name of one, such as a path."""
    if not NAME_FORM.fullmatch(audit):
        raise InputError(f"{audit!r}: not the name of an audit; give the last part alone of results/audits/NAME")
    return Path("results/audits", audit)


@dataclass(frozen=True)
class Origins:
    """Where the values of an audit's configuration come from: files, and values of --config but `run`."""

    files: list[str]
    overrides: PlainSettings


def configuration_of(audit: PlannedAudit) -> PlainSettings:
    """Part of a complete configuration that an audit depends on, with entries for RobustBench's models.

    The section `exports` is left out, so that no audit has to be judged again when it is filled in for a deposit.
    """
    config = audit.run.config
    models: dict[str, Any] = {}
    measures = dict(audit.measures)
    for model in audit.every_model:
        threats = models.setdefault(model.zoo, {})
        threats.setdefault(model.name.threat, {})[model.name.classifier] = model.entry
        if model.offsets:
            measures.setdefault(model.offsets.measure.name, model.offsets.measure)

    datasets = {}
    for dataset in audit.datasets:
        datasets[dataset.name] = dataset.entry
        if dataset.zoo not in (*models, None):
            # The zoo of data that the audit only trains on or compares with is not among its models.
            datasets[dataset.name] = {**dataset.entry, "models_of": None}
    return {
        "run": [audit.name],
        "audits": {audit.name: audit.entry},
        "datasets": datasets,
        "models": models,
        "measures": entries_of(measures),
        "mappers": {mapper.name: mapper.entry for mapper in audit.mappers},
        **without(only(config, SETTINGS), ["exports"]),
    }


def rendered(resolution: Resolution, audit: str) -> str:
    """Text of results/audits/<audit>/config.yaml; a function of the values and their origins.

    Queries of URLs are left out, since they may contain keys.

    Parameters
    ----------
    resolution : Resolution
        Complete configuration with the origin of every value.
    audit : str
        Name of the audit; what only other audits depend on is left out.
    """
    # `run` says which other audits were made along with this one, which does not matter to it.
    overrides = without(without_queries(resolution.overrides), ["run"])
    planned = Run(resolution.config).audits[audit]
    lines = list(_lines(configuration_of(planned), resolution, ()))

    # Files that no value comes from are not named. The origin of a value is the comment behind it.
    files = []
    for file in resolution.files:
        comment = f" # {on_one_line(file)}"
        if any(line.endswith(comment) for line in lines):
            files.append(file)
    head = [f"{FILES}{json.dumps(files or list(resolution.files))}"]
    if overrides:
        head.append(f"{OVERRIDES}{json.dumps(overrides)}")
    return HEAD.format(audit=audit) + "\n".join([*head, *lines]) + "\n"


def holds_other_values(path: Path | str, text: str) -> bool:
    """Whether a file that an earlier run wrote holds other values than a text of `rendered`; origins are no values."""
    try:
        before = yaml.safe_load(Path(path).read_bytes())
    except yaml.YAMLError:
        return True
    return bool(before != yaml.safe_load(text))


def origins(text: str) -> Origins:
    """Origins that a text of `rendered` names."""
    values = {}
    for line in text.splitlines():
        for start in (FILES, OVERRIDES):
            if line.startswith(start):
                values[start] = json.loads(line.removeprefix(start))
    return Origins(values[FILES], values.get(OVERRIDES, {}))


def read_planned_audit(path: Path, audit: str) -> PlannedAudit:
    """Plan of an audit from the complete configuration beside its tables; no file that is named there is opened.

    Parameters
    ----------
    path : Path
        File results/audits/<audit>/config.yaml.
    audit : str
        Name of the audit that the file must be of.

    Returns
    -------
    PlannedAudit

    Raises
    ------
    InputError
        For a file that is not as `rendered` makes it: one that was edited, that leaves a value of the audit out, or
        that holds values which the audit does not depend on.
    """
    config = _read_self_contained(path, audit)
    # Resolving changes its argument.
    resolution = resolve(deepcopy(config))
    require_consistent(resolution, thorough=False)
    planned = Run(resolution.config).audits[audit]
    if configuration_of(planned) != config:
        raise InputError(
            f"{path}: a value of the audit is missing, or one is there that it does not have; request the file again"
        )
    return planned


def _read_self_contained(path: Path, audit: str) -> Marked:
    # Configuration of this audit alone, with an entry of every model: one without is a pattern or the name of a file,
    # and resolving it would look for files.
    if path.stat().st_size > LARGEST_FILE:
        raise InputError(f"{path}: larger than {LARGEST_FILE:,} bytes; no configuration is")
    require_checksum(path)
    config = read_configuration([path], {})
    is_of_audit = config.get("run") == [audit] and list(config.get("audits", {})) == [audit]
    if not is_of_audit or not all(_has_entry(config["models"], name) for name in config["audits"][audit]["models"]):
        raise InputError(f"{path}: not the resolved configuration of the audit {audit!r}; request the file again")
    return config


def _has_entry(models: object, name: str) -> bool:
    # Whether zoo/threat/model names an entry.
    entry = models
    for step in name.split("/"):
        if not isinstance(entry, Mapping) or step not in entry:
            return False
        entry = entry[step]
    return name.count("/") == 2


# ---- YAML, with the origin of each value behind it ----


def _lines(data: PlainSettings, resolution: Resolution, key_path: KeyPath, indent: str = "") -> Iterator[str]:
    for key, value in data.items():
        path_of_value = (*key_path, key)
        if isinstance(value, dict) and value:
            yield f"{indent}{_text(key)}:"
            yield from _lines(value, resolution, path_of_value, f"{indent}  ")
        elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
            yield f"{indent}{_text(key)}:"
            for position, item in enumerate(value):
                yield from _item(item, resolution, (*path_of_value, position), f"{indent}  ")
        else:
            hidden = key == "url" and isinstance(value, str)
            text = flow(without_query(value) if hidden else value)
            yield f"{indent}{_text(key)}: {text} # {on_one_line(str(resolution.origin(path_of_value)))}"


def _item(item: object, resolution: Resolution, key_path: KeyPath, indent: str) -> Iterator[str]:
    if not isinstance(item, dict):
        yield f"{indent}- {flow(item)} # {on_one_line(str(resolution.origin(key_path)))}"
        return
    first, *more_lines = _lines(item, resolution, key_path, f"{indent}  ")
    yield f"{indent}- {first.lstrip()}"
    yield from more_lines


def flow(value: object) -> str:
    """Plain data as YAML in one line."""
    if isinstance(value, dict):
        items = [f"{_text(key)}: {flow(item)}" for key, item in value.items()]
        return "{" + ", ".join(items) + "}"
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
    # YAML and JSON read some line breaks of Unicode differently.
    return yaml.safe_dump(value, default_style='"', width=math.inf).removesuffix("\n")
