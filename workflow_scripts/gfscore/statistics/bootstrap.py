"""Approximate bootstrap intervals of class values, reported beside the guaranteed ones and never used by the gate."""

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.classes import ClassSamples


def bootstrap_intervals(
    samples: ClassSamples, *, alpha: float, resamples: int, value_range: tuple[float, float], seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Simultaneous studentised bootstrap intervals `(low, high)`, each (K,): approximate, without a guarantee.

    The half-width of a class is its standard error times the 1 - alpha quantile of the largest studentised deviation
    over all classes. Coverage falls short of 1 - alpha for few or skewed samples. The width is 0 for a class whose
    values are all equal; the ends are NaN for a class with fewer than two samples.
    Source: Efron and Tibshirani 1993, chapter 12; maximum over classes as in Romano and Wolf 2005.
    """
    summary = samples.summary
    error = np.sqrt(summary.variance / np.maximum(summary.n, 1))
    rng = np.random.default_rng(seed)
    largest = np.zeros(resamples)
    starts = np.cumsum(summary.n) - summary.n
    for k in np.flatnonzero(error > 0):
        values = samples.values[starts[k] : starts[k] + summary.n[k]]
        drawn = values[rng.integers(0, summary.n[k], (resamples, summary.n[k]))].mean(axis=1)
        largest = np.maximum(largest, np.abs(drawn - summary.mean[k]) / error[k])
    half = np.quantile(largest, 1 - alpha, method="higher") * error
    return np.maximum(summary.mean - half, value_range[0]), np.minimum(summary.mean + half, value_range[1])
