"""Numbers about several networks that were measured on the same images, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.classes import class_means
from gfscore.statistics.ranking import spearman

DRAWS, ORDER_DRAWS = 10_000, 1_000
"""Resamples of a bootstrap of means, and of one whose resamples take longer."""

CONFIDENCE = 0.95

KEEPS_ACCURACY = 0.1
"""Accuracy under attack below which a network's classes are all near 0, so that their order says nothing."""


def resampled_families(families: Sequence[str], draws: int = DRAWS) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bootstrap samples of whole families, as many as there are: `(number, times)`.

    Networks of one family share authors, architecture and recipe, so they are no independent draws; families are taken
    as such. Takes the family of each of M networks; `number` (M,) is that of its family, 0..F-1, and `times` (draws, F)
    how often each family is in each sample.
    """
    names, number = np.unique(np.asarray(families), return_inverse=True)
    times = np.random.default_rng(0).multinomial(len(names), np.full(len(names), 1 / len(names)), size=draws)
    return number, times


def mean_over_families(values: ArrayLike, families: Sequence[str]) -> tuple[float, float, float]:
    """`(value, low, high)` of the mean of a value per network, (M,): percentile bootstrap over families.

    Approximate: with the five families of the checkpoints the interval is rather too narrow than too wide.
    """
    values = _of_every_network(values)
    number, times = resampled_families(families)
    drawn = (times @ np.bincount(number, weights=values)) / (times @ np.bincount(number))
    return (float(values.mean()), *_middle(drawn))


def median_over_pairs(
    values: ArrayLike, first: Sequence[str], second: Sequence[str], families: Sequence[str]
) -> tuple[float, float, float]:
    """`(value, low, high)` of the median over pairs of networks, (P,): bootstrap over families.

    `first` and `second` are the families of each pair's networks, `families` all of them.
    """
    values, names = np.asarray(values, dtype=np.float64), np.unique(families)
    _, times = resampled_families(names, ORDER_DRAWS)
    # A network drawn twice is no pair with itself.
    often = times[:, np.searchsorted(names, first)] * times[:, np.searchsorted(names, second)]
    drawn = [np.median(np.repeat(values, own)) for own in often if own.any()]
    return (float(np.median(values)), *_middle(drawn))


def order_over_families(x: ArrayLike, y: ArrayLike, families: Sequence[str]) -> tuple[float, float, float]:
    """`(value, low, high)` of Spearman's rho over networks of two values each, (M,): as `mean_over_families`."""
    x, y = _of_every_network(x), _of_every_network(y)
    return (order(x, y), *_middle(_drawn_orders(x, y, families)))


def change_of_order(
    before: ArrayLike, after: ArrayLike, y: ArrayLike, families: Sequence[str]
) -> tuple[float, float, float]:
    """`(value, low, high)` of how much higher rho with `y` is `after` than `before`, in the same resamples."""
    before, after, y = (_of_every_network(values) for values in (before, after, y))
    drawn = np.subtract(*(_drawn_orders(x, y, families) for x in (after, before)))
    return (order(after, y) - order(before, y), *_middle(drawn))


def _drawn_orders(x, y, families):
    number, times = resampled_families(families, ORDER_DRAWS)
    drawn = [np.repeat(np.arange(len(x)), own[number]) for own in times]
    return [order(x[chosen], y[chosen]) for chosen in drawn]


def order(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rho of (M,) and (M,), ties taken relative to the largest value.

    `spearman` takes values within 1e-9 of one another for equal; all sigmoid scores of a network may be smaller.
    """
    x, y = (np.asarray(values, dtype=np.float64) for values in (x, y))
    return float(spearman(*(values / (np.abs(values).max() or 1) for values in (x, y))))


def lowest(values: pd.Series) -> set[Any]:
    """Index of the smallest value, of each of them where several tie."""
    return set(values.index[values == values.min()])


def _of_every_network(values):
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError(f"{np.isnan(values).sum()} of {len(values)} networks have no value: leave them out by name")
    return values


def _middle(drawn):
    low, high = np.nanquantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def profile_covariances(
    values: NDArray[np.float64], labels: NDArray[np.int64], classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Covariance over classes of the class means of M networks, `(observed, noise)`, each (M, M).

    Takes `values` (M, N), one per network and image, and `labels` (N,). `noise` is what the choice of images
    contributes to `observed` in expectation: networks see the same images, so it is no diagonal. Their difference is
    an unbiased estimate of the covariance over classes of the true class means, the classes being these K ones.
    """
    means = np.array([class_means(row, labels, classes) for row in values])
    deviations = means - means.mean(axis=1, keepdims=True)
    noise = np.zeros((len(values), len(values)))
    for k in range(classes):
        members = values[:, labels == k]
        noise += np.cov(members) / members.shape[1]
    # Each class mean errs on its own, and 1 / K of the sum of all errors is taken off with the mean over classes.
    return deviations @ deviations.T / (classes - 1), noise / classes


def common_share(covariance: NDArray[np.float64], families: NDArray[np.str_]) -> float:
    """Share of the variance between classes that networks of different families have in common.

    The sum of covariances of class profiles over that of the geometric means of their variances, over all pairs of
    networks of different families: 1 if all profiles are the same up to shift and scale, 0 if they are unrelated. With
    a factor common to all networks it is the share of a profile's variance that the factor explains. Takes the
    covariances (M, M) and the families (M,). NaN without such a pair.
    """
    # Noise may leave a network no variance.
    variance = np.sqrt(np.maximum(np.diag(covariance), 0))
    apart = families[:, None] != families
    total = float(np.outer(variance, variance)[apart].sum())
    return float(covariance[apart].sum() / total) if total > 0 else float("nan")


def common_share_interval(
    values: NDArray[np.float64], labels: NDArray[np.int64], families: Sequence[str], classes: int, *, draws: int
) -> tuple[float, float, float]:
    """`(value, low, high)` of `common_share`, cleared of noise: percentile bootstrap over families and over images.

    Images are drawn within each class, the same for all networks. A resample is as noisy again as the sample, so its
    noise is taken off twice.
    """
    names, rng = np.asarray(families), np.random.default_rng(0)
    observed, noise = profile_covariances(values, labels, classes)
    of_class = [np.flatnonzero(labels == k) for k in range(classes)]
    number, times = resampled_families(families, draws)
    found = []
    for own in times:
        images = np.concatenate([rng.choice(members, len(members)) for members in of_class])
        again, noise_again = profile_covariances(values[:, images], labels[images], classes)
        chosen = np.repeat(np.arange(len(names)), own[number])
        corrected = again - noise - noise_again
        found.append(common_share(corrected[np.ix_(chosen, chosen)], names[chosen]))
    return (common_share(observed - noise, names), *_middle(found))
