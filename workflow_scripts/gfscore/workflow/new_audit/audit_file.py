"""Text of the configuration of a new audit."""

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

ATTACKED, ACCURATE = 0.3, 0.5
"""Least robust accuracy under attack, and least clean accuracy, of the worst class in the gate of a new audit."""

THREATS = {"linf": "Linf", "l2": "L2"}
FRACTION = re.compile(r"\d+/\d+")


def words_without_attacks(why: str) -> list[str]:
    """Lines on what is measured and judged without attacks, and why there are none."""
    return [
        f"measures  clean accuracy and the attack-free score; {why}",
        f"gate      the worst class is right on at least {ACCURATE}; yours to decide",
    ]


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
    for place, entry in [("datasets", data), *(("models", entry) for entry, _ in models.values())]:
        for mistake in path_mistakes((place,), entry):
            raise InputError(mistake.message)
    (first, least) = next(((measure, ATTACKED) for measure in measures), ("clean", ACCURATE))
    gate = [{"measure": first, "at_least": least}]
    audit = {"dataset": name, "measures": ["clean", "great-softmax", *measures], "gate": gate}
    entries = {model: dict(entry) for model, (entry, _) in models.items()}
    sections: dict[str, Any] = {"datasets": {name: dict(data)}, "models": {name: {THREATS[norm]: entries}}}
    if device != "auto":
        sections["inference"] = {"device": device}
    if measures:
        sections["measures"] = dict(measures)
    sections["audits"] = {name: audit}

    lines = ["# What is left out has its default: docs/configuring.md", "datasets:", f"  {flow(name)}: {flow(data)}"]
    lines += ["models:", f"  {flow(name)}:", f"    {THREATS[norm]}:"]
    for model, (entry, comments) in models.items():
        lines += [f"      # {on_one_line(comment)}" for comment in comments]
        lines.append(f"      {flow(model)}: {flow(entry)}")
    if device != "auto":
        lines.append(f"inference: {flow({'device': device})}")
    if measures:
        lines.append("measures:")
        lines += [f"  {flow(measure)}: {flow(entry)}" for measure, entry in measures.items()]
    lines += ["audits:", f"  {flow(name)}:", f"    dataset: {flow(name)}"]
    lines += [f"    measures: {flow(audit['measures'])}"]
    lines += [f"    gate: {flow(gate)}  # of the worst class; yours to decide"]
    return AuditFile("\n".join(lines) + "\n", sections)


def attack_measures(norm: str, radii: Sequence[str], sizes: Sizes) -> dict[str, Any]:
    """Entries of the measures that attack, by names that say what they are but not how many samples."""
    found = {}
    for eps in radii:
        entry = {"kind": "adversarial", "norm": norm, "eps": eps if FRACTION.fullmatch(eps) else float(eps)}
        name = name_of(entry)
        attacks = [{"name": "apgd-ce", "steps": STEPS}, {"name": "square", "queries": QUERIES}]
        found[name] = entry | {"attacks": attacks} | subset(sizes.adversarial)
    search = {"kind": "minimal", "norm": "l2", "attacks": [{"name": "fmn", "steps": SEARCH_STEPS}]}
    return found | {"minimal-l2": search | subset(sizes.minimal)}


def subset(per_class: int | None) -> dict[str, Any]:
    """Setting that leaves so many samples of each class; none for all."""
    return {"subset": {"per_class": per_class}} if per_class else {}


def model_settings(
    entry: Mapping[str, Any], pixels: Mapping[str, Any], outputs: Sequence[int], k: int
) -> dict[str, Any]:
    """Settings of a model: those of its source, its preprocessing where it has one, its outputs where they differ.

    `outputs`: the output for each class of the data; `k`: how many the model has.
    """
    changed = {key: _rounded(value) for key, value in pixels.items() if value != NEUTRAL[key]}
    selected = {} if list(outputs) == list(range(k)) else {"outputs": list(outputs)}
    return {**entry, **changed, **selected}


def _rounded(value):
    return [float(f"{number:.6g}") for number in value] if isinstance(value, list) else value


STEPS, QUERIES, SEARCH_STEPS = 50, 200, 40
"""Steps of the gradient attack, queries of the random one, steps of the search for the nearest example."""

BISECTION = 12
GRADIENT = 3.0
"""A forward and a backward pass, in forward passes."""

STARTING = 60.0
"""Seconds for steps that start, tables and the page."""

LEAST = 10.0
"""Seconds of computing that are planned at least."""

SHARES = {"clean": 0.15, "adversarial": 0.6, "minimal": 0.25}
"""Of the time that is left, by measure."""

ENOUGH = 20
"""Samples of a class below which an audit says that they are few."""


@dataclass(frozen=True)
class Sizes:
    """Samples per class of the logits, of each attack, and of the search; None for all of them.

    `seconds` is what the audit would take with these.
    """

    clean: int | None
    adversarial: int | None
    minimal: int | None
    seconds: float


def sizes(forward: Sequence[float], counts: Sequence[int], *, radii: int, minutes: float, cores: int = 2) -> Sizes:
    """Samples per class within so many minutes.

    `forward`: seconds of a forward pass of one image of each model; `counts`: samples of each class; `radii`: how many
    attacks. Steps of models run side by side on the cores. At least one sample of each class is taken.
    """
    left = max(60 * minutes - STARTING, LEAST)
    passes = {
        "clean": 2.0,
        "adversarial": radii * (GRADIENT * STEPS + QUERIES),
        "minimal": GRADIENT * SEARCH_STEPS + BISECTION,
    }
    # Several models share the cores; a single one has one job of each measure beside the other.
    each = sum(forward) / (min(cores, len(forward)) if len(forward) > 1 else 1)
    most = max(counts)
    found, total = {}, 0.0
    for measure, share in SHARES.items():
        per_class = int(share * left / (passes[measure] * each * len(counts)))
        taken = max(1, min(_round(per_class), most))
        total += sum(min(taken, count) for count in counts) * passes[measure] * each
        found[measure] = None if taken >= most else taken
    return Sizes(**found, seconds=STARTING + total)


def _round(number):
    # Two figures, so that another measurement of the time more rarely gives another number.
    digits = max(len(str(number)) - 2, 0)
    return number // 10**digits * 10**digits
