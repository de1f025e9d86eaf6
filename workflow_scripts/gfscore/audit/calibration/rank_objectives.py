"""Rank objectives of the temperature on the stretches where they are constant.

A Spearman correlation changes only where two scores change order, so its value on each stretch between crossings is
all there is to know. Each objective gives its values for weighted models, which leaves out or resamples them, and its
largest value when the accuracies are permuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free
from gfscore.audit.calibration.temperature_search import Stretches, two_phase_grid
from gfscore.core.errors import InputError
from gfscore.statistics.crossings import joined, rank_boundaries
from gfscore.statistics.ranking import ranks, spearman

if TYPE_CHECKING:
    from gfscore.audit.calibration.temperature_search import SearchSettings
    from gfscore.statistics.curves import ScoreCurves

MOST_RANKED = 100
"""Most classes, or models, whose every crossing is found. Of K of them some K^2 / 2 pairs cross: a thousand classes
change their ranking so often that it is searched on the paper's grid instead."""

ELEMENTS = 1 << 22


@dataclass(frozen=True)
class AcrossModels:
    """Spearman over models between scores on each stretch and accuracies.

    `ranks` (S, M) of the models' scores, `accuracy_ranks` (M,).
    """

    stretches: Stretches
    ranks: NDArray[np.float64]
    accuracy_ranks: NDArray[np.float64]
    exact: bool = True

    @property
    def permuted_items(self) -> int:
        """What a permutation permutes: the M models."""
        return len(self.accuracy_ranks)

    def values(self, weights: NDArray[np.number]) -> NDArray[np.float64]:
        """Objective (W, S) when each model counts `weights` (W, M) times; NaN where undefined."""
        weights = np.asarray(weights, dtype=np.float64)
        # A model's centred rank among weighted models is half the sum of the signs of its differences.
        accuracy = _signs(self.accuracy_ranks) @ weights.T
        own = weights.T * accuracy
        accuracy_squares = (own * accuracy).sum(axis=0)
        result = np.empty((len(weights), len(self.ranks)))
        models = self.ranks.shape[1]
        step = max(1, ELEMENTS // max(1, models * max(weights.shape[0], models)))
        for start in range(0, len(self.ranks), step):
            block = slice(start, start + step)
            scores = _signs(self.ranks[block]) @ weights.T
            covariance = (scores * own).sum(axis=1)
            scores *= scores
            squares = (scores * weights.T).sum(axis=1)
            result[:, block] = _correlation(covariance, squares, accuracy_squares).T
        return result

    def permuted(self, orders: NDArray[np.integer]) -> NDArray[np.float64]:
        """Largest value over the stretches when the accuracies come in each of the `orders` (R, M), as (R,)."""
        scores, accuracy = _centred(self.ranks), _centred(self.accuracy_ranks)
        squares = (scores**2).sum(axis=1)[:, None]
        # Rankings recur; each counts once.
        scores, kept = np.unique(scores, axis=0, return_index=True)
        squares = squares[kept]
        return _largest(
            lambda block: _correlation(scores @ accuracy[block].T, squares, (accuracy**2).sum()), orders, len(scores)
        )


@dataclass(frozen=True)
class MeanOverModels:
    """Mean over models of a value that each model has on each stretch: `by_model` (M, S), NaN where undefined."""

    stretches: Stretches
    by_model: NDArray[np.float64]
    exact: bool

    @property
    def permuted_items(self) -> int:
        """What a permutation permutes: nothing, where there are no accuracies."""
        return 0

    def values(self, weights: NDArray[np.number]) -> NDArray[np.float64]:
        """Objective (W, S) when each model counts `weights` (W, M) times; NaN where no model has a value."""
        # Floating point, so that both are products of matrices by BLAS; counts are exact in it.
        weights, known = np.asarray(weights, dtype=np.float64), ~np.isnan(self.by_model)
        total = weights @ np.where(known, self.by_model, 0)
        everywhere = np.broadcast_to(weights.sum(axis=1)[:, None], total.shape)
        count = everywhere if known.all() else weights @ known.astype(np.float64)
        return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


@dataclass(frozen=True)
class WithinModels(MeanOverModels):
    """MeanOverModels of the Spearman over classes between class scores and class accuracies.

    `ranks` per model (S_m, K) on the S_m stretches of its own, `own` (M, S) which of them each common stretch lies in,
    `accuracy_ranks` (M, K), over the classes with samples. `fixed` (S,) says which stretches are the same whatever the
    accuracies are: those are what permutations search.
    """

    ranks: list[NDArray[np.float64]]
    own: NDArray[np.int64]
    accuracy_ranks: NDArray[np.float64]
    fixed: NDArray[np.bool_]

    @property
    def permuted_items(self) -> int:
        """What a permutation permutes: the classes, alike in all models, since models agree on which are hard."""
        return self.accuracy_ranks.shape[1]

    def permuted(self, orders: NDArray[np.integer]) -> NDArray[np.float64]:
        """Largest value over fixed stretches when the class accuracies come in each of the `orders` (R, K), as (R,)."""
        count = (~np.isnan(self.by_model[:, self.fixed])).sum(axis=0)
        share = np.divide(1, count, out=np.full(len(count), np.nan), where=count > 0)[:, None]
        models = [
            (_centred(scores), _centred(accuracy), where)
            for scores, accuracy, where in zip(self.ranks, self.accuracy_ranks, self.own[:, self.fixed], strict=True)
        ]

        def mean(block: NDArray[np.integer]) -> NDArray[np.float64]:
            # Few models change at a boundary, so the sum over models is built up from the changes.
            total = np.zeros((len(count), len(block)))
            for scores, accuracy, where in models:
                squares = (scores**2).sum(axis=1)[:, None]
                rho = np.nan_to_num(_correlation(scores @ accuracy[block].T, squares, (accuracy**2).sum()))
                changes = np.flatnonzero(np.diff(where)) + 1
                total[0] += rho[where[0]]
                total[changes] += rho[where[changes]] - rho[where[changes - 1]]
            np.cumsum(total, axis=0, out=total)
            total *= share
            return total

        return _largest(mean, orders, len(count))


def cross_model_accuracy(
    curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64], settings: SearchSettings
) -> AcrossModels:
    """Eq. 8 as written, attack_free.cross_model_accuracy, as AcrossModels.

    On exact stretches up to MOST_RANKED models; beyond on the paper's grid and at T = 1.
    """
    return _across_models(curves, attack_free.aggregate_accuracy(curves, class_accuracy), settings)


