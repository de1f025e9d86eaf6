"""How far a measured disparity lies from the true one, by the number of samples: the bound, and what really happens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

BLOCK = 1 << 22
"""Draws at a time, so that memory does not grow with the number of classes."""


@dataclass(frozen=True)
class Deviations:
    """|RDI of a draw - RDI of all samples| for S sample sizes `n` (S,), `draws` each: `values` (S, draws)."""

    n: NDArray[np.integer]
    values: NDArray[np.float64]

    def quantile(self, share: float) -> NDArray[np.float64]:
        """Deviation that this share of the draws stays within, (S,)."""
        return np.quantile(self.values, share, axis=1, method="inverted_cdf")


def rdi_deviations(
    values: ArrayLike,
    labels: ArrayLike,
    *,
    sizes: Sequence[int] | NDArray[np.integer],
    draws: int,
    rng: np.random.Generator,
) -> Deviations:
    """Deviations of RDI when every class is measured on n of its samples, drawn with replacement.

    Takes per-sample `values` (N,) and `labels` (N,), the sample `sizes` per class, how often to draw at each and a
    numpy Generator. The samples at hand are the population, so that its RDI is known exactly and draws are independent:
    Eq. 12 of the GF-Score paper must hold for them at every n. Classes without samples take no part.
    """
    values, labels = np.asarray(values, dtype=np.float64), np.asarray(labels)
    own = [values[labels == label] for label in np.unique(labels)]
    truth = np.ptp([sample.mean() for sample in own])
    found = np.empty((len(sizes), draws))
    for row, n in enumerate(sizes):
        low, high = np.full(draws, np.inf), np.full(draws, -np.inf)
        for sample in own:
            means = _means(sample, n, draws, rng)
            low, high = np.minimum(low, means), np.maximum(high, means)
        found[row] = np.abs(high - low - truth)
    return Deviations(np.asarray(sizes), found)


def _means(sample, n, draws, rng):
    step = max(1, BLOCK // n)
    parts = (min(step, draws - start) for start in range(0, draws, step))
    return np.concatenate([sample[rng.integers(len(sample), size=(part, n))].mean(axis=1) for part in parts])


def sample_sizes(largest: int, *, smallest: int = 5, count: int = 8) -> NDArray[np.int64]:
    """About `count` sample sizes per class up to the largest, evenly spaced on a log scale, ascending."""
    return np.unique(np.geomspace(min(smallest, largest), largest, count).round().astype(int))
