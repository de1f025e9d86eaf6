"""Rank objectives of the temperature on the intervals ("stretches") where they are constant.

A Spearman correlation changes only where two scores change order, so it is determined by its value on each stretch
between crossings.
"""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free
from gfscore.audit.calibration.piecewise_objectives import (
    AcrossModels,
    MeanOverModels,
    WithinModels,
    centred,
    correlation,
)
from gfscore.audit.calibration.temperature_search import Stretches, coarse_grid, two_phase_grid
from gfscore.audit.settings import TemperatureGrid
from gfscore.core.errors import InputError
from gfscore.statistics.curves import ScoreCurves, ScoresAt
from gfscore.statistics.ranking import joined, rank_boundaries, ranks, spearman

MOST_RANKED = 100
"""Largest number of classes, or models, for which all crossings are found. Above it the paper's grid is searched, since
K^2 / 2 pairs may cross."""


def cross_model_accuracy(
    curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64], settings: TemperatureGrid
) -> AcrossModels:
    """Piecewise constant Spearman correlation, over models, of aggregate score and clean accuracy.

    It is Eq. 8 of GF-Score as written. Exact for up to MOST_RANKED models; for more of them on the paper's grid and at
    T = 1.

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    class_accuracy : ndarray (M, K) of float64
        Clean accuracy of each class, NaN for a class without samples.
    settings : TemperatureGrid
        Range of the search, and the paper's grid in it.

    Returns
    -------
    AcrossModels
        The objective's value on each stretch of temperatures.
    """
    return _across_models(curves, attack_free.aggregate_accuracy(curves, class_accuracy), settings)


def attack_distance(
    curves: Sequence[ScoreCurves], distances: NDArray[np.float64], settings: TemperatureGrid
) -> AcrossModels:
    """Piecewise constant Spearman correlation, over models, of aggregate score and mean attack distance.

    It corresponds to the attack-based calibration of the GF-Score paper.

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    distances : ndarray (M,) of float64
        Mean distance of each model.
    settings : TemperatureGrid
        Range of the search, and the paper's grid in it.

    Returns
    -------
    AcrossModels
        The objective's value on each stretch of temperatures.

    Raises
    ------
    InputError
        For a model without a distance.
    """
    if np.isnan(distances).any():
        raise InputError(
            "attack_distance needs the distances of every model; name a measure of kind minimal in l2 in the audit"
        )
    return _across_models(curves, distances, settings)


def _across_models(
    curves: Sequence[ScoreCurves], quantity: NDArray[np.float64], settings: TemperatureGrid
) -> AcrossModels:
    aggregates = attack_free.aggregates(curves)
    exact = len(curves) <= MOST_RANKED
    if exact:
        stretches = Stretches.between(rank_boundaries(aggregates, low=settings.low, high=settings.high))
        independent_of_accuracy = np.ones(len(stretches.first), dtype=bool)
    else:

        def objective(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.asarray(spearman(aggregates(temperatures), quantity))

        temperatures = _grid(objective, settings)
        stretches = Stretches.at(temperatures)
        independent_of_accuracy = _in_coarse_grid(temperatures, settings)
    return AcrossModels(stretches, ranks(aggregates(stretches.middle)), ranks(quantity), exact, independent_of_accuracy)


def within_model_class_accuracy(
    curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64], settings: TemperatureGrid
) -> WithinModels:
    """Mean over models of the Spearman correlation, over classes, of class scores and class accuracies.

    Exact for up to MOST_RANKED classes; for more of them on the paper's grid and at T = 1.

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    class_accuracy : ndarray (M, K) of float64
        Clean accuracy of each class, NaN for a class without samples.
    settings : TemperatureGrid
        Range of the search, and the paper's grid in it.

    Returns
    -------
    WithinModels
        The objective's value on each stretch of temperatures.
    """
    # All models are scored on the same samples.
    sampled = curves[0].n > 0
    exact = bool(sampled.sum() <= MOST_RANKED)
    if exact:
        stretches_of_models = [Stretches.between(_boundaries(curve, settings.low, settings.high)) for curve in curves]
        stretches = _common_refinement(stretches_of_models, settings)
        independent_of_accuracy = np.ones(len(stretches.first), dtype=bool)
    else:
        temperatures = _grid(attack_free.within_model_class_accuracy(curves, class_accuracy), settings)
        stretches = Stretches.at(temperatures)
        stretches_of_models = [stretches] * len(curves)
        independent_of_accuracy = _in_coarse_grid(temperatures, settings)

    accuracy_ranks = ranks(class_accuracy[:, sampled])
    ranks_of_models = []
    stretch_of_model = []
    by_model = []
    for curve, stretches_of_model, ranks_of_accuracies in zip(curves, stretches_of_models, accuracy_ranks, strict=True):
        ranks_of_scores = ranks(_scores_of_sampled_classes(curve)(stretches_of_model.middle))
        position = stretches_of_model.holding(stretches.middle)
        ranks_of_models.append(ranks_of_scores)
        stretch_of_model.append(position)
        by_model.append(_spearman_of_centred(centred(ranks_of_scores), centred(ranks_of_accuracies))[position])
    return WithinModels(
        stretches,
        np.array(by_model),
        exact,
        ranks_of_models,
        np.array(stretch_of_model),
        accuracy_ranks,
        independent_of_accuracy,
    )