def attack_distance(
    curves: Sequence[ScoreCurves], distances: NDArray[np.float64], settings: SearchSettings
) -> AcrossModels:
    """Spearman over models of the aggregate score and the mean attack distance (M,), as AcrossModels.

    The calibration by attacks that the GF-Score paper compares with. Raises InputError for a model without a distance.
    """
    if np.isnan(distances).any():
        raise InputError(
            "attack_distance needs the distances of every model; name a measure of kind minimal in l2 in the audit"
        )
    return _across_models(curves, distances, settings)


def _across_models(curves, against, settings):
    aggregates, exact = attack_free.aggregates(curves), len(curves) <= MOST_RANKED
    if exact:
        stretches = Stretches.between(rank_boundaries(aggregates, low=settings.low, high=settings.high))
    else:
        stretches = Stretches.at(_on_grid(lambda each: np.asarray(spearman(aggregates(each), against)), settings))
    return AcrossModels(stretches, ranks(aggregates(stretches.middle)), ranks(against), exact)


def within_model_class_accuracy(
    curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64], settings: SearchSettings
) -> WithinModels:
    """attack_free.within_model_class_accuracy as WithinModels.

    On exact stretches up to MOST_RANKED classes; beyond on the paper's grid and at T = 1.
    """
    present = curves[0].n > 0
    families = [_present(curve) for curve in curves]
    exact = present.sum() <= MOST_RANKED
    if exact:
        own = [Stretches.between(_boundaries(curve, settings.low, settings.high)) for curve in curves]
        stretches = _common(own, settings)
        fixed = np.ones(len(stretches.first), dtype=bool)
    else:
        temperatures = _on_grid(attack_free.within_model_class_accuracy(curves, class_accuracy), settings)
        stretches = Stretches.at(temperatures)
        own = [stretches] * len(curves)
        # Where the fine grid lies, the accuracies have decided.
        fixed = np.isin(temperatures, settings.coarse())
    class_ranks = [ranks(each(part.middle)) for each, part in zip(families, own, strict=True)]
    accuracy_ranks = ranks(class_accuracy[:, present])
    where = np.array([part.holding(stretches.middle) for part in own])
    by_model = [
        _agreement(scores, accuracy)[index]
        for scores, accuracy, index in zip(class_ranks, accuracy_ranks, where, strict=True)
    ]
    return WithinModels(stretches, np.array(by_model), exact, class_ranks, where, accuracy_ranks, fixed)


