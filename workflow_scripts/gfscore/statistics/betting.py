"""Confidence bounds and tests of means of bounded values, by betting against a mean.

A gambler who bets that the mean exceeds m multiplies the wealth by 1 + lambda_t (x_t - m) at each value x_t. If the
mean is m or less, the wealth reaches 1 / alpha with probability at most alpha, so that a wealth of 1 / alpha refutes m;
the lower bound of the mean is the smallest m that is not refuted. Two kinds of bets are used:

- **Adaptive bets** (`lower_bounds`), where lambda_t depends on the values before: the tightest bounds of class values.
  The wealth is a non-negative supermartingale, which ever reaches 1 / alpha with probability at most alpha (Ville).
  ASSUME: values are independent draws, or arrive in an order that was drawn at random. Sorted values void the bound.
- **Constant bets** (`mean_bounds`, `one_sided_p_values`), whose wealths prod_i (1 + lambda (x_i - m)) are averaged over
  several lambda. For independent values whose means average at most m, the expected wealth is at most 1 by the
  inequality of the arithmetic and geometric means, so 1 / wealth is a p-value (Markov). The statements are exact, do
  not depend on the order of the samples, and need no identical distributions: a fixed number of samples per class is
  as good as independent draws.
  ASSUME: the samples are independent; their number was not chosen by looking at their values.

References
----------
Waudby-Smith and Ramdas 2024 (sections 4 and 4.4); Wasserman, Ramdas and Balakrishnan 2020 (mixtures of wealths).
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize.elementwise import find_root

from gfscore.core.errors import InputError
from gfscore.statistics.intervals import last_rejected, require_alpha

TRUNCATION = 0.75
"""Largest share of the wealth that one value may lose to an adaptive bet; the authors' choice."""

PRIOR_MEAN, PRIOR_VARIANCE = 0.5, 0.25
"""Initial estimates of mean and variance for adaptive bets, each weighted like one value."""

HALVINGS = 40
"""Bisections of an adaptive bound."""

MOST_AT_STAKE = 0.95
"""Largest share of the wealth that one sample may lose to a constant bet."""

RATIO = 1.5
"""Ratio of neighbouring constant bets; a finer grid gains little, because the initial wealth is divided among them."""

RESOLUTION = 2**-30
"""How near a bound by constant bets lies to the crossing of the wealth, in shares of the range."""

FACTORS_PER_PRODUCT = 64
"""Products of so few factors, each at least 1 - MOST_AT_STAKE, neither vanish nor overflow."""

BLOCK_ELEMENTS = 1 << 19
"""Elements of a block of columns, so that it stays in the processor's cache."""

PROBED = 1000
"""Differences among which more than three values are looked for, before all differences are compared."""

SMALLEST = np.finfo(float).tiny
"""Smallest p-value, and smallest number that divides: the smallest normal number of float64."""


# ---- adaptive bets ----


