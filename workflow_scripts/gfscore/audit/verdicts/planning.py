"""How many samples a question needs, and which differences given samples can show.

Plans are predictions, not guarantees: they assume that each class keeps the distribution of its present samples.
"""

import math
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

DEFAULT_POWER = 0.5
"""Probability of a decision that a plan aims at by default."""

DRAWS = 21
"""Number of future data sets that a plan simulates."""

DRAWS_OF_MANY_CLASSES = 7
"""Number of them with more than MANY_CLASSES: the least favourable of so many classes varies little among data sets."""

MANY_CLASSES = 100

MAX_SAMPLES = 10**9
"""Samples per class beyond which a plan says that no number is known to suffice."""

PRECISION = 1000
"""Plans for more samples than this have a relative error of at most 1 / PRECISION."""


def samples_for_rule(
    bounds: ClassBounds,
    rule: Mapping[str, Any],
    *,
    alpha: float,
    power: float = DEFAULT_POWER,
    class_names: Sequence[Any] | None = None,
    lam: float = 0.5,
) -> int | None:
    """Fewest samples per class with which a rule of a gate would be decided.

    Parameters
    ----------
    bounds : ClassBounds
        Bounds from the samples at hand, whose distributions the plan assumes.
    rule : mapping
        The rule as config.yaml writes it: its threshold `at_least` or `at_most`, `statistic`, by default the worst
        class, and `class` or `attribute` where the statistic names one.
    alpha : float
        Probability of a wrong verdict.
    power : float
        Probability of a decision that the plan approximates.
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
    power: float = DEFAULT_POWER,
    added: bool = False,
) -> int | None:
    """Fewest samples per class with which a statistic would be decided against a threshold; see samples_for_rule.

    All samples are fresh. With `added`, they include the samples at hand, which keep their values.
    """
    deviations = _deviations(len(bounds.n), power)
    needed = math.ceil(power * len(deviations))
    plan = expected_bounds(bounds)

    def is_likely_decided(n: int) -> bool:
        # The smaller the share of fresh samples, the less the mean deviates.
        fresh_share = 1 - bounds.n / np.maximum(bounds.n, n) if added else np.ones(len(bounds.n))
        decided = 0
        for drawn, deviation in enumerate(deviations, start=1):
            low, high = statistic.bounds(replace(plan, samples=n, deviation=deviation * np.sqrt(fresh_share)), alpha)
            decided += verdict_of(direction, threshold, low, high) != INCONCLUSIVE
            if decided >= needed or decided + len(deviations) - drawn < needed:
                break
        return decided >= needed

    return _fewest(is_likely_decided, start=_smallest_class(bounds.n) + 1)


def samples_for_interval(bounds: ClassBounds, *, half_width: float, alpha: float) -> int | None:
    """Fewest samples per class for simultaneous intervals of all classes that are narrow enough.

    The plan suffices if every class keeps exactly its present distribution. For Hoeffding's intervals, which need no
    distribution, see samples_for_half_width.

    Parameters
    ----------
    bounds : ClassBounds
        Bounds from the samples at hand, whose distributions and interval method the plan assumes.
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
    has_samples = bounds.n > 0

    def is_narrow(n: int) -> bool:
        expected = plan.of(n)
        widths = expected.upper(alpha_of_end) - expected.lower(alpha_of_end)
        return bool(np.all(widths[has_samples] <= 2 * half_width))

    return _fewest(is_narrow, start=_smallest_class(bounds.n))


def _deviations(classes: int, power: float) -> NDArray[np.float64]:
    # Deviations of the future means of the classes from the present ones, in standard errors: J draws (J, K) from the
    # standard normal distribution, stratified in each class (Latin hypercube sampling).
    if not 0 < power < 1:
        raise InputError(f"power must lie strictly between 0 and 1, got {power!r}")
    draws = max(DRAWS_OF_MANY_CLASSES if classes > MANY_CLASSES else DRAWS, math.ceil(1 / min(power, 1 - power)))
    rng = np.random.default_rng(0)
    strata = rng.permuted(np.tile(np.arange(draws)[:, None], (1, classes)), axis=0)
    deviations = ndtri((strata + rng.random((draws, classes))) / draws)
    # Means over all samples depend on the sums over the classes, so these too are moved to quantiles.
    sums = deviations.sum(axis=1) / math.sqrt(classes)
    quantiles = ndtri((sums.argsort().argsort() + 0.5) / draws)
    return deviations + ((quantiles - sums) / math.sqrt(classes))[:, None]


def _smallest_class(n: NDArray[np.int64]) -> int:
    return max(1, int(n[n > 0].min(initial=MAX_SAMPLES)))


def _fewest(suffices: Callable[[int], bool], *, start: int) -> int | None:
    # Bisection from `start`: classes keep the samples that they have, so fewer would change nothing.
    if not suffices(MAX_SAMPLES):
        return None
    low = start - 1
    high = start
    while not suffices(high):
        low = high
        high = 2 * high

    while high - low > max(1, high // PRECISION):
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high