def ranking_stability(
    curves: Sequence[ScoreCurves], settings: SearchSettings, *, delta: float, endpoints_only: bool = False
) -> MeanOverModels:
    """Eq. 9, attack_free.ranking_stability, as MeanOverModels.

    On exact stretches, with every temperature of the window, up to MOST_RANKED classes; beyond on the paper's grid
    and at T = 1, with the window sampled.
    """
    if (curves[0].n > 0).sum() > MOST_RANKED:
        settled: dict[str, Any] = {
            "delta": delta,
            "low": settings.low,
            "high": settings.high,
            "endpoints_only": endpoints_only,
        }
        temperatures = _on_grid(attack_free.ranking_stability(curves, **settled), settings)
        by_model = [attack_free.ranking_stability([curve], **settled)(temperatures) for curve in curves]
        return MeanOverModels(Stretches.at(temperatures), np.array(by_model), exact=False)
    least = _ends_of_window if endpoints_only else _least_in_window
    parts = [_stability(curve, settings, delta, least) for curve in curves]
    stretches = _common([own for own, _ in parts], settings)
    by_model = [values[own.holding(stretches.middle)] for own, values in parts]
    return MeanOverModels(stretches, np.array(by_model), exact=True)


def _on_grid(objective, settings):
    # The paper's grid, and T = 1, where the score stands before calibration: the grid may step over it.
    return np.union1d(two_phase_grid(objective, settings)[0], 1.0)


def _stability(curve, settings, delta, least):
    # Stretches of one model's stability and its values: they change where a crossing meets T or an end of the window.
    low, high = settings.low, settings.high
    boundaries = _boundaries(curve, low, high)
    rankings = Stretches.between(boundaries)
    shifted = np.concatenate([boundaries, boundaries - delta, boundaries + delta])
    own = Stretches.between(joined(shifted[(shifted > low) & (shifted < high)], low=low, high=high))
    at = [rankings.holding(np.clip(own.middle + step, low, high)) for step in (-delta, 0, delta)]
    return own, least(_centred(ranks(_present(curve)(rankings.middle))), *at)


def _least_in_window(rows, first, center, last):
    squares = (rows**2).sum(axis=1)
    result = np.empty(len(center))
    for group in np.split(np.arange(len(center)), np.flatnonzero(np.diff(center)) + 1):
        start, stop, own = first[group].min(), last[group].max() + 1, center[group[0]]
        rho = _correlation(rows[start:stop] @ rows[own], squares[start:stop], squares[own])
        for index in group:
            result[index] = rho[first[index] - start : last[index] + 1 - start].min()
    return result


def _ends_of_window(rows, first, center, last):
    return np.minimum(_between(rows[first], rows[center]), _between(rows[last], rows[center]))


def _between(rows, others):
    # Spearman of centred ranks (..., K) with others.
    return _correlation((rows * others).sum(axis=-1), (rows**2).sum(axis=-1), (others**2).sum(axis=-1))


def _agreement(scores, accuracy):
    return _between(_centred(scores), _centred(accuracy))


def _common(parts, settings):
    boundaries = np.concatenate([part.last[:-1] for part in parts])
    return Stretches.between(joined(boundaries, low=settings.low, high=settings.high))


@lru_cache(maxsize=1 << 12)
def _boundaries(curve: ScoreCurves, low: float, high: float) -> NDArray[np.float64]:
    # Found once, since several objectives search the same curves.
    return rank_boundaries(_present(curve), low=low, high=high)


def _present(curve):
    present = curve.n > 0
    return lambda temperatures: curve(temperatures)[:, present]


def _centred(values):
    return values - values.mean(axis=-1, keepdims=True)


def _signs(values):
    return np.sign(values[..., :, None] - values[..., None, :])


def _correlation(covariance, squares, other_squares):
    # Ranks are multiples of a half, so equal correlations are equal numbers; NaN where one side has no order.
    norm = np.sqrt(squares * other_squares)
    norm, covariance = np.broadcast_arrays(norm, covariance)
    return np.divide(covariance, norm, out=np.full(norm.shape, np.nan), where=norm > 0)


def _largest(values_of, orders, rows):
    # Largest value over the rows of each block of orders, block by block so that memory stays small.
    step = max(1, ELEMENTS // max(1, rows))
    blocks = [values_of(orders[start : start + step]) for start in range(0, len(orders), step)]
    return np.concatenate([np.nanmax(block, axis=0) for block in blocks])
