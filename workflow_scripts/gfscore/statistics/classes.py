"""Class values, means of one number per sample within each class, and the worst of them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.tolerances import TIE_TOLERANCE


@dataclass(frozen=True)
class ClassValues:
    """Class values of one measure.

    Attributes
    ----------
    n : ndarray of shape (K,), int64
        Samples per class.
    mean : ndarray of shape (K,), float64
        Class values; NaN for a class without samples.
    variance : ndarray of shape (K,), float64
        Unbiased sample variances; NaN for a class with fewer than two samples.
    """

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]

    @property
    def aggregate(self) -> float:
        """Sample-weighted mean over classes, sum_k (n_k / N) x_k: the mean over all samples (GF-Score, Eq. 3)."""
        present = self.n > 0
        return float(np.average(self.mean[present], weights=self.n[present]))


@dataclass(frozen=True)
class ClassSamples:
    """Samples grouped by class, in an order within each class that does not depend on the values.

    Attributes
    ----------
    values : ndarray of shape (N,), float64
        Values of the samples, class after class.
    n : ndarray of shape (K,), int64
        Samples per class.
    """

    values: NDArray[np.float64]
    n: NDArray[np.int64]

    @property
    def summary(self) -> ClassValues:
        """Class values of the samples."""
        classes = len(self.n)
        return class_values(self.values, np.repeat(np.arange(classes), self.n), classes)


def class_values(values: ArrayLike, labels: ArrayLike, classes: int) -> ClassValues:
    """Mean and variance of a measure within each class.

    Parameters
    ----------
    values : array_like of shape (N,)
        One number per sample.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.

    Returns
    -------
    ClassValues
        A class without samples has the mean NaN, not 0, which would make it the worst class.

    Raises
    ------
    InputError
        For a NaN among the values.

    References
    ----------
    GF-Score, Definition 1 (Eq. 2).
    """
    values = require_values(values)
    labels = np.asarray(labels, dtype=np.intp)
    n, mean = _counts_and_means(values, labels, classes)

    squares = np.bincount(labels, weights=(values - mean[labels]) ** 2, minlength=classes)
    variance = np.divide(squares, n - 1, out=np.full(classes, np.nan), where=n > 1)
    return ClassValues(n=n, mean=mean, variance=variance)


def class_means(values: ArrayLike, labels: ArrayLike, classes: int) -> NDArray[np.float64]:
    """Mean of a measure within each class, (K,) float64: `class_values` without the variance."""
    _, mean = _counts_and_means(require_values(values), np.asarray(labels, dtype=np.intp), classes)
    return mean


def _counts_and_means(values, labels, classes):
    n = np.bincount(labels, minlength=classes)
    sums = np.bincount(labels, weights=values, minlength=classes)
    # An output of K refuses labels beyond the classes.
    return n, np.divide(sums, n, out=np.full(classes, np.nan), where=n > 0)


def class_samples(values: ArrayLike, labels: ArrayLike, classes: int, *, seed: int) -> ClassSamples:
    """Group samples by class, in a random order within each class.

    Parameters
    ----------
    values : array_like of shape (N,)
        One number per sample.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    seed : int
        The order depends on it and on N alone, so it is the same for every model.

    Returns
    -------
    ClassSamples
        In an order that no value has influenced, as betting needs it.

    Raises
    ------
    InputError
        For a NaN among the values.
    """
    values = require_values(values)
    labels = np.asarray(labels)
    shuffled = np.random.default_rng(seed).permutation(len(values))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return ClassSamples(values=values[order], n=np.bincount(labels, minlength=classes))


def require_values(values: ArrayLike) -> NDArray[np.float64]:
    """Values (N,) as float64; raises InputError for NaN, which would mark the class as one without samples."""
    values = np.asarray(values, dtype=np.float64)
    missing = np.isnan(values)
    if missing.any():
        raise InputError(f"row {missing.argmax()} has no value (NaN); every sample must be measured")
    return values


# ---- worst classes, and differences between classes ----


def worst_classes(values: ArrayLike, most: ArrayLike | None = None) -> NDArray[np.int64]:
    """Classes that attain the minimum of the class values.

    Parameters
    ----------
    values : array_like of shape (K,)
        Class values, higher is better; NaN for a class without samples.
    most : array_like of shape (K,), optional
        The largest ones that undecided samples allow, of which `values` are the smallest.

    Returns
    -------
    ndarray of int64
        Indices of all classes within TIE_TOLERANCE of the minimum, ascending; where samples are undecided, of those
        that attain it whatever these are worth, perhaps none.

    Raises
    ------
    InputError
        When no class has samples.
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).all():
        raise InputError("no class has samples, so there is no worst class; give at least one sample")
    most = values if most is None else np.asarray(most, dtype=np.float64)
    # Each class against the smallest value of all others.
    smallest = np.nanargmin(values)
    others = np.full(len(values), values[smallest])
    others[smallest] = np.nanmin(np.append(np.delete(values, smallest), np.inf))
    return np.flatnonzero(most <= others + TIE_TOLERANCE)


