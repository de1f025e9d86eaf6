"""Numbers about several networks that were measured on the same images, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.classes import class_means
from gfscore.statistics.ranking import spearman

DRAWS = 10_000
"""Resamples of a bootstrap of means."""

ORDER_DRAWS = 1_000
"""Resamples of a bootstrap whose resamples take longer."""

CONFIDENCE = 0.95

KEEPS_ACCURACY = 0.1
"""Accuracy under attack below which a network's classes are all near 0, so that their order says nothing."""

Interval = tuple[float, float, float]
"""Value, and the lower and upper end of its interval."""


# ---- bootstrap over families ----


def resampled_families(families: Sequence[str], draws: int = DRAWS) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bootstrap samples of whole families, as many as there are.

    Networks of one family share authors, architecture and recipe, so they are no independent draws; families are taken
    as such.

    Parameters
    ----------
    families : sequence of str
        Family of each of M networks.
    draws : int
        Number of samples.

    Returns
    -------
    number : ndarray of shape (M,)
        Number of each network's family, 0..F-1.
    times : ndarray of shape (draws, F)
        How often each family is in each sample.
    """
    names, number = np.unique(np.asarray(families), return_inverse=True)
    equal_chances = np.full(len(names), 1 / len(names))
    times = np.random.default_rng(0).multinomial(len(names), equal_chances, size=draws)
    return number, times


def mean_over_families(values: ArrayLike, families: Sequence[str]) -> Interval:
    """Mean of a value per network, (M,), with a percentile bootstrap over families.

    Approximate: with the five families of the checkpoints the interval is rather too narrow than too wide.
    """
    values = _complete(values)
    number, times = resampled_families(families)
    drawn = (times @ np.bincount(number, weights=values)) / (times @ np.bincount(number))
    return _interval(float(values.mean()), drawn)


def median_over_pairs(
    values: ArrayLike, first: Sequence[str], second: Sequence[str], families: Sequence[str]
) -> Interval:
    """Median over pairs of networks, with a bootstrap over families.

    Parameters
    ----------
    values : array_like of shape (P,)
        One value per pair.
    first, second : sequence of str
        Families of the networks of each pair.
    families : sequence of str
        All families.
    """
    values = np.asarray(values, dtype=np.float64)
    names = np.unique(families)
    _, times = resampled_families(names, ORDER_DRAWS)
    # A network drawn twice is no pair with itself.
    times_of_pair = times[:, np.searchsorted(names, first)] * times[:, np.searchsorted(names, second)]
    medians = [np.median(np.repeat(values, repeats)) for repeats in times_of_pair if repeats.any()]
    return _interval(float(np.median(values)), medians)


def order_over_families(x: ArrayLike, y: ArrayLike, families: Sequence[str]) -> Interval:
    """Spearman's rho over networks of two values each, (M,), with a bootstrap over families."""
    x = _complete(x)
    y = _complete(y)
    return _interval(order(x, y), _drawn_orders(x, y, families))


def change_of_order(before: ArrayLike, after: ArrayLike, y: ArrayLike, families: Sequence[str]) -> Interval:
    """How much higher rho with `y` is `after` than `before`, all (M,), in the same resamples of families."""
    before = _complete(before)
    after = _complete(after)
    y = _complete(y)
    drawn = np.subtract(_drawn_orders(after, y, families), _drawn_orders(before, y, families))
    return _interval(order(after, y) - order(before, y), drawn)


def _drawn_orders(x, y, families):
    number, times = resampled_families(families, ORDER_DRAWS)
    orders = []
    for times_of_family in times:
        chosen = np.repeat(np.arange(len(x)), times_of_family[number])
        orders.append(order(x[chosen], y[chosen]))
    return orders


def order(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of (M,) and (M,), ties taken relative to the largest value.

    `spearman` takes values within 1e-9 of one another for equal; all sigmoid scores of a network may be smaller.
    """
    return float(spearman(_relative(x), _relative(y)))


def _relative(values):
    values = np.asarray(values, dtype=np.float64)
    return values / (np.abs(values).max() or 1)


def lowest(values: pd.Series) -> set[Hashable]:
    """Index of the smallest value, of each of them where several tie."""
    return set(values.index[values == values.min()])


def _complete(values):
    values = np.asarray(values, dtype=np.float64)
    missing = np.isnan(values).sum()
    if missing:
        raise ValueError(f"{missing} of {len(values)} networks have no value: leave them out by name")
    return values


def _interval(value, drawn):
    low, high = np.nanquantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return value, float(low), float(high)


# ---- profiles of classes ----


def profile_covariances(
    values: NDArray[np.float64], labels: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Covariance over classes of the class means of M networks.

    Parameters
    ----------
    values : ndarray of shape (M, N)
        One value per network and image.
    labels : ndarray of shape (N,)
        True classes.
    classes : int
        Number of classes K.

    Returns
    -------
    observed, noise : ndarray of shape (M, M)
        `noise` is what the choice of images contributes to `observed` in expectation: networks see the same images, so
        it is no diagonal. Their difference is an unbiased estimate of the covariance over classes of the true class
        means, the classes being these K ones.
    """
    means = np.array([class_means(row, labels, classes) for row in values])
    deviations = means - means.mean(axis=1, keepdims=True)
    noise = np.zeros((len(values), len(values)))
    for k in range(classes):
        members = values[:, labels == k]
        noise += np.cov(members) / members.shape[1]
    # Each class mean errs independently, and 1 / K of the sum of all errors is taken off with the mean over classes.
    return deviations @ deviations.T / (classes - 1), noise / classes


def common_share(covariance: NDArray[np.float64], families: NDArray[np.str_]) -> float:
    """Share of the variance between classes that networks of different families have in common.

    The sum of covariances of class profiles over that of the geometric means of their variances, over all pairs of
    networks of different families: 1 if all profiles are the same up to shift and scale, 0 if they are unrelated. With
    a factor common to all networks it is the share of a profile's variance that the factor explains.

    Parameters
    ----------
    covariance : ndarray of shape (M, M)
        Covariances of the profiles.
    families : ndarray of shape (M,)
        Families of the networks.

    Returns
    -------
    float
        NaN without a pair of different families.
    """
    # Noise may leave a network no variance.
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0))
    different = families[:, None] != families
    total = float(np.outer(deviation, deviation)[different].sum())
    return float(covariance[different].sum() / total) if total > 0 else float("nan")


def common_share_interval(
    values: NDArray[np.float64], labels: NDArray[np.int64], families: Sequence[str], classes: int, *, draws: int
) -> Interval:
    """`common_share`, cleared of noise, with a percentile bootstrap over families and over images.

    Images are drawn within each class, the same for all networks. A resample is as noisy again as the sample, so its
    noise is taken off twice. Parameters are those of profile_covariances.
    """
    names = np.asarray(families)
    rng = np.random.default_rng(0)
    observed, noise = profile_covariances(values, labels, classes)
    members_by_class = [np.flatnonzero(labels == k) for k in range(classes)]
    number, times = resampled_families(families, draws)
    shares = []
    for times_of_family in times:
        images = np.concatenate([rng.choice(members, len(members)) for members in members_by_class])
        resampled, resampled_noise = profile_covariances(values[:, images], labels[images], classes)
        chosen = np.repeat(np.arange(len(names)), times_of_family[number])
        corrected = resampled - noise - resampled_noise
        shares.append(common_share(corrected[np.ix_(chosen, chosen)], names[chosen]))
    return _interval(common_share(observed - noise, names), shares)
