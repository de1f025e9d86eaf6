"""Tests and confidence bounds of the mean of bounded differences, by betting a constant fraction on every sample.

Whoever bets lambda (d_i - m) on each sample has the wealth W = prod_i (1 + lambda (d_i - m)). If the d_i are
independent and their means average at most m, then E[W] = prod_i (1 + lambda (mu_i - m)) <= 1 by the inequality of the
arithmetic and geometric means, for every constant lambda >= 0. So an average of such wealths over several lambda is an
e-value, 1 / W is a p-value (Markov), and the means m that are not refused form a confidence interval. Nothing is
approximate, the order of the samples does not matter, and the d_i need not have the same distribution: a fixed number
of samples of each class is as good as independent draws.
# ASSUME: the samples are independent; their number was not chosen by looking at their values.
Source: Waudby-Smith and Ramdas 2024 (constant bets, section 4); Wasserman, Ramdas and Balakrishnan 2020 (mixtures).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.intervals import require_alpha

MOST_AT_STAKE = 0.95
"""Largest share of the wealth that one sample may cost."""

RATIO = 1.5
"""Ratio of neighbouring bets: a finer grid gains little, and every bet takes a share of the wealth to begin with."""

BISECTIONS = 30

# Products of so few factors, each at least 1 - MOST_AT_STAKE, neither vanish nor overflow.
FACTORS_PER_PRODUCT = 64

# Columns are taken together as long as their samples stay in the processor's cache.
BLOCK_ELEMENTS = 1 << 19

# Differences that take many values show it among so many of them, and are not searched for the few.
PROBED = 1000


def one_sided_p_values(
    differences: ArrayLike, *, bound: float, alpha: float, upper: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P-values of "the mean is at most 0" and "the mean is at least 0", for each column.

    Takes `differences` (n, H) float64 within [-bound, bound], n samples of each of H hypotheses, and the level `alpha`
    that one test is made for, which tunes the bets and does not affect validity. Where differences are known to lie
    between two numbers only, `differences` are the smaller ones and `upper` (n, H) the larger ones. Returns
    `(above, below)`, each (H,) float64 in (0, 1]: a small `above` says that the mean is positive. Exact level for every
    n: P(p <= a) <= a under the null. Raises InputError for a difference beyond the bound.
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

    Takes what one_sided_p_values takes; each interval holds with probability at least 1 - alpha. Excludes 0 where
    twice the smaller one-sided p-value, its bets made for alpha / 2, is below alpha.
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
    """Fractions lambda to average over, (J,) ascending, in 1 / unit of the differences.

    From the best one at the largest possible variance, sqrt(2 log(1/alpha) / n) / bound, to the largest one allowed.
    """
    require_alpha(alpha)
    lowest = min(MOST_AT_STAKE, math.sqrt(2 * math.log(1 / alpha) / max(n, 1)))
    steps = math.ceil(math.log(MOST_AT_STAKE / lowest) / math.log(RATIO))
    return np.geomspace(lowest, MOST_AT_STAKE, steps + 1) / bound


def _lower_bound(differences, *, bound, alpha):
    # The wealth falls as m grows, since a bet that would risk too much at m is cut to MOST_AT_STAKE / (bound + m).
    # Bisection keeps the end at which the wealth still refuses m, so the bound errs to the safe side.
    grid = bets(len(differences), bound=bound, alpha=alpha)
    threshold = math.log(1 / alpha)
    low = np.full(differences.shape[1], -float(bound))
    high = np.clip(differences.mean(axis=0), -bound, bound) if len(differences) else np.full(len(low), float(bound))
    rows, counts = _counted(differences)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        refused = _log_wealth(rows, counts, middle, bound=bound, grid=grid) >= threshold
        low, high = np.where(refused, middle, low), np.where(refused, high, middle)
    return low


def _counted(differences: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.integer] | None]:
    # `(rows, counts)`: the differences (n, H), each for itself, and None; or where they take at most three values, as
    # those of right and wrong answers do, these values (V, H) and how many samples of each column have them.
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
    # Rounding of a difference of two values in range may leave it by one part in 1e12.
    if differences.size and not np.abs(differences).max() <= bound * (1 + 1e-12):
        raise InputError(f"a difference lies beyond {bound:g}, the length of the measure's range, or is NaN")
    return differences
