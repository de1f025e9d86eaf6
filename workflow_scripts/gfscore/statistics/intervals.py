"""Half-widths of confidence intervals of class values, and corrections for wrong labels.

Class intervals hold simultaneously: with probability at least 1 - alpha over the samples, every true class value lies
in its interval.  # ASSUME: samples of a class are independent draws from that class's distribution.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError

BLOCK = 1 << 22
"""Values drawn at a time; bounds the memory of many draws of large samples."""


def hoeffding_half_width(n: ArrayLike, *, classes: int, alpha: float, width: float) -> NDArray[np.float64] | np.float64:
    """Half-width of simultaneous Hoeffding intervals, width * sqrt(log(2K/alpha) / (2 n)).

    Parameters
    ----------
    n : array_like, scalar or of shape (K,)
        Samples per class.
    classes : int
        Number of classes K, over which the intervals hold simultaneously.
    alpha : float
        Error probability of all intervals together.
    width : float
        Length of the measure's range; sqrt(pi/2) for the attack-free margin score.

    Returns
    -------
    float64 of the shape of `n`
        In units of the measure; infinite where n = 0.

    References
    ----------
    Hoeffding 1963; GF-Score, Eq. 11.
    """
    with np.errstate(divide="ignore"):
        return width * np.sqrt(math.log(2 * classes / alpha) / (2 * np.asarray(n, dtype=np.float64)))


def rdi_bound(n_min: ArrayLike, *, classes: int, alpha: float, width: float) -> NDArray[np.float64] | np.float64:
    """Bound of |observed RDI - true RDI| with confidence at least 1 - alpha (GF-Score, Eq. 12).

    RDI is the largest minus the smallest class value, and the interval of neither is wider than that of the class with
    the fewest samples, `n_min`: the bound is twice its half-width.
    """
    return 2 * hoeffding_half_width(n_min, classes=classes, alpha=alpha, width=width)


def empirical_bernstein_half_width(
    n: ArrayLike, variance: ArrayLike, *, classes: int, alpha: float, width: float
) -> NDArray[np.float64]:
    """Half-width of simultaneous empirical Bernstein intervals, narrower than Hoeffding's for a small variance.

    sqrt(2 V log(4K/alpha) / n) + 7 width log(4K/alpha) / (3 (n - 1)).

    Parameters
    ----------
    n : array_like, scalar or of shape (K,)
        Samples per class.
    variance : array_like, scalar or of shape (K,)
        Unbiased sample variances V.
    classes : int
        Number of classes K, over which the intervals hold simultaneously.
    alpha : float
        Error probability of all intervals together.
    width : float
        Length of the measure's range.

    Returns
    -------
    ndarray, float64
        In units of the measure; infinite where n < 2.

    References
    ----------
    Maurer and Pontil 2009, Theorem 4, both sides, union over K classes.
    """
    n = np.asarray(n, dtype=np.float64)
    variance = np.asarray(variance, dtype=np.float64)
    log_term = math.log(4 * classes / alpha)

    half_width = np.full(np.broadcast(n, variance).shape, np.inf)
    estimable = n > 1
    variance_term = np.sqrt(2 * variance[estimable] * log_term / n[estimable])
    range_term = 7 * width * log_term / (3 * (n[estimable] - 1))
    half_width[estimable] = variance_term + range_term
    return half_width


def last_rejected(
    rejects: Callable[[NDArray[np.float64]], ArrayLike],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    halvings: int,
) -> NDArray[np.float64]:
    """Where a test of numbers between `low` and `high`, which rejects up to some point, stops rejecting; by bisection.

    Parameters
    ----------
    rejects : function
        From numbers, an array of the shape of `low`, to whether each is rejected.
    low, high : ndarray
        Numbers that are rejected, or below which nothing is known, and numbers that are not.
    halvings : int
        Number of bisections.

    Returns
    -------
    ndarray
        Rejected numbers within 2^-halvings (high - low) of the point, or `low`.
    """
    for _ in range(halvings):
        middle = (low + high) / 2
        rejected = rejects(middle)
        low = np.where(rejected, middle, low)
        high = np.where(rejected, high, middle)
    return low


def require_alpha(alpha: float) -> None:
    """Raise InputError unless 0 < alpha < 1."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")