def worst_class_set(low: ArrayLike, high: ArrayLike) -> NDArray[np.int64]:
    """Classes that may be the worst given class intervals: {k : L_k <= min_j U_j}.

    Parameters
    ----------
    low, high : array_like of shape (K,)
        Simultaneous confidence bounds of the class values.

    Returns
    -------
    ndarray of int64
        Class indices, ascending. With the confidence of the intervals, a worst class is among them.
    """
    low = np.asarray(low)
    high = np.asarray(high)
    return np.flatnonzero(low <= high.min())


def pairwise_differences(values: ArrayLike) -> NDArray[np.float64]:
    """Absolute differences |x_i - x_j| of all pairs of class values.

    Parameters
    ----------
    values : array_like of shape (K,)
        Class values; NaN for a class without samples.

    Returns
    -------
    ndarray of shape (K, K), float64
        Symmetric; NaN in rows and columns of classes without samples.
    """
    values = np.asarray(values, dtype=np.float64)
    return np.abs(values[:, None] - values[None, :])


def worst_class_trade(*, worst: float, mean: float, baseline_worst: float, baseline_mean: float) -> float:
    """Relative gain of the worst class less the relative loss of the mean, against a baseline (rho).

    Parameters
    ----------
    worst, mean : float
        Smallest class value, and mean over all samples, of a classifier: such as robust accuracies in [0, 1].
    baseline_worst, baseline_mean : float
        The same numbers of the classifier that it is compared with, on the same samples.

    Returns
    -------
    float
        (worst - baseline_worst) / baseline_worst - (baseline_mean - mean) / baseline_mean. Above 0 the worst class
        gains more than the mean loses, each relative to the baseline; 0 for the baseline itself. A mean that rises
        counts as gain. NaN for a baseline of 0, relative to which nothing is defined.

    References
    ----------
    Li and Liu 2023 (WAT), their measurement rho.
    """
    if baseline_worst <= 0 or baseline_mean <= 0:
        return math.nan
    gain = (worst - baseline_worst) / baseline_worst
    loss = (baseline_mean - mean) / baseline_mean
    return gain - loss


def normalised_weights(weights: ArrayLike | None, classes: int) -> NDArray[np.float64]:
    """Weights (K,) of the classes in means, such as their shares where a model is used, with the sum 1.

    Parameters
    ----------
    weights : array_like of shape (K,) or None
        None for equal weights.
    classes : int
        Number of classes K.

    Raises
    ------
    InputError
        For weights that are not K numbers of at least 0 with a positive sum.
    """
    if weights is None:
        return np.full(classes, 1 / classes)
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (classes,) or not np.all(numbers >= 0) or not 0 < numbers.sum() < np.inf:
        raise InputError(
            f"class_weights {weights} are no weights of {classes} classes; give one number of at least 0 for each "
            "class, not all of them 0"
        )
    return numbers / numbers.sum()


# ---- splits ----


def split_samples(
    sample_id: NDArray[np.generic], labels: NDArray[np.integer], *, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw a share of the samples, stratified by class.

    Parameters
    ----------
    sample_id : ndarray of shape (N,)
        Distinct identifiers. The draw depends on them and not on the order of the samples, so that it is the same for
        all models of a dataset.
    labels : ndarray of shape (N,)
        True classes.
    share : float
        Share to draw of each class, exact to within one sample.
    rng : numpy.random.Generator
        Source of the draw.

    Returns
    -------
    ndarray of shape (N,), bool
        Whether a sample is drawn.
    """
    order = np.argsort(sample_id, kind="stable")[rng.permutation(len(labels))]
    by_class = order[np.argsort(labels[order], kind="stable")]

    # Systematic sampling from a random start: a sample is taken whenever the running share passes a whole number.
    running_share = share * np.arange(len(labels) + 1) + rng.random()
    chosen = np.diff(np.floor(running_share)) > 0

    mask = np.zeros(len(labels), dtype=bool)
    mask[by_class[chosen]] = True
    return mask


def choosing_samples(
    sample_id: NDArray[np.generic], labels: NDArray[np.integer], *, share: float, seed: int
) -> NDArray[np.bool_]:
    """Mask (N,) of the samples that choose a temperature, by split_samples; the others report it."""
    return split_samples(sample_id, labels, share=share, rng=np.random.default_rng(seed))
