"""Configuration of a new audit as text, and the numbers of samples that it measures within its minutes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gfscore.core.errors import InputError
from gfscore.core.names import on_one_line
from gfscore.measures.names import name_of
from gfscore.workflow.configuration import path_mistakes
from gfscore.workflow.new_audit.request import NEUTRAL
from gfscore.workflow.resolved_file import flow

ATTACKED = 0.3
"""Least robust accuracy of the worst class under attack in the gate of a new audit."""

ACCURATE = 0.5
"""Least clean accuracy of the worst class in the gate of a new audit without attacks."""

THREATS = {"linf": "Linf", "l2": "L2"}
FRACTION = re.compile(r"\d+/\d+")

STEPS = 50
"""Steps of the gradient attack."""

QUERIES = 200
"""Queries of the random attack."""

SEARCH_STEPS = 40
"""Steps of the search for the nearest adversarial example."""

BISECTION = 12
"""Passes of the bisection after it."""

GRADIENT = 3.0
"""A forward and a backward pass, in forward passes."""

STARTING = 60.0
"""Seconds for steps that start, tables and the page."""

LEAST = 10.0
"""Seconds of computing that are planned at least."""

SHARES = {"clean": 0.15, "adversarial": 0.6, "minimal": 0.25}
"""Shares of the time for computing, by measure."""

ENOUGH = 20
"""Samples of a class below which an audit says that they are few."""


@dataclass(frozen=True)
class Sizes:
    """Samples of each class that an audit measures.

    Parameters
    ----------
    clean, adversarial, minimal : int or None
        Samples of a class whose logits are computed, that are attacked, and for which the nearest adversarial example
        is searched; None for all.
    seconds : float
        What the audit would take with these.
    """

    clean: int | None
    adversarial: int | None
    minimal: int | None
    seconds: float


def sizes(forward: Sequence[float], counts: Sequence[int], *, radii: int, minutes: float, cores: int = 2) -> Sizes:
    """Samples of each class that fit into the minutes, at least one.

    Parameters
    ----------
    forward : sequence of float
        Seconds of a forward pass of one image, of each model.
    counts : sequence of int
        Samples of each class.
    radii : int
        Number of attacks.
    minutes : float
        What the audit may take.
    cores : int
        Steps of several models run side by side on the cores.
    """
    computing = max(60 * minutes - STARTING, LEAST)
    passes = {
        "clean": 2.0,
        "adversarial": radii * (GRADIENT * STEPS + QUERIES),
        "minimal": GRADIENT * SEARCH_STEPS + BISECTION,
    }
    # Several models share the cores; a single one has one job of each measure beside the other.
    parallel = min(cores, len(forward)) if len(forward) > 1 else 1
    pass_seconds = sum(forward) / parallel
    most = max(counts)

    chosen: dict[str, int | None] = {}
    total = 0.0
    for measure, share in SHARES.items():
        per_class = two_figures(int(share * computing / (passes[measure] * pass_seconds * len(counts))))
        per_class = max(1, min(per_class, most))
        total += sum(min(per_class, count) for count in counts) * passes[measure] * pass_seconds
        chosen[measure] = None if per_class >= most else per_class
    return Sizes(**chosen, seconds=STARTING + total)


def two_figures(number: int) -> int:
    """Number rounded down to two figures, so that another measurement of the time more rarely gives another one."""
    digits = max(len(str(number)) - 2, 0)
    return number // 10**digits * 10**digits


@dataclass(frozen=True)
class AuditFile:
    """Configuration of a new audit: its text without the first line, and the sections that the text must be read as."""

    text: str
    sections: Mapping[str, Any]


def audit_file(
    name: str,
    *,
    data: Mapping[str, Any],
    models: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]],
    measures: Mapping[str, Mapping[str, Any]],
    norm: str,
    device: str = "auto",
) -> AuditFile:
    """Configuration of an audit whose dataset, zoo and audit have one name.

    Parameters
    ----------
    name : str
        Name of the audit, of its dataset and of its zoo.
    data : mapping
        Settings of the dataset.
    models : mapping
        Settings of each model with lines of comments.
    measures : mapping
        Measures that attack, by name, the first of which the gate judges; none for logits.
    norm : {"linf", "l2"}
        Norm of the attacks.
    device : {"auto", "cpu", "cuda"}
        Where the models run.

    Raises
    ------
    InputError
        For a path that no file can have, or that Snakemake would misinterpret.
    """
    _require_paths("datasets", data)
    for entry, _ in models.values():
        _require_paths("models", entry)

    gate = {"measure": "clean", "at_least": ACCURATE}
    if measures:
        gate = {"measure": next(iter(measures)), "at_least": ATTACKED}
    audit = {"dataset": name, "measures": ["clean", "great-softmax", *measures], "gate": [gate]}
    entries = {model: dict(entry) for model, (entry, _) in models.items()}
    sections: dict[str, Any] = {"datasets": {name: dict(data)}, "models": {name: {THREATS[norm]: entries}}}
    if device != "auto":
        sections["inference"] = {"device": device}
    if measures:
        sections["measures"] = dict(measures)
    sections["audits"] = {name: audit}

    lines = ["# What is left out has its default: docs/configuring.md"]
    lines += ["datasets:", f"  {flow(name)}: {flow(data)}"]
    lines += ["models:", f"  {flow(name)}:", f"    {THREATS[norm]}:"]
    for model, (entry, comments) in models.items():
        for comment in comments:
            lines.append(f"      # {on_one_line(comment)}")
        lines.append(f"      {flow(model)}: {flow(entry)}")
    if device != "auto":
        lines.append(f"inference: {flow({'device': device})}")
    if measures:
        lines.append("measures:")
        for measure, entry in measures.items():
            lines.append(f"  {flow(measure)}: {flow(entry)}")
    lines += ["audits:", f"  {flow(name)}:", f"    dataset: {flow(name)}"]
    lines.append(f"    measures: {flow(audit['measures'])}")
    lines.append(f"    gate: {flow(audit['gate'])}  # of the worst class; yours to decide")
    return AuditFile("\n".join(lines) + "\n", sections)


def _require_paths(section: str, entry: Mapping[str, Any]) -> None:
    for mistake in path_mistakes((section,), entry):
        raise InputError(mistake.message)


def lines_without_attacks(reason: str) -> list[str]:
    """Lines on what is measured and judged without attacks, and why there are none."""
    return [
        f"measures  clean accuracy and the attack-free score; {reason}",
        f"gate      the worst class is right on at least {ACCURATE}; yours to decide",
    ]


def attack_measures(norm: str, radii: Sequence[str], sizes: Sizes) -> dict[str, dict[str, Any]]:
    """Entries of the measures that attack, by names that say what they are but not how many samples."""
    measures: dict[str, dict[str, Any]] = {}
    for radius in radii:
        eps = radius if FRACTION.fullmatch(radius) else float(radius)
        entry: dict[str, Any] = {"kind": "adversarial", "norm": norm, "eps": eps}
        name = name_of(entry)
        entry["attacks"] = [{"name": "apgd-ce", "steps": STEPS}, {"name": "square", "queries": QUERIES}]
        entry.update(subset(sizes.adversarial))
        measures[name] = entry
    search = {"kind": "minimal", "norm": "l2", "attacks": [{"name": "fmn", "steps": SEARCH_STEPS}]}
    search.update(subset(sizes.minimal))
    measures["minimal-l2"] = search
    return measures


def subset(per_class: int | None) -> dict[str, Any]:
    """Setting for a subset with so many samples of each class; none for all."""
    if not per_class:
        return {}
    return {"subset": {"per_class": per_class}}


def model_settings(
    entry: Mapping[str, Any], pixels: Mapping[str, Any], outputs: Sequence[int], k: int
) -> dict[str, Any]:
    """Settings of a model: those of its source, its preprocessing where it has one, its outputs where they differ.

    Parameters
    ----------
    entry : mapping
        Settings of the source.
    pixels : mapping
        Settings of the preprocessing, the keys of NEUTRAL.
    outputs : sequence of int
        The output for each class of the data.
    k : int
        Number of outputs of the model.
    """
    settings = dict(entry)
    for key, value in pixels.items():
        if value != NEUTRAL[key]:
            settings[key] = _rounded(value)
    if list(outputs) != list(range(k)):
        settings["outputs"] = list(outputs)
    return settings


def _rounded(value: Any) -> Any:
    # Means and standard deviations to six figures.
    if not isinstance(value, list):
        return value
    return [float(f"{number:.6g}") for number in value]
