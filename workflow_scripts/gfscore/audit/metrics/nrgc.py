"""NRGC, the normalised robustness Gini coefficient: how unevenly the total is spread over the classes."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import Case, Interval, Metric
from gfscore.core.errors import InputError
from gfscore.core.lazy import np
from gfscore.statistics.quotients import ratio

DINKELBACH_STEPS = 100
"""Steps of Dinkelbach's method at most; it converges superlinearly."""

ROUNDING = 1e-12
"""Tolerance for rounding errors: absolute of class values, relative of NRGC."""


def nrgc(values: np.ndarray) -> np.ndarray:
    """Gini coefficient of the class values, sum_ij |x_i - x_j| / (2 K^2 mean), in O(K log K).

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values, at least 0.

    Returns
    -------
    ndarray (...)
        In [0, (K-1)/K], 0 for equal classes; invariant to scale; NaN when every value is 0.

    Raises
    ------
    InputError
        For a value below 0 by more than rounding errors.

    References
    ----------
    GF-Score, Definition 3 (Eq. 5).
    """
    lowest = values.min(initial=0)
    if lowest < -ROUNDING:
        raise InputError(f"the Gini coefficient needs values >= 0, got {lowest}")
    values = np.sort(np.maximum(values, 0), axis=-1)
    k = values.shape[-1]
    total = values.sum(axis=-1)
    # The sum of |x_i - x_j| over pairs is the sum over gaps between neighbours in rank, each times the number of pairs
    # that it separates. All terms are at least 0, so that rounding cannot make the sum negative.
    pairs_across_gap = np.arange(1, k) * np.arange(k - 1, 0, -1)
    sum_of_differences = np.diff(values, axis=-1) @ pairs_across_gap
    return ratio(sum_of_differences, k * total)


def over_box(low: np.ndarray, high: np.ndarray) -> Interval:
    """Smallest and largest NRGC over a box of class values (K,) >= 0; (NaN, NaN) when the whole box is 0.

    The GF-Score paper has no such bounds.

    References
    ----------
    Dinkelbach 1967 (maximum of a ratio).
    """
    if high.max() == 0:
        return float("nan"), float("nan")
    return _smallest(low, high), _largest(low, high)


def _smallest(low: np.ndarray, high: np.ndarray) -> float:
    # Dinkelbach's method: each step minimises numerator minus theta times denominator over the box. That is smallest
    # where every class is as near to a common level as its interval allows. As the level rises past an end of an
    # interval, the difference changes at the rate: classes wholly below it, less those wholly above, less K theta.
    k = len(low)
    levels = np.unique(np.concatenate([low, high]))
    below = np.searchsorted(np.sort(high), levels, side="right")
    above = k - np.searchsorted(np.sort(low), levels, side="right")
    theta = float(nrgc(high))
    for _ in range(DINKELBACH_STEPS):
        level = levels[np.searchsorted(below - above, k * theta)]
        point = np.clip(level, low, high)
        improved = float(nrgc(point)) if point.sum() > 0 else theta
        if improved >= theta * (1 - ROUNDING):
            return theta
        theta = improved
    raise RuntimeError(f"the smallest NRGC over the class intervals did not converge in {DINKELBACH_STEPS} steps")


def _largest(low: np.ndarray, high: np.ndarray) -> float:
    # NRGC = sum_r c_r x_(r) / (K sum x), with x_(r) the value at rank r. Dinkelbach's method maximises this ratio: each
    # step maximises sum_r (c_r - K theta) x_(r), numerator minus theta times denominator, over rankings and vertices of
    # the box. That is a linear assignment of classes to ranks. Any ranking that raises theta is a step; only where the
    # guess does not is the best one needed.
    k = len(low)
    coefficients = 2.0 * np.arange(1, k + 1) - k - 1
    point = np.where(np.arange(k) == high.argmax(), high, low)
    theta = float(nrgc(point))
    for _ in range(DINKELBACH_STEPS):
        weights = coefficients - k * theta
        guess = _guess(low, high, weights)
        improved = _nrgc_of(guess, low, high, weights)
        if not improved > theta * (1 + ROUNDING):
            improved = _nrgc_of(_best_ranking(guess, low, high, weights), low, high, weights)
        if not improved > theta * (1 + ROUNDING):
            return theta
        theta = improved
    raise RuntimeError(f"the largest NRGC over the class intervals did not converge in {DINKELBACH_STEPS} steps")


