"""Rank correlations, and rankings of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.classes import TIE_TOLERANCE

if TYPE_CHECKING:
    from pandas import DataFrame
from collections.abc import Callable

from gfscore.statistics.curves import TOLERANCE

EXACT_UP_TO = 9
"""Largest number of models whose permutations (9! = 362,880) are enumerated for an exact p-value."""

ROUNDING = 1e-12
"""Tolerance of rank correlations that differ by rounding only."""


def ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Average ranks along the last axis, 1 for the smallest; neighbours within TIE_TOLERANCE share a rank.

    Takes finite values (..., M).
    """
    values = np.asarray(values, dtype=np.float64)
    order = np.argsort(values, axis=-1)
    apart = np.diff(np.take_along_axis(values, order, axis=-1), axis=-1) > TIE_TOLERANCE
    # First and last position of each run of ties, whose mean is the rank of all values in it.
    places = np.arange(values.shape[-1])
    bounds = np.ones((*values.shape[:-1], 1), dtype=bool)
    first = np.where(np.concatenate([bounds, apart], axis=-1), places, 0)
    last = np.where(np.concatenate([apart, bounds], axis=-1), places, values.shape[-1])
    np.maximum.accumulate(first, axis=-1, out=first)
    last = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    result = np.empty(values.shape)
    np.put_along_axis(result, order, (first + last) / 2 + 1, axis=-1)
    return result


def spearman(x: ArrayLike, y: ArrayLike) -> NDArray[np.float64] | np.float64:
    """Spearman rank correlation along the last axis, ties given average ranks; in [-1, 1].

    Takes arrays (..., M) that broadcast against each other. NaN where one side is constant or has fewer than two
    values. For 1-d input pairs with a NaN are left out; for more dimensions a NaN raises InputError.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    missing = np.isnan(x).any() or np.isnan(y).any()
    if missing and x.ndim == y.ndim == 1:
        known: NDArray[np.bool_] = ~(np.isnan(x) | np.isnan(y))
        x, y = x[known], y[known]
    elif missing:
        raise InputError("rank correlation of several rows at once needs values without NaN")
    if min(x.shape[-1], y.shape[-1]) < 2:
        return np.full(np.broadcast_shapes(x.shape[:-1], y.shape[:-1]), np.nan)[()]
    x, y = ranks(x), ranks(y)
    x -= x.mean(axis=-1, keepdims=True)
    y -= y.mean(axis=-1, keepdims=True)
    norm = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    covariance = (x * y).sum(axis=-1)
    return np.divide(covariance, norm, out=np.full(norm.shape, np.nan), where=norm > 0)[()]


def exact_p_value(rho: float, models: int) -> float:
    """Exact two-sided permutation p-value of Spearman's `rho` of M models without ties.

    By enumeration of all M! permutations, for 2 <= M <= 9; 0.0833 for rho = 0.9 at M = 5. NaN when rho is NaN. Raises
    InputError for another M.
    """
    _require_few(models)
    untied = np.arange(models)
    return math.nan if math.isnan(rho) else share_of_orders(untied, untied, every_order(models), rho)


def exact_p_value_of(x: ArrayLike, y: ArrayLike) -> float:
    """Exact two-sided permutation p-value of Spearman's rho of `x` and `y` (M,), ties included; as exact_p_value.

    Pairs with a NaN are left out.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known: NDArray[np.bool_] = ~(np.isnan(x) | np.isnan(y))
    x, y, rho = x[known], y[known], float(spearman(x, y))
    if math.isnan(rho):
        return math.nan
    _require_few(len(x))
    return share_of_orders(x, y, every_order(len(x)), rho)


def _require_few(models):
    if not 2 <= models <= EXACT_UP_TO:
        raise InputError(f"exact p-values are enumerated for 2 to {EXACT_UP_TO} models, got {models}")


def share_of_orders(x: NDArray[Any], y: NDArray[Any], orders: NDArray[np.integer], rho: float) -> float:
    """Share of `orders` (R, M) of y in which |Spearman's rho| with x is at least |rho|; x and y not constant."""
    x, y = ranks(x) - (len(x) + 1) / 2, ranks(y) - (len(y) + 1) / 2
    return float(np.mean(np.abs(y[orders] @ x / math.sqrt((x @ x) * (y @ y))) >= abs(rho) - ROUNDING))


@cache
def every_order(items: int) -> NDArray[np.int8]:
    """All permutations of 0..M-1, (M!, M) int8, the identity first; for M up to EXACT_UP_TO."""
    orders = np.zeros((1, 1), dtype=np.int8)
    for last in range(1, items):
        # The last item at every position in every permutation of the others.
        orders = np.concatenate([np.insert(orders, place, last, axis=1) for place in range(last, -1, -1)])
    return orders