def ranking_stability(
    curves: Sequence[ScoreCurves], settings: TemperatureGrid, *, delta: float, endpoints_only: bool = False
) -> MeanOverModels:
    """Mean over models of the smallest Spearman between the class ranking at T and those within delta of T (Eq. 9).

    Exact, with all temperatures of the window, for up to MOST_RANKED classes; for more of them on the paper's grid and
    at T = 1, with a sampled window.

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    settings : TemperatureGrid
        Range of the search, and the paper's grid in it.
    delta : float
        Half-width of the window.
    endpoints_only : bool
        Whether the window is its two ends, which is what the authors ran.

    Returns
    -------
    MeanOverModels
        The objective's value on each stretch of temperatures.
    """
    if (curves[0].n > 0).sum() > MOST_RANKED:
        objective = partial(
            attack_free.ranking_stability,
            delta=delta,
            low=settings.low,
            high=settings.high,
            endpoints_only=endpoints_only,
        )
        temperatures = _grid(objective(curves), settings)
        by_model = [objective([curve])(temperatures) for curve in curves]
        return MeanOverModels(Stretches.at(temperatures), np.array(by_model), exact=False)

    stretches_of_models = []
    values_of_models = []
    for curve in curves:
        # The stability of one model changes where a crossing meets T or an end of the window.
        boundaries = _boundaries(curve, settings.low, settings.high)
        shifted = np.concatenate([boundaries, boundaries - delta, boundaries + delta])
        stretches_of_model = Stretches.between(joined(shifted, low=settings.low, high=settings.high))

        # The ranking at T, and the first and the last ranking of its window; the window ends where the search does.
        rankings = Stretches.between(boundaries)
        centred_ranks = centred(ranks(_scores_of_sampled_classes(curve)(rankings.middle)))
        first = rankings.holding(stretches_of_model.middle - delta)
        center = rankings.holding(stretches_of_model.middle)
        last = rankings.holding(stretches_of_model.middle + delta)
        if endpoints_only:
            at_first = _spearman_of_centred(centred_ranks[first], centred_ranks[center])
            at_last = _spearman_of_centred(centred_ranks[last], centred_ranks[center])
            values = np.minimum(at_first, at_last)
        else:
            values = _smallest_in_window(centred_ranks, first, center, last)
        stretches_of_models.append(stretches_of_model)
        values_of_models.append(values)

    stretches = _common_refinement(stretches_of_models, settings)
    by_model = []
    for stretches_of_model, values in zip(stretches_of_models, values_of_models, strict=True):
        by_model.append(values[stretches_of_model.holding(stretches.middle)])
    return MeanOverModels(stretches, np.array(by_model), exact=True)


def _grid(objective: attack_free.Objective, settings: TemperatureGrid) -> NDArray[np.float64]:
    # The paper's grid and T = 1, the temperature before calibration, which may not be on the grid.
    return np.union1d(two_phase_grid(objective, settings)[0], 1.0)


def _in_coarse_grid(temperatures: NDArray[np.float64], settings: TemperatureGrid) -> NDArray[np.bool_]:
    # The other temperatures, those of the fine grid, lie around the optimum, which depends on the accuracies.
    return np.isin(temperatures, coarse_grid(settings))


def _smallest_in_window(
    centred_ranks: NDArray[np.float64],
    first: NDArray[np.int64],
    center: NDArray[np.int64],
    last: NDArray[np.int64],
) -> NDArray[np.float64]:
    # Smallest Spearman (S,) between the ranking at T and those of its window, from the centred ranks (R, K) of R
    # rankings: the window of a stretch holds the rankings first..last around ranking center. Stretches with the same
    # center share one product with all rankings of their windows.
    squares = (centred_ranks**2).sum(axis=1)
    result = np.empty(len(center))
    for same_center in np.split(np.arange(len(center)), np.flatnonzero(np.diff(center)) + 1):
        start = first[same_center].min()
        stop = last[same_center].max() + 1
        ranking = center[same_center[0]]
        covariance = centred_ranks[start:stop] @ centred_ranks[ranking]
        rho = correlation(covariance, squares[start:stop], squares[ranking])
        for stretch in same_center:
            result[stretch] = rho[first[stretch] - start : last[stretch] + 1 - start].min()
    return result


def _spearman_of_centred(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    # Spearman of centred ranks (..., K).
    return correlation((first * second).sum(axis=-1), (first**2).sum(axis=-1), (second**2).sum(axis=-1))


def _common_refinement(stretches_of_models: Sequence[Stretches], settings: TemperatureGrid) -> Stretches:
    # Stretches of the boundaries of all models.
    boundaries = np.concatenate([stretches.last[:-1] for stretches in stretches_of_models])
    return Stretches.between(joined(boundaries, low=settings.low, high=settings.high))


@lru_cache(maxsize=1 << 12)
def _boundaries(curve: ScoreCurves, low: float, high: float) -> NDArray[np.float64]:
    # Cached, since several objectives search the same curves.
    return rank_boundaries(_scores_of_sampled_classes(curve), low=low, high=high)


def _scores_of_sampled_classes(curve: ScoreCurves) -> ScoresAt:
    # Of the classes that have samples.
    return lambda temperatures: curve(temperatures)[:, curve.n > 0]
