"""What calibration knows about the models of an audit, and how their scores rank them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free
from gfscore.statistics.curves import ScoreCurves
from gfscore.statistics.ranking import spearman_or_none

Part = tuple[NDArray[np.floating], NDArray[np.integer]]
"""Logits (n, K) and labels (n,) of some samples."""

CLEAN, ROBUST, DISTANCE = "clean accuracy", "robust accuracy", "attack distance"
"""Numbers that the models' aggregate scores are compared with; keys of `agreement` in calibration.json."""


def alone(against: str) -> str:
    """Key of `baseline` in calibration.json: rank agreement of clean accuracy alone with one of the numbers above."""
    return f"clean accuracy alone vs {against}"


@dataclass(frozen=True)
class ModelEvidence:
    """What calibration knows about one model.

    On the samples that choose T: `curves`, its class scores over T; `class_accuracy` (K,), its clean accuracy per
    class, NaN without samples; `attack_distance`, the mean distance to the adversarial examples found (misclassified
    samples at 0). On the samples that report what was chosen, which are the same ones unless the audit splits them:
    `report_curves`, `clean_accuracy` and the mean distance `report_distance`. `robust_accuracy` is a fraction; it and
    the distances are NaN when unknown. `checkpoint` and `dataset_digest` identify what was measured; `read_parts` reads
    two disjoint parts of the samples, each (logits, labels), which choose a model's own T and report it: the logits of
    all models together need not fit in memory.
    """

    name: str
    curves: ScoreCurves
    class_accuracy: NDArray[np.float64]
    attack_distance: float
    report_curves: ScoreCurves
    clean_accuracy: float
    report_distance: float
    robust_accuracy: float
    checkpoint: str
    dataset_digest: str
    read_parts: Callable[[], tuple[Part, Part]]


def models_digest(models: Sequence[ModelEvidence]) -> str:
    """SHA-256 over the models and data a temperature was chosen on; scores with different digests do not compare."""
    described = sorted([model.name, model.checkpoint, model.dataset_digest] for model in models)
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def agreement_at(models: Sequence[ModelEvidence], chosen: Mapping[str, float | None]) -> dict[str, Any]:
    """Rank agreement of the models' aggregates at T = 1 and at a temperature of each, and that of clean accuracy alone.

    Takes M ModelEvidence and their temperatures by name, None where there is none. Returns `agreement` and `baseline`
    as calibration.json holds them; None where a ranking has no order.
    """
    temperatures = np.array([chosen[model.name] or np.nan for model in models])
    scores = attack_free.aggregates([model.report_curves for model in models])
    searched = not np.isnan(temperatures).any()
    after = scores(temperatures).diagonal() if searched else np.full(len(models), np.nan)
    against = _against(models)
    clean = against.pop(CLEAN)
    return {
        "baseline": {alone(name): spearman_or_none(clean, values) for name, values in against.items()},
        "agreement": agreement(models, scores(np.ones(1))[0], after),
    }


def agreement(
    models: Sequence[ModelEvidence], before: NDArray[np.float64], after: NDArray[np.float64]
) -> dict[str, dict[str, float | None]]:
    """Spearman of aggregates (M,) `before` and `after` calibration with clean and with robust accuracy, by name.

    With attack distances too, where every model has one.
    """
    return {
        name: {"before": spearman_or_none(before, values), "after": spearman_or_none(after, values)}
        for name, values in _against(models).items()
    }


def attack_distances(models: Sequence[ModelEvidence]) -> NDArray[np.float64]:
    """Mean attack distance of each model on the samples that choose T, (M,), NaN where it was not measured."""
    return np.array([model.attack_distance for model in models])


def _against(models):
    # What aggregates are held against, (M,) by name; attack distances only where every model has one.
    found = {
        CLEAN: np.array([model.clean_accuracy for model in models]),
        ROBUST: np.array([model.robust_accuracy for model in models]),
    }
    distances = np.array([model.report_distance for model in models])
    return found if np.isnan(distances).any() else found | {DISTANCE: distances}
