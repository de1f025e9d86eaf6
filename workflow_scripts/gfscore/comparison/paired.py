"""Which of several models is better, class by class and on the whole, on the same samples.

Every statement rests on paired differences: two models' values of the same sample, subtracted.
# ASSUME: models are compared on the samples as labelled; wrong labels are not corrected for.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from gfscore.bounds.bounded_means import mean_bounds, one_sided_p_values
from gfscore.bounds.multiplicity import benjamini_hochberg, benjamini_yekutieli, holm
from gfscore.comparison import sign_flips
from gfscore.comparison.rank_intervals import rank_intervals
from gfscore.errors import InputError

ELEMENTS_AT_ONCE = 1 << 24


@dataclass(frozen=True)
class Differences:
    """Differences of H comparisons, first model minus second, arrays (H,).

    `low`, `high`: bounds that hold for the whole family together. `p`: two-sided, of this comparison alone. `holm`,
    `bh`, `by`: adjusted for the family, both directions. `sign_flip_p`, `sign_flip_adjusted`: asymptotic, alone and
    adjusted for the family; NaN where too few samples differ for it (sign_flips.trusted).
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    holm: np.ndarray
    bh: np.ndarray
    by: np.ndarray
    sign_flip_p: np.ndarray
    sign_flip_adjusted: np.ndarray


@dataclass(frozen=True)
class Comparison:
    """Comparison of M models on the K' classes that have samples.

    `order` (M,): models from the largest aggregate to the smallest. `pairs` (P, 2): the pairs listed, the model of the
    larger aggregate first; `every_pair` says whether these are all. `classes` (K',): classes with samples.
    `by_class`: Differences of all pairs of the first class, then of the next. `overall`: Differences of the aggregates,
    one per pair. `best`, `worst` (M,): ends of the interval of each model's rank.
    """

    order: np.ndarray
    pairs: np.ndarray
    every_pair: bool
    classes: np.ndarray
    by_class: Differences
    overall: Differences
    best: np.ndarray
    worst: np.ndarray


def compare(values, labels, *, value_range, alpha, most, flips, rng):
    """Compare M >= 2 models on the same N samples.

    Takes `values` (M, N) within `value_range`, `labels` (N,), `alpha`, the `most` comparisons (pairs x classes) to
    list, the number of sign `flips`, and a numpy Generator for them. Lists every pair if that makes no more
    comparisons, else the pairs with the model of the largest aggregate; every correction is for all pairs, so that
    choosing this model by its result costs no guarantee. Three families stand apart, each with error probability at
    most alpha: the differences of classes, those of aggregates, and the ranks. Bounds hold for a whole family together;
    refusing where Holm's p-value is at most alpha makes any wrong statement, about the direction too, that rarely.
    Raises InputError for fewer than two models. Sources: those of the modules that this one puts together.
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        raise InputError(f"comparing needs at least 2 models, got {len(values)}")
    order = np.argsort(-values.mean(axis=1), kind="stable")
    every = np.array(list(itertools.combinations(order, 2)))
    groups = [np.flatnonzero(labels == k) for k in np.unique(labels)]
    every_pair = len(every) * len(groups) <= most
    # The pairs of the best model come first.
    pairs = every if every_pair else every[: len(values) - 1]
    bound = float(value_range[1] - value_range[0])

    by_sign = [sign_flips.SignFlips(values[:, rows].T, flips=flips, rng=rng) for rows in groups]
    parts = [_parts(values, rows, pairs, bound=bound, alpha=alpha, family=len(every) * len(groups)) for rows in groups]
    by_class = _differences(parts, by_sign, pairs, every, family=len(every) * len(groups))

    everything = np.arange(values.shape[1])
    overall = _differences(
        [_parts(values, everything, pairs, bound=bound, alpha=alpha, family=len(every))],
        [_all_joined(by_sign)],
        pairs,
        every,
        family=len(every),
    )
    best, worst = rank_intervals(
        _p_values(values, everything, every, bound, alpha / (2 * len(every))), every, models=len(values), alpha=alpha
    )
    return Comparison(order, pairs, every_pair, np.unique(labels), by_class, overall, best, worst)


def _parts(values, rows, pairs, *, bound, alpha, family):
    # Mean, bounds, both one-sided p-values, and whether signs may be flipped, of the pairs on some samples, each (P,).
    means = values[:, rows].mean(axis=1)
    low, high = _in_blocks(mean_bounds, values, rows, pairs, bound=bound, alpha=alpha / family)
    above, below = _p_values(values, rows, pairs, bound, alpha / (2 * family))
    (trusted,) = _in_blocks(sign_flips.trusted, values, rows, pairs)
    return means[pairs[:, 0]] - means[pairs[:, 1]], low, high, above, below, trusted


def _p_values(values, rows, pairs, bound, alpha):
    return _in_blocks(one_sided_p_values, values, rows, pairs, bound=bound, alpha=alpha)


def _in_blocks(function, values, rows, pairs, **settings):
    # A function of the paired differences (n, P), a few pairs at a time: two arrays (P,).
    by_sample = np.ascontiguousarray(values[:, rows].T)
    step = max(1, ELEMENTS_AT_ONCE // max(1, len(rows)))
    blocks = [pairs[start : start + step] for start in range(0, len(pairs), step)]
    results = [function(by_sample[:, block[:, 0]] - by_sample[:, block[:, 1]], **settings) for block in blocks]
    return tuple(np.concatenate(arrays) for arrays in zip(*results, strict=True))


def _differences(parts, by_sign, pairs, every, *, family):
    value, low, high, above, below, trusted = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    one_sided = np.concatenate([above, below])
    # A comparison is two hypotheses, one per direction, so that a refusal says which model is better.
    adjusted = [
        method(one_sided, family=2 * family).reshape(2, -1).min(axis=0)
        for method in (holm, benjamini_hochberg, benjamini_yekutieli)
    ]
    statistics = [flips.statistics(pairs) for flips in by_sign]
    observed = np.concatenate([of_group[0] for of_group in statistics])
    largest = np.maximum.reduce([flips.largest(every) for flips in by_sign])
    return Differences(
        value,
        low,
        high,
        np.minimum(2 * np.minimum(above, below), 1),
        *adjusted,
        np.where(trusted, np.concatenate([sign_flips.p_values(of_group) for of_group in statistics]), np.nan),
        np.where(trusted, sign_flips.adjusted_p_values(observed, largest), np.nan),
    )


def _all_joined(by_sign):
    joined = by_sign[0]
    for flips in by_sign[1:]:
        joined = joined.joined(flips)
    return joined
