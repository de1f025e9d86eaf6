"""Bootstrap intervals of class values: approximate, shown beside the guaranteed ones and never given to the gate."""

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.classes import ClassSamples


def bootstrap_intervals(
    samples: ClassSamples, *, alpha: float, resamples: int, value_range: tuple[float, float], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simultaneous studentised bootstrap intervals `(low, high)`, each (K,): approximate, without any guarantee.

    Takes ClassSamples. The half-width of a class is its standard error times one quantile, that of the largest
    studentised deviation over all classes. They fall short of their nominal coverage for few or skewed samples; a class
    whose values are all equal gets no width at all, one with fewer than two samples NaN.
    Source: Efron and Tibshirani 1993, chapter 12; maximum over classes as in Romano and Wolf 2005.
    """
    found = samples.summary
    error = np.sqrt(found.variance / np.maximum(found.n, 1))
    rng = np.random.default_rng(seed)
    largest = np.zeros(resamples)
    starts = np.cumsum(found.n) - found.n
    for k in np.flatnonzero(error > 0):
        own = samples.values[starts[k] : starts[k] + found.n[k]]
        drawn = own[rng.integers(0, found.n[k], (resamples, found.n[k]))].mean(axis=1)
        largest = np.maximum(largest, np.abs(drawn - found.mean[k]) / error[k])
    half = np.quantile(largest, 1 - alpha, method="higher") * error
    return np.maximum(found.mean - half, value_range[0]), np.minimum(found.mean + half, value_range[1])
