"""Fairness metrics between groups of samples: dependence of predictions and their errors on an attribute.

Notation: Y true class, R predicted class, A group; G groups, K classes. Every class is in turn the positive
one, the others together the negative one.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.quotients import mean_of_defined, ratio

METRICS = ("dp", "eopp", "eodd", "aodd")
"""Demographic parity, equal opportunity, equalized odds, average odds, each as a difference between groups."""

Ends = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Lower and upper ends of intervals."""


@dataclass(frozen=True)
class GroupCounts:
    """Counts of samples by group and class. Each of m perturbed copies of a sample counts 1/m.

    Parameters
    ----------
    members : array of float64, shape (G, K)
        Samples of the group in the class.
    predicted : array of float64, shape (G, K)
        Samples of the group predicted as the class.
    recognised : array of float64, shape (G, K)
        Samples of the group in the class and predicted as it.
    """

    members: NDArray[np.float64]
    predicted: NDArray[np.float64]
    recognised: NDArray[np.float64]

    @property
    def total(self) -> NDArray[np.float64]:
        """Samples of each group, (G, 1)."""
        return self.members.sum(axis=-1, keepdims=True)

    @property
    def smallest_cell(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Samples behind the least certain rate in EOpp, and in EOdd and AOdd: two arrays (K,).

        The smallest number of positives over the groups; the smallest number of positives or negatives.
        """
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
        True and predicted classes, 0..K-1; a negative prediction, an abstention, is one of no class.
    groups, classes : int
        Numbers G and K.
    shares : array of float, shape (R,), optional
        Weights of the rows, which sum to 1 over the rows of a sample. By default each row is a sample.
    """
    weights = np.ones(len(group)) if shares is None else shares
    correct = labels == predictions

    def counts_by_class(row_classes: NDArray[np.int64], rows: NDArray[np.bool_]) -> NDArray[np.float64]:
        cells = group[rows] * classes + row_classes[rows]
        counts = np.bincount(cells, weights=weights[rows], minlength=groups * classes)
        return counts.astype(np.float64).reshape(groups, classes)

    every_row = np.ones(len(group), dtype=bool)
    return GroupCounts(
        members=counts_by_class(labels, every_row),
        predicted=counts_by_class(predictions, predictions >= 0),
        recognised=counts_by_class(labels, correct),
    )


@dataclass(frozen=True)
class GroupRates:
    """Rates of G groups for each of K classes against the rest, each in 0..1, NaN where its denominator is 0.

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
        selection=_share(counts.predicted, counts.total),
        true_positive=_share(counts.recognised, counts.members),
        false_positive=_share(counts.predicted - counts.recognised, negatives),
    )


def _share(counts: NDArray[np.float64], totals: NDArray[np.float64]) -> NDArray[np.float64]:
    # Clipped, since sums of shares have rounding errors.
    return np.clip(ratio(counts, totals), 0, 1)


def group_metrics(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """Differences between groups.

    Parameters
    ----------
    rates : GroupRates
        Rates of G groups for K classes.

    Returns
    -------
    dict
        Arrays (K,) in 0..1 for each of METRICS; 0 if groups are treated equally. NaN for a single group, and where a
        group has no sample to compute a rate from (fairlearn takes that rate as 0).

        - ``dp`` largest difference between groups of P(R = class | A)
        - ``eopp`` largest difference of the true positive rate, and of the false negative rate
        - ``eodd`` the larger of the largest differences of the true and of the false positive rate
        - ``aodd`` the mean of these two differences

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

    Its EOdd is the largest and its AOdd the mean of P(R = class | Y, A) over both values of Y and all groups; no
    difference is taken. A perfect classifier therefore gets EOdd 1 and AOdd 0.5. A constant one gets 1 for both in the
    class that it always predicts, and 0 for both in every other. dp and eopp are defined as in group_metrics.

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
    """Mean and largest of the class values that are not NaN.

    Parameters
    ----------
    values : array of float64, shape (..., K)

    Returns
    -------
    macro, worst : array of float64, shape (...)
        NaN if every class value is NaN.
    """
    defined = ~np.isnan(values)
    largest = np.where(defined, values, -np.inf).max(axis=-1)
    return mean_of_defined(values, axis=-1), np.where(defined.any(axis=-1), largest, np.nan)


def balanced_rows(group: ArrayLike, *, seed: int) -> NDArray[np.int64]:
    """Rows of a random subsample in which all groups have the size of the smallest one.

    Drawn without replacement; depends only on `group` and `seed`.

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
    drawn = []
    for index in present:
        members = rng.permutation(np.flatnonzero(group == index))
        drawn.append(members[: counts.min()])
    return np.sort(np.concatenate(drawn))


def wilson(rate: NDArray[np.float64], n: NDArray[np.float64], *, alpha: float) -> Ends:
    """Wilson score interval of binomial proportions; its confidence holds approximately.

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
    scale = 1 + z2 / n
    centre = (rate + z2 / (2 * n)) / scale
    half_width = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / scale
    return np.clip(centre - half_width, 0, 1), np.clip(centre + half_width, 0, 1)


def wilson_metrics(counts: GroupCounts, *, alpha: float) -> dict[str, Ends]:
    """Intervals of all metrics from Wilson intervals of the rates that they are made of.

    A metric of a class needs G rates (dp, eopp) or 2G (eodd, aodd). Alpha is divided among them, so that all their
    intervals hold together; the ends are the smallest and the largest value of the metric with each rate anywhere in
    its interval, which is wide for many groups. For the mean and the largest over classes alpha is first divided among
    the K classes. A bootstrap would be biased, since differences between groups are never negative.

    Parameters
    ----------
    counts : GroupCounts
        Counts of G groups and K classes.
    alpha : float
        1 - nominal confidence.

    Returns
    -------
    dict
        For each of METRICS low and high, each (K + 2,): the K classes, then the mean and the largest over classes.
    """
    classes = counts.members.shape[1]
    single_class = _wilson_of_classes(counts, alpha=alpha)
    all_classes = _wilson_of_classes(counts, alpha=alpha / classes)
    intervals = {}
    for name in METRICS:
        low, high = single_class[name]
        simultaneous_low, simultaneous_high = all_classes[name]
        intervals[name] = (
            np.append(low, over_classes(simultaneous_low)),
            np.append(high, over_classes(simultaneous_high)),
        )
    return intervals


def _wilson_of_classes(counts: GroupCounts, *, alpha: float) -> dict[str, Ends]:
    rates = group_rates(counts)
    groups = len(counts.members)
    negatives = counts.total - counts.members
    totals = np.broadcast_to(counts.total, counts.members.shape)
    two_groups = ~np.eye(groups, dtype=bool)[:, :, None]

    def difference(rate: NDArray[np.float64], n: NDArray[np.float64], intervals: int) -> Ends:
        # Smallest and largest spread of rates in their intervals; NaN if a group has none, and for a single group.
        low, high = wilson(rate, n, alpha=alpha / intervals)
        smallest = np.where(two_groups, low[:, None] - high[None, :], -np.inf).max(axis=(0, 1))
        largest = np.where(two_groups, high[:, None] - low[None, :], -np.inf).max(axis=(0, 1))
        undefined = np.isnan(low).any(axis=0) | (groups < 2)
        smallest = np.where(undefined, np.nan, np.maximum(0, smallest))
        largest = np.where(undefined, np.nan, np.maximum(0, largest))
        return smallest, largest

    true_low, true_high = difference(rates.true_positive, counts.members, 2 * groups)
    false_low, false_high = difference(rates.false_positive, negatives, 2 * groups)
    return {
        "dp": difference(rates.selection, totals, groups),
        "eopp": difference(rates.true_positive, counts.members, groups),
        "eodd": (np.maximum(true_low, false_low), np.maximum(true_high, false_high)),
        "aodd": ((true_low + false_low) / 2, (true_high + false_high) / 2),
    }
