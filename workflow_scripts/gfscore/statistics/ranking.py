"""Rank correlations, and rankings of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.disparity import TIE_TOLERANCE

if TYPE_CHECKING:
    from pandas import DataFrame

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
