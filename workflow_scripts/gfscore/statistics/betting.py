"""Confidence bounds of a mean by betting against it (Waudby-Smith and Ramdas 2024).

A gambler who bets that the mean exceeds m multiplies the capital by 1 + lambda_t (x_t - m) at each value x_t, where
lambda_t depends only on the values before. If the mean is m, or less, the capital is a non-negative supermartingale,
so it ever reaches 1 / alpha with probability at most alpha (Ville). The lower bound is the smallest m at which it does
not. Bets aim at a given number of values, but the bound is valid for every sample size.

# ASSUME: values are independent draws, or arrive in an order that was drawn at random. Sorted values void the bound.
"""

import math

import numpy as np
from numpy.typing import NDArray

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
