"""Objectives of the temperature that are constant between crossings of scores, and a permutation test of their maximum.

An objective gives its values on the stretches between crossings. One that compares with accuracies also gives its
maximum over the stretches for permuted accuracies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.calibration.attack_free import mean_over_models
from gfscore.audit.calibration.temperature_search import EQUAL, Stretches
from gfscore.audit.calibration_results import PermutationTest
from gfscore.statistics.quotients import ratio
from gfscore.statistics.ranking import EXACT_UP_TO, every_order

ELEMENTS_AT_ONCE = 1 << 22
"""Largest number of elements of a temporary array."""


@dataclass(frozen=True)
class AcrossModels:
    """Spearman over models between scores and accuracies.

    Parameters
    ----------
    stretches : Stretches
        S stretches, on each of which the ranking of the models is constant.
    ranks : ndarray (S, M) of float64
        Ranks of the models' scores on each stretch.
    accuracy_ranks : ndarray (M,) of float64
        Ranks of the models' accuracies.
    exact : bool
        Whether the stretches lie between crossings, rather than on the paper's grid.
    independent_of_accuracy : ndarray (S,) of bool
        Stretches that permutations search: those whose position does not depend on the accuracies.
    """

    stretches: Stretches
    ranks: NDArray[np.float64]
    accuracy_ranks: NDArray[np.float64]
    exact: bool
    independent_of_accuracy: NDArray[np.bool_]

    @property
    def permuted_items(self) -> int:
        """Number of items that are permuted: the M models."""
        return len(self.accuracy_ranks)

    def values(self) -> NDArray[np.float64]:
        """Objective on each stretch, (S,); NaN where undefined."""
        scores = centred(self.ranks)
        accuracy = centred(self.accuracy_ranks)
        return correlation(scores @ accuracy, (scores**2).sum(axis=1), (accuracy**2).sum())

    def permuted_maxima(self, orders: NDArray[np.integer]) -> NDArray[np.float64]:
        """Maximum (R,) over the searched stretches, for each of the permutations `orders` (R, M) of the accuracies."""
        # Repeated rankings are computed once.
        scores = np.unique(centred(self.ranks[self.independent_of_accuracy]), axis=0)
        squares = (scores**2).sum(axis=1)[:, None]
        accuracy = centred(self.accuracy_ranks)
        accuracy_squares = (accuracy**2).sum()

        def correlations(block: NDArray[np.integer]) -> NDArray[np.float64]:
            return correlation(scores @ accuracy[block].T, squares, accuracy_squares)

        return _maxima(correlations, orders, len(scores))


@dataclass(frozen=True)
class MeanOverModels:
    """Mean over models of a value of each model.

    Parameters
    ----------
    stretches : Stretches
        S stretches, on each of which the values are constant.
    by_model : ndarray (M, S) of float64
        Value of each model on each stretch, NaN where its class scores are tied.
    exact : bool
        Whether the stretches lie between crossings, rather than on the paper's grid.
    """

    stretches: Stretches
    by_model: NDArray[np.float64]
    exact: bool

    @property
    def permuted_items(self) -> int:
        """Number of items that are permuted: 0 without accuracies."""
        return 0

    def values(self) -> NDArray[np.float64]:
        """Objective on each stretch, (S,), see mean_over_models; NaN where all models are tied."""
        return mean_over_models(self.by_model)


@dataclass(frozen=True)
class WithinModels(MeanOverModels):
    """Mean over models of the Spearman over classes between class scores and class accuracies.

    Parameters
    ----------
    stretches, by_model, exact
        See MeanOverModels.
    ranks : list of M ndarray (S_m, K) of float64
        Ranks of the class scores of each model on its own S_m stretches.
    stretch_of_model : ndarray (M, S) of int64
        Index of the model's stretch that contains each common stretch.
    accuracy_ranks : ndarray (M, K) of float64
        Ranks of the class accuracies, of the classes with samples.
    independent_of_accuracy : ndarray (S,) of bool
        See AcrossModels.
    """

    ranks: list[NDArray[np.float64]]
    stretch_of_model: NDArray[np.int64]
    accuracy_ranks: NDArray[np.float64]
    independent_of_accuracy: NDArray[np.bool_]

    @property
    def permuted_items(self) -> int:
        """Number of items that are permuted: the classes, equally in all models, whose accuracies are correlated."""
        return self.accuracy_ranks.shape[1]

    def permuted_maxima(self, orders: NDArray[np.integer]) -> NDArray[np.float64]:
        """Maximum (R,) over the searched stretches, for each of the permutations `orders` (R, K) of the classes."""
        counted = (~np.isnan(self.by_model).all(axis=1)).sum()
        all_tied = np.isnan(self.by_model[:, self.independent_of_accuracy]).all(axis=0)
        stretch_of_model = self.stretch_of_model[:, self.independent_of_accuracy]
        models = []
        for ranks, accuracy_ranks, stretches in zip(self.ranks, self.accuracy_ranks, stretch_of_model, strict=True):
            models.append(_ModelRanks(centred(ranks), centred(accuracy_ranks), stretches))

        def mean(block: NDArray[np.integer]) -> NDArray[np.float64]:
            # Few models change at a boundary, so the sum over models is accumulated from the changes.
            total = np.zeros((stretch_of_model.shape[1], len(block)))
            for model in models:
                rho = model.correlations(block)
                total[0] += rho[model.stretches[0]]
                total[model.changes] += rho[model.stretches[model.changes]] - rho[model.stretches[model.changes - 1]]
            np.cumsum(total, axis=0, out=total)
            total /= counted
            total[all_tied] = np.nan
            return total

        return _maxima(mean, orders, stretch_of_model.shape[1])


@dataclass(frozen=True)
class _ModelRanks:
    # Centred ranks of one model's class scores on its S_m stretches (S_m, K) and of its class accuracies (K,), and the
    # index of its stretch on each common stretch (S,).
    scores: NDArray[np.float64]
    accuracies: NDArray[np.float64]
    stretches: NDArray[np.int64]

    @cached_property
    def changes(self) -> NDArray[np.int64]:
        # Common stretches that begin another stretch of the model.
        return np.flatnonzero(np.diff(self.stretches)) + 1

    @cached_property
    def norm(self) -> NDArray[np.float64]:
        return np.sqrt((self.scores**2).sum(axis=1) * (self.accuracies**2).sum())[:, None]

    def correlations(self, orders: NDArray[np.integer]) -> NDArray[np.float64]:
        # Spearman (S_m, R) with the accuracies in R orders (R, K), 0 where it is undefined.
        covariance = self.scores @ self.accuracies[orders].T
        return np.divide(covariance, self.norm, out=np.zeros(covariance.shape), where=self.norm > 0)


def centred(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values (..., K) minus their mean over the last axis."""
    return values - values.mean(axis=-1, keepdims=True)