def samples_for_half_width(half_width: float, *, classes: int, alpha: float, width: float) -> int:
    """Smallest number of samples per class for Hoeffding intervals of a given half-width.

    Parameters
    ----------
    half_width : float
        Half-width to reach, in units of the measure.
    classes : int
        Number of classes K.
    alpha : float
        Error probability of all K intervals together.
    width : float
        Length of the measure's range.

    Returns
    -------
    int
        Samples per class: 1,883 for half-width 0.05, K = 10, alpha = 0.05 and width sqrt(pi/2).

    Raises
    ------
    InputError
        For a half-width that is not positive and an alpha outside (0, 1).
    """
    require_alpha(alpha)
    if half_width <= 0:
        raise InputError(f"half-width must be positive, got {half_width}")
    solution = width**2 * math.log(2 * classes / alpha) / (2 * half_width**2)
    # Start one below, since rounding may shift the ceiling by one.
    n = max(1, math.ceil(solution) - 1)
    while hoeffding_half_width(n, classes=classes, alpha=alpha, width=width) > half_width:
        n += 1
    return n


# ---- wrong labels ----


def correct_for_label_errors(
    low: NDArray[np.float64], high: NDArray[np.float64], error_rate: ArrayLike, *, value_range: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of the class values when a share of the labels may be wrong.

    If the observed mean m mixes correctly labelled samples (share 1 - eta) with wrongly labelled ones whose values lie
    anywhere in [a, b], the class value lies in [(m - eta b) / (1 - eta), (m - eta a) / (1 - eta)], clipped to [a, b].

    Parameters
    ----------
    low, high : ndarray of shape (K,)
        Bounds of the observed means m.
    error_rate : array_like, scalar or of shape (K,)
        Share eta of wrong labels, in [0, 1).
    value_range : (float, float)
        The ends a and b of the measure's range.

    Returns
    -------
    low, high : ndarray of shape (K,), float64
        Bounds of the class values, with the same confidence as the bounds of the observed means.

    Raises
    ------
    InputError
        For a rate outside [0, 1).

    Notes
    -----
    # ASSUME: the correctly labelled samples of a class are drawn from that class, and eta is the share of wrong labels.
    """
    lowest, highest = value_range
    eta = _require_rate(error_rate)
    corrected_low = np.maximum((low - eta * highest) / (1 - eta), lowest)
    corrected_high = np.minimum((high - eta * lowest) / (1 - eta), highest)
    return corrected_low, corrected_high


def least_mean(low: ArrayLike, error_rate: ArrayLike, *, n: NDArray[np.number]) -> NDArray[np.float64]:
    """Lower bounds of the mean over all samples when a share of each class's labels may be wrong.

    If a class's observed mean is 1 - d, its true mean may be as low as 1 - d / (1 - eta), at least 0. The bound is the
    worst split of the observed deficit 1 - `low` over the classes: as much of it as possible in the classes with the
    largest eta. With one rate for all classes the bound equals the bound of `correct_for_label_errors`.

    Parameters
    ----------
    low : array_like of any shape
        Lower bounds of the mean over the samples as labelled, of values in [0, 1].
    error_rate : array_like of shape (K,)
        Shares eta of wrong labels, in [0, 1).
    n : ndarray of shape (K,)
        Samples per class, or other weights of the classes in the mean.

    Returns
    -------
    ndarray of the shape of `low`, float64
        In [0, 1].

    Raises
    ------
    InputError
        For a rate outside [0, 1).
    """
    eta = _require_rate(error_rate)
    worst_first = np.argsort(-eta)
    correct_share = 1 - eta[worst_first]
    # A class can lack no more than the weight of its correctly labelled samples; the rest falls to the next class.
    largest_deficit = n[worst_first] / n.sum() * correct_share
    deficit_before = np.cumsum(largest_deficit) - largest_deficit
    observed_deficit = 1 - np.asarray(low, dtype=np.float64)[..., np.newaxis]
    deficit = np.clip(observed_deficit - deficit_before, 0, largest_deficit)
    return np.clip(1 - (deficit / correct_share).sum(axis=-1), 0, 1)


def correct_mean_for_label_errors(
    low: ArrayLike, high: ArrayLike, error_rate: ArrayLike, *, n: NDArray[np.number]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of the mean over all samples, of values in [0, 1], when a share of each class's labels may be wrong.

    Parameters
    ----------
    low, high : array_like of one shape
        Bounds of the mean over the samples as labelled.
    error_rate, n
        See `least_mean`.

    Returns
    -------
    low, high : ndarray of that shape, float64
        In [0, 1], with the same confidence.
    """
    high = np.asarray(high, dtype=np.float64)
    return least_mean(low, error_rate, n=n), 1 - least_mean(1 - high, error_rate, n=n)


def wrong_shares(label_error_rates: ArrayLike, error_rate: float) -> NDArray[np.float64]:
    """Share of the samples of each class with a wrong label, or a right label and a wrong value: (K,) in [0, 1).

    Parameters
    ----------
    label_error_rates : array_like of shape (K,)
        Shares of wrong labels.
    error_rate : float
        Largest probability that a value is wrong.
    """
    return 1 - (1 - np.asarray(label_error_rates, dtype=np.float64)) * (1 - error_rate)


def _require_rate(error_rate):
    eta = np.asarray(error_rate, dtype=np.float64)
    if not np.all((eta >= 0) & (eta < 1)):
        raise InputError(f"label error rate must lie in [0, 1), got {error_rate}")
    return eta


# ---- deviations of RDI in random subsamples ----


def rdi_deviations(
    values: ArrayLike,
    labels: ArrayLike,
    *,
    sizes: Sequence[int] | NDArray[np.integer],
    draws: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Deviations of the RDI when each class is estimated from fewer samples, for comparison with `rdi_bound`.

    All samples together serve as the population, whose RDI is thus known exactly. Draws from it, with replacement, are
    independent, so Eq. 12 of the GF-Score paper must hold for them at every size.

    Parameters
    ----------
    values : array_like of shape (N,)
        One number per sample.
    labels : array_like of shape (N,)
        True classes; classes without samples do not count.
    sizes : sequence of S ints
        Samples to draw of each class.
    draws : int
        Draws at each size.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    ndarray of shape (S, draws), float64
        |RDI of a draw - RDI of all samples|.
    """
    values = np.asarray(values, dtype=np.float64)
    labels = np.asarray(labels)
    by_class = [values[labels == label] for label in np.unique(labels)]
    true_rdi = np.ptp([members.mean() for members in by_class])

    deviations = np.empty((len(sizes), draws))
    for row, size in enumerate(sizes):
        lowest = np.full(draws, np.inf)
        highest = np.full(draws, -np.inf)
        for members in by_class:
            means = _drawn_means(members, size, draws, rng)
            lowest = np.minimum(lowest, means)
            highest = np.maximum(highest, means)
        deviations[row] = np.abs(highest - lowest - true_rdi)
    return deviations


def _drawn_means(members, size, draws, rng):
    block_draws = max(1, BLOCK // size)
    means = np.empty(draws)
    for start in range(0, draws, block_draws):
        count = min(block_draws, draws - start)
        indices = rng.integers(len(members), size=(count, size))
        means[start : start + count] = members[indices].mean(axis=1)
    return means


def sample_sizes(largest: int) -> NDArray[np.int64]:
    """About eight sample sizes per class from 5 to the largest, evenly spaced on a log scale, ascending."""
    return np.unique(np.geomspace(min(5, largest), largest, 8).round().astype(int))
