"""Fairness metrics between groups of samples: dependence of predictions and their errors on an attribute.

Notation: Y true class, R predicted class, A group; G groups, K classes. Each class is considered against the rest.
"""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

METRICS = ("dp", "eopp", "eodd", "aodd")
"""Demographic parity, equal opportunity, equalized odds, average odds, each as a difference between groups."""


@dataclass(frozen=True)
class GroupCounts:
    """Counts of samples by group and class, each (G, K) float64.

    `members`: samples of the group in the class; `taken`: samples predicted as the class; `recognised`: samples in the
    class and predicted as it. Copies of a sample count as fractions.
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
        positive, negative = self.members.min(axis=-2), (self.total - self.members).min(axis=-2)
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
    """GroupCounts of predictions in R rows, several rows if a sample has several perturbed copies.

    Takes `group` (R,) in 0..G-1, `labels` and `predictions` (R,) in 0..K-1, and `shares` (R,), the weights of the rows,
    of which those of a sample sum to 1; None where each row is a sample.
    """
    weights = np.ones(len(group)) if shares is None else shares

    def of(column: NDArray[np.int64], chosen: NDArray[np.bool_] | slice = slice(None)) -> NDArray[np.float64]:
        cells = (group * classes + column)[chosen]
        counted: Any = np.bincount(cells, weights=weights[chosen], minlength=groups * classes)
        return counted.reshape(groups, classes)

    return GroupCounts(of(labels), of(predictions), of(labels, labels == predictions))


@dataclass(frozen=True)
class GroupRates:
    """Rates of G groups for each of K classes against the rest, each (G, K) in 0..1, NaN for an empty cell.

    `selection` P(R = class | A), `true_positive` P(R = class | Y = class, A), and `false_positive`
    P(R = class | Y != class, A).
    """

    selection: NDArray[np.float64]
    true_positive: NDArray[np.float64]
    false_positive: NDArray[np.float64]


def group_rates(counts: GroupCounts) -> GroupRates:
    """GroupRates of GroupCounts."""
    negatives = counts.total - counts.members
    return GroupRates(
        selection=_share(counts.taken, np.broadcast_to(counts.total, counts.taken.shape)),
        true_positive=_share(counts.recognised, counts.members),
        false_positive=_share(counts.taken - counts.recognised, negatives),
    )


def _share(part, whole):
    # Clipped, since sums of shares have rounding errors.
    return np.clip(np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 0), 0, 1)


def group_metrics(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """Differences between groups in 0..1, a mapping of METRICS to (K,) arrays; 0 if groups are treated equally.

    dp: largest difference between groups of P(R = class | A); eopp: that of the true positive rate (equal to that of
    the false negative rate); eodd: the larger of the differences of the true and the false positive rate; aodd: their
    mean. NaN if a cell is empty (where fairlearn has the rate 0), and for a single group. Source: Hardt et al. 2016;
    projection fairness, A.1.
    """
    true, false = spread(rates.true_positive), spread(rates.false_positive)
    return {"dp": spread(rates.selection), "eopp": true, "eodd": np.maximum(true, false), "aodd": (true + false) / 2}


def spread(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest minus smallest rate over groups, (G, K) to (K,); NaN if a group has no rate, and for G = 1."""
    difference = rates.max(axis=-2) - rates.min(axis=-2)
    # A single group cannot be compared; 0 would mean equal treatment.
    return difference if rates.shape[-2] > 1 else np.full_like(difference, np.nan)


