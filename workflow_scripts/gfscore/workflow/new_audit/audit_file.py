"""Text of the configuration of a new audit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gfscore.measures.derived import name_of
from gfscore.workflow.new_audit.budget import QUERIES, SEARCH_STEPS, STEPS, Sizes
from gfscore.workflow.new_audit.found import NEUTRAL
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


def audit_text(
    head: Iterable[str],
    name: str,
    *,
    data: Mapping[str, Any],
    models: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]],
    measures: Mapping[str, Mapping[str, Any]],
    norm: str,
    device: str = "auto",
) -> str:
    """YAML of an audit whose dataset, zoo and audit have one name.

    `head`: lines of comments; `data`: settings of the dataset; `models`: settings of each with lines of comments;
    `measures`: those that attack, by name, the first of which the gate judges, none for logits; `device` of the models.
    """
    (first, least) = next(((measure, ATTACKED) for measure in measures), ("clean", ACCURATE))
    lines = [f"# {line}" for line in head]
    lines += ["datasets:", f"  {name}: {flow(data)}", "models:", f"  {name}:", f"    {THREATS[norm]}:"]
    for model, (entry, comments) in models.items():
        lines += [*(f"      # {comment}" for comment in comments), f"      {model}: {flow(entry)}"]
    if device != "auto":
        lines += [f"inference: {{device: {device}}}"]
    if measures:
        lines += ["measures:", *(f"  {measure}: {flow(entry)}" for measure, entry in measures.items())]
    lines += [
        "audits:",
        f"  {name}:",
        f"    dataset: {name}",
        f"    measures: [{', '.join(['clean', 'great-softmax', *measures])}]",
        f"    gate: [{{measure: {first}, at_least: {least}}}]  # of the worst class; yours to decide",
    ]
    return "\n".join(lines) + "\n"


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
