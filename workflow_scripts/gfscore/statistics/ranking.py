"""Ranks, rank correlations, rankings of classes, and the temperatures at which the ranking of smooth curves changes."""

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.curves import TOLERANCE
from gfscore.statistics.quotients import ratio
from gfscore.statistics.tolerances import STATISTIC_TOLERANCE, TIE_TOLERANCE

EXACT_UP_TO = 9
"""Largest number of models whose permutations (9! = 362,880) are enumerated for an exact p-value."""

DEGREE = 16
"""Degree of the Chebyshev series of a curve on one piece of log T."""

FEWEST_PIECES, MOST_PIECES = 64, 4096
"""Initial number of pieces, at which the series of a class score is exact to rounding; and the largest number."""

LEAF = 1e-8
"""Width in log T at which a change of ranking counts as located."""

RESOLUTION = 1e-6
"""Length in log T below which an interval of temperatures counts as a single crossing."""

NOISE = 1e-14
"""Change of a difference over a piece that is rounding error; such a piece is not halved further."""

PAIRS_AT_ONCE = 1 << 12
"""Pairs of curves that are compared at a time, to bound the memory."""

# Chebyshev points of the first kind, and the matrices that map values there to coefficients (points x coefficients)
# and coefficients on a piece to those on its lower and upper half.
_ANGLES = (np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1)
_POINTS = np.cos(_ANGLES)
_TO_SERIES = 2 / (DEGREE + 1) * np.cos(np.outer(_ANGLES, np.arange(DEGREE + 1)))
_TO_SERIES[:, 0] /= 2
_LOWER_HALF = np.polynomial.chebyshev.chebvander((_POINTS - 1) / 2, DEGREE).T @ _TO_SERIES
_UPPER_HALF = np.polynomial.chebyshev.chebvander((_POINTS + 1) / 2, DEGREE).T @ _TO_SERIES


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Average ranks along the last axis.

    Parameters
    ----------
    values : array_like of shape (..., M)
        Finite numbers.

    Returns
    -------
    ndarray of shape (..., M), float64
        1 for the smallest; neighbours within TIE_TOLERANCE share the mean of their ranks.
    """
    values = np.asarray(values, dtype=np.float64)
    order = np.argsort(values, axis=-1)
    distinct = np.diff(np.take_along_axis(values, order, axis=-1), axis=-1) > TIE_TOLERANCE

    # First and last position of each run of ties, whose mean is the rank of all values in it.
    places = np.arange(values.shape[-1])
    ends = np.ones((*values.shape[:-1], 1), dtype=bool)
    first = np.where(np.concatenate([ends, distinct], axis=-1), places, 0)
    last = np.where(np.concatenate([distinct, ends], axis=-1), places, values.shape[-1])
    np.maximum.accumulate(first, axis=-1, out=first)
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]

    result = np.empty(values.shape)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=-1)
    return result


# ---- rank correlations ----


def spearman(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64] | np.float64:
    """Spearman rank correlation along the last axis, ties given average ranks.

    Parameters
    ----------
    x, y : array_like of shape (..., M)
        Arrays that broadcast against each other. For 1-d input pairs with a NaN are left out.

    Returns
    -------
    float64 of shape (...)
        In [-1, 1]; NaN where one side is constant or has fewer than two values.

    Raises
    ------
    InputError
        For a NaN in input of more than one dimension.
    """
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    if np.isnan(x).any() or np.isnan(y).any():
        if x.ndim != 1 or y.ndim != 1:
            raise InputError("rank correlation of several rows at once needs values without NaN")
        complete: NDArray[np.bool_] = ~(np.isnan(x) | np.isnan(y))
        x, y = x[complete], y[complete]
    if min(x.shape[-1], y.shape[-1]) < 2:
        return np.full(np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), np.nan)[()]

    x = ranks(x)
    y = ranks(y)
    x -= x.mean(axis=-1, keepdims=True)
    y -= y.mean(axis=-1, keepdims=True)
    norm = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    covariance = (x * y).sum(axis=-1)
    return ratio(covariance, norm)[()]


def spearman_or_none(x: ArrayLike, y: ArrayLike) -> float | None:
    """Spearman rank correlation as a float, or None where it is undefined, for JSON."""
    rho = float(spearman(x, y))
    return None if math.isnan(rho) else rho


def share_of_orders(x: NDArray[np.generic], y: NDArray[np.generic], orders: NDArray[np.integer], rho: float) -> float:
    """Share of the orders of y in which |Spearman's rho| with x is at least |rho|.

    Parameters
    ----------
    x, y : ndarray of shape (M,)
        Neither of them constant.
    orders : ndarray of shape (R, M)
        Permutations of 0..M-1.
    rho : float
        The observed correlation.

    Returns
    -------
    float
        In [0, 1]: the p-value of a permutation test if `orders` are all permutations.
    """
    x = ranks(x) - (len(x) + 1) / 2
    y = ranks(y) - (len(y) + 1) / 2
    correlations = y[orders] @ x / math.sqrt((x @ x) * (y @ y))
    return float(np.mean(np.abs(correlations) >= abs(rho) - STATISTIC_TOLERANCE))


@cache
def every_order(items: int) -> NDArray[np.int8]:
    """All permutations of 0..M-1, (M!, M) int8, the identity first; for M up to EXACT_UP_TO."""
    orders = np.zeros((1, 1), dtype=np.int8)
    for last in range(1, items):
        # The last item at every position in every permutation of the others.
        extended = [np.insert(orders, position, last, axis=1) for position in range(last, -1, -1)]
        orders = np.concatenate(extended)
    return orders


# ---- rankings of classes ----


def vulnerability(values: ArrayLike, class_names: Sequence[str]) -> pd.DataFrame:
    """Number of models for which each class is the worst or the best.

    Parameters
    ----------
    values : array_like of shape (M, K)
        Class values of M models, higher is better; NaN for a class without samples. Only classes with samples of every
        model are ranked.
    class_names : sequence of str
        The K names.

    Returns
    -------
    DataFrame
        One row per class, from the most to the least vulnerable, unranked ones last: class_index, class_name, mean_rank
        (1 = worst; NaN if unranked), times_worst and times_best (ties count for every class), models.

    References
    ----------
    GF-Score, Figure 4.
    """
    values = np.asarray(values, dtype=np.float64)
    models, classes = values.shape
    mean_rank = np.full(classes, np.nan)
    times_worst = np.zeros(classes, dtype=np.int64)
    times_best = np.zeros(classes, dtype=np.int64)

    ranked = np.flatnonzero(~np.isnan(values).any(axis=0))
    if len(ranked):
        values = values[:, ranked]
        lowest = values.min(axis=1, keepdims=True)
        highest = values.max(axis=1, keepdims=True)
        mean_rank[ranked] = ranks(values).mean(axis=0)
        times_worst[ranked] = (values <= lowest + TIE_TOLERANCE).sum(axis=0)
        times_best[ranked] = (values >= highest - TIE_TOLERANCE).sum(axis=0)

    frame = pd.DataFrame(
        {
            "class_index": np.arange(classes, dtype=np.int32),
            "class_name": list(class_names),
            "mean_rank": mean_rank,
            "times_worst": times_worst,
            "times_best": times_best,
            "models": models,
        }
    )
    return frame.sort_values(["mean_rank", "class_index"], ignore_index=True)


# ---- temperatures at which a ranking changes ----


def rank_boundaries(
    curves: Callable[[NDArray[np.float64]], NDArray[np.float64]], *, low: float, high: float
) -> NDArray[np.float64]:
    """Temperatures between which the ranking of smooth curves is constant.

    Curves are expanded in short Chebyshev series on pieces of log T. A series proves for its whole piece that two
    curves are apart, or tied; pieces where it proves neither are halved until they are narrower than LEAF. Unlike a
    grid, this misses no change of order.

    Parameters
    ----------
    curves : callable
        Maps temperatures (T,) to values (T, C) of C curves, smooth in log T.
    low, high : float
        Range of temperatures.

    Returns
    -------
    ndarray of shape (S + 1,), float64
        Boundaries, ascending from `low` to `high`. Between neighbouring ones `ranks` gives the same ranks, ties
        included, except for changes that last less than RESOLUTION in log T; the ranking may also be equal on both
        sides of a boundary.

    Raises
    ------
    InputError
        When curves are too rough for MOST_PIECES series.
    """
    edges, series = _series_on_pieces(curves, low, high)
    width = edges[1] - edges[0]
    first, second = np.triu_indices(series.shape[1], 1)
    located = [edges[[0, -1]]]
    for start in range(0, len(first), PAIRS_AT_ONCE):
        pairs = slice(start, start + PAIRS_AT_ONCE)
        differences = series[:, first[pairs]] - series[:, second[pairs]]
        starts = np.repeat(edges[:-1], differences.shape[1])
        located += _changes(differences.reshape(-1, DEGREE + 1), starts, width)
    return joined(np.exp(np.concatenate(located)), low=low, high=high)


def joined(boundaries: NDArray[np.float64], *, low: float, high: float) -> NDArray[np.float64]:
    """Boundaries without intervals shorter than RESOLUTION, (S + 1,) ascending from `low` to `high`.

    Boundaries that are that close together are replaced by one in their middle.
    """
    boundaries = np.unique(np.clip(np.concatenate([boundaries, [low, high]]), low, high))
    long_enough = np.diff(np.log(boundaries)) > RESOLUTION
    firsts = boundaries[:-1][long_enough]
    lasts = boundaries[1:][long_enough]
    return np.concatenate([[low], np.sqrt(lasts[:-1] * firsts[1:]), [high]])


def _series_on_pieces(curves, low, high):
    # Edges (P + 1,) in log T and series (P, C, DEGREE + 1); more pieces until the last coefficients vanish.
    pieces = FEWEST_PIECES
    while pieces <= MOST_PIECES:
        edges = np.linspace(np.log(low), np.log(high), pieces + 1)
        middles = (edges[:-1] + edges[1:]) / 2
        half = (edges[1] - edges[0]) / 2
        temperatures = np.clip(np.exp(middles[:, None] + half * _POINTS), low, high)
        values = curves(temperatures.ravel())
        series = values.reshape(pieces, DEGREE + 1, -1).swapaxes(1, 2) @ _TO_SERIES
        if np.abs(series[..., -2:]).max(initial=0) <= TOLERANCE:
            return edges, series
        pieces *= 2
    raise InputError(
        f"score curves between T = {low:g} and {high:g} are too rough to find their crossings with {MOST_PIECES} "
        "series; narrow the range"
    )


def _changes(differences, starts, width):
    # Ends, in log T, of the smallest pieces on which |difference| crosses the tolerance of ties.
    ends = []
    while len(differences):
        middle = np.abs(differences[:, 0])
        spread = np.abs(differences[:, 1:]).sum(axis=1)
        undecided = (middle - spread <= TIE_TOLERANCE) & (middle + spread > TIE_TOLERANCE)
        located = undecided & ((spread <= NOISE) | (width <= LEAF))
        ends += [starts[located], starts[located] + width]

        halved = undecided & ~located
        width /= 2
        starts = np.concatenate([starts[halved], starts[halved] + width])
        differences = np.concatenate([differences[halved] @ _LOWER_HALF, differences[halved] @ _UPPER_HALF])
    return ends
