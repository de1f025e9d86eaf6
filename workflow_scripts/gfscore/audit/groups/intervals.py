"""Approximate intervals of differences between groups, which are reported but not used by the gate."""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.groups.fairness import group_rates, over_classes

if TYPE_CHECKING:
    from gfscore.audit.groups.fairness import GroupCounts


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
