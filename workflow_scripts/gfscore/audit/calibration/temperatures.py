"""Calibration of an audit: the temperature of each objective, with rank correlations before and after."""

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.calibration import likelihood, rank_objectives
from gfscore.audit.calibration.evidence import ModelEvidence, Part, agreement_at, baseline_of, models_digest
from gfscore.audit.calibration.piecewise_objectives import AcrossModels, MeanOverModels, permutation_p_value
from gfscore.audit.calibration.temperature_search import (
    EQUAL,
    Stretches,
    UndefinedObjectiveError,
    optimum,
    two_phase_grid,
)
from gfscore.audit.calibration_results import (
    Calibration,
    ClassCalibrationErrors,
    GridOptimum,
    SearchResult,
)
from gfscore.audit.settings import CalibrationSplit, TemperatureGrid
from gfscore.statistics.curves import ScoreCurves
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import Column, Table

CALIBRATION = Table(
    name="calibration",
    version=2,
    columns=(
        Column("measure", pa.string(), "the great variant that is calibrated"),
        Column("objective", pa.string(), "name of the objective"),
        Column("temperature", pa.float64(), "end of a stretch of constant value, or a searched temperature"),
        Column("value", pa.float64(), "objective; null where undefined"),
    ),
)
"""Curves of the objectives over the temperature."""

CURVE_POINTS = 25
"""Number of temperatures at which the held-out log-loss is recorded, evenly spaced in log T."""

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]
"""Searched temperatures (P,) and the objective there (P,)."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Search of the temperature of one objective.

    Parameters
    ----------
    models : list of M ModelEvidence
    measure : str
        Measure whose temperature is searched.
    settings : TemperatureGrid
        Range of temperatures.
    window : float
        Half-width delta of Eq. 9.
    permutations : int
        Random orders of the accuracies, where there are too many to enumerate.
    seed, stream : int
        Seed and number of the random stream of these orders.
    """

    models: list[ModelEvidence]
    measure: str
    settings: TemperatureGrid
    window: float
    permutations: int
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
    measure: str,
    settings: TemperatureGrid,
    stability_window: float,
    permutations: int,
    seed: int = 0,
    split: CalibrationSplit | None = None,
) -> tuple[dict[str, Calibration], pd.DataFrame]:
    """Search the temperature of each objective.

    Parameters
    ----------
    models : list of M ModelEvidence
    objectives : iterable of str
        Names of OBJECTIVES of gfscore.audit.settings.
    measure : str
        Measure whose temperature is searched.
    settings : TemperatureGrid
        Range and grid of temperatures.
    stability_window : float
        Half-width delta of Eq. 9.
    permutations : int
        Random orders of the accuracies, where there are too many to enumerate.
    seed : int
        Seed of these orders.
    split : CalibrationSplit or None
        Split of the samples, which is recorded.

    Returns
    -------
    calibrations : dict
        By objective; an objective without an optimum (all accuracies equal) says why.
    curves : DataFrame
        Table CALIBRATION.
    """
    calibrations = {}
    curves = []
    for name in objectives:
        search = Search(
            models=models,
            measure=measure,
            settings=settings,
            window=stability_window,
            permutations=permutations,
            seed=seed,
            stream=crc32(name.encode()),
        )
        if name == "likelihood":
            result, (temperatures, values) = _search_likelihood(search)
        else:
            result, (temperatures, values) = _search_piecewise(name, search)
        chosen = {model.name: result.temperature_of(model.name) for model in models}
        calibrations[name] = Calibration(
            **dict(result),
            baseline=baseline_of(models),
            agreement=agreement_at(models, chosen),
            split=split,
            models_digest=models_digest(models),
        )
        if len(temperatures):
            curve = {"measure": measure, "objective": name, "temperature": temperatures, "value": values}
            curves.append(pd.DataFrame(curve))
    return calibrations, stacked(CALIBRATION, curves)


