"""How many samples a question needs, and which differences given samples can show.

Plans are predictions, not guarantees: they suppose that each class keeps the distribution it has shown so far.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gfscore.audit.verdicts.gate_rules import INCONCLUSIVE, Statistic, rule_on, verdict_of
from gfscore.core.errors import InputError
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.expected_bounds import expected_bounds
from gfscore.statistics.intervals import require_alpha

EVEN_CHANCE = 0.5
"""Power of a plan for which none is asked."""

MOST_PROBED = 20
"""Classes that are probed one by one for whether a decision depends on them; more are probed in so many blocks."""

MOST_SAMPLES = 10**9
"""Samples per class beyond which a plan says that no number is known to suffice."""

PRECISION = 1000
"""Plans for more samples than this have a relative error of at most 1 / PRECISION."""


def samples_for_rule(
    bounds: ClassBounds,
    rule: Mapping[str, Any],
    *,
    alpha: float,
    power: float = EVEN_CHANCE,
    class_names: Sequence[Any] | None = None,
    lam: float = 0.5,
) -> int | None:
    """Fewest samples per class with which a rule of a gate would be decided.

    Parameters
    ----------
    bounds : ClassBounds
        Bounds from the samples at hand, whose distributions the plan supposes.
    rule : mapping
        The rule as config.yaml writes it: its threshold `at_least` or `at_most`, `statistic`, by default the worst
        class, and `class` or `attribute` where the statistic names one.
    alpha : float
        Probability of a wrong verdict.
    power : float
        Wanted probability of a decision, about that of the plan.
    class_names : sequence, optional
        Names of the K classes, for a rule that names one.
    lam : float
        Weight lambda of RDI in FP.

    Returns
    -------
    int or None
        None when no number is known to suffice.

    Raises
    ------
    InputError
        For settings that a rule cannot have, an unknown class, and an alpha or a power outside (0, 1).
    """
    require_alpha(alpha)
    settings = rule_on("measure", rule)
    statistic = settings.statistic_of(class_names or list(map(str, range(len(bounds.n)))), lam=lam)
    return fewest_samples(
        bounds, statistic, direction=settings.direction, threshold=settings.threshold, alpha=alpha, power=power
    )


def fewest_samples(
    bounds: ClassBounds,
    statistic: Statistic,
    *,
    direction: str,
    threshold: float,
    alpha: float,
    power: float = EVEN_CHANCE,
) -> int | None:
    """Fewest samples per class with which a statistic would be decided against a threshold; see samples_for_rule."""
    plan = expected_bounds(bounds, reserve_together=_reserve(power, 1))
    classes = len(bounds.n)

    def is_decided(n: int, reserve: NDArray[np.float64]) -> bool:
        low, high = statistic.bounds(replace(plan, samples=n, reserve=reserve), alpha)
        return verdict_of(direction, threshold, low, high) != INCONCLUSIVE

    start = _smallest(bounds.n)
    as_seen = np.zeros(classes)
    fewest = _fewest(lambda n: is_decided(n, as_seen), start=start)
    if fewest is None:
        return None

    # Only classes that could each undo the decision must do well at once: by a union bound, each may fail with
    # probability (1 - power) / their number.
    decisive = 0
    by_value = np.argsort(bounds.samples.summary.mean)
    for block in np.array_split(by_value, min(classes, MOST_PROBED)):
        reserve = np.zeros(classes)
        reserve[block] = _reserve(power, classes)
        if not is_decided(fewest, reserve):
            decisive += len(block)
    reserve = np.full(classes, _reserve(power, max(decisive, 1)))
    return _fewest(lambda n: is_decided(n, reserve), start=fewest)


def samples_for_interval(bounds: ClassBounds, *, half_width: float, alpha: float) -> int | None:
    """Fewest samples per class for simultaneous intervals of all classes that are narrow enough.

    The plan suffices if every class keeps exactly its present distribution. For Hoeffding's intervals, which need no
    distribution, see samples_for_half_width.

    Parameters
    ----------
    bounds : ClassBounds
        Bounds from the samples at hand, whose distributions and interval method the plan supposes.
    half_width : float
        Largest half-width of an interval, above 0.
    alpha : float
        1 - the simultaneous confidence.

    Returns
    -------
    int or None
        None when no number is known to suffice.

    Raises
    ------
    InputError
        For a half-width that is not positive, and an alpha outside (0, 1).
    """
    require_alpha(alpha)
    if half_width <= 0:
        raise InputError(f"half-width must be positive, got {half_width}")
    plan = expected_bounds(bounds)
    alpha_of_end = alpha / (2 * len(bounds.n))
    present = bounds.n > 0

    def narrow(n: int) -> bool:
        expected = plan.of(n)
        widths = expected.upper(alpha_of_end) - expected.lower(alpha_of_end)
        return bool(np.all(widths[present] <= 2 * half_width))

    return _fewest(narrow, start=_smallest(bounds.n))


def _reserve(power: float, classes: int) -> float:
    if not 0 < power < 1:
        raise InputError(f"power must lie strictly between 0 and 1, got {power!r}")
    return max(0.0, float(-ndtri((1 - power) / classes)))


def _smallest(n: NDArray[np.int64]) -> int:
    return max(1, int(n[n > 0].min(initial=MOST_SAMPLES)))


def _fewest(enough: Callable[[int], bool], *, start: int) -> int | None:
    # With fewer than `start` nothing changes, since classes keep the samples that they have.
    if not enough(MOST_SAMPLES):
        return None
    low = start - 1
    high = start
    while not enough(high):
        low = high
        high = 2 * high

    while high - low > max(1, high // PRECISION):
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high
