"""Fairness between groups of samples: by how much predictions and their errors depend on an attribute.

Letters: Y true class, R predicted class, A group; G groups, K classes. Each class stands against the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

METRICS = ("dp", "eopp", "eodd", "aodd")
"""Demographic parity, equal opportunity, equalized odds, average odds, each as a difference between groups."""


@dataclass(frozen=True)
class GroupCounts:
    """Counts of G groups and K classes, each (G, K) float64.

    `members` samples of the group that are in the class, `taken` those taken for the class, `recognised` those in the
    class and taken for it. A sample with several copies counts in shares of its copies.
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
        """Fewest samples in any cell that EOpp divides by, and in any that EOdd does: two arrays (K,)."""
        positive, negative = self.members.min(axis=-2), (self.total - self.members).min(axis=-2)
        return positive, np.minimum(positive, negative)


@dataclass(frozen=True)
class GroupRates:
    """Rates of G groups for each of K classes against the rest, each (G, K) in 0..1, NaN for an empty cell.

    `selection` P(R = class | A), `true_positive` P(R = class | Y = class, A), `false_positive` P(R = class | Y another
    class, A).
    """

    selection: NDArray[np.float64]
    true_positive: NDArray[np.float64]
    false_positive: NDArray[np.float64]


@dataclass(frozen=True)
class GroupRows:
    """Predictions of N samples, R rows: several where a sample has several disturbed copies.

    `group` (R,) in 0..G-1, `labels` and `predictions` (R,) in 0..K-1, `shares` (R,) what the row counts: those of a
    sample add up to 1.
    """

    group: NDArray[np.int64]
    labels: NDArray[np.int64]
    predictions: NDArray[np.int64]
    shares: NDArray[np.float64]
    groups: int
    classes: int
    samples: int

    def counts(self) -> GroupCounts:
        """GroupCounts of the samples."""

        def of(classes: NDArray[np.int64], chosen: NDArray[np.bool_] | slice = slice(None)) -> NDArray[np.float64]:
            cells, size = (self.group * self.classes + classes)[chosen], self.groups * self.classes
            counted: Any = np.bincount(cells, weights=self.shares[chosen], minlength=size)
            return counted.reshape(self.groups, self.classes)

        return GroupCounts(of(self.labels), of(self.predictions), of(self.labels, self.labels == self.predictions))


def group_rates(counts: GroupCounts) -> GroupRates:
    """GroupRates of GroupCounts."""
    negatives = counts.total - counts.members
    return GroupRates(
        selection=_share(counts.taken, np.broadcast_to(counts.total, counts.taken.shape)),
        true_positive=_share(counts.recognised, counts.members),
        false_positive=_share(counts.taken - counts.recognised, negatives),
    )


def _share(part, whole):
    # What is left of a sum of shares by rounding is no sample.
    full = whole > 0
    return np.clip(np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=full), 0, 1)


def group_metrics(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """Differences between groups, a mapping of METRICS to (K,) arrays: 0 for groups treated alike, at most 1.

    dp the largest difference between groups of P(R = class | A), eopp that of the true positive rate (equally of the
    false negative rate), eodd the larger of the differences of true and of false positive rates, aodd their mean. NaN
    where a cell is empty, whose rate fairlearn gives as 0, and for a single group. Source: Hardt et al. 2016;
    projection fairness, A.1.
    """
    true, false = spread(rates.true_positive), spread(rates.false_positive)
    return {"dp": spread(rates.selection), "eopp": true, "eodd": np.maximum(true, false), "aodd": (true + false) / 2}


def spread(rates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Largest minus smallest rate over groups, (G, K) to (K,); NaN where a group has none, and for G = 1."""
    difference = rates.max(axis=-2) - rates.min(axis=-2)
    # One group differs from none: 0 would say that it is treated like the others.
    return difference if rates.shape[-2] > 1 else np.full_like(difference, np.nan)


def group_metrics_as_printed(rates: GroupRates) -> dict[str, NDArray[np.float64]]:
    """The same metrics as the projection paper prints them (Eq. 2-5), a mapping of METRICS to (K,) arrays.

    Its EOdd is the largest and its AOdd the mean of P(R = class | Y, A) over both values of Y and all groups: no
    difference is taken, so a perfect classifier gets 1 and .5, a constant one 1 and 1 or 0 and 0. dp and eopp agree
    with group_metrics.
    """
    standard = group_metrics(rates)
    cells = np.concatenate([rates.true_positive, rates.false_positive], axis=-2)
    return standard | {"eodd": cells.max(axis=-2), "aodd": cells.mean(axis=-2)}


def over_classes(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and largest of the classes' values (K,), where defined: `(macro, worst)`; NaN where none is."""
    known = ~np.isnan(values)
    some = known.any(axis=-1)
    total = np.where(known, values, 0).sum(axis=-1)
    macro = np.divide(total, known.sum(axis=-1), out=np.full(np.shape(total), np.nan), where=some)
    worst = np.where(some, np.where(known, values, -np.inf).max(axis=-1), np.nan)
    return macro, worst


def balanced_rows(group: ArrayLike, *, seed: int) -> NDArray[np.int64]:
    """Rows (n,), ascending, of a random part of the samples with equally many of every group, as many as the smallest.

    Takes `group` (N,) in 0..G-1, negative for samples without one, which are left out. Groups without samples do not
    count. Drawn without replacement, independently of everything but group and `seed`.
    """
    group = np.asarray(group)
    present, counts = np.unique(group[group >= 0], return_counts=True)
    rng = np.random.default_rng(seed)
    drawn = [rng.permutation(np.flatnonzero(group == name))[: counts.min()] for name in present]
    return np.sort(np.concatenate(drawn)) if drawn else np.zeros(0, dtype=np.int64)
