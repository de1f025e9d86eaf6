"""Fairness metrics between groups of samples: dependence of predictions and their errors on an attribute.

Notation: Y true class, R predicted class, A group; G groups, K classes. Each class is considered against the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

METRICS = ("dp", "eopp", "eodd", "aodd")
"""Demographic parity, equal opportunity, equalized odds, average odds, each as a difference between groups."""

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Lower and upper ends of intervals."""


@dataclass(frozen=True)
class GroupCounts:
    """Counts of samples by group and class. Copies of a sample count as fractions.

    Parameters
    ----------
    members : array of float64, shape (G, K)
        Samples of the group in the class.
    taken : array of float64, shape (G, K)
        Samples of the group predicted as the class.
    recognised : array of float64, shape (G, K)
        Samples of the group in the class and predicted as it.
    """

    members: NDArray[np.float64]
    taken: NDArray[np.float64]
    recognised: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """Samples of each group, (G, 1)."""
        return self.members.sum(axis=-1, keepdims=True)

    @property
    def smallest_cell(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Smallest denominators of the rates in EOpp, and of those in EOdd: two arrays (K,)."""
        positive = self.members.min(axis=-2)
        negative = (self.total - self.members).min(axis=-2)
        return positive, np.minimum(positive, negative)


def group_counts(
    group: NDArray[np.int64],
    labels: NDArray[np.int64],
    predictions: NDArray[np.int64],
    *,
    groups: int,
    classes: int,
    shares: NDArray[np.float64] | None = None,
) -> GroupCounts:
    """Counts of predictions by group and class.

    Parameters
    ----------
    group : array of int, shape (R,)
        Group of each row, 0..G-1; a sample has several rows if it has several perturbed copies.
    labels, predictions : array of int, shape (R,)
        True and predicted classes, 0..K-1.
    groups, classes : int
        Numbers G and K.
    shares : array of float, shape (R,), optional
        Weights of the rows, of which those of a sample sum to 1. By default each row is a sample.
    """
    weights = np.ones(len(group)) if shares is None else shares
    right = labels == predictions

    def counted(classes_of_rows: NDArray[np.int64], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        cells = group[rows] * classes + classes_of_rows[rows]
        counts = np.bincount(cells, weights=weights[rows], minlength=groups * classes)
        return counts.astype(np.float64).reshape(groups, classes)

    every_row = np.ones(len(group), dtype=bool)
    return GroupCounts(
        members=counted(labels, every_row), taken=counted(predictions, every_row), recognised=counted(labels, right)
    )


@dataclass(frozen=True)
class GroupRates:
    """Rates of G groups for each of K classes against the rest, each in 0..1, NaN for an empty cell.

    Parameters
    ----------
    selection : array of float64, shape (G, K)
        P(R = class | A).
    true_positive : array of float64, shape (G, K)
        P(R = class | Y = class, A).
    false_positive : array of float64, shape (G, K)
        P(R = class | Y != class, A).
    """

    selection: NDArray[np.float64]
    true_positive: NDArray[np.float64]
    false_positive: NDArray[np.float64]


def group_rates(counts: GroupCounts) -> GroupRates:
    """Rates of groups from their counts."""
    negatives = counts.total - counts.members
    return GroupRates(
        selection=_share(counts.taken, np.broadcast_to(counts.total, counts.taken.shape)),
        true_positive=_share(counts.recognised, counts.members),
        false_positive=_share(counts.taken - counts.recognised, negatives),
    )


def _share(counts: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    # Clipped, since sums of shares have rounding errors.
    share = np.divide(counts, totals, out=np.full(np.shape(totals), np.nan), where=totals > 0)
    return np.clip(share, 0, 1)


def group_metrics(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """Differences between groups.

    Parameters
    ----------
    rates : GroupRates
        Rates of G groups for K classes.

    Returns
    -------
    dict
        Arrays (K,) in 0..1 for each of METRICS; 0 if groups are treated equally, NaN if a cell is empty (where
        fairlearn has the rate 0), and for a single group.

        - ``dp`` largest difference between groups of P(R = class | A)
        - ``eopp`` that of the true positive rate (equal to that of the false negative rate)
        - ``eodd`` the larger of the differences of the true and the false positive rate
        - ``aodd`` their mean

    References
    ----------
    Hardt et al. 2016; projection fairness, A.1.
    """
    true_positive = spread(rates.true_positive)
    false_positive = spread(rates.false_positive)
    return {
        "dp": spread(rates.selection),
        "eopp": true_positive,
        "eodd": np.maximum(true_positive, false_positive),
        "aodd": (true_positive + false_positive) / 2,
    }


def spread(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest minus smallest rate over groups, (G, K) to (K,); NaN if a group has no rate, and for G = 1."""
    difference = rates.max(axis=-2) - rates.min(axis=-2)
    if rates.shape[-2] == 1:
        # A single group cannot be compared; 0 would mean equal treatment.
        return np.full_like(difference, np.nan)
    return difference


def group_metrics_as_printed(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """Metrics as the projection paper prints them.

    There EOdd is the largest and AOdd the mean of P(R = class | Y, A) over both values of Y and all groups, without
    differences, so a perfect classifier gets 1 and .5, a constant one 1 and 1 or 0 and 0. dp and eopp are those of
    group_metrics.

    Parameters
    ----------
    rates : GroupRates
        Rates of G groups for K classes.

    Returns
    -------
    dict
        Arrays (K,) for each of METRICS.

    References
    ----------
    Projection paper, Eq. 2-5.
    """
    metrics = group_metrics(rates)
    cells = np.concatenate([rates.true_positive, rates.false_positive], axis=-2)
    metrics["eodd"] = cells.max(axis=-2)
    metrics["aodd"] = cells.mean(axis=-2)
    return metrics


def over_classes(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and largest of the defined values of classes.

    Parameters
    ----------
    values : array of float64, shape (..., K)

    Returns
    -------
    macro, worst : array of float64, shape (...)
        NaN if no value is defined.
    """
    defined = ~np.isnan(values)
    any_defined = defined.any(axis=-1)
    total = np.where(defined, values, 0).sum(axis=-1)
    macro = np.divide(total, defined.sum(axis=-1), out=np.full(np.shape(total), np.nan), where=any_defined)
    largest = np.where(defined, values, -np.inf).max(axis=-1)
    return macro, np.where(any_defined, largest, np.nan)


def balanced_rows(group: ArrayLike, *, seed: int) -> NDArray[np.int64]:
    """Random part of the samples in which all groups have the size of the smallest one.

    Drawn without replacement, depending only on `group` and `seed`.

    Parameters
    ----------
    group : array of int, shape (N,)
        Groups 0..G-1, negative for samples without a group, which are left out. Groups without samples are ignored.
    seed : int
        Seed of the draw.

    Returns
    -------
    array of int64, shape (n,)
        Rows, ascending.
    """
    group = np.asarray(group)
    present, counts = np.unique(group[group >= 0], return_counts=True)
    if len(present) == 0:
        return np.zeros(0, dtype=np.int64)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(group == index))[: counts.min()] for index in present]
    return np.sort(np.concatenate(drawn))


def wilson(rate: NDArray[np.float64], n: NDArray[np.float64], *, alpha: float) -> Ends:
    """Wilson score interval of binomial proportions: approximate.

    Parameters
    ----------
    rate : array of float64, shape (...)
        Proportions. May be means of values in 0..1 over n samples, since their variance is at most that of 0/1 values
        with the same mean.
    n : array, shape (...)
        Numbers of samples.
    alpha : float
        1 - nominal confidence.

    Returns
    -------
    low, high : array of float64, shape (...)
        NaN where n = 0.

    References
    ----------
    Wilson 1927.
    """
    z2 = NormalDist().inv_cdf(1 - alpha / 2) ** 2
    n = np.where(np.asarray(n) > 0, n, np.nan)
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half_width = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(centre - half_width, 0, 1), np.clip(centre + half_width, 0, 1)


def wilson_metrics(counts: GroupCounts, *, alpha: float) -> dict[str, Ends]:
    """Intervals of all metrics from Wilson intervals of their cells.

    The cells of a class divide its alpha (G cells for dp and eopp, 2G for eodd and aodd), and the ends are the extremes
    over the box of their intervals, which is wide for many groups. The last two entries are for the mean and the
    largest over classes, for which the K classes divide alpha so that all boxes hold simultaneously; a bootstrap would
    be biased, since differences between groups are never negative.

    Parameters
    ----------
    counts : GroupCounts
        Counts of G groups and K classes.
    alpha : float
        1 - nominal confidence.

    Returns
    -------
    dict
        For each of METRICS low and high, each (K + 2,).
    """
    classes = counts.members.shape[1]
    single = _wilson_of_classes(counts, alpha=alpha)
    simultaneous = _wilson_of_classes(counts, alpha=alpha / classes)
    intervals = {}
    for name in METRICS:
        low = np.append(single[name][0], over_classes(simultaneous[name][0]))
        high = np.append(single[name][1], over_classes(simultaneous[name][1]))
        intervals[name] = low, high
    return intervals


def _wilson_of_classes(counts: GroupCounts, *, alpha: float) -> dict[str, Ends]:
    rates = group_rates(counts)
    groups = len(counts.members)
    negatives = counts.total - counts.members
    totals = np.broadcast_to(counts.total, counts.members.shape)

    def difference(rate: NDArray[np.float64], n: NDArray[np.float64], cells: int) -> Ends:
        return _spread_over_box(*wilson(rate, n, alpha=alpha / cells))

    true_low, true_high = difference(rates.true_positive, counts.members, 2 * groups)
    false_low, false_high = difference(rates.false_positive, negatives, 2 * groups)
    return {
        "dp": difference(rates.selection, totals, groups),
        "eopp": difference(rates.true_positive, counts.members, groups),
        "eodd": (np.maximum(true_low, false_low), np.maximum(true_high, false_high)),
        "aodd": ((true_low + false_low) / 2, (true_high + false_high) / 2),
    }


def _spread_over_box(low: NDArray[np.float64], high: NDArray[np.float64]) -> Ends:
    # Smallest and largest difference of two different groups; NaN if a group has no interval, and for a single group.
    different = ~np.eye(len(low), dtype=bool)[:, :, None]
    at_least = np.where(different, low[:, None] - high[None, :], -np.inf).max(axis=(0, 1))
    at_most = np.where(different, high[:, None] - low[None, :], -np.inf).max(axis=(0, 1))
    unknown = np.isnan(low).any(axis=0) | (len(low) < 2)
    return np.where(unknown, np.nan, np.maximum(0, at_least)), np.where(unknown, np.nan, np.maximum(0, at_most))