def vulnerability(values: ArrayLike, class_names: Sequence[str]) -> DataFrame:
    """Number of models for which each class is the worst or the best.

    Takes class values (M, K), higher is better, NaN for a class without samples, and K names. Only classes with samples
    of every model are ranked. Returns a data frame sorted from the most to the least vulnerable class, unranked ones
    last: class_index, class_name, mean_rank (1 = worst; NaN if unranked), times_worst and times_best (ties count for
    every class), models. Source: GF-Score, Figure 4.
    """
    import pandas as pd

    values = np.asarray(values, dtype=np.float64)
    mean_rank = np.full(values.shape[1], np.nan)
    times_worst, times_best = np.zeros((2, values.shape[1]), dtype=np.int64)
    shared = np.flatnonzero(~np.isnan(values).any(axis=0))
    if len(shared):
        values = values[:, shared]
        mean_rank[shared] = ranks(values).mean(axis=0)
        times_worst[shared] = (values <= values.min(axis=1, keepdims=True) + TIE_TOLERANCE).sum(axis=0)
        times_best[shared] = (values >= values.max(axis=1, keepdims=True) - TIE_TOLERANCE).sum(axis=0)
    frame = pd.DataFrame(
        {
            "class_index": np.arange(len(mean_rank), dtype=np.int32),
            "class_name": list(class_names),
            "mean_rank": mean_rank,
            "times_worst": times_worst,
            "times_best": times_best,
            "models": len(values),
        }
    )
    return frame.sort_values(["mean_rank", "class_index"], ignore_index=True)


def spearman_or_none(x: ArrayLike, y: ArrayLike) -> float | None:
    """Spearman rank correlation as a float, or None where it is undefined, for JSON."""
    rho = float(spearman(x, y))
    return None if math.isnan(rho) else rho


# ---- Temperatures at which the ranking of smooth curves changes. Curves are expanded in short Chebyshev series on
# pieces of log T. A series proves for its whole piece that two curves are apart, or tied; pieces where it proves
# neither are halved until they are narrower than LEAF. Unlike a grid, this misses no change of order.


DEGREE = 16
"""Degree of the series on one piece."""

FEWEST_PIECES, MOST_PIECES = 64, 4096
"""Initial number of pieces, at which the series of a class score is exact to rounding; and the largest number."""

LEAF = 1e-8
"""Width in log T at which a change of ranking counts as located."""

RESOLUTION = 1e-6
"""Length in log T below which an interval of temperatures counts as a single crossing."""

NOISE = 1e-14
"""Change of a difference over a piece that is rounding error; such a piece is not halved further."""

PAIRS_AT_ONCE = 1 << 12

# Chebyshev points of the first kind, and the matrices that map values there to coefficients (points x coefficients)
# and coefficients on a piece to those on its lower and upper half.
_ANGLES = (np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1)
_POINTS = np.cos(_ANGLES)
_TO_SERIES = 2 / (DEGREE + 1) * np.cos(np.outer(_ANGLES, np.arange(DEGREE + 1)))
_TO_SERIES[:, 0] /= 2
_HALVES = [np.polynomial.chebyshev.chebvander((_POINTS + side) / 2, DEGREE).T @ _TO_SERIES for side in (-1, 1)]


def rank_boundaries(
    curves: Callable[[NDArray[np.float64]], NDArray[np.float64]], *, low: float, high: float
) -> NDArray[np.float64]:
    """Boundaries (S + 1,), ascending, of S intervals of [low, high] on which the ranking of C curves is constant.

    `curves` maps temperatures (T,) to values (T, C), smooth in log T. Between neighbouring boundaries ranking.ranks
    gives the same ranks, ties included, except for changes that last less than RESOLUTION in log T; the ranking may
    also be equal on both sides of a boundary. Raises InputError when curves are too rough for MOST_PIECES series.
    """
    edges, series = _pieces(curves, low, high)
    first, second = np.triu_indices(series.shape[1], 1)
    located = [edges[[0, -1]]]
    for start in range(0, len(first), PAIRS_AT_ONCE):
        pairs = slice(start, start + PAIRS_AT_ONCE)
        differences = series[:, first[pairs]] - series[:, second[pairs]]
        starts = np.repeat(edges[:-1], differences.shape[1])
        located += _changes(differences.reshape(-1, DEGREE + 1), starts, edges[1] - edges[0])
    return joined(np.exp(np.concatenate(located)), low=low, high=high)


def joined(boundaries: NDArray[np.float64], *, low: float, high: float) -> NDArray[np.float64]:
    """Boundaries without intervals shorter than RESOLUTION, (S + 1,) ascending from `low` to `high`.

    Boundaries that are that close together are replaced by one in their middle.
    """
    boundaries = np.unique(np.clip(np.concatenate([boundaries, [low, high]]), low, high))
    kept = np.diff(np.log(boundaries)) > RESOLUTION
    first, last = boundaries[:-1][kept], boundaries[1:][kept]
    return np.concatenate([[low], np.sqrt(last[:-1] * first[1:]), [high]])


def _pieces(curves, low, high):
    # Edges (P + 1,) in log T and series (P, C, DEGREE + 1); more pieces until the last coefficients vanish.
    pieces = FEWEST_PIECES
    while pieces <= MOST_PIECES:
        edges = np.linspace(np.log(low), np.log(high), pieces + 1)
        middles, half = (edges[:-1] + edges[1:]) / 2, (edges[1] - edges[0]) / 2
        values = curves(np.clip(np.exp(middles[:, None] + half * _POINTS), low, high).ravel())
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
        middle, spread = np.abs(differences[:, 0]), np.abs(differences[:, 1:]).sum(axis=1)
        undecided = (middle - spread <= TIE_TOLERANCE) & (middle + spread > TIE_TOLERANCE)
        located = undecided & ((spread <= NOISE) | (width <= LEAF))
        ends += [starts[located], starts[located] + width]
        halved = undecided & ~located
        width /= 2
        starts = np.concatenate([starts[halved], starts[halved] + width])
        differences = np.concatenate([differences[halved] @ half for half in _HALVES])
    return ends
