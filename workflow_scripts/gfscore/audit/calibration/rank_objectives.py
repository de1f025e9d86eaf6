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
from gfscore.audit.calibration.temperature_search import SearchSettings, Stretches, two_phase_grid
from gfscore.core.errors import InputError
from gfscore.statistics.curves import ScoreCurves
from gfscore.statistics.ranking import joined, rank_boundaries, ranks, spearman

MOST_RANKED = 100
"""Largest number of classes, or models, for which all crossings are found. About K^2 / 2 pairs may cross; for more of
them the paper's grid is searched."""


def cross_model_accuracy(
    curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64], settings: SearchSettings
) -> AcrossModels:
    """Eq. 8 as written, attack_free.cross_model_accuracy, as AcrossModels.

    On exact stretches for up to MOST_RANKED models; for more on the paper's grid and at T = 1.
    """
    return _across_models(curves, attack_free.aggregate_accuracy(curves, class_accuracy), settings)


def attack_distance(
    curves: Sequence[ScoreCurves], distances: NDArray[np.float64], settings: SearchSettings
) -> AcrossModels:
    """Spearman over models of the aggregate score and the mean attack distance (M,), as AcrossModels.

    It corresponds to the attack-based calibration of the GF-Score paper. Raises InputError for a model without a
    distance.
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

    On exact stretches for up to MOST_RANKED classes; for more on the paper's grid and at T = 1.
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
        # The position of the fine grid depends on the accuracies.
        fixed = np.isin(temperatures, settings.coarse())
    class_ranks = [ranks(each(part.middle)) for each, part in zip(families, own, strict=True)]
    accuracy_ranks = ranks(class_accuracy[:, present])
    where = np.array([part.holding(stretches.middle) for part in own])
    by_model = [
        _between(centred(scores), centred(accuracy))[index]
        for scores, accuracy, index in zip(class_ranks, accuracy_ranks, where, strict=True)
    ]
    return WithinModels(stretches, np.array(by_model), exact, class_ranks, where, accuracy_ranks, fixed)


def ranking_stability(
    curves: Sequence[ScoreCurves], settings: SearchSettings, *, delta: float, endpoints_only: bool = False
) -> MeanOverModels:
    """Eq. 9, attack_free.ranking_stability, as MeanOverModels.

    On exact stretches, with all temperatures of the window, for up to MOST_RANKED classes; for more on the paper's grid
    and at T = 1, with a sampled window.
    """
    if (curves[0].n > 0).sum() > MOST_RANKED:
        objective = partial(
            attack_free.ranking_stability,
            delta=delta,
            low=settings.low,
            high=settings.high,
            endpoints_only=endpoints_only,
        )
        temperatures = _on_grid(objective(curves), settings)
        by_model = [objective([curve])(temperatures) for curve in curves]
        return MeanOverModels(Stretches.at(temperatures), np.array(by_model), exact=False)
    least = _ends_of_window if endpoints_only else _least_in_window
    parts = [_stability(curve, settings, delta, least) for curve in curves]
    stretches = _common([part for part, _ in parts], settings)
    by_model = [values[part.holding(stretches.middle)] for part, values in parts]
    return MeanOverModels(stretches, np.array(by_model), exact=True)


def _on_grid(objective, settings):
    # The paper's grid and T = 1, the temperature before calibration, which may not be on the grid.
    return np.union1d(two_phase_grid(objective, settings)[0], 1.0)


def _stability(curve, settings, delta, least):
    # Stretches of one model's stability, which changes where a crossing meets T or an end of the window, and values.
    low, high = settings.low, settings.high
    boundaries = _boundaries(curve, low, high)
    rankings = Stretches.between(boundaries)
    shifted = np.concatenate([boundaries, boundaries - delta, boundaries + delta])
    own = Stretches.between(joined(shifted[(shifted > low) & (shifted < high)], low=low, high=high))
    at = [rankings.holding(np.clip(own.middle + step, low, high)) for step in (-delta, 0, delta)]
    return own, least(centred(ranks(_present(curve)(rankings.middle))), *at)


def _least_in_window(rows, first, center, last):
    squares = (rows**2).sum(axis=1)
    result = np.empty(len(center))
    for group in np.split(np.arange(len(center)), np.flatnonzero(np.diff(center)) + 1):
        start, stop, own = first[group].min(), last[group].max() + 1, center[group[0]]
        rho = correlation(rows[start:stop] @ rows[own], squares[start:stop], squares[own])
        for index in group:
            result[index] = rho[first[index] - start : last[index] + 1 - start].min()
    return result


def _ends_of_window(rows, first, center, last):
    return np.minimum(_between(rows[first], rows[center]), _between(rows[last], rows[center]))


def _between(rows, others):
    # Spearman of centred ranks (..., K) with others.
    return correlation((rows * others).sum(axis=-1), (rows**2).sum(axis=-1), (others**2).sum(axis=-1))


def _common(parts, settings):
    boundaries = np.concatenate([part.last[:-1] for part in parts])
    return Stretches.between(joined(boundaries, low=settings.low, high=settings.high))


@lru_cache(maxsize=1 << 12)
def _boundaries(curve: ScoreCurves, low: float, high: float) -> NDArray[np.float64]:
    # Cached, since several objectives search the same curves.
    return rank_boundaries(_present(curve), low=low, high=high)


def _present(curve):
    return lambda temperatures: curve(temperatures)[:, curve.n > 0]
