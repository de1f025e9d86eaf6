"""How many samples of each class fit into the minutes that an audit may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