def correlation(
    covariance: NDArray[np.float64], squares: NDArray[np.float64], other_squares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Correlation from a sum of products and two sums of squares of centred ranks; NaN where one side is constant.

    Ranks are multiples of 1/2, so equal correlations are equal numbers.
    """
    return ratio(covariance, np.sqrt(squares * other_squares))


def _maxima(
    values_of: Callable[[NDArray[np.integer]], NDArray[np.float64]], orders: NDArray[np.integer], rows: int
) -> NDArray[np.float64]:
    # Maximum over the rows for each permutation, computed in blocks of permutations to bound the memory.
    step = max(1, ELEMENTS_AT_ONCE // max(1, rows))
    maxima = []
    for start in range(0, len(orders), step):
        block = values_of(orders[start : start + step])
        maxima.append(np.nanmax(block, axis=0))
    return np.concatenate(maxima)


def permutation_p_value(
    objective: AcrossModels | MeanOverModels, *, draws: int, rng: np.random.Generator
) -> PermutationTest | None:
    """Permutation p-value of the largest agreement with the accuracies.

    The maximum over T is computed for each permutation, which accounts for the search: if accuracies are exchangeable,
    P(p <= a) <= a for every a. Of the paper's grid only the coarse phase is searched, since the fine one depends on the
    observed accuracies. Up to EXACT_UP_TO accuracies all permutations are enumerated; beyond, random ones are drawn, of
    which the observed order counts as one.

    Parameters
    ----------
    objective : AcrossModels or MeanOverModels
    draws : int
        Number of random permutations.
    rng : Generator

    Returns
    -------
    PermutationTest or None
        None for an objective without accuracies (ranking stability).
    """
    items = objective.permuted_items
    if items < 2 or not isinstance(objective, AcrossModels | WithinModels):
        return None
    enumerated = items <= EXACT_UP_TO
    unpermuted = np.arange(items)
    orders = every_order(items) if enumerated else rng.permuted(np.tile(unpermuted, (draws, 1)), axis=1)
    observed = objective.permuted_maxima(unpermuted[None])[0]
    reached = int((objective.permuted_maxima(orders) >= observed - EQUAL).sum())
    if enumerated:
        return PermutationTest(p=reached / len(orders), orders=len(orders), method="all orders")
    return PermutationTest(p=(1 + reached) / (1 + draws), orders=len(orders), method="random orders")
