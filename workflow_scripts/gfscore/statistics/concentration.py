"""Deviation of the observed RDI from the true one by the number of samples, for comparison with its bound."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
