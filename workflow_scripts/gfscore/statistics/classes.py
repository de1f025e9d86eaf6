"""Class values: means of one number per sample within each class."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


# ---- Worst classes, differences between classes, and the tolerance of ties. All functions take class values (K,)
# where higher is better; NaN marks classes without samples.


TIE_TOLERANCE = 1e-9
"""Largest difference of tied values: rounding errors must not decide which class is worst, or a rank."""


def worst_classes(values: ArrayLike) -> NDArray[np.int64]:
    """Indices of all classes that attain the minimum within TIE_TOLERANCE, ascending.

    Raises InputError when no class has samples.
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).all():
        raise InputError("no class has samples, so there is no worst class; give at least one sample")
    return np.flatnonzero(values <= np.nanmin(values) + TIE_TOLERANCE)


def worst_class_set(low: ArrayLike, high: ArrayLike) -> NDArray[np.int64]:
    """Classes that may be the worst given class intervals: {k : L_k <= min_j U_j}.

    Contains a worst class with the simultaneous confidence of the intervals.
    """
    low, high = np.asarray(low), np.asarray(high)
    return np.flatnonzero(low <= high.min())


def pairwise_differences(values: ArrayLike) -> NDArray[np.float64]:
    """Absolute differences |x_i - x_j| of all pairs of classes, (K, K); NaN rows for classes without samples."""
    values = np.asarray(values, dtype=np.float64)
    return np.abs(values[:, None] - values[None, :])


# ---- Splits of a dataset's samples into those that choose a temperature and those that report it.


def split_samples(
    sample_id: NDArray[Any], labels: NDArray[np.integer], *, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Boolean mask (N,) of a random `share` of the samples, stratified by class.

    Takes `sample_id` (N,) and `labels` (N,). The share of each class is exact to within one sample. Depends on the
    identifiers and not on the order of the samples, so the split is the same for all models of a dataset.
    """
    order = np.argsort(sample_id, kind="stable")[rng.permutation(len(labels))]
    by_class = order[np.argsort(labels[order], kind="stable")]
    # Systematic sampling from a random start: a sample is taken whenever the running share passes a whole number.
    taken = np.diff(np.floor(share * np.arange(len(labels) + 1) + rng.random())) > 0
    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[taken]] = True
    return mask


def choosing_samples(
    sample_id: NDArray[Any], labels: NDArray[np.integer], split: Mapping[str, Any]
) -> NDArray[np.bool_]:
    """Boolean mask (N,) of the samples that choose a temperature; the others report it.

    `split` holds the `share` of the choosing samples and a `seed`.
    """
    return split_samples(sample_id, labels, share=split["share"], rng=np.random.default_rng(split["seed"]))
