"""Calibration of an audit: the temperature of each objective, with rank correlations before and after."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free, piecewise_objectives, rank_objectives
from gfscore.audit.calibration.evidence import ModelEvidence, Part, agreement, agreement_at, models_digest
from gfscore.audit.calibration.temperature_search import (
    EQUAL,
    SearchSettings,
    Stretches,
    UndefinedObjectiveError,
    optimum,
    two_phase_grid,
)
from gfscore.statistics.curves import ScoreCurves

Searched = tuple[dict[str, Any], Sequence[float] | NDArray[np.float64], Sequence[float] | NDArray[np.float64]]
"""Entry of calibration.json, and temperatures and values of the searched curve."""

CURVE_POINTS = 25
"""Number of temperatures at which the held-out log-loss is recorded, evenly spaced in log T."""


def calibrate(
    models: list[ModelEvidence],
    objectives: Iterable[str],
    *,
    settings: SearchSettings,
    stability_window: float,
    resampling: Mapping[str, Any],
    split: Mapping[str, Any] | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Search the temperature of each objective: `(results, rows)`.

    Takes ModelEvidence of M models, names of OBJECTIVES, SearchSettings, delta of Eq. 9, what config says of the
    `resampling` with a `seed`, and the split of the samples (share and seed, or None), which is recorded. `results` are
    the entries of calibration.json by objective (docs/reading-an-audit.md), with the reason under `undefined` if an
    objective has no optimum (all accuracies equal); `rows` are the searched curves (objective, temperature, value).
    """
    results, rows = {}, []
    for name in objectives:
        search = Search(models, settings, stability_window, resampling, crc32(name.encode()))
        result, temperatures, values = OBJECTIVES[name](search)
        chosen = result["t_star_by_model"] or {model.name: result["t_star"] for model in models}
        shared = {"split": split, "models_digest": models_digest(models)}
        results[name] = result | agreement_at(models, chosen) | shared
        rows += [
            {"objective": name, "temperature": float(t), "value": float(v)}
            for t, v in zip(temperatures, values, strict=True)
        ]
    return results, rows


@dataclass(frozen=True)
class Search:
    """Arguments of the search of one objective, as calibrate takes them, and the number of its random stream."""

    models: list[ModelEvidence]
    settings: SearchSettings
    window: float
    resampling: Mapping[str, Any]
    stream: int

    @property
    def evidence(self) -> tuple[list[ScoreCurves], NDArray[np.float64]]:
        """Curves of the models, and their class accuracies (M, K)."""
        return [model.curves for model in self.models], np.array([model.class_accuracy for model in self.models])


def _searched(objective_of: Callable[[Search], Any], search: Search) -> Searched:
    try:
        objective = objective_of(search)
        values = objective.values(np.ones((1, len(search.models))))[0]
        best = optimum(objective.stretches, values)
    except UndefinedObjectiveError as error:
        return _result(undefined=str(error)), [], []
    result = _result(
        search="exact" if objective.exact else "grid",
        t_star=best.t_star,
        interval=list(best.interval),
        stretches=[list(stretch) for stretch in best.stretches],
        edge=best.edge,
        best=best.best,
        at_one=float(values[objective.stretches.holding(np.array([1.0]))[0]]),
        paper_grid=_paper_grid(objective.stretches, values, search.settings),
        **_uncertainty(objective, search),
    )
    return result, *_curve_points(objective.stretches, values)


def _paper_grid(stretches, values, settings):
    # Result of the paper's two-phase grid for the same objective: its first best temperature.
    temperatures, on_grid = two_phase_grid(lambda t: values[stretches.holding(t)], settings)
    best = optimum(Stretches.at(temperatures), on_grid)
    return {"t_star": best.stretches[0][0], "best": best.best, "edge": best.edge}


def _uncertainty(objective, search):
    resampling, models = search.resampling, search.models
    rng = np.random.default_rng([resampling["seed"], search.stream])
    drawn = {"draws": resampling["bootstrap"], "confidence": resampling["confidence"]}
    return {
        "leave_one_out": _without_each(objective, models),
        "bootstrap": piecewise_objectives.bootstrap(objective, models=len(models), **drawn, rng=rng),
        "permutation": piecewise_objectives.permutation_p_value(objective, draws=resampling["permutations"], rng=rng),
    }