def _nrgc_of(class_at_rank: np.ndarray, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> float:
    # NRGC where the class at each rank of weight > 0 is at its high, and the others at their low; NaN if all are 0.
    return float(nrgc(np.where(weights > 0, high[class_at_rank], low[class_at_rank])))


def _guess(low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> np.ndarray:
    # Class at each rank: the lows of the classes with the lowest middles, then the highs of the others.
    at_low = np.count_nonzero(weights <= 0)
    by_middle = np.argsort(low + high)
    lower = by_middle[:at_low]
    upper = by_middle[at_low:]
    return np.concatenate([lower[np.argsort(low[lower])], upper[np.argsort(high[upper])]])


def _best_ranking(guess: np.ndarray, low: np.ndarray, high: np.ndarray, weights: np.ndarray) -> np.ndarray:
    # Class at each rank such that sum_r weights_r x_(r) is largest, where x_(r) is the class's low at ranks of weight
    # <= 0, and its high at the others: the guess, or what the assignment that starts from it finds.
    from scipy.optimize import linear_sum_assignment

    at_low = np.count_nonzero(weights <= 0)
    if at_low == len(guess):
        return guess

    # Dual prices of the ranks, with which every class wins most at its own rank among those of its side. The guess is
    # the best ranking if no class at a low rank would gain more by a high one than any class there does.
    lower = guess[:at_low]
    upper = guess[at_low:]
    prices_low = _prices(low[lower], weights[:at_low])
    prices_high = _prices(high[upper], weights[at_low:])
    gain = _most_won(high, high[upper], weights[at_low:], prices_high)
    gain -= _most_won(low, low[lower], weights[:at_low], prices_low)
    if gain[lower].max() <= gain[upper].min():
        return guess

    # The prices make all costs nearly 0, which speeds up the solver thirtyfold at K = 1,000 without changing the
    # solution.
    profit_low = np.multiply.outer(low[guess], weights[:at_low])
    profit_high = np.multiply.outer(high[guess], weights[at_low:])
    profit = np.concatenate([profit_low, profit_high], axis=1)
    between = np.sort(gain)[at_low - 1 : at_low + 1].mean()
    profit -= np.concatenate([prices_low, prices_high + between])
    rows, ranks = linear_sum_assignment(profit.max(axis=1, keepdims=True) - profit)
    return guess[rows[np.argsort(ranks)]]


def _prices(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    # Prices of the ranks of ascending values: two neighbouring ranks are worth the same to the mean of their values.
    return np.append(0, np.cumsum(np.diff(weights) * (values[:-1] + values[1:]) / 2))


def _most_won(values: np.ndarray, ranked: np.ndarray, weights: np.ndarray, prices: np.ndarray) -> np.ndarray:
    # Most that each class can win at ranks with these prices, which belong to the ascending values `ranked`.
    rank = np.searchsorted((ranked[:-1] + ranked[1:]) / 2, values)
    return weights[rank] * values - prices[rank]


METRIC = Metric(
    name="nrgc",
    title="NRGC",
    meaning="NRGC, Gini coefficient of the classes",
    explanation=(
        "Normalised robustness Gini coefficient: how unevenly the total is spread over the classes. 0 means all equal; "
        "at most 1 − 1/K for K classes; lower is more equal. It ignores the scale, and is undefined when every class "
        "is at 0."
    ),
    source="GF-Score, Definition 3 (Eq. 5)",
    kind="disparity",
    direction=-1,
    value=nrgc,
    value_range=lambda lowest, highest, *, classes, lam: (0.0, 1 - 1 / classes),
    at_equality=0.0,
    unitless=True,
    # Pairs of (1, 2, 5): |1-2| = 1, |1-5| = 4, |2-5| = 3, each twice: 16 / (2 * 9 * 8/3) = 1/3.
    case=Case(values=(1.0, 2.0, 5.0), expected=1 / 3),
    over_box=over_box,
    order=4,
    columns="first",
)
