"""Class values: means of one number per sample within each class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError


@dataclass(frozen=True)
class ClassValues:
    """Class values of one measure.

    `n` (K,) int64 samples per class; `mean` (K,) float64, NaN where n = 0; `variance` (K,) float64, the unbiased
    sample variance, NaN where n < 2.
    """

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @property
    def aggregate(self) -> float:
        """Sample-weighted mean over classes, sum_k (n_k / N) x_k: equals the mean over all samples (Eq. 3)."""
        present = self.n > 0
        return float(np.average(self.mean[present], weights=self.n[present]))


def class_values(values: ArrayLike, labels: ArrayLike, classes: int) -> ClassValues:
    """Mean and variance of a measure within each class.

    Takes `values` (N,), `labels` (N,) in 0..K-1 and the number of classes K. A class without samples gets NaN, not 0,
    which would make it the worst class. Raises InputError for a NaN among the values. Source: GF-Score, Definition 1
    (Eq. 2).
    """
    values, labels = require_values(values), np.asarray(labels, dtype=np.intp)
    n, mean = _counts_and_means(values, labels, classes)
    squares = np.bincount(labels, weights=(values - mean[labels]) ** 2, minlength=classes)
    variance = np.divide(squares, n - 1, out=np.full(classes, np.nan), where=n > 1)
    return ClassValues(n=n, mean=mean, variance=variance)


def class_means(values: ArrayLike, labels: ArrayLike, classes: int) -> NDArray[np.float64]:
    """Mean of a measure within each class, (K,) float64: `class_values` without the variance."""
    return _counts_and_means(require_values(values), np.asarray(labels, dtype=np.intp), classes)[1]


def _counts_and_means(values, labels, classes):
    n = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, weights=values, minlength=classes)
    return n, np.divide(sums, n, out=np.full(classes, np.nan), where=n > 0)


@dataclass(frozen=True)
class ClassSamples:
    """Samples grouped by class: `values` (N,) float64, class after class, and `n` (K,) int64 samples per class.

    The order within a class is random and does not depend on the values, as betting requires.
    """

    values: NDArray[np.float64]
    n: NDArray[np.int64]

    @property
    def summary(self) -> ClassValues:
        """ClassValues of the samples."""
        return class_values(self.values, np.repeat(np.arange(len(self.n)), self.n), len(self.n))


def class_samples(values: ArrayLike, labels: ArrayLike, classes: int, *, seed: int) -> ClassSamples:
    """ClassSamples of `values` (N,) by `labels` (N,) in 0..K-1.

    The order within a class depends on `seed` and the number of samples alone, so it is the same for every model.
    Raises InputError for a value that is NaN.
    """
    values, labels = require_values(values), np.asarray(labels)
    shuffled = np.random.default_rng(seed).permutation(len(values))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return ClassSamples(values=values[order], n=np.bincount(labels, minlength=classes))


def require_values(values: ArrayLike) -> NDArray[np.float64]:
    """Values (N,) as float64; raises InputError for NaN, which would mark the class as one without samples."""
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise InputError(f"row {np.isnan(values).argmax()} has no value (NaN); every sample must be measured")
    return values