def _without_each(objective, models):
    # Temperature chosen without each model, and rank correlations of the other models there.
    optima = piecewise_objectives.leave_one_out(objective, models=len(models))
    temperatures = np.array([1.0, *(best.t_star if best else 1.0 for best in optima)])
    scores = attack_free.aggregates([model.report_curves for model in models])(temperatures)
    result = {}
    for index, (model, best) in enumerate(zip(models, optima, strict=True)):
        before, after = (np.delete(scores[row], index) for row in (0, index + 1))
        others = models[:index] + models[index + 1 :]
        result[model.name] = best and {
            "t_star": best.t_star,
            "best": best.best,
            "agreement": agreement(others, before, after),
        }
    return result


def _curve_points(stretches, values):
    # The curve as points: both ends of all runs of stretches with equal values, or all temperatures of a grid.
    if (stretches.first == stretches.last).all():
        return stretches.first, values
    new = np.flatnonzero(np.concatenate([[True], ~np.isclose(np.diff(values), 0, rtol=0, atol=EQUAL)]))
    ends = np.append(new[1:], len(values)) - 1
    temperatures = np.stack([stretches.first[new], stretches.last[ends]], axis=1)
    return temperatures.ravel(), np.repeat(values[new], 2)


def _likelihood(search: Search) -> Searched:
    settings = search.settings
    temperatures = np.geomspace(settings.low, settings.high, CURVE_POINTS)
    by_model = {model.name: _likelihood_of(*model.read_parts(), temperatures, settings) for model in search.models}
    chosen = {name: of_model["t_star"] for name, of_model in by_model.items()}
    lowest, highest = min(chosen.values()), max(chosen.values())

    def mean_of(name: str) -> NDArray[np.float64]:
        return np.mean([of_model[name] for of_model in by_model.values()], axis=0)

    result = _result(
        search="minimisation",
        t_star_by_model=chosen,
        interval=[lowest, highest],
        # The bounded search stops within its tolerance of a bound.
        edge=lowest < settings.low * 1.001 or highest > settings.high / 1.001,
        best=float(mean_of("best")),
        at_one=float(mean_of("at_one")),
        class_calibration_error={name: of_model["class_calibration_error"] for name, of_model in by_model.items()},
    )
    return result, temperatures, mean_of("curve")


def _likelihood_of(
    held_out: Part, report: Part, temperatures: NDArray[np.float64], settings: SearchSettings
) -> dict[str, Any]:
    # Results of one model, whose logits are released before those of the next are read.
    t_star = attack_free.likelihood_temperature(*held_out, low=settings.low, high=settings.high)
    return {
        "t_star": t_star,
        "curve": [-attack_free.log_loss(*held_out, t) for t in temperatures],
        "best": -attack_free.log_loss(*report, t_star),
        "at_one": -attack_free.log_loss(*report, 1.0),
        "class_calibration_error": {
            when: attack_free.class_calibration_error(*report, temperature=t).tolist()
            for when, t in (("before", 1.0), ("after", t_star))
        },
    }


_FIELDS = (
    *("search", "t_star", "t_star_by_model", "interval", "stretches", "edge", "best", "at_one", "undefined"),
    *("paper_grid", "leave_one_out", "bootstrap", "permutation", "class_calibration_error"),
)


def _result(**known):
    return {name: known.get(name) for name in _FIELDS}


def _stability(search, *, endpoints_only):
    return rank_objectives.ranking_stability(
        search.evidence[0], search.settings, delta=search.window, endpoints_only=endpoints_only
    )


def _attack_distance(search):
    distances = np.array([model.attack_distance for model in search.models])
    return rank_objectives.attack_distance(search.evidence[0], distances, search.settings)


_PIECEWISE: dict[str, Callable[[Search], Any]] = {
    "cross_model_accuracy": lambda search: rank_objectives.cross_model_accuracy(*search.evidence, search.settings),
    "attack_distance": _attack_distance,
    "within_model_class_accuracy": lambda search: rank_objectives.within_model_class_accuracy(
        *search.evidence, search.settings
    ),
    "ranking_stability": partial(_stability, endpoints_only=False),
    "ranking_stability_endpoints": partial(_stability, endpoints_only=True),
}

OBJECTIVES: dict[str, Callable[[Search], Searched]] = {
    **{name: partial(_searched, objective) for name, objective in _PIECEWISE.items()},
    "likelihood": _likelihood,
}
"""Objectives by name; higher is better. `likelihood` chooses a separate temperature for each model by minus the
log-loss, and its `best` and `at_one` are measured on samples that did not choose the temperature."""
