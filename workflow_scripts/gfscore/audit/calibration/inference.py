"""How sure a searched temperature is: models resampled, models left out, accuracies permuted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.calibration.temperature_search import EQUAL, UndefinedObjectiveError, optimum
from gfscore.statistics.ranking import EXACT_UP_TO, every_order

if TYPE_CHECKING:
    from gfscore.audit.calibration.rank_objectives import AcrossModels, MeanOverModels
    from gfscore.audit.calibration.temperature_search import Optimum


def bootstrap(
    objective: AcrossModels | MeanOverModels, *, models: int, draws: int, confidence: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Percentile bootstrap over models of T* and of the objective there; approximate, no guarantee.

    Takes an objective of rank_objectives, the number of models M, how many resamples to draw, and the confidence.
    Each resample draws M models with replacement and searches the stretches of the objective anew; the fine part of the
    paper's grid stays where all models together put it. Returns a mapping: `interval` (the method), `confidence`,
    `draws`, `undefined` (resamples without any order, left out), `t_star` and `best` as [low, high], or None when every
    resample is undefined. The maximum of a search is biased upwards, and so is `best`.
    """
    found = _optima(objective, rng.multinomial(models, np.full(models, 1 / models), size=draws))
    known = [each for each in found if each is not None]
    tail = (1 - confidence) / 2
    ends = {
        name: np.quantile([getattr(each, name) for each in known], [tail, 1 - tail]).tolist() if known else None
        for name in ("t_star", "best")
    }
    described = {"interval": "percentile bootstrap over models, approximate", "confidence": confidence}
    return described | {"draws": draws, "undefined": draws - len(known)} | ends


def leave_one_out(objective: AcrossModels | MeanOverModels, *, models: int) -> list[Optimum | None]:
    """Optimum without each of the M models, as a list of M; None where the rest has no order; grids as in bootstrap."""
    return _optima(objective, 1 - np.eye(models))


def permutation_p_value(
    objective: AcrossModels | MeanOverModels, *, draws: int, rng: np.random.Generator
) -> dict[str, Any] | None:
    """Probability that the search finds at least as large an agreement when the accuracies are permuted.

    The maximum over T is taken anew under each permutation, so choosing T is paid for: under exchangeable accuracies
    P(p <= a) <= a for every a. Of the paper's grid only the coarse part is searched, in the observed order too, because
    the observed accuracies placed the fine part. All orders of up to EXACT_UP_TO accuracies are enumerated; beyond,
    `draws` random ones, and (1 + reached) / (1 + draws) is valid too. Returns a mapping with `p`, `orders` (their
    number) and `method`, or None for an objective without accuracies (ranking stability).
    """
    items = objective.permuted_items
    if items < 2:
        return None
    # An objective without accuracies has nothing to permute, and has returned.
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