def lower_bounds(values: NDArray[np.float64], sizes: NDArray[np.integer], *, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bounds of class means, by bets that adapt to the values.

    The wealth falls in m for every bet that is capped at TRUNCATION / m, so the m that are refuted form an interval
    from 0, whose end is found by bisection and rounded down by 2^-40. Bets are tuned to the number of values of a
    class; the bound is valid whatever that number is.

    Parameters
    ----------
    values : ndarray of shape (N,), float64
        Values in [0, 1], the classes one after the other, each in a random order that does not depend on the values.
    sizes : ndarray of shape (K,)
        Number of values of each class.
    alpha : float
        Error probability of each bound.

    Returns
    -------
    ndarray of shape (K,), float64
        Bounds in [0, 1], each with confidence at least 1 - alpha; 0 for a class without values.

    References
    ----------
    Waudby-Smith and Ramdas 2024, section 4.4 (hedged capital, predictable plug-in), one side of it.
    """
    low = np.zeros(len(sizes))
    starts = np.cumsum(sizes) - sizes
    # In blocks of classes whose sizes differ by a factor below two, so that padding wastes little.
    present = np.flatnonzero(sizes > 0)
    octave = np.frexp(sizes[present])[1]
    for block in np.unique(octave):
        members = present[octave == block]
        columns = np.arange(sizes[members].max())
        valid = columns < sizes[members][:, None]
        positions = np.where(valid, starts[members][:, None] + columns, 0)
        rows = np.where(valid, values[positions], 0.0)
        low[members] = _refuted_means(rows, valid, math.log(1 / alpha))
    return low


def _refuted_means(rows: NDArray[np.float64], valid: NDArray[np.bool_], log_threshold: float) -> NDArray[np.float64]:
    # Largest mean that is refuted for each of k classes, (k,), from their values (k, n), padded with 0 where not valid.
    adaptive_bets = _adaptive_bets(rows, valid, log_threshold)

    def rejects(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        fractions = np.minimum(adaptive_bets, TRUNCATION / m[:, None])
        log_wealth = np.cumsum(np.log1p(fractions * (rows - m[:, None]) * valid), axis=1)
        return log_wealth.max(axis=1) >= log_threshold

    return last_rejected(rejects, np.zeros(len(rows)), np.ones(len(rows)), halvings=HALVINGS)


def _adaptive_bets(rows: NDArray[np.float64], valid: NDArray[np.bool_], log_threshold: float) -> NDArray[np.float64]:
    # lambda_t = sqrt(2 log(1/alpha) / (n variance_t)), (k, n), with the variance estimated from the values before t.
    count = np.cumsum(valid, axis=1)
    mean = (PRIOR_MEAN + np.cumsum(rows, axis=1)) / (1 + count)
    squares = np.cumsum((rows - mean) ** 2 * valid, axis=1)
    variance = (PRIOR_VARIANCE + squares) / (1 + count)
    first = np.full((len(rows), 1), PRIOR_VARIANCE)
    variance_before = np.concatenate([first, variance[:, :-1]], axis=1)
    return np.sqrt(2 * log_threshold / (count[:, -1:] * variance_before))


# ---- constant bets ----


def one_sided_p_values(
    differences: ArrayLike, *, bound: float, alpha: float, upper: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P-values of "the mean is at most 0" and "the mean is at least 0", for each column.

    Parameters
    ----------
    differences : array_like of shape (n, H)
        Differences within [-bound, bound], n samples of each of H hypotheses.
    bound : float
        Length of the measure's range.
    alpha : float
        Level that the bets are tuned for, in (0, 1); it does not affect validity.
    upper : array_like of shape (n, H), optional
        Where differences are only known to lie between two numbers, their upper ends; `differences` are the lower ones.

    Returns
    -------
    above, below : ndarray of shape (H,), float64
        P-values in (0, 1]: a small `above` is evidence of a positive mean. P(p <= a) <= a under the null hypothesis,
        for every n.

    Raises
    ------
    InputError
        For a difference beyond the bound, a bound that is not positive, and an alpha outside (0, 1).
    """
    differences = _require_bounded(differences, bound)
    upper = differences if upper is None else _require_bounded(upper, bound)
    grid = bets(len(differences), bound=bound, alpha=alpha)
    above = _p_values(differences, bound=bound, grid=grid)
    below = _p_values(-upper, bound=bound, grid=grid)
    return above, below


def _p_values(differences: NDArray[np.float64], *, bound: float, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    # P-values (H,) of "the mean is at most 0", from differences (n, H).
    values, counts = _counted(differences)
    log_wealth = _log_wealth(values, counts, np.zeros(differences.shape[1]), bound=bound, grid=grid)
    return np.clip(np.exp(-log_wealth), SMALLEST, 1)


def mean_bounds(
    differences: ArrayLike, *, bound: float, alpha: float, upper: ArrayLike | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Confidence interval of the mean of each column.

    Parameters
    ----------
    differences : array_like of shape (n, H)
        Differences within [-bound, bound], n samples of each of H columns.
    bound : float
        Length of the measure's range.
    alpha : float
        Error probability of each interval, in (0, 1).
    upper : array_like of shape (n, H), optional
        Where differences are only known to lie between two numbers, their upper ends; `differences` are the lower ones.

    Returns
    -------
    low, high : ndarray of shape (H,), float64
        Within [-bound, bound], each pair with confidence at least 1 - alpha. It excludes 0 where twice the smaller
        one-sided p-value, with bets tuned for alpha / 2, is below alpha.

    Raises
    ------
    InputError
        For a difference beyond the bound, and a bound or an alpha that is not positive.
    """
    differences = _require_bounded(differences, bound)
    upper = differences if upper is None else _require_bounded(upper, bound)
    low = _lower_bound(differences, bound=bound, alpha=alpha / 2)
    high = -_lower_bound(-upper, bound=bound, alpha=alpha / 2)
    return low, high


def lower_mean_bounds(differences: ArrayLike, *, bound: float, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bound of the mean of each column.

    Parameters
    ----------
    differences : array_like of shape (n, H)
        Differences within [-bound, bound], n samples of each of H columns.
    bound : float
        Length of the measure's range.
    alpha : float
        Error probability of each bound, in (0, 1).

    Returns
    -------
    ndarray of shape (H,), float64
        At least -bound, each with confidence at least 1 - alpha.

    Raises
    ------
    InputError
        For a difference beyond the bound, a bound that is not positive, and an alpha outside (0, 1).
    """
    return _lower_bound(_require_bounded(differences, bound), bound=bound, alpha=alpha)


def bets(samples: int, *, bound: float, alpha: float) -> NDArray[np.float64]:
    """Grid of constant bets lambda whose wealths are averaged.

    Parameters
    ----------
    samples : int
        Number of samples n.
    bound : float
        Length of the measure's range.
    alpha : float
        Level that the bets are tuned for, in (0, 1).

    Returns
    -------
    ndarray of shape (J,), float64
        Ascending, in units of 1 / difference: from the optimum for the largest possible variance,
        sqrt(2 log(1/alpha) / n) / bound, to MOST_AT_STAKE / bound.

    Raises
    ------
    InputError
        For an alpha outside (0, 1).
    """
    require_alpha(alpha)
    lowest = min(MOST_AT_STAKE, math.sqrt(2 * math.log(1 / alpha) / max(samples, 1)))
    steps = math.ceil(math.log(MOST_AT_STAKE / lowest) / math.log(RATIO))
    return np.geomspace(lowest, MOST_AT_STAKE, steps + 1) / bound


def _lower_bound(differences: NDArray[np.float64], *, bound: float, alpha: float) -> NDArray[np.float64]:
    # Lower bounds (H,) of the means of differences (n, H). The wealth falls as the mean m that is bet against grows,
    # since a bet that would risk too much at m is cut to MOST_AT_STAKE / (bound + m).
    grid = bets(len(differences), bound=bound, alpha=alpha)
    threshold = math.log(1 / alpha)
    lowest = np.full(differences.shape[1], -float(bound))
    if not differences.size:
        return lowest
    values, counts = _counted(differences)

    def excess(means: NDArray[np.float64], columns: NDArray[np.int64]) -> NDArray[np.float64]:
        counts_of_columns = None if counts is None else counts[:, columns]
        return _log_wealth(values[:, columns], counts_of_columns, means, bound=bound, grid=grid) - threshold

    mean = np.clip(differences.mean(axis=0), -bound, bound)
    crossing = find_root(
        excess, (lowest, mean), args=(np.arange(len(mean)),), tolerances={"xatol": RESOLUTION * bound, "xrtol": 0}
    )
    # Of the last bracket the end at which the wealth still rejects m, so that the bound is conservative; or the root,
    # where it was met before the bracket was narrow. No crossing is found where the wealth rejects no mean.
    rejected = np.where(crossing.f_x >= 0, crossing.x, crossing.bracket[0])
    return np.where(crossing.success, rejected, lowest)


def _counted(differences: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.integer] | None]:
    # Values (V, H) of the columns, and the number of samples (V, H) of a column that have each of them. Differences
    # that take at most three values in all, as those of 0/1 measures do, are counted; all others are returned as they
    # are, one for each sample (V = n), with None in place of counts of 1.
    if not differences.size or len(np.unique(differences.flat[:PROBED])) > 3:
        return differences, None
    lowest = differences.min()
    highest = differences.max()
    between = differences[(differences != lowest) & (differences != highest)]
    if not (between == between[:1]).all():
        return differences, None
    values = np.unique([lowest, highest, *between[:1]])
    counts = np.stack([np.count_nonzero(differences == value, axis=0) for value in values])
    return np.broadcast_to(values[:, None], counts.shape), counts


def _log_wealth(
    values: NDArray[np.float64],
    counts: NDArray[np.integer] | None,
    mean: NDArray[np.float64],
    *,
    bound: float,
    grid: NDArray[np.float64],
) -> NDArray[np.float64]:
    # Logarithms (H,) of the wealth, averaged over a grid of bets, of bets that the mean of each column exceeds `mean`
    # (H,); values and counts (V, H) as of `_counted`.
    size, hypotheses = values.shape
    result = np.zeros(hypotheses)
    if size == 0:
        return result
    starts = np.arange(0, size, FACTORS_PER_PRODUCT)
    step = max(1, BLOCK_ELEMENTS // size)
    for start in range(0, hypotheses, step):
        block = slice(start, start + step)
        gains = values[:, block] - mean[block]
        largest_bet = MOST_AT_STAKE / np.maximum(bound + mean[block], SMALLEST)
        logs = np.empty((len(grid), gains.shape[1]))
        for index, fraction in enumerate(grid):
            factors = 1 + np.minimum(fraction, largest_bet) * gains
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
