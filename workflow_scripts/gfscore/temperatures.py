"""The temperatures of one audit: every named objective, searched, with its rank agreements before and after."""

import hashlib
import json
from dataclasses import dataclass

import numpy as np

from gfscore import calibration
from gfscore.curves import ScoreCurves
from gfscore.errors import InputError
from gfscore.ranking import spearman_or_none

CURVE_POINTS = 25
"""Temperatures at which the held-out log-loss is recorded, evenly spaced in log T."""


@dataclass(frozen=True)
class ModelEvidence:
    """What calibration knows about one model.

    `curves` its class scores over T; `class_accuracy` (K,) clean accuracy per class, NaN without samples;
    `clean_accuracy` and `robust_accuracy` fractions, the latter NaN when unknown; `checkpoint` and `dataset_digest`
    identify what was measured; `held_out` and `report` are (logits, labels) of two disjoint halves of the samples.
    """

    name: str
    curves: ScoreCurves
    class_accuracy: np.ndarray
    clean_accuracy: float
    robust_accuracy: float
    checkpoint: str
    dataset_digest: str
    held_out: tuple
    report: tuple


def calibrate(models, objectives, *, settings, stability_window):
    """Search the temperature of each named objective.

    Takes ModelEvidence of M models, names of OBJECTIVES, SearchSettings and delta of Eq. 9. Returns
    `(results, rows)`: per objective a mapping as design 6 describes calibration.json, and the searched curves as rows
    (objective, temperature, value). An objective that has no optimum (all accuracies equal) says so under `undefined`.
    """
    results, rows = {}, []
    for name in objectives:
        result, temperatures, values = OBJECTIVES[name](models, settings, stability_window)
        chosen = result["t_star_by_model"] or {model.name: result["t_star"] for model in models}
        results[name] = result | _agreements(models, chosen) | {"models_digest": models_digest(models)}
        rows += [
            {"objective": name, "temperature": float(t), "value": float(v)}
            for t, v in zip(temperatures, values, strict=True)
        ]
    return results, rows


def models_digest(models):
    """SHA-256 over the models and data a temperature was chosen on; scores with different digests do not compare."""
    described = sorted([model.name, model.checkpoint, model.dataset_digest] for model in models)
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def _shared(objective_of):
    def run(models, settings, window):
        try:
            found = calibration.search_temperature(objective_of(models, settings, window), settings)
        except InputError as error:
            return _result(undefined=str(error)), [], []
        result = _result(
            t_star=found.t_star,
            interval=list(found.interval),
            stretches=[list(stretch) for stretch in found.stretches],
            edge=bool(found.edge),
            best=found.best,
            at_one=found.at_one,
        )
        return result, found.temperatures, found.objective

    return run


def _likelihood(models, settings, _window):
    by_model = {
        model.name: calibration.likelihood_temperature(*model.held_out, low=settings.low, high=settings.high)
        for model in models
    }
    temperatures = np.geomspace(settings.low, settings.high, CURVE_POINTS)
    loss = [np.mean([calibration.log_loss(*model.held_out, t) for model in models]) for t in temperatures]
    chosen = list(by_model.values())
    result = _result(
        t_star_by_model=by_model,
        interval=[min(chosen), max(chosen)],
        # The bounded search stops within its tolerance of a bound that it runs into.
        edge=min(chosen) < settings.low * 1.001 or max(chosen) > settings.high / 1.001,
        best=float(np.mean([-calibration.log_loss(*model.report, by_model[model.name]) for model in models])),
        at_one=float(np.mean([-calibration.log_loss(*model.report, 1.0) for model in models])),
    )
    result["class_calibration_error"] = {
        model.name: {
            "before": _class_errors(model, 1.0),
            "after": _class_errors(model, by_model[model.name]),
        }
        for model in models
    }
    return result, temperatures, -np.array(loss)


def _class_errors(model, temperature):
    return calibration.class_calibration_error(*model.report, temperature=temperature).tolist()


def _result(
    *,
    t_star=None,
    t_star_by_model=None,
    interval=None,
    stretches=None,
    edge=None,
    best=None,
    at_one=None,
    undefined=None,
):
    return {
        "t_star": t_star,
        "t_star_by_model": t_star_by_model,
        "interval": interval,
        "stretches": stretches,
        "edge": edge,
        "best": best,
        "at_one": at_one,
        "undefined": undefined,
        "class_calibration_error": None,
    }


def _agreements(models, chosen):
    clean = np.array([model.clean_accuracy for model in models])
    robust = np.array([model.robust_accuracy for model in models])
    before = _aggregates(models, {model.name: 1.0 for model in models})
    after = _aggregates(models, chosen) if all(chosen.values()) else np.full(len(models), np.nan)
    return {
        "baseline": {"clean accuracy alone vs robust accuracy": spearman_or_none(clean, robust)},
        "agreement": {
            "clean accuracy": {
                "before": spearman_or_none(before, clean),
                "after": spearman_or_none(after, clean),
            },
            "robust accuracy": {
                "before": spearman_or_none(before, robust),
                "after": spearman_or_none(after, robust),
            },
        },
    }


def _aggregates(models, temperatures):
    result = []
    for model in models:
        class_scores = model.curves(np.array([temperatures[model.name]]))[0]
        present = model.curves.n > 0
        result.append(np.average(class_scores[present], weights=model.curves.n[present]))
    return np.array(result)


def _evidence(models):
    return [model.curves for model in models], np.array([model.class_accuracy for model in models])


def _stability(models, settings, window, *, endpoints_only):
    return calibration.ranking_stability(
        [model.curves for model in models],
        delta=window,
        low=settings.low,
        high=settings.high,
        endpoints_only=endpoints_only,
    )


OBJECTIVES = {
    "cross_model_accuracy": _shared(lambda models, *_: calibration.cross_model_accuracy(*_evidence(models))),
    "within_model_class_accuracy": _shared(
        lambda models, *_: calibration.within_model_class_accuracy(*_evidence(models))
    ),
    "ranking_stability": _shared(lambda *args: _stability(*args, endpoints_only=False)),
    "ranking_stability_endpoints": _shared(lambda *args: _stability(*args, endpoints_only=True)),
    "likelihood": _likelihood,
}
"""Objectives by name. `likelihood` gives each model its own temperature; its value is minus the log-loss, so that
higher is better everywhere. `best` and `at_one` of it are measured on samples that the temperature did not see."""
