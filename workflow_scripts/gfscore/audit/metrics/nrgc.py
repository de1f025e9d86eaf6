"""NRGC, the normalised robustness Gini coefficient: how unevenly the total is spread over the classes."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import Case, Interval, Metric
from gfscore.core.errors import InputError
from gfscore.core.lazy import np
from gfscore.statistics.quotients import ratio

DINKELBACH_STEPS = 100

ROUNDING = 1e-12
"""Largest distance below 0 of a value that is 0 but for rounding errors."""


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
    # Sum over gaps between neighbouring ranks times the pairs across each gap, which is never negative by rounding.
    pairs_across = np.arange(1, k) * np.arange(k - 1, 0, -1)
    across = np.diff(values, axis=-1) @ pairs_across
    return ratio(across, k * total)


def over_box(low: np.ndarray, high: np.ndarray) -> Interval:
    """Smallest and largest NRGC over a box of class values (K,) >= 0; (NaN, NaN) when the whole box is 0.

    Derived here; it is not in the GF-Score paper.
    """
    if high.max() == 0:
        return float("nan"), float("nan")
    # The flattest point of the box has every class as near to a common level as it may be.
    smallest = float("inf")
    for level in np.unique(np.concatenate([low, high])):
        point = np.clip(level, low, high)
        if point.sum() > 0:
            smallest = min(smallest, float(nrgc(point)))

    # NRGC is a ratio; Dinkelbach's method finds its maximum. Each step maximises numerator - theta * denominator, that
    # is sum_i (c_rank(i) - K theta) x_i over rankings and vertices: a linear assignment of classes to ranks.
    k = len(low)
    coefficients = 2.0 * np.arange(1, k + 1) - k - 1
    point = np.where(np.arange(k) == high.argmax(), high, low)
    theta = float(nrgc(point))
    for _ in range(DINKELBACH_STEPS):
        slope = coefficients - k * theta
        classes = _heaviest_ranking(low, high, slope)
        point = np.where(slope > 0, high[classes], low[classes])
        improved = float(nrgc(point)) if point.sum() > 0 else theta
        if improved <= theta * (1 + 1e-12):
            return smallest, theta
        theta = improved
    raise RuntimeError(f"the largest NRGC over the class intervals did not converge in {DINKELBACH_STEPS} steps")


def _heaviest_ranking(low: np.ndarray, high: np.ndarray, slope: np.ndarray) -> np.ndarray:
    # Class at each rank such that sum_i slope_rank(i) x_i is largest, with x_i low at ranks of negative slope, else
    # high. The dual prices of a nearly optimal ranking make all costs nearly 0, which speeds up the solver thirtyfold
    # at K = 1,000 without changing the solution.
    from scipy.optimize import linear_sum_assignment

    below = np.count_nonzero(slope <= 0)
    by_middle = np.argsort(low + high)
    lower = by_middle[:below]
    upper = by_middle[below:]
    guess = np.concatenate([lower[np.argsort(low[lower])], upper[np.argsort(high[upper])]])
    x = np.where(slope > 0, high[guess], low[guess])
    prices = np.append(0, np.cumsum(np.diff(slope) * (x[:-1] + x[1:]) / 2))
    worth = np.where(slope > 0, np.multiply.outer(high[guess], slope), np.multiply.outer(low[guess], slope)) - prices
    rows, ranks = linear_sum_assignment(worth.max(axis=1, keepdims=True) - worth)
    return guess[rows[np.argsort(ranks)]]


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
    case=Case(values=(1.0, 2.0, 5.0), number=1 / 3),
    over_box=over_box,
    against_chance=True,
    order=4,
    columns="first",
)
