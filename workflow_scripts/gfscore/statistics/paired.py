"""Paired comparison of models on the same samples, per class and overall.

All statements are based on the differences of two models' values of the same sample.
# ASSUME: models are compared on the samples as labelled; wrong labels are not corrected for.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics import multiple_tests
from gfscore.statistics.betting import mean_bounds, one_sided_p_values
from gfscore.statistics.multiple_tests import METHODS, false_discovery, holm

ELEMENTS_AT_ONCE = 1 << 24


Differences = dict[str, NDArray[np.float64]]
"""Differences of H comparisons, first model minus second, arrays (H,) by column of the tables of comparisons.

`difference`; `low`, `high`: simultaneous bounds of the family. `p`: two-sided p-value of the single comparison.
`p_holm`, `p_bh`, `p_by`: p-values adjusted for the family and both directions. `p_sign_flip`, `p_sign_flip_adjusted`:
asymptotic p-values, single and adjusted; NaN where too few samples differ (multiple_tests.trusted), and where values
are
decisions of a test, which may be undecided or wrong.
"""


@dataclass(frozen=True)
class Comparison:
    """Comparison of M models on the K' classes that have samples.

    `order` (M,): models by descending aggregate. `pairs` (P, 2): the listed pairs, the model with the larger aggregate
    first; `every_pair`: whether these are all pairs. `classes` (K',): classes with samples. `by_class`: Differences of
    all pairs for the first class, then for the next. `overall`: Differences of the aggregates, one per pair. `best`,
    `worst` (M,): ends of the confidence interval of each model's rank.
    """

    order: NDArray[np.int64]
    pairs: NDArray[np.int64]
    every_pair: bool
    classes: NDArray[np.integer]
    by_class: Differences
    overall: Differences
    best: NDArray[np.int64]
    worst: NDArray[np.int64]


def compare(
    values: ArrayLike,
    labels: NDArray[np.integer],
    *,
    value_range: tuple[float, float],
    alpha: float,
    most: int,
    flips: int,
    rng: np.random.Generator,
    upper_values: NDArray[np.float64] | None = None,
    error_rate: float = 0.0,
) -> Comparison:
    """Compare M >= 2 models on the same N samples.

    Takes `values` (M, N) within `value_range`, `labels` (N,), `alpha`, the largest number `most` of comparisons (pairs
    x classes) to list, the number of sign `flips`, and a numpy Generator for them. Lists every pair if these are at
    most `most` comparisons, else the pairs with the model of the largest aggregate; all corrections are for all pairs,
    so that selecting this model by its result keeps the guarantee. Three families each have an error probability of at
    most alpha: differences of classes, differences of aggregates, and ranks. Bounds are simultaneous within a family;
    rejecting where Holm's p-value is at most alpha has a family-wise error rate of at most alpha, wrong directions
    included. `upper_values` (M, N) are the largest possible values of undecided samples, `error_rate` in [0, 1) the
    largest probability that a value is wrong; statements then hold whatever the true values are. Raises InputError for
    fewer than two models. Sources: see the modules that are combined here.
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
    pairing = _Pairing(
        values, values if upper_values is None else upper_values, float(value_range[1] - value_range[0]), error_rate
    )

    by_sign = [multiple_tests.SignFlips(values[:, rows].T, flips=flips, rng=rng) for rows in groups]
    parts = [_parts(pairing, rows, pairs, alpha=alpha, family=len(every) * len(groups)) for rows in groups]
    by_class = _differences(parts, by_sign, pairs, every, family=len(every) * len(groups))

    everything = np.arange(values.shape[1])
    overall = _differences(
        [_parts(pairing, everything, pairs, alpha=alpha, family=len(every))],
        [reduce(multiple_tests.SignFlips.joined, by_sign)],
        pairs,
        every,
        family=len(every),
    )
    best, worst = rank_intervals(
        pairing.in_blocks(one_sided_p_values, everything, every, alpha=alpha / (2 * len(every))),
        every,
        models=len(values),
        alpha=alpha,
    )
    return Comparison(order, pairs, every_pair, np.unique(labels), by_class, overall, best, worst)


@dataclass(frozen=True)
class _Pairing:
    # Smallest and largest possible values (M, N) of M models, length of their range, probability of a wrong value.
    values: NDArray[np.float64]
    upper_values: NDArray[np.float64]
    length: float
    error_rate: float

    @cached_property
    def known(self) -> bool:
        return self.error_rate == 0 and np.array_equal(self.values, self.upper_values)

    def in_blocks(
        self,
        function: Callable[..., tuple[NDArray[Any], ...]],
        rows: NDArray[np.integer],
        pairs: NDArray[np.integer],
        *,
        alpha: float,
    ) -> tuple[NDArray[Any], ...]:
        # Arrays (P,) of a function of the paired differences (n, P), computed for a few pairs at a time.
        smallest = np.ascontiguousarray(self.values[:, rows].T)
        largest = smallest if self.known else np.ascontiguousarray(self.upper_values[:, rows].T)
        # A value v that is wrong with probability e has a mean from (1 - e) v to (1 - e) v + e, in units of the range.
        # So the true difference is certainly positive only if the difference of extremes exceeds e.
        shift = self.error_rate * self.length
        step = max(1, ELEMENTS_AT_ONCE // max(1, len(rows)))
        results = []
        for first, second in (pairs[start : start + step].T for start in range(0, len(pairs), step)):
            lower = smallest[:, first] - largest[:, second] - shift
            upper = None if self.known else largest[:, first] - smallest[:, second] + shift
            results.append(function(lower, bound=self.length + shift, alpha=alpha, upper=upper))
        return tuple(np.concatenate(arrays) for arrays in zip(*results, strict=True))


def _parts(pairing, rows, pairs, *, alpha, family):
    # For the pairs on some samples, each (P,): mean, bounds, both one-sided p-values, whether sign flips are valid.
    means = pairing.values[:, rows].mean(axis=1)
    ends = pairing.in_blocks(mean_bounds, rows, pairs, alpha=alpha / family)
    low, high = (np.clip(end / (1 - pairing.error_rate), -pairing.length, pairing.length) for end in ends)
    above, below = pairing.in_blocks(one_sided_p_values, rows, pairs, alpha=alpha / (2 * family))
    (enough,) = pairing.in_blocks(_enough_for_signs, rows, pairs, alpha=alpha)
    # Sign flips allow neither for undecided values nor for wrong ones.
    return means[pairs[:, 0]] - means[pairs[:, 1]], low, high, above, below, enough & pairing.known


def _enough_for_signs(differences, **_):
    return multiple_tests.trusted(differences)


def _differences(parts, by_sign, pairs, every, *, family):
    value, low, high, above, below, trusted = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    one_sided = np.concatenate([above, below])
    # A comparison is two hypotheses, one per direction, so that a rejection says which model is better.
    adjusted = (
        holm(one_sided, family=2 * family),
        *(false_discovery(one_sided, family=2 * family, method=method) for method in METHODS),
    )
    by_holm, bh, by = (p_values.reshape(2, -1).min(axis=0) for p_values in adjusted)
    statistics = [flips.statistics(pairs) for flips in by_sign]
    observed = np.concatenate([of_group[0] for of_group in statistics])
    largest = np.maximum.reduce([flips.largest(every) for flips in by_sign])
    single = np.concatenate([multiple_tests.p_values(of_group) for of_group in statistics])
    return {
        "difference": value,
        "low": low,
        "high": high,
        "p": np.minimum(2 * np.minimum(above, below), 1),
        "p_holm": by_holm,
        "p_bh": bh,
        "p_by": by,
        "p_sign_flip": np.where(trusted, single, np.nan),
        "p_sign_flip_adjusted": np.where(trusted, multiple_tests.adjusted_p_values(observed, largest), np.nan),
    }


def rank_intervals(
    p_values: Sequence[NDArray[np.float64]], pairs: ArrayLike, *, models: int, alpha: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simultaneous confidence intervals of the ranks of M models, 1 for the best.

    Takes one-sided p-values `(first_better, second_better)`, each (P,), of all P = M (M - 1) / 2 `pairs` (P, 2) of
    model indices, the number of `models`, and `alpha`. Holm's procedure over both directions of all pairs finds the
    models that differ; a model's rank is then at least 1 + the number of significantly better models and at most M -
    the number of significantly worse ones. Returns `(best, worst)`, each (M,) int64. With probability at least
    1 - alpha every model's true rank lies between; models of equal value may take any of their shared ranks.
    Source: Mogstad, Romano, Shaikh and Wilhelm 2024, Theorem 3.1.
    """
    pairs = np.asarray(pairs).reshape(-1, 2)
    significant = holm(np.concatenate(p_values), family=2 * len(pairs)) <= alpha
    first, second = pairs.T
    winners = np.concatenate([first, second])[significant]
    losers = np.concatenate([second, first])[significant]
    best = 1 + np.bincount(losers, minlength=models)
    worst = models - np.bincount(winners, minlength=models)
    return best, worst
