"""Tests and confidence bounds of the mean of bounded differences, by betting a constant fraction on every sample.

Betting lambda (d_i - m) on each sample yields the wealth W = prod_i (1 + lambda (d_i - m)). If the d_i are independent
and their means average at most m, then E[W] = prod_i (1 + lambda (mu_i - m)) <= 1 by the inequality of the arithmetic
and geometric means, for every constant lambda >= 0. So the average of such wealths over several lambda is an e-value,
1 / W is a p-value (Markov), and the means m that are not rejected form a confidence interval. The statements are exact,
do not depend on the order of the samples, and need no identical distributions: a fixed number of samples per class is
as good as independent draws.
# ASSUME: the samples are independent; their number was not chosen by looking at their values.
Source: Waudby-Smith and Ramdas 2024 (constant bets, section 4); Wasserman, Ramdas and Balakrishnan 2020 (mixtures).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.intervals import require_alpha

MOST_AT_STAKE = 0.95
"""Largest share of the wealth that one sample may lose."""

RATIO = 1.5
"""Ratio of neighbouring bets; a finer grid gains little, because the initial wealth is divided among all bets."""

BISECTIONS = 30

# Products of so few factors, each at least 1 - MOST_AT_STAKE, neither vanish nor overflow.
FACTORS_PER_PRODUCT = 64

# Elements of a block of columns, so that it stays in the processor's cache.
BLOCK_ELEMENTS = 1 << 19

# Number of differences that are examined first to see whether they take at most three values.
PROBED = 1000


def one_sided_p_values(
    differences: ArrayLike, *, bound: float, alpha: float, upper: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P-values of "the mean is at most 0" and "the mean is at least 0", for each column.

    Takes `differences` (n, H) float64 within [-bound, bound], n samples of each of H hypotheses, and `alpha`, the level
    that the bets are tuned for, which does not affect validity. Where a difference is only known to lie between two
    numbers, `differences` and `upper` (n, H) are these. Returns `(above, below)`, each (H,) float64 in (0, 1]: a small
    `above` is evidence of a positive mean. Valid for every n: P(p <= a) <= a under the null hypothesis. Raises
    InputError for a difference beyond the bound.
    """
    differences = _require_bounded(differences, bound)
    upper = differences if upper is None else _require_bounded(upper, bound)
    grid = bets(len(differences), bound=bound, alpha=alpha)
    null = np.zeros(differences.shape[1])
    above, below = (
        np.clip(np.exp(-_log_wealth(*_counted(gains), null, bound=bound, grid=grid)), np.finfo(float).tiny, 1)
        for gains in (differences, -upper)
    )
    return above, below


def mean_bounds(
    differences: ArrayLike, *, bound: float, alpha: float, upper: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Confidence interval of the mean of each column: `(low, high)`, each (H,) float64 within [-bound, bound].

    Arguments as one_sided_p_values takes them; each interval holds with probability at least 1 - alpha. It excludes 0
    where twice the smaller one-sided p-value, with bets tuned for alpha / 2, is below alpha.
    """
    differences = _require_bounded(differences, bound)
    upper = differences if upper is None else _require_bounded(upper, bound)
    return (
        _lower_bound(differences, bound=bound, alpha=alpha / 2),
        -_lower_bound(-upper, bound=bound, alpha=alpha / 2),
    )


def lower_mean_bounds(differences: ArrayLike, *, bound: float, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bound of the mean of each column, (H,) float64, each with confidence at least 1 - alpha."""
    return _lower_bound(_require_bounded(differences, bound), bound=bound, alpha=alpha)


def bets(n: int, *, bound: float, alpha: float) -> NDArray[np.float64]:
    """Grid of fractions lambda to average over, (J,) ascending, in units of 1 / difference.

    From the optimum for the largest possible variance, sqrt(2 log(1/alpha) / n) / bound, to MOST_AT_STAKE / bound.
    """
    require_alpha(alpha)
    lowest = min(MOST_AT_STAKE, math.sqrt(2 * math.log(1 / alpha) / max(n, 1)))
    steps = math.ceil(math.log(MOST_AT_STAKE / lowest) / math.log(RATIO))
    return np.geomspace(lowest, MOST_AT_STAKE, steps + 1) / bound


def _lower_bound(differences, *, bound, alpha):
    # The wealth falls as m grows, since a bet that would risk too much at m is cut to MOST_AT_STAKE / (bound + m).
    # Bisection returns the end at which the wealth still rejects m, so the bound is conservative.
    grid = bets(len(differences), bound=bound, alpha=alpha)
    threshold = math.log(1 / alpha)
    low = np.full(differences.shape[1], -float(bound))
    high = np.clip(differences.mean(axis=0), -bound, bound) if len(differences) else np.full(len(low), float(bound))
    rows, counts = _counted(differences)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        rejected = _log_wealth(rows, counts, middle, bound=bound, grid=grid) >= threshold
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return low


def _counted(differences: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.integer] | None]:
    # `(rows, counts)`: the differences (n, H) and None; or where they take at most three values, as those of 0/1
    # measures do, these values (V, H) and the number of samples of each column that have them.
    if differences.size and len(np.unique(differences.flat[:PROBED])) <= 3:
        ends = differences.min(), differences.max()
        between = differences[(differences != ends[0]) & (differences != ends[1])]
        values = np.unique([*ends, *between[:1]])
        if (between == between[:1]).all():
            counts = np.stack([np.count_nonzero(differences == value, axis=0) for value in values])
            return np.broadcast_to(values[:, None], counts.shape), counts
    return differences, None


def _log_wealth(rows, counts, mean, *, bound, grid):
    # Logarithm of the average wealth of bets on a mean above `mean` (H,), from what _counted returns.
    n, hypotheses = rows.shape
    result = np.zeros(hypotheses)
    if n == 0:
        return result
    starts = np.arange(0, n, FACTORS_PER_PRODUCT)
    step = max(1, BLOCK_ELEMENTS // n)
    for start in range(0, hypotheses, step):
        block = slice(start, start + step)
        gains = rows[:, block] - mean[block]
        most = MOST_AT_STAKE / np.maximum(bound + mean[block], np.finfo(float).tiny)
        logs = np.empty((len(grid), gains.shape[1]))
        for index, fraction in enumerate(grid):
            factors = 1 + np.minimum(fraction, most) * gains
            if counts is None:
                logs[index] = np.log(np.multiply.reduceat(factors, starts, axis=0)).sum(axis=0)
            else:
                logs[index] = (counts[:, block] * np.log(factors)).sum(axis=0)
        result[block] = np.logaddexp.reduce(logs, axis=0) - math.log(len(grid))
    return result


def _require_bounded(differences: ArrayLike, bound: float) -> NDArray[np.float64]:
    differences = np.asarray(differences, dtype=np.float64)
    if not bound > 0:
        raise InputError(f"the bound of the differences must be positive, got {bound!r}")
    # The difference of two values within the range may exceed the bound by rounding.
    if differences.size and not np.abs(differences).max() <= bound * (1 + 1e-12):
        raise InputError(f"a difference lies beyond {bound:g}, the length of the measure's range, or is NaN")
    return differences