def _search_piecewise(name: str, search: Search) -> tuple[SearchResult, Curve]:
    try:
        objective = _rank_objective(name, search)
        values = objective.values()
        best = optimum(objective.stretches, values)
    except UndefinedObjectiveError as error:
        return SearchResult(measure=search.measure, undefined=str(error)), (np.empty(0), np.empty(0))
    stretches = objective.stretches
    # The paper's two-phase grid for the same objective: its first best temperature.
    grid, grid_values = two_phase_grid(lambda t: values[stretches.holding(t)], search.settings)
    best_of_grid = optimum(Stretches.at(grid), grid_values)
    rng = np.random.default_rng([search.seed, search.stream])
    result = SearchResult(
        measure=search.measure,
        search="exact" if objective.exact else "grid",
        t_star=best.t_star,
        interval=best.interval,
        stretches=best.stretches,
        edge=best.edge,
        best=best.best,
        at_one=float(values[stretches.holding(np.array([1.0]))[0]]),
        paper_grid=GridOptimum(t_star=best_of_grid.stretches[0][0], best=best_of_grid.best, edge=best_of_grid.edge),
        permutation=permutation_p_value(objective, draws=search.permutations, rng=rng),
    )

    # The curve as points: all temperatures of a grid, or both ends of all runs of stretches with equal values.
    if (stretches.first == stretches.last).all():
        return result, (stretches.first, values)
    changes = ~np.isclose(np.diff(values), 0, rtol=0, atol=EQUAL)
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    ends = np.append(starts[1:], len(values)) - 1
    temperatures = np.stack([stretches.first[starts], stretches.last[ends]], axis=1)
    return result, (temperatures.ravel(), np.repeat(values[starts], 2))


def _rank_objective(name: str, search: Search) -> AcrossModels | MeanOverModels:
    curves = search.curves
    settings = search.settings
    match name:
        case "cross_model_accuracy":
            return rank_objectives.cross_model_accuracy(curves, search.class_accuracy, settings)
        case "attack_distance":
            distances = np.array([model.attack_distance for model in search.models])
            return rank_objectives.attack_distance(curves, distances, settings)
        case "within_model_class_accuracy":
            return rank_objectives.within_model_class_accuracy(curves, search.class_accuracy, settings)
        case "ranking_stability":
            return rank_objectives.ranking_stability(curves, settings, delta=search.window)
        case "ranking_stability_endpoints":
            return rank_objectives.ranking_stability(curves, settings, delta=search.window, endpoints_only=True)
    raise KeyError(name)


@dataclass(frozen=True)
class _LikelihoodFit:
    # Temperature of one model, the held-out log-loss over the temperatures, and what the other samples report there
    # and at T = 1.
    t_star: float
    curve: list[float]
    best: float
    at_one: float
    class_calibration_error: ClassCalibrationErrors


def _search_likelihood(search: Search) -> tuple[SearchResult, Curve]:
    # A separate temperature for each model, by minus the log-loss. `best` and `at_one` are measured on samples that did
    # not choose the temperature.
    low = search.settings.low
    high = search.settings.high
    temperatures = np.geomspace(low, high, CURVE_POINTS)
    # One model after the other, so that the logits of one are released before those of the next are read.
    fits = {}
    for model in search.models:
        fits[model.name] = _likelihood_fit(*model.read_parts(), temperatures, low=low, high=high)

    chosen = {name: fit.t_star for name, fit in fits.items()}
    lowest = min(chosen.values())
    highest = max(chosen.values())
    result = SearchResult(
        measure=search.measure,
        search="minimisation",
        t_star_by_model=chosen,
        interval=(lowest, highest),
        # The bounded search stops within its tolerance of a bound.
        edge=lowest < low * 1.001 or highest > high / 1.001,
        best=float(np.mean([fit.best for fit in fits.values()])),
        at_one=float(np.mean([fit.at_one for fit in fits.values()])),
        class_calibration_error={name: fit.class_calibration_error for name, fit in fits.items()},
    )
    return result, (temperatures, np.mean([fit.curve for fit in fits.values()], axis=0))


def _likelihood_fit(
    held_out: Part, report: Part, temperatures: NDArray[np.float64], *, low: float, high: float
) -> _LikelihoodFit:
    t_star = likelihood.likelihood_temperature(*held_out, low=low, high=high)
    return _LikelihoodFit(
        t_star=t_star,
        curve=[-likelihood.log_loss(*held_out, t) for t in temperatures],
        best=-likelihood.log_loss(*report, t_star),
        at_one=-likelihood.log_loss(*report, 1.0),
        class_calibration_error=ClassCalibrationErrors(
            before=likelihood.class_calibration_error(*report, temperature=1.0).tolist(),
            after=likelihood.class_calibration_error(*report, temperature=t_star).tolist(),
        ),
    )
