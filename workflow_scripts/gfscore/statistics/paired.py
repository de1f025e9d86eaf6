"""Paired comparison of models on the same samples, per class and overall.

All statements are based on the differences of two models' values of the same sample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.betting import mean_bounds, one_sided_p_values
from gfscore.statistics.multiple_tests import false_discovery, holm

ELEMENTS_AT_ONCE = 1 << 24
"""Differences that are held at a time, to bound the memory."""

TwoSided = Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Function of paired differences (n, P) that returns two arrays (P,)."""


@dataclass(frozen=True)
class Comparison:
    """Comparison of M models on the K' classes that have samples.

    Attributes
    ----------
    order : ndarray of shape (M,)
        Models by descending aggregate.
    pairs : ndarray of shape (P, 2)
        The listed pairs, the model with the larger aggregate first.
    every_pair : bool
        Whether these are all pairs.
    classes : ndarray of shape (K',)
        Classes with samples.
    by_class : DataFrame of K' P rows
        Differences of all pairs for the first class, then for the next. `difference`: first model minus second; `low`,
        `high`: simultaneous bounds of the family; `p`: two-sided p-value of the single comparison; `p_holm`, `p_bh`,
        `p_by`: p-values adjusted for the family and both directions.
    overall : DataFrame of P rows
        Differences of the aggregates, with the same columns.
    best, worst : ndarray of shape (M,)
        Ends of the confidence interval of each model's rank.
    """

    order: NDArray[np.int64]
    pairs: NDArray[np.int64]
    every_pair: bool
    classes: NDArray[np.integer]
    by_class: pd.DataFrame
    overall: pd.DataFrame
    best: NDArray[np.int64]
    worst: NDArray[np.int64]


def compare(
    values: ArrayLike,
    labels: NDArray[np.integer],
    *,
    value_range: tuple[float, float],
    alpha: float,
    most: int,
    family_models: int | None = None,
    upper_values: NDArray[np.float64] | None = None,
    error_rate: ArrayLike = 0.0,
) -> Comparison:
    """Compare models on the same samples.

    Lists every pair if these are at most `most` comparisons, else the pairs with the model of the largest aggregate;
    all corrections are for all pairs, so that selecting this model by its result keeps the guarantee.

    Parameters
    ----------
    values : array_like of shape (M, N)
        Values of M >= 2 models within `value_range`; the smallest possible ones where samples are undecided.
    labels : ndarray of shape (N,)
        True classes.
    value_range : (float, float)
        Lowest and highest value of the measure.
    alpha : float
        Error probability of each of three families: differences of classes, differences of aggregates, and ranks.
    most : int
        Largest number of comparisons (pairs x classes) to list.
    family_models : int, optional
        Number of models, at least M, that all corrections count; M by default. More where the samples decided which
        models are compared.
    upper_values : ndarray of shape (M, N), optional
        Largest possible values, where samples are undecided.
    error_rate : float, or array_like of shape (K,)
        Largest probability that a value, or its label, is wrong, in [0, 1): of all classes, or by class. Statements
        hold whatever the true values are. That of the aggregates is the largest of the classes.

    Returns
    -------
    Comparison
        Bounds are simultaneous within a family. Rejecting where Holm's p-value is at most alpha has a family-wise error
        rate of at most alpha, wrong directions included.

    Raises
    ------
    InputError
        For fewer than two models.

    References
    ----------
    Waudby-Smith and Ramdas 2024 (bounds and p-values); Holm 1979; Benjamini and Yekutieli 2001; Mogstad, Romano, Shaikh
    and Wilhelm 2024 (ranks).
    """
    values = np.asarray(values, dtype=np.float64)
    models, samples = values.shape
    if models < 2:
        raise InputError(f"comparing needs at least 2 models, got {models}")
    classes = np.unique(labels)
    rates = np.asarray(error_rate, dtype=np.float64)
    rates = rates[classes] if rates.ndim else np.full(len(classes), rates)
    order = np.argsort(-values.mean(axis=1), kind="stable")
    every = np.array(list(itertools.combinations(order, 2)))

    # The pairs of the best model come first.
    every_pair = len(every) * len(classes) <= most
    pairs = every if every_pair else every[: models - 1]
    pairing = _Pairing(
        values,
        values if upper_values is None else upper_values,
        length=float(value_range[1] - value_range[0]),
        error_rate=float(rates.max()),
    )

    family_pairs = math.comb(family_models or models, 2)
    family = family_pairs * len(classes)
    of_classes = []
    for label, rate in zip(classes, rates, strict=True):
        pairing_of_class = replace(pairing, error_rate=float(rate))
        rows = np.flatnonzero(labels == label)
        of_classes.append(_compared(pairing_of_class, rows, pairs, alpha=alpha, family=family))
    by_class = _adjusted(pd.concat(of_classes, ignore_index=True), family=family)

    everything = np.arange(samples)
    of_everything = _compared(pairing, everything, pairs, alpha=alpha, family=family_pairs)
    overall = _adjusted(of_everything, family=family_pairs)

    one_sided = of_everything["above"].to_numpy(), of_everything["below"].to_numpy()
    if not every_pair:
        one_sided = pairing.in_blocks(one_sided_p_values, everything, every, alpha=alpha / (2 * family_pairs))
    best, worst = rank_intervals(one_sided, every, models=models, family=family_pairs, alpha=alpha)
    return Comparison(order, pairs, every_pair, classes, by_class, overall, best, worst)


