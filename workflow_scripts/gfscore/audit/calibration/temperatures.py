"""Calibration of an audit: the temperature of each objective, with rank correlations before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free, rank_objectives
from gfscore.audit.calibration.evidence import ModelEvidence, Part, agreement, agreement_at, models_digest
from gfscore.audit.calibration.piecewise_objectives import (
    AcrossModels,
    MeanOverModels,
    bootstrap,
    leave_one_out,
    permutation_p_value,
)
from gfscore.audit.calibration.temperature_search import (
    EQUAL,
    Stretches,
    UndefinedObjectiveError,
    optimum,
    two_phase_grid,
)
from gfscore.audit.settings import Resampling, Split, Temperatures
from gfscore.statistics.curves import ScoreCurves
from gfscore.tables.table import Table

CALIBRATION = Table(
    name="calibration",
    version=2,
    columns=(
        ("measure", pa.string(), "the great variant that is calibrated"),
        ("objective", pa.string(), "name of the objective"),
        ("temperature", pa.float64(), "end of a stretch of constant value, or a searched temperature"),
        ("value", pa.float64(), "objective; null where undefined"),
    ),
)
"""Curves of the objectives over the temperature."""

CURVE_POINTS = 25
"""Number of temperatures at which the held-out log-loss is recorded, evenly spaced in log T."""

FIELDS = (
    *("search", "t_star", "t_star_by_model", "interval", "stretches", "edge", "best", "at_one", "undefined"),
    *("paper_grid", "leave_one_out", "bootstrap", "permutation", "class_calibration_error"),
)
"""Entries of an objective in calibration.json, each null where the objective has none."""


@dataclass(frozen=True)
class Searched:
    """Outcome of the search of one objective.

    Parameters
    ----------
    entry : dict
        Those of FIELDS that the search has.
    temperatures, values : ndarray (P,) of float64
        The searched curve.
    """

    entry: dict[str, Any]
    temperatures: NDArray[np.float64]
    values: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Search:
    """Search of the temperature of one objective.

    Parameters
    ----------
    models : list of M ModelEvidence
    settings : Temperatures
        Range of temperatures.
    window : float
        Half-width delta of Eq. 9.
    resampling : Resampling
    seed, stream : int
        Seed and number of the random stream of the resampling.
    """

    models: list[ModelEvidence]
    settings: Temperatures
    window: float
    resampling: Resampling
    seed: int
    stream: int

    @property
    def curves(self) -> list[ScoreCurves]:
        """Class scores of the models over the temperature."""
        return [model.curves for model in self.models]

    @property
    def class_accuracy(self) -> NDArray[np.float64]:
        """Class accuracies of the models, (M, K)."""
        return np.array([model.class_accuracy for model in self.models])


def calibrate(
    models: list[ModelEvidence],
    objectives: Iterable[str],
    *,
    settings: Temperatures,
    stability_window: float,
    resampling: Resampling,
    seed: int = 0,
    split: Split | None = None,
) -> tuple[dict[str, Any], pd.DataFrame]:
    """Search the temperature of each objective.

    Parameters
    ----------
    models : list of M ModelEvidence
    objectives : iterable of str
        Names of OBJECTIVES.
    settings : Temperatures
        Range and grid of temperatures.
    stability_window : float
        Half-width delta of Eq. 9.
    resampling : Resampling
    seed : int
        Seed of the resampling.
    split : Split or None
        Split of the samples, which is recorded.

    Returns
    -------
    results : dict
        Entries of calibration.json by objective (docs/reading-an-audit.md), with the reason under `undefined` if an
        objective has no optimum (all accuracies equal).
    curves : DataFrame
        The searched curves: objective, temperature, value.
    """
    results = {}
    curves = [pd.DataFrame({"objective": [], "temperature": [], "value": []})]
    for name in objectives:
        search = Search(
            models=models,
            settings=settings,
            window=stability_window,
            resampling=resampling,
            seed=seed,
            stream=crc32(name.encode()),
        )
        searched = OBJECTIVES[name](search)
        entry = {field: searched.entry.get(field) for field in FIELDS}
        chosen = entry["t_star_by_model"] or {model.name: entry["t_star"] for model in models}
        results[name] = {
            **entry,
            **agreement_at(models, chosen),
            "split": split and split.model_dump(),
            "models_digest": models_digest(models),
        }
        curve = {"objective": name, "temperature": searched.temperatures, "value": searched.values}
        curves.append(pd.DataFrame(curve))
    # Empty frames have no types of columns to keep.
    searched_curves = [curve for curve in curves if len(curve)] or curves[:1]
    return results, pd.concat(searched_curves, ignore_index=True)


def _search_piecewise(objective_of: Callable[[Search], AcrossModels | MeanOverModels], search: Search) -> Searched:
    try:
        objective = objective_of(search)
        values = objective.values(np.ones((1, len(search.models))))[0]
        best = optimum(objective.stretches, values)
    except UndefinedObjectiveError as error:
        return Searched({"undefined": str(error)}, np.empty(0), np.empty(0))
    entry = {
        "search": "exact" if objective.exact else "grid",
        "t_star": best.t_star,
        "interval": list(best.interval),
        "stretches": [list(stretch) for stretch in best.stretches],
        "edge": best.edge,
        "best": best.best,
        "at_one": float(values[objective.stretches.holding(np.array([1.0]))[0]]),
        "paper_grid": _paper_grid(objective.stretches, values, search.settings),
        **_uncertainty(objective, search),
    }
    return Searched(entry, *_curve_points(objective.stretches, values))


def _paper_grid(stretches, values, settings):
    # Result of the paper's two-phase grid for the same objective: its first best temperature.
    temperatures, grid_values = two_phase_grid(lambda t: values[stretches.holding(t)], settings)
    best = optimum(Stretches.at(temperatures), grid_values)
    return {"t_star": best.stretches[0][0], "best": best.best, "edge": best.edge}


def _uncertainty(objective, search):
    resampling = search.resampling
    rng = np.random.default_rng([search.seed, search.stream])
    return {
        "leave_one_out": _without_each(objective, search.models),
        "bootstrap": bootstrap(
            objective,
            models=len(search.models),
            draws=resampling.bootstrap,
            confidence=resampling.confidence,
            rng=rng,
        ),
        "permutation": permutation_p_value(objective, draws=resampling.permutations, rng=rng),
    }


def _without_each(objective, models):
    # Temperature chosen without each model, and rank correlations of the other models there.
    optima = leave_one_out(objective, models=len(models))
    temperatures = np.array([1.0, *(best.t_star if best else 1.0 for best in optima)])
    scores = attack_free.aggregates([model.report_curves for model in models])(temperatures)
    result: dict[str, Any] = {}
    for index, (model, best) in enumerate(zip(models, optima, strict=True)):
        if best is None:
            result[model.name] = None
            continue
        remaining_models = models[:index] + models[index + 1 :]
        before = np.delete(scores[0], index)
        after = np.delete(scores[index + 1], index)
        result[model.name] = {
            "t_star": best.t_star,
            "best": best.best,
            "agreement": agreement(remaining_models, before, after),
        }
    return result


def _curve_points(stretches, values):
    # The curve as points: both ends of all runs of stretches with equal values, or all temperatures of a grid.
    if (stretches.first == stretches.last).all():
        return stretches.first, values
    changes = ~np.isclose(np.diff(values), 0, rtol=0, atol=EQUAL)
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    ends = np.append(starts[1:], len(values)) - 1
    temperatures = np.stack([stretches.first[starts], stretches.last[ends]], axis=1)
    return temperatures.ravel(), np.repeat(values[starts], 2)


def _search_likelihood(search: Search) -> Searched:
    low = search.settings.low
    high = search.settings.high
    temperatures = np.geomspace(low, high, CURVE_POINTS)
    # One model after the other, so that the logits of one are released before those of the next are read.
    fits = {}
    for model in search.models:
        fits[model.name] = _likelihood_fit(*model.read_parts(), temperatures, low=low, high=high)

    chosen = {name: fit["t_star"] for name, fit in fits.items()}
    lowest = min(chosen.values())
    highest = max(chosen.values())
    entry = {
        "search": "minimisation",
        "t_star_by_model": chosen,
        "interval": [lowest, highest],
        # The bounded search stops within its tolerance of a bound.
        "edge": lowest < low * 1.001 or highest > high / 1.001,
        "best": float(np.mean([fit["best"] for fit in fits.values()])),
        "at_one": float(np.mean([fit["at_one"] for fit in fits.values()])),
        "class_calibration_error": {name: fit["class_calibration_error"] for name, fit in fits.items()},
    }
    return Searched(entry, temperatures, np.mean([fit["curve"] for fit in fits.values()], axis=0))


def _likelihood_fit(
    held_out: Part, report: Part, temperatures: NDArray[np.float64], *, low: float, high: float
) -> dict[str, Any]:
    t_star = attack_free.likelihood_temperature(*held_out, low=low, high=high)
    return {
        "t_star": t_star,
        "curve": [-attack_free.log_loss(*held_out, t) for t in temperatures],
        "best": -attack_free.log_loss(*report, t_star),
        "at_one": -attack_free.log_loss(*report, 1.0),
        "class_calibration_error": {
            "before": attack_free.class_calibration_error(*report, temperature=1.0).tolist(),
            "after": attack_free.class_calibration_error(*report, temperature=t_star).tolist(),
        },
    }


def _cross_model_accuracy(search):
    return rank_objectives.cross_model_accuracy(search.curves, search.class_accuracy, search.settings)


def _attack_distance(search):
    distances = np.array([model.attack_distance for model in search.models])
    return rank_objectives.attack_distance(search.curves, distances, search.settings)


def _within_model_class_accuracy(search):
    return rank_objectives.within_model_class_accuracy(search.curves, search.class_accuracy, search.settings)


def _ranking_stability(search):
    return rank_objectives.ranking_stability(search.curves, search.settings, delta=search.window)


def _ranking_stability_endpoints(search):
    return rank_objectives.ranking_stability(search.curves, search.settings, delta=search.window, endpoints_only=True)


OBJECTIVES: dict[str, Callable[[Search], Searched]] = {
    "cross_model_accuracy": partial(_search_piecewise, _cross_model_accuracy),
    "attack_distance": partial(_search_piecewise, _attack_distance),
    "within_model_class_accuracy": partial(_search_piecewise, _within_model_class_accuracy),
    "ranking_stability": partial(_search_piecewise, _ranking_stability),
    "ranking_stability_endpoints": partial(_search_piecewise, _ranking_stability_endpoints),
    "likelihood": _search_likelihood,
}
"""Objectives by name; higher is better. `likelihood` chooses a separate temperature for each model by minus the
log-loss, and its `best` and `at_one` are measured on samples that did not choose the temperature."""