def group_metrics_as_printed(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """Metrics as the projection paper prints them (Eq. 2-5), a mapping of METRICS to (K,) arrays.

    There EOdd is the largest and AOdd the mean of P(R = class | Y, A) over both values of Y and all groups, without
    differences, so a perfect classifier gets 1 and .5, a constant one 1 and 1 or 0 and 0. dp and eopp are those of
    group_metrics.
    """
    standard = group_metrics(rates)
    cells = np.concatenate([rates.true_positive, rates.false_positive], axis=-2)
    return standard | {"eodd": cells.max(axis=-2), "aodd": cells.mean(axis=-2)}


def over_classes(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and largest of the defined values (..., K) of classes: `(macro, worst)`; NaN if none is defined."""
    known = ~np.isnan(values)
    defined = known.any(axis=-1)
    total = np.where(known, values, 0).sum(axis=-1)
    macro = np.divide(total, known.sum(axis=-1), out=np.full(np.shape(total), np.nan), where=defined)
    worst = np.where(defined, np.where(known, values, -np.inf).max(axis=-1), np.nan)
    return macro, worst


def balanced_rows(group: ArrayLike, *, seed: int) -> NDArray[np.int64]:
    """Rows (n,), ascending, of a random part of the samples in which all groups have the size of the smallest one.

    Takes `group` (N,) in 0..G-1, negative for samples without a group, which are left out. Groups without samples are
    ignored. Drawn without replacement, depending only on group and `seed`.
    """
    group = np.asarray(group)
    present, counts = np.unique(group[group >= 0], return_counts=True)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(group == name))[: counts.min()] for name in present]
    return np.sort(np.concatenate(drawn)) if drawn else np.zeros(0, dtype=np.int64)


def wilson(
    rate: NDArray[np.float64], n: NDArray[np.float64], *, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson score interval `(low, high)` of binomial proportions `rate` (...) of `n` (...): approximate.

    NaN where n = 0. `rate` may be a mean of values in 0..1 over n samples, since its variance is at most that of 0/1
    values with the same mean. Source: Wilson 1927.
    """
    z2 = NormalDist().inv_cdf(1 - alpha / 2) ** 2
    n = np.where(np.asarray(n) > 0, n, np.nan)
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def wilson_metrics(counts: GroupCounts, *, alpha: float) -> dict[str, tuple[NDArray[np.float64], ...]]:
    """Intervals of all metrics from Wilson intervals of their cells: METRICS to `(low, high)`, each (K + 2,).

    Takes GroupCounts (G, K). The cells of a class divide its alpha (G cells for dp and eopp, 2G for eodd and aodd), and
    the ends are the extremes over the box of their intervals, which is wide for many groups. The last two entries are
    for the mean and the largest over classes, for which the K classes divide alpha so that all boxes hold
    simultaneously; a bootstrap would be biased, since differences between groups are never negative.
    """
    single, simultaneous = (_wilson_of_classes(counts, alpha=part) for part in (alpha, alpha / counts.members.shape[1]))
    return {
        name: tuple(np.append(end, over_classes(shared)) for end, shared in zip(ends, simultaneous[name], strict=True))
        for name, ends in single.items()
    }


def _wilson_of_classes(counts, *, alpha):
    rates, groups = group_rates(counts), counts.members.shape[0]
    negatives = counts.total - counts.members
    whole = np.broadcast_to(counts.total, counts.members.shape)

    def of(rate: NDArray[np.float64], n: NDArray[np.float64], cells: int) -> Any:
        return _spread_over_box(*wilson(rate, n, alpha=alpha / cells))

    true, false = of(rates.true_positive, counts.members, 2 * groups), of(rates.false_positive, negatives, 2 * groups)
    return {
        "dp": of(rates.selection, whole, groups),
        "eopp": of(rates.true_positive, counts.members, groups),
        "eodd": tuple(np.maximum(a, b) for a, b in zip(true, false, strict=True)),
        "aodd": tuple((a + b) / 2 for a, b in zip(true, false, strict=True)),
    }


def _spread_over_box(low, high):
    # Smallest and largest difference of two different groups; NaN if a group has no interval, and for a single group.
    other = ~np.eye(low.shape[0], dtype=bool)[:, :, None]
    at_least = np.where(other, low[:, None] - high[None, :], -np.inf).max(axis=(0, 1))
    at_most = np.where(other, high[:, None] - low[None, :], -np.inf).max(axis=(0, 1))
    unknown = np.isnan(low).any(axis=0) | (low.shape[0] < 2)
    return tuple(np.where(unknown, np.nan, np.maximum(0, end)) for end in (at_least, at_most))