@dataclass(frozen=True)
class _Pairing:
    # Smallest and largest possible values (M, N) of M models, length of their range, probability of a wrong value.
    values: NDArray[np.float64]
    upper_values: NDArray[np.float64]
    length: float
    error_rate: float

    @cached_property
    def exact(self) -> bool:
        # Whether every value is decided, and none may be wrong.
        return self.error_rate == 0 and np.array_equal(self.values, self.upper_values)

    def in_blocks(
        self, function: TwoSided, rows: NDArray[np.integer], pairs: NDArray[np.integer], *, alpha: float
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # Two arrays (P,), results of a function of the paired differences, computed for a few pairs at a time.
        smallest = np.ascontiguousarray(self.values[:, rows].T)
        largest = smallest if self.exact else np.ascontiguousarray(self.upper_values[:, rows].T)
        # A value v that is wrong with probability e has a mean from (1 - e) v to (1 - e) v + e, in units of the range.
        # So the true difference is certainly positive only if the difference of extremes exceeds e.
        shift = self.error_rate * self.length
        step = max(1, ELEMENTS_AT_ONCE // max(1, len(rows)))
        firsts = []
        seconds = []
        for start in range(0, len(pairs), step):
            # Least and largest possible differences (n, P'); None for the largest of exact values.
            better, worse = pairs[start : start + step].T
            lower = smallest[:, better] - largest[:, worse] - shift
            upper = None if self.exact else largest[:, better] - smallest[:, worse] + shift
            first, second = function(lower, bound=self.length + shift, alpha=alpha, upper=upper)
            firsts.append(first)
            seconds.append(second)
        return np.concatenate(firsts), np.concatenate(seconds)


def _compared(
    pairing: _Pairing, rows: NDArray[np.integer], pairs: NDArray[np.int64], *, alpha: float, family: int
) -> pd.DataFrame:
    # P pairs on some samples: differences, their bounds, one-sided p-values.
    means = pairing.values[:, rows].mean(axis=1)
    low, high = pairing.in_blocks(mean_bounds, rows, pairs, alpha=alpha / family)
    above, below = pairing.in_blocks(one_sided_p_values, rows, pairs, alpha=alpha / (2 * family))
    right = 1 - pairing.error_rate
    return pd.DataFrame(
        {
            "difference": means[pairs[:, 0]] - means[pairs[:, 1]],
            "low": np.clip(low / right, -pairing.length, pairing.length),
            "high": np.clip(high / right, -pairing.length, pairing.length),
            "above": above,
            "below": below,
        }
    )


def _adjusted(compared: pd.DataFrame, *, family: int) -> pd.DataFrame:
    # A comparison is two hypotheses, one per direction, so that a rejection says which model is better.
    one_sided = compared[["above", "below"]].to_numpy().T.ravel()
    by_holm = holm(one_sided, family=2 * family)
    by_bh = false_discovery(one_sided, family=2 * family, method="bh")
    by_by = false_discovery(one_sided, family=2 * family, method="by")
    return compared[["difference", "low", "high"]].assign(
        p=np.minimum(2 * _smaller_direction(one_sided), 1),
        p_holm=_smaller_direction(by_holm),
        p_bh=_smaller_direction(by_bh),
        p_by=_smaller_direction(by_by),
    )


def _smaller_direction(p_values: NDArray[np.float64]) -> NDArray[np.float64]:
    return p_values.reshape(2, -1).min(axis=0)


def rank_intervals(
    p_values: Sequence[NDArray[np.float64]], pairs: ArrayLike, *, models: int, alpha: float, family: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simultaneous confidence intervals of the ranks of models.

    Holm's procedure over both directions of all pairs finds the models that differ; a model's rank is then at least
    1 + the number of significantly better models, and at most M - the number of significantly worse ones.

    Parameters
    ----------
    p_values : (ndarray of shape (P,), ndarray of shape (P,))
        One-sided p-values of "the first is better" and "the second is better".
    pairs : array_like of shape (P, 2)
        All P = M (M - 1) / 2 pairs of model indices.
    models : int
        Number of models M.
    alpha : float
        Error probability of all intervals together.
    family : int, optional
        Number of pairs, at least P, that the correction counts; P by default.

    Returns
    -------
    best, worst : ndarray of shape (M,), int64
        Ranks, 1 for the best. With probability at least 1 - alpha every model's true rank lies between; models of equal
        value may take any of their shared ranks.

    References
    ----------
    Mogstad, Romano, Shaikh and Wilhelm 2024, Theorem 3.1.
    """
    pairs = np.asarray(pairs).reshape(-1, 2)
    significant = holm(np.concatenate(p_values), family=2 * (family or len(pairs))) <= alpha
    first, second = pairs.T
    winners = np.concatenate([first, second])[significant]
    losers = np.concatenate([second, first])[significant]
    best = 1 + np.bincount(losers, minlength=models)
    worst = models - np.bincount(winners, minlength=models)
    return best, worst
