"""Rank correlation of two measures over classes or models, with interval and p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.ranking import EXACT_UP_TO, ROUNDING, every_order, share_of_orders, spearman

EVERY_ORDER, RANDOM_ORDERS = "every order", "random orders"


@dataclass(frozen=True)
class RankAgreement:
    """Spearman correlation of two lists of `n` values, with an approximate interval and a permutation p-value.

    `rho` in [-1, 1], NaN where a list is constant or shorter than 2; `low`, `high` NaN below n = 4 and at rho = +-1;
    `p` in (0, 1], two-sided, NaN with rho; `p_method`: EVERY_ORDER or RANDOM_ORDERS.
    """

    n: int
    rho: float
    low: float
    high: float
    p: float
    p_method: str | None


def rank_agreement(
    x: NDArray[np.float64], y: NDArray[np.float64], *, confidence: float, permutations: int, seed: int
) -> RankAgreement:
    """RankAgreement of `x` and `y` (n,), pairs with a NaN left out.

    The p-value is exact for up to EXACT_UP_TO pairs, ties included; beyond that it is computed from random
    `permutations` with `seed`, including the observed order. The interval is approximate: Fisher's z with variance
    (1 + rho^2 / 2) / (n - 3). Source: Bonett and Wright 2000; Phipson and Smyth 2010 for the p-value.
    # ASSUME: for the interval, classes (or models) are independent draws from a larger population.
    """
    from scipy.special import ndtri

    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    known = ~(np.isnan(x) | np.isnan(y))
    x, y, n = x[known], y[known], int(known.sum())
    rho = float(spearman(x, y))
    if math.isnan(rho):
        return RankAgreement(n, math.nan, math.nan, math.nan, math.nan, None)
    low = high = math.nan
    if n > 3 and abs(rho) < 1 - ROUNDING:
        half = -ndtri((1 - confidence) / 2) * math.sqrt((1 + rho**2 / 2) / (n - 3))
        low, high = (math.tanh(math.atanh(rho) + side * half) for side in (-1, 1))
    exact = n <= EXACT_UP_TO
    orders = every_order(n) if exact else _random_orders(n, permutations, seed)
    reached = share_of_orders(x, y, orders, rho)
    p = reached if exact else (1 + reached * permutations) / (1 + permutations)
    return RankAgreement(n, rho, low, high, p, EVERY_ORDER if exact else RANDOM_ORDERS)


@cache
def _random_orders(n, permutations, seed):
    return np.random.default_rng(seed).permuted(np.tile(np.arange(n), (permutations, 1)), axis=1)
