"""How many samples a question needs, and which differences given samples can show.

Plans are predictions, not guarantees: they suppose that each class keeps the distribution it has shown so far.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gfscore.audit.verdicts.gate_rules import statistic_of, verdict_of
from gfscore.core.errors import InputError
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.expected_bounds import expected_bounds

MOST_SAMPLES = 10**9
"""Samples per class beyond which a plan says that no number is known to suffice."""

PRECISION = 1000
"""Plans for more samples than this have a relative error of at most 1 / PRECISION."""


def samples_for_rule(
    bounds: ClassBounds,
    rule: Mapping[str, Any],
    *,
    alpha: float,
    power: float | None = None,
    class_names: Sequence[Any] | None = None,
    lam: float = 0.5,
) -> int | None:
    """Fewest samples per class with which a rule would be decided, or None when no number is known to suffice.

    Takes ClassBounds of the samples at hand, a rule of the gate (its statistic and threshold), the `alpha` of the
    verdict, K `class_names` when the rule names a class, and `lam` of FP. `power` is the wanted probability of a
    decision. With None the plan suffices if every class keeps exactly its present distribution, which happens about
    half of the time.
    """
    expected = expected_bounds(bounds, reserve=_reserve(power, len(bounds.n)))
    statistic = statistic_of(rule, class_names=class_names or range(len(bounds.n)), lam=lam)

    def decided(n: Any) -> bool:
        low, high = statistic.bounds(expected.of(n), alpha)
        return verdict_of(rule, low, high) != "INCONCLUSIVE"

    return _fewest(decided, start=_smallest(bounds.n))


def samples_for_interval(
    bounds: ClassBounds, *, half_width: float, alpha: float, power: float | None = None
) -> int | None:
    """Fewest samples per class for simultaneous intervals no wider than twice a half-width in every class, or None.

    Takes ClassBounds of samples at hand, whose distributions and interval method the plan supposes; `power` as in
    samples_for_rule. For Hoeffding's intervals, which need no distribution, see samples_for_half_width.
    """
    if half_width <= 0:
        raise InputError(f"half-width must be positive, got {half_width}")
    plan = expected_bounds(bounds, reserve=_reserve(power, len(bounds.n)))
    side, present = alpha / (2 * len(bounds.n)), bounds.n > 0

    def narrow(n: Any) -> bool:
        expected = plan.of(n)
        return bool(np.all((expected.upper(side) - expected.lower(side))[present] <= 2 * half_width))

    return _fewest(narrow, start=_smallest(bounds.n))


def _reserve(power, classes):
    if power is None:
        return 0.0
    if not 0 < power < 1:
        raise InputError(f"power must lie strictly between 0 and 1, got {power!r}")
    from scipy.special import ndtri

    # All classes must do this well at once: by a union bound, each may fail with probability (1 - power) / K.
    return max(0.0, float(-ndtri((1 - power) / classes)))


def _smallest(n):
    return max(1, int(n[n > 0].min(initial=MOST_SAMPLES)))


def _fewest(enough, *, start):
    # With fewer than `start` nothing changes, since classes keep the samples that they have.
    if not enough(MOST_SAMPLES):
        return None
    low, high = start - 1, start
    while not enough(high):
        low, high = high, 2 * high
    while high - low > max(1, high // PRECISION):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
