"""The contents of verdict.json, and what a page shows first because of it. Imports nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gfscore.audit.verdicts.gate_rules import combine
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.measures import KINDS

Measures = Mapping[str, Mapping[str, Any]]


ATTACKED, PROVEN, ATTACK_FREE = "adversarial", "proven", "great"
"""Kinds of measures: accuracy that attacks leave, accuracy that is proven, scores that need no attack."""


def headline_of(measures: Measures) -> str:
    """The measure that is shown first where no rule judges one: an attack-free score, else a certified radius."""
    kinds = [settings["kind"] for settings in measures.values()]
    first = next((kind for kind in (ATTACK_FREE, "certified") if kind in kinds), kinds[0])
    return next(measure for measure, settings in measures.items() if settings["kind"] == first)


def judged_measure(verdict: Mapping[str, Any], measures: Measures) -> str:
    """The measure of the first rule of the gate, else headline_of."""
    return next((rule["measure"] for rule in verdict["rules"] if rule["measure"] in measures), headline_of(measures))


def attacked_measure(verdict: Mapping[str, Any], measures: Measures) -> str | None:
    """The measure whose class values are the robust accuracy that attacks leave, or None without one.

    The one that the gate judges, else the first of the audit.
    """
    names = [name for name, settings in measures.items() if settings["kind"] == ATTACKED]
    judged = [rule["measure"] for rule in verdict["rules"] if rule["measure"] in names]
    return next(iter([*judged, *names]), None)


def proven_measure(attacked: str | None, measures: Measures) -> str | None:
    """The measure of what is proven in the ball of `attacked`, or None."""
    if attacked is None:
        return None
    same = ("norm", "eps")
    ball = [measures[attacked].get(key) for key in same]
    return next(
        (
            name
            for name, settings in measures.items()
            if settings["kind"] == PROVEN and [settings.get(key) for key in same] == ball
        ),
        None,
    )


def ran_attacks(measures: Measures) -> bool:
    """Whether any measure attacks images."""
    return any(KINDS[settings["kind"]].attacks for settings in measures.values())


def judged_models(verdict: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Verdict of each model over all rules, by (threat, model)."""
    words: dict[tuple[str, str], list[str]] = {}
    for rule in verdict["rules"]:
        for model in rule["models"]:
            words.setdefault((model["threat"], model["model"]), []).append(model["verdict"])
    return {model: combine(own) for model, own in words.items()}


def shown_model(verdict: Mapping[str, Any]) -> tuple[str, str] | None:
    """The model whose classes are shown first: the best that passes, else the best undecided, else the best.

    Best by the first rule of the gate. None without a rule.
    """
    if not verdict["rules"]:
        return None
    rule, words = verdict["rules"][0], judged_models(verdict)
    sign = 1 if rule["direction"] == "at_least" else -1
    order = ["PASS", "INCONCLUSIVE", "FAIL"]

    def place(model: Mapping[str, Any]) -> tuple[int, float]:
        worth = -math.inf if math.isnan(model["value"]) else sign * model["value"]
        return order.index(words[model["threat"], model["model"]]), -worth

    best = min(rule["models"], key=place)
    return best["threat"], best["model"]


def digests_of(files: Iterable[Path | str]) -> dict[str, str]:
    """SHA-256 (hex) of files by their paths."""
    return {str(file): sha256_of_file(file) for file in files}


def require_current(verdict: Mapping[str, Any], *, source: Path | str) -> None:
    """Raise InputError unless the files that a verdict, read from `source`, rests on are those that are there now."""
    if "made_from" not in verdict:
        raise InputError(f"{source}: of an earlier version; delete it and run the same command again, to judge anew")
    for file, digest in verdict["made_from"].items():
        if not Path(file).is_file() or sha256_of_file(file) != digest:
            raise InputError(
                f"{source}: rests on another {file} than is there now; delete it and run the same command again, to "
                "judge anew"
            )
