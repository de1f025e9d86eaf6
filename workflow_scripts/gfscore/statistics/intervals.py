"""Half-widths of confidence intervals of class values, and corrections for wrong labels.

The class intervals hold simultaneously: with probability at least 1 - alpha over the samples, every true class value
lies in its interval.  # ASSUME: samples of a class are independent draws from that class's distribution.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError


def hoeffding_half_width(n: ArrayLike, *, classes: int, alpha: float, width: float) -> NDArray[np.float64] | np.float64:
    """Half-width of simultaneous Hoeffding intervals, width * sqrt(log(2K/alpha) / (2 n)).

    `n` samples per class (scalar or (K,)), `classes` K, `width` the length of the measure's range; with
    width = sqrt(pi/2) this is GF-Score, Eq. 11. Infinite where n = 0.
    """
    with np.errstate(divide="ignore"):
        return width * np.sqrt(math.log(2 * classes / alpha) / (2 * np.asarray(n, dtype=np.float64)))


def rdi_bound(n_min: ArrayLike, *, classes: int, alpha: float, width: float) -> NDArray[np.float64] | np.float64:
    """Bound of |observed RDI - true RDI| with confidence at least 1 - alpha: GF-Score, Eq. 12.

    Twice the half-width of the class with the fewest samples, `n_min`.
    """
    return 2 * hoeffding_half_width(n_min, classes=classes, alpha=alpha, width=width)


def empirical_bernstein_half_width(
    n: ArrayLike, variance: ArrayLike, *, classes: int, alpha: float, width: float
) -> NDArray[np.float64]:
    """Half-width of simultaneous empirical Bernstein intervals, narrower than Hoeffding's for a small variance.

    sqrt(2 V log(4K/alpha) / n) + 7 width log(4K/alpha) / (3 (n - 1)), V the unbiased sample variance (K,).
    Infinite where n < 2. Source: Maurer and Pontil 2009, Theorem 4, both sides, union over K classes.
    """
    n, variance = np.asarray(n, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    log = math.log(4 * classes / alpha)
    half = np.full(np.broadcast(n, variance).shape, np.inf)
    known = n > 1
    half[known] = np.sqrt(2 * variance[known] * log / n[known]) + 7 * width * log / (3 * (n[known] - 1))
    return half


def require_alpha(alpha: float) -> None:
    """Raise InputError unless 0 < alpha < 1."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")


def correct_for_label_errors(
    low: NDArray[np.float64], high: NDArray[np.float64], error_rate: ArrayLike, *, value_range: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of the class values when a share of the labels may be wrong.

    If the observed mean m mixes correctly labelled samples (share 1 - eta) with wrongly labelled ones whose values lie
    anywhere in [a, b], the class value lies in [(m - eta b)/(1 - eta), (m - eta a)/(1 - eta)], clipped to [a, b].
    Takes bounds `low`, `high` (K,) of m and `error_rate` eta (scalar or (K,)) in [0, 1). Derived here.
    # ASSUME: the correctly labelled samples of a class are drawn from that class, and eta is the share of wrong labels.
    """
    lowest, highest = value_range
    eta = _require_rate(error_rate)
    corrected_low = np.maximum((low - eta * highest) / (1 - eta), lowest)
    corrected_high = np.minimum((high - eta * lowest) / (1 - eta), highest)
    return corrected_low, corrected_high


def _require_rate(error_rate):
    eta = np.asarray(error_rate, dtype=np.float64)
    if not np.all((eta >= 0) & (eta < 1)):
        raise InputError(f"label error rate must lie in [0, 1), got {error_rate}")
    return eta


def least_mean(low: float, error_rate: ArrayLike, *, n: NDArray[np.integer]) -> float:
    """Lower bound of the mean over all samples, values in [0, 1], when a share of each class's labels may be wrong.

    Takes a lower bound `low` of the mean over the samples as labelled, rates eta (K,) in [0, 1) and samples per class
    `n` (K,). If a class's observed mean is 1 - d, its true mean may be as low as 1 - d / (1 - eta), at least 0. The
    worst case has the largest possible d in the classes with the largest eta. With one rate for all classes it equals
    correct_for_label_errors.
    """
    eta = _require_rate(error_rate)
    order = np.argsort(-eta)
    right = 1 - eta[order]
    room = n[order] / n.sum() * right
    lacking = np.clip(1 - low - (np.cumsum(room) - room), 0, room)
    return float(np.clip(1 - (lacking / right).sum(), 0, 1))


def samples_for_half_width(half_width: float, *, classes: int, alpha: float, width: float) -> int:
    """Smallest number of samples per class for Hoeffding intervals of a given half-width.

    1,883 for half-width 0.05, K = 10, alpha = 0.05 and width sqrt(pi/2).

    Raises InputError for a half-width that is not positive and an alpha outside (0, 1).
    """
    require_alpha(alpha)
    if half_width <= 0:
        raise InputError(f"half-width must be positive, got {half_width}")
    # Start one below, since rounding may shift the ceiling by one.
    n = max(1, math.ceil(width**2 * math.log(2 * classes / alpha) / (2 * half_width**2)) - 1)
    while hoeffding_half_width(n, classes=classes, alpha=alpha, width=width) > half_width:
        n += 1
    return n


# ---- Deviation of the observed RDI from the true one by the number of samples, for comparison with its bound.


BLOCK = 1 << 22
"""Draws at a time, so that memory does not grow with the number of classes."""


def rdi_deviations(
    values: ArrayLike,
    labels: ArrayLike,
    *,
    sizes: Sequence[int] | NDArray[np.integer],
    draws: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """|RDI of a draw - RDI of all samples|, (S, draws), when each class is estimated from n samples, with replacement.

    Takes per-sample `values` (N,) and `labels` (N,), the S sample `sizes` per class, the number of draws at each and a
    numpy Generator. The samples serve as the population, so its RDI is known exactly and draws are independent: Eq. 12
    of the GF-Score paper must hold for them at every n. Classes without samples are left out.
    """
    values, labels = np.asarray(values, dtype=np.float64), np.asarray(labels)
    by_class = [values[labels == label] for label in np.unique(labels)]
    truth = np.ptp([sample.mean() for sample in by_class])
    deviations = np.empty((len(sizes), draws))
    for row, n in enumerate(sizes):
        low, high = np.full(draws, np.inf), np.full(draws, -np.inf)
        for sample in by_class:
            means = _means(sample, n, draws, rng)
            low, high = np.minimum(low, means), np.maximum(high, means)
        deviations[row] = np.abs(high - low - truth)
    return deviations


def _means(sample, n, draws, rng):
    step = max(1, BLOCK // n)
    parts = (min(step, draws - start) for start in range(0, draws, step))
    return np.concatenate([sample[rng.integers(len(sample), size=(part, n))].mean(axis=1) for part in parts])


def sample_sizes(largest: int, *, smallest: int = 5, count: int = 8) -> NDArray[np.int64]:
    """About `count` sample sizes per class up to the largest, evenly spaced on a log scale, ascending."""
    return np.unique(np.geomspace(min(smallest, largest), largest, count).round().astype(int))
