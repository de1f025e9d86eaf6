"""Survival analysis of minimal adversarial distances.

A distance that an attack found is an event; a sample on which every attack failed up to the largest distance searched
is censored. A failed attack proves nothing, so the survival curve is an upper bound of the curve of the true distances.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.quotients import ratio


def survival_curves(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike, classes: int, *, radii: ArrayLike
) -> NDArray[np.float64]:
    """Share of each class whose distance exceeds a radius: an upper bound of the share that is robust there.

    Parameters
    ----------
    values : array_like of shape (N,)
        Distances >= 0; 0 for misclassified samples, the largest distance searched for censored ones.
    censored : array_like of shape (N,), bool
        Whether every attack failed.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    radii : array_like of shape (R,)
        Radii >= 0.

    Returns
    -------
    ndarray of shape (K, R), float64
        Shares in [0, 1]; NaN for a class without samples, and from the class's smallest censored distance on.

    Raises
    ------
    InputError
        For a distance that is negative or NaN.
    """
    values, censored, labels = _checked(values, censored, labels)
    radii = np.asarray(radii, dtype=np.float64)
    curves = np.full((classes, len(radii)), np.nan)
    for k in np.unique(labels):
        members = labels == k
        ordered = np.sort(values[members])
        curves[k] = 1 - np.searchsorted(ordered, radii, side="right") / len(ordered)
        smallest_censored = values[members & censored].min(initial=np.inf)
        curves[k, radii >= smallest_censored] = np.nan
    return curves


def class_distances(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike, classes: int
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """Results of minimal-norm attacks per class.

    Parameters
    ----------
    values, censored, labels, classes
        See `survival_curves`.

    Returns
    -------
    dict of str to ndarray of shape (K,)
        `n` samples; `misclassified`, at distance 0; `found` and `censored`, which with `misclassified` sum to n;
        `success_rate`, the share found among the correctly classified, NaN if there are none; `median` distance over
        all samples, NaN if it is censored or the class is empty; `mean`, NaN if it is empty (mean_distance).

    Raises
    ------
    InputError
        For a distance that is negative or NaN.
    """
    values, censored, labels = _checked(values, censored, labels)
    n = np.bincount(labels, minlength=classes)
    misclassified = np.bincount(labels[(values == 0) & ~censored], minlength=classes)
    failed = np.bincount(labels[censored], minlength=classes)
    correct = n - misclassified
    succeeded = correct - failed

    median = np.empty(classes)
    mean = np.empty(classes)
    for k in range(classes):
        members = labels == k
        median[k] = median_distance(values[members], censored[members])
        mean[k] = mean_distance(values[members])
    return {
        "n": n,
        "misclassified": misclassified,
        "found": succeeded,
        "censored": failed,
        "success_rate": ratio(succeeded, correct),
        "median": median,
        "mean": mean,
    }


def median_distance(values: NDArray[np.float64], censored: NDArray[np.bool_]) -> float:
    """Median distance, 0 for misclassified samples; NaN if it is censored or there are no samples."""
    if len(values) == 0:
        return math.nan
    ordered = np.sort(np.where(censored, np.inf, values))
    low = ordered[(len(ordered) - 1) // 2]
    high = ordered[len(ordered) // 2]
    return float((low + high) / 2) if math.isfinite(high) else math.nan


def mean_distance(values: NDArray[np.float64]) -> float:
    """Restricted mean distance: the largest distance searched for censored samples, 0 for misclassified ones.

    Comparable only between models with the same largest distance. NaN without samples.
    """
    return float(np.mean(values)) if len(values) else math.nan


def _checked(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.integer]]:
    values = np.asarray(values, dtype=np.float64)
    valid = values >= 0
    if not valid.all():
        raise InputError(f"distances must be numbers of at least 0; {int((~valid).sum())} are not")
    return values, np.asarray(censored, dtype=bool), np.asarray(labels)
