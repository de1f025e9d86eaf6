"""Confidence bounds of a mean by betting against it (Waudby-Smith and Ramdas 2024).

A gambler who bets that the mean exceeds m multiplies the capital by 1 + lambda_t (x_t - m) at each value x_t, where
lambda_t depends only on the values before. If the mean is m, or less, the capital is a non-negative supermartingale,
so it ever reaches 1 / alpha with probability at most alpha (Ville). The lower bound is the smallest m at which it does
not. Bets aim at a given number of values, but the bound is valid for every sample size.

# ASSUME: values are independent draws, or arrive in an order that was drawn at random. Sorted values void the bound.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.intervals import require_alpha

TRUNCATION = 0.75
"""Largest share of the capital that one value may lose; the authors' choice for a fixed number of values."""

PRIOR_MEAN, PRIOR_VARIANCE = 0.5, 0.25
"""Initial estimates of mean and variance, each weighted like one value."""

HALVINGS = 40


def lower_bounds(values: NDArray[np.float64], n: NDArray[np.integer], *, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bound of each class's mean, (K,) float64, each with confidence at least 1 - alpha.

    Takes `values` (N,) in [0, 1], the classes one after the other, each in a random order that does not depend on the
    values, and `n` (K,) values per class. 0 for a class without values. The capital falls in m for every bet that is
    capped at TRUNCATION / m, so the m that are refuted form an interval from 0, found by bisection; rounded down by
    2^-40. Source: Waudby-Smith and Ramdas 2024, section 4.4 (hedged capital, predictable plug-in), one side of it.
    """
    low = np.zeros(len(n))
    starts = np.cumsum(n) - n
    for members in _blocks_by_size(n):
        width = n[members].max()
        columns = np.arange(width)
        known = columns < n[members][:, None]
        rows = np.where(known, values[np.where(known, starts[members][:, None] + columns, 0)], 0.0)
        low[members] = _bisect(rows, known, n[members], math.log(1 / alpha))
    return low


def _blocks_by_size(n):
    # Indices of classes in blocks whose sizes differ by a factor below two, so that padding wastes little.
    present = np.flatnonzero(n > 0)
    octave = np.frexp(n[present])[1]
    return [present[octave == value] for value in np.unique(octave)]


def _bisect(rows, known, n, target):
    bets = _bets(rows, known, n, target)
    refuted, kept = np.zeros(len(n)), np.ones(len(n))
    for _ in range(HALVINGS):
        m = (refuted + kept) / 2
        fractions = np.minimum(bets, TRUNCATION / m[:, None])
        capital = np.cumsum(np.log1p(fractions * (rows - m[:, None]) * known), axis=1).max(axis=1)
        refuted, kept = np.where(capital >= target, m, refuted), np.where(capital >= target, kept, m)
    return refuted


def _bets(rows, known, n, target):
    # sqrt(2 log(1/alpha) / (n variance)), with the variance estimated from the values before each bet.
    count = np.cumsum(known, axis=1)
    mean = (PRIOR_MEAN + np.cumsum(rows, axis=1)) / (1 + count)
    squares = np.cumsum((rows - mean) ** 2 * known, axis=1)
    variance = (PRIOR_VARIANCE + squares) / (1 + count)
    before = np.concatenate([np.full((len(n), 1), PRIOR_VARIANCE), variance[:, :-1]], axis=1)
    return np.sqrt(2 * target / (n[:, None] * before))


# ---- Tests and confidence bounds of the mean of bounded differences, by betting a constant fraction on every
# sample. Betting lambda (d_i - m) on each sample yields the wealth W = prod_i (1 + lambda (d_i - m)). If the d_i
# are independent and their means average at most m, then E[W] = prod_i (1 + lambda (mu_i - m)) <= 1 by the
# inequality of the arithmetic and geometric means, for every constant lambda >= 0. So the average of such wealths
# over several lambda is an e-value, 1 / W is a p-value (Markov), and the means m that are not rejected form a
# confidence interval. The statements are exact, do not depend on the order of the samples, and need no identical
# distributions: a fixed number of samples per class is as good as independent draws. # ASSUME: the samples are
# independent; their number was not chosen by looking at their values. Source: Waudby-Smith and Ramdas 2024
# (constant bets, section 4); Wasserman, Ramdas and Balakrishnan 2020 (mixtures).


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
