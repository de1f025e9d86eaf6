"""Approximate intervals of differences between groups: shown, and never given to the gate."""

from statistics import NormalDist

import numpy as np

from gfscore.groups.fairness import METRICS, group_metrics, group_rates, over_classes

AT_A_TIME = 50
"""Resamples computed together: bounds the memory, whatever the number of samples."""


def wilson(rate, n, *, alpha):
    """Wilson score interval `(low, high)` of binomial shares `rate` (...) of `n` (...): approximate.

    NaN where n = 0. Shares of copies within samples may be given with n the number of samples: the variance of a mean
    of values in 0..1 is at most that of 0/1 values with the same mean. Source: Wilson 1927.
    """
    z2 = NormalDist().inv_cdf(1 - alpha / 2) ** 2
    n = np.where(np.asarray(n) > 0, n, np.nan)
    centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)


def wilson_metrics(counts, *, alpha):
    """Intervals of every metric from Wilson intervals of its cells, a mapping of METRICS to `(low, high)`, each (K,).

    Takes GroupCounts (G, K). The cells of a metric share alpha (G of dp and eopp, 2G of eodd and aodd), and its ends
    are the extremes over the box of their intervals: wide for many groups, approximate as Wilson's are.
    """
    rates, groups = group_rates(counts), counts.members.shape[0]
    negatives = counts.total - counts.members
    whole = np.broadcast_to(counts.total, counts.members.shape)

    def of(rate, n, cells):
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


def bootstrap_metrics(rows, *, alpha, resamples, seed):
    """Percentile bootstrap intervals of every metric: a mapping of METRICS to `(low, high)`, each (K + 2,).

    Takes GroupRows; whole samples are drawn with replacement, with all of their copies. The last two values are the
    mean and the largest over classes. Largest differences are biased upwards by noise, and so are these intervals;
    resamples with an empty cell do not count. Source: Efron and Tibshirani 1993, section 13.3.
    """
    if not rows.samples:
        nothing = np.full(rows.classes + 2, np.nan)
        return {name: (nothing, nothing) for name in METRICS}
    # Draws of equal samples are counted together: the same distribution, and less to draw.
    different, times = rows.patterns()
    rng, found = np.random.default_rng(seed), {name: [] for name in METRICS}
    for start in range(0, resamples, AT_A_TIME):
        size = min(AT_A_TIME, resamples - start)
        drawn = rng.multinomial(rows.samples, times / rows.samples, size=size).astype(np.float64)
        for name, values in group_metrics(group_rates(different.counts(drawn))).items():
            found[name].append(np.concatenate([values, np.stack(over_classes(values), axis=-1)], axis=-1))
    return {name: _percentiles(np.concatenate(values), alpha) for name, values in found.items()}


def _percentiles(values, alpha):
    ends = np.full((2, values.shape[1]), np.nan)
    known = ~np.isnan(values).all(axis=0)
    ends[:, known] = np.nanquantile(values[:, known], [alpha / 2, 1 - alpha / 2], axis=0)
    return ends[0], ends[1]
