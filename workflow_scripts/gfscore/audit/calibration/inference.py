"""Uncertainty of a searched temperature: bootstrap, leave-one-out, permutation of accuracies."""

from typing import Any

import numpy as np

from gfscore.audit.calibration.piecewise_objectives import AcrossModels, MeanOverModels
from gfscore.audit.calibration.temperature_search import EQUAL, Optimum, UndefinedObjectiveError, optimum
from gfscore.statistics.ranking import EXACT_UP_TO, every_order


def bootstrap(
    objective: AcrossModels | MeanOverModels, *, models: int, draws: int, confidence: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Percentile bootstrap over models of T* and of the objective there: approximate, without a guarantee.

    Takes a piecewise objective, the number of models M, the number of resamples, and the confidence. Each
    resample draws M models with replacement and searches the stretches of the objective again; on the paper's grid, the
    fine part is that of all models. Returns a mapping: `interval` (the method), `confidence`, `draws`, `undefined`
    (resamples where the objective is undefined, left out), `t_star` and `best` as [low, high], or None if all resamples
    are undefined. `best`, the maximum of a search, is biased upwards.
    """
    optima = _optima(objective, rng.multinomial(models, np.full(models, 1 / models), size=draws))
    known = [optimum for optimum in optima if optimum is not None]
    tail = (1 - confidence) / 2
    ends = {
        name: np.quantile([getattr(item, name) for item in known], [tail, 1 - tail]).tolist() if known else None
        for name in ("t_star", "best")
    }
    described = {"interval": "percentile bootstrap over models, approximate", "confidence": confidence}
    return described | {"draws": draws, "undefined": draws - len(known)} | ends


def leave_one_out(objective: AcrossModels | MeanOverModels, *, models: int) -> list[Optimum | None]:
    """Optimum without each of the M models, a list of M; None if undefined; grids as in bootstrap."""
    return _optima(objective, 1 - np.eye(models))


def permutation_p_value(
    objective: AcrossModels | MeanOverModels, *, draws: int, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Permutation p-value of the largest agreement with the accuracies.

    The maximum over T is computed for each permutation, which accounts for the search: if accuracies are exchangeable,
    P(p <= a) <= a for every a. Of the paper's grid only the coarse part is searched, since the fine part depends on the
    observed accuracies. Up to EXACT_UP_TO accuracies all permutations are enumerated; beyond, `draws` random ones are
    used with (1 + reached) / (1 + draws). Returns a mapping with `p`, `orders` (number of permutations) and `method`,
    or None for an objective without accuracies (ranking stability).
    """
    items = objective.permuted_items
    if items < 2:
        return None
    # Objectives without accuracies have no items and returned above.
    with_accuracies: Any = objective
    enumerated = items <= EXACT_UP_TO
    orders = every_order(items) if enumerated else rng.permuted(np.tile(np.arange(items), (draws, 1)), axis=1)
    observed = with_accuracies.permuted(np.arange(items)[None])[0]
    reached = int((with_accuracies.permuted(orders) >= observed - EQUAL).sum())
    return {
        "p": reached / len(orders) if enumerated else (1 + reached) / (1 + draws),
        "orders": len(orders),
        "method": "all orders" if enumerated else "random orders",
    }


def _optima(objective, weights):
    return [_optimum_or_none(objective.stretches, values) for values in objective.values(weights)]


def _optimum_or_none(stretches, values):
    try:
        return optimum(stretches, values)
    except UndefinedObjectiveError:
        return None
