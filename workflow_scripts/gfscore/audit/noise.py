"""How much of a measured disparity is chance.

With many classes and few samples RDI and WCR are mostly noise: identical classes show a disparity too. So each is
compared with its value when class membership is shuffled. That tests whether values have the same distribution in all
classes, not whether their means are equal.
"""

import math
from dataclasses import dataclass

import numpy as np

from gfscore.audit.metrics import AGAINST_CHANCE
from gfscore.statistics.classes import class_values


@dataclass(frozen=True)
class NoiseFloor:
    """What the disparity would be if classes did not matter.

    `permuted` maps each metric that is compared with chance to its mean under shuffled class membership; `p_value` to
    the share of shuffles (the observed one included) with at least the observed disparity; both are NaN where the
    metric is undefined. `between_class_sd` is the spread of the true class values, corrected for noise, in the unit of
    the measure.
    """

    permuted: dict
    p_value: dict
    between_class_sd: float


def noise_floor(values, labels, classes, *, permutations, rng, lam=None):
    """Disparity under shuffled class membership.

    Takes `values` (N,) of a measure, `labels` (N,), the number of classes, how many shuffles, a numpy Generator, and
    lambda of the metrics that have one.
    The p-values are valid for the null that values are exchangeable between classes, for every N and K: that they have
    the same distribution in all. They are not for equal class means alone, since classes of other spreads and sizes
    differ by more than shuffled ones; for those there are the intervals.
    Source: permutation p-value with the +1 of Phipson and Smyth 2010.
    """
    values, labels = np.asarray(values, dtype=np.float64), np.asarray(labels)
    observed = class_values(values, labels, classes)
    extent = {metric: metric.of(observed.mean, counts=observed.n, lam=lam) for metric in AGAINST_CHANCE}
    present = observed.n > 0
    n = observed.n[present]
    drawn = {metric: np.empty(permutations) for metric in AGAINST_CHANCE}
    for index, sums in enumerate(_shuffled_sums(values, labels, observed.n, permutations, rng)):
        mean = sums[present] / n
        for metric, numbers in drawn.items():
            numbers[index] = metric.of_present(mean, counts=n, lam=lam)
    p_value = {}
    for metric, numbers in drawn.items():
        # More disparity is the worse value.
        reached = np.sum(-metric.direction * numbers >= -metric.direction * extent[metric] - 1e-12)
        undefined = math.isnan(extent[metric])
        p_value[metric.name] = math.nan if undefined else float((1 + reached) / (1 + permutations))
    return NoiseFloor(
        permuted={metric.name: float(numbers.mean()) for metric, numbers in drawn.items()},
        p_value=p_value,
        between_class_sd=between_class_sd(observed),
    )


def _shuffled_sums(values, labels, n, permutations, rng):
    # Sum of the values of each class (K,) under each shuffle.
    if np.isin(values, (0, 1)).all():
        # Which samples are 1 does not matter, only how many fall into each class, whose law is the hypergeometric one.
        return rng.multivariate_hypergeometric(n, int(values.sum()), permutations, method="marginals")
    # What bincount would otherwise convert at every shuffle.
    labels = labels.astype(np.intp)
    return (np.bincount(rng.permutation(labels), weights=values, minlength=len(n)) for _ in range(permutations))


def between_class_sd(values):
    """Standard deviation of the true class values, sqrt(max(0, s2_between - mean(s2_k / n_k))).

    Takes ClassValues; in the unit of the measure, 0 when the classes differ by no more than their noise, NaN when
    fewer than two classes have two samples. Comparable between 10 and 1,000 classes, unlike RDI.
    """
    known = values.n > 1
    if known.sum() < 2:
        return float("nan")
    noise = np.mean(values.variance[known] / values.n[known])
    return math.sqrt(max(0.0, float(np.var(values.mean[known], ddof=1) - noise)))
