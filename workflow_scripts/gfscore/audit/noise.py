"""How much of a measured disparity is chance.

With many classes and few samples RDI and WCR are mostly noise: identical classes show a disparity too. So each is
compared with its value when class membership is shuffled. That tests whether values have the same distribution in all
classes, not whether their means are equal.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from gfscore.audit.metrics import AGAINST_CHANCE
from gfscore.statistics.classes import ClassValues, class_values
from gfscore.statistics.tolerances import STATISTIC_TOLERANCE

ELEMENTS = 1 << 22
"""Numbers held at once."""


@dataclass(frozen=True)
class NoiseFloor:
    """What the disparity would be if classes did not matter.

    Parameters
    ----------
    permuted : dict
        Mean of each metric of AGAINST_CHANCE under shuffled class membership, by name.
    p_value : dict
        Share of shuffles (the observed one included) with at least the observed disparity, by metric. Both are NaN
        where the metric is undefined.
    between_class_sd : float
        Spread of the true class values, corrected for noise, in the unit of the measure.
    """

    permuted: dict[str, float]
    p_value: dict[str, float]
    between_class_sd: float


def noise_floors(
    values: ArrayLike,
    labels: ArrayLike,
    classes: int,
    *,
    permutations: int,
    rng: np.random.Generator,
    lam: float | None = None,
) -> list[NoiseFloor]:
    """Disparity under shuffled class membership, of several measures or models on the same samples.

    All of them are shuffled alike, so that each shuffle is drawn once. The p-values are valid for the null that values
    are exchangeable between classes, for every N and K: that they have the same distribution in all. They are not for
    equal class means alone, since classes of other spreads and sizes differ by more than shuffled ones; for those there
    are the intervals.

    Parameters
    ----------
    values : array-like (R, N)
        Values of R measures or models.
    labels : array-like (N,)
        Classes of the samples, 0..K-1.
    classes : int
        Number of classes K.
    permutations : int
        Number of shuffles.
    rng : Generator
        Draws the shuffles.
    lam : float, optional
        Lambda of the metrics that have one.

    Returns
    -------
    list of R NoiseFloor

    References
    ----------
    Permutation p-value with the +1 of Phipson and Smyth 2010.
    """
    values = np.asarray(values, dtype=np.float64)
    labels = np.asarray(labels)
    observed = [class_values(row, labels, classes) for row in values]
    present = np.bincount(labels, minlength=classes)
    present = present[present > 0]

    extent = np.empty((len(AGAINST_CHANCE), len(values)))
    for index, metric in enumerate(AGAINST_CHANCE):
        extent[index] = [metric.compute(row.mean, counts=row.n, lam=lam) for row in observed]
    sums = np.zeros(extent.shape)
    reached = np.zeros(extent.shape)
    for means in _shuffled_means(values, present, permutations, rng):
        for index, metric in enumerate(AGAINST_CHANCE):
            numbers = metric.compute_many(means, counts=present, lam=lam)
            # More disparity is the worse value.
            sign = -metric.direction
            sums[index] += numbers.sum(axis=0)
            reached[index] += (sign * numbers >= sign * extent[index] - STATISTIC_TOLERANCE).sum(axis=0)
    p_value = np.where(np.isnan(extent), np.nan, (1 + reached) / (1 + permutations))

    names = [metric.name for metric in AGAINST_CHANCE]
    floors = []
    for row, row_values in enumerate(observed):
        floors.append(
            NoiseFloor(
                permuted=dict(zip(names, (sums[:, row] / permutations).tolist(), strict=True)),
                p_value=dict(zip(names, p_value[:, row].tolist(), strict=True)),
                between_class_sd=between_class_sd(row_values),
            )
        )
    return floors


def _shuffled_means(
    values: NDArray[np.float64], n: NDArray[np.int64], permutations: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    # Means of classes of n (K,) samples under block after block of B shuffles: (B, R, K), in memory (B, K, R), so that
    # the smallest of the classes is that of K long rows.
    rows, samples = values.shape
    step = max(1, ELEMENTS // max(1, rows * len(n), samples))
    columns = np.ascontiguousarray(values.T)
    starts = np.concatenate([[0], np.cumsum(n)])
    for start in range(0, permutations, step):
        block = min(step, permutations - start)
        # Each class of each shuffle is a row that holds 1 at its samples; a shuffle deals out the samples in its order.
        dealt = rng.permuted(np.tile(np.arange(samples), (block, 1)), axis=1).ravel()
        ends = (starts[:-1] + samples * np.arange(block)[:, None]).ravel()
        membership = csr_array((np.ones(len(dealt)), dealt, np.append(ends, len(dealt))), (len(ends), samples))
        sums = (membership @ columns).reshape(block, len(n), rows)
        yield np.moveaxis(sums / n[:, None], 1, 2)


def between_class_sd(values: ClassValues) -> float:
    """Standard deviation of the true class values, sqrt(max(0, s2_between - mean(s2_k / n_k))).

    Comparable between 10 and 1,000 classes, unlike RDI.

    Parameters
    ----------
    values : ClassValues

    Returns
    -------
    float
        In the unit of the measure, 0 when the classes differ by no more than their noise, NaN when fewer than two
        classes have two samples.
    """
    with_variance = values.n > 1
    if with_variance.sum() < 2:
        return float("nan")
    noise = np.mean(values.variance[with_variance] / values.n[with_variance])
    return math.sqrt(max(0.0, float(np.var(values.mean[with_variance], ddof=1) - noise)))
