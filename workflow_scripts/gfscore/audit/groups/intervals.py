"""Approximate intervals of differences between groups: shown, and never given to the gate."""

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
    """Wilson score interval `(low, high)` of binomial shares `rate` (...) of `n` (...): approximate.

    NaN where n = 0. Shares of copies within samples may be given with n the number of samples: the variance of a mean
    of values in 0..1 is at most that of 0/1 values with the same mean. Source: Wilson 1927.
    """
    z2 = NormalDist().inv_cdf(1 - alpha / 2) ** 2
    n = np.where(np.asarray(n) > 0, n, np.nan)
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def wilson_metrics(counts: GroupCounts, *, alpha: float) -> dict[str, tuple[NDArray[np.float64], ...]]:
    """Intervals of every metric from Wilson's of its cells, a mapping of METRICS to `(low, high)`, each (K + 2,).

    Takes GroupCounts (G, K). The cells of a class share its alpha (G of dp and eopp, 2G of eodd and aodd), and its ends
    are the extremes over the box of their intervals: wide for many groups, approximate as Wilson's are. The last two
    are those of the mean and of the largest over classes, for which the K classes share alpha, so that all their boxes
    hold at once: a bootstrap would not do, since differences of noise are never negative and add up.
    """
    each, together = (_wilson_of_classes(counts, alpha=part) for part in (alpha, alpha / counts.members.shape[1]))
    return {
        name: tuple(np.append(end, over_classes(shared)) for end, shared in zip(ends, together[name], strict=True))
        for name, ends in each.items()
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
    # Largest upper end minus smallest lower end, of two different groups; NaN where one has no interval, or is alone.
    other = ~np.eye(low.shape[0], dtype=bool)[:, :, None]
    at_least = np.where(other, low[:, None] - high[None, :], -np.inf).max(axis=(0, 1))
    at_most = np.where(other, high[:, None] - low[None, :], -np.inf).max(axis=(0, 1))
    unknown = np.isnan(low).any(axis=0) | (low.shape[0] < 2)
    return tuple(np.where(unknown, np.nan, np.maximum(0, end)) for end in (at_least, at_most))
