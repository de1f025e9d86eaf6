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

ELEMENTS_AT_ONCE = 1 << 22
"""Array elements of one block of shuffles, which bounds the memory."""


@dataclass(frozen=True)
class NoiseFloor:
    """Disparity under shuffled class membership, its p-values, and the spread of true class values.

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

    All of them are shuffled alike, so that each shuffle is drawn once. The p-values are valid, for every N and K, for
    the null hypothesis that values have the same distribution in all classes. They do not test equal means alone:
    classes of equal mean but unequal spread and size can look disparate. Use the simultaneous intervals for that.

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
    class_sizes = np.bincount(labels, minlength=classes)
    class_sizes = class_sizes[class_sizes > 0]

    observed_metrics = np.empty((len(AGAINST_CHANCE), len(values)))
    for index, metric in enumerate(AGAINST_CHANCE):
        observed_metrics[index] = [
            metric.compute(of_classes.mean, counts=of_classes.n, lam=lam) for of_classes in observed
        ]
    sums = np.zeros(observed_metrics.shape)
    at_least_observed = np.zeros(observed_metrics.shape)
    tolerance = STATISTIC_TOLERANCE * max(1.0, np.abs(values).max(initial=0))
    for means in _shuffled_means(values, class_sizes, permutations, rng):
        for index, metric in enumerate(AGAINST_CHANCE):
            shuffled = metric.compute_many(means, counts=class_sizes, lam=lam)
            # More disparity is the worse value.
            sign = -metric.direction
            sums[index] += shuffled.sum(axis=0)
            limit = sign * observed_metrics[index] - tolerance
            at_least_observed[index] += (sign * shuffled >= limit).sum(axis=0)
    p_value = (1 + at_least_observed) / (1 + permutations)
    p_value[np.isnan(observed_metrics)] = np.nan

    names = [metric.name for metric in AGAINST_CHANCE]
    floors = []
    for row, of_classes in enumerate(observed):
        floors.append(
            NoiseFloor(
                permuted=dict(zip(names, (sums[:, row] / permutations).tolist(), strict=True)),
                p_value=dict(zip(names, p_value[:, row].tolist(), strict=True)),
                between_class_sd=between_class_sd(of_classes),
            )
        )
    return floors


def _shuffled_means(
    values: NDArray[np.float64], class_sizes: NDArray[np.int64], permutations: int, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    # Class means (B, R, K) under B shuffles at a time. A shuffle deals the samples to classes of the given sizes. The
    # sum of every class is a row of a 0/1 matrix times the values, which needs no shuffled copy (B, R, N).
    rows, samples = values.shape
    block_size = max(1, ELEMENTS_AT_ONCE // max(1, rows * len(class_sizes), samples))
    values_by_sample = np.ascontiguousarray(values.T)
    class_starts = np.cumsum(class_sizes) - class_sizes
    for first in range(0, permutations, block_size):
        block = min(block_size, permutations - first)
        shuffled_samples = rng.permuted(np.tile(np.arange(samples), (block, 1)), axis=1).ravel()
        row_starts = (class_starts + samples * np.arange(block)[:, None]).ravel()
        row_pointers = np.append(row_starts, len(shuffled_samples))
        membership = csr_array(
            (np.ones(len(shuffled_samples)), shuffled_samples, row_pointers), (len(row_starts), samples)
        )
        sums = (membership @ values_by_sample).reshape(block, len(class_sizes), rows)
        yield np.moveaxis(sums / class_sizes[:, None], 1, 2)


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
