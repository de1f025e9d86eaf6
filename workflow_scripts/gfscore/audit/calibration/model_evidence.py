"""Evidence on models for calibration, and rank correlations of their scores."""

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
"""Quantities that aggregate scores are correlated with; keys of `agreement` in calibration.json."""


def alone(against: str) -> str:
    """Key of `baseline` in calibration.json: rank correlation of clean accuracy with one of these quantities."""
    return f"clean accuracy alone vs {against}"


@dataclass(frozen=True)
class ModelEvidence:
    """Evidence on one model for calibration.

    On the samples that choose T: `curves`, class scores over T; `class_accuracy` (K,), clean accuracy per class, NaN
    without samples; `attack_distance`, the mean distance to adversarial examples (0 for misclassified samples). On the
    samples that report, which are the same unless the audit splits them: `report_curves`, `clean_accuracy` and the mean
    distance `report_distance`. `robust_accuracy` is a fraction; it and the distances are NaN if unknown. `checkpoint`
    and `dataset_digest` identify model and data; `read_parts` reads two disjoint parts of the samples, each (logits,
    labels), which choose a separate T of the model and report it, so that not all logits are in memory.
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
    """SHA-256 of the models and data that a temperature was chosen on; other digests mean incomparable scores."""
    described = sorted([model.name, model.checkpoint, model.dataset_digest] for model in models)
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def agreement_at(models: Sequence[ModelEvidence], chosen: Mapping[str, float | None]) -> dict[str, Any]:
    """Rank correlations of the aggregates at T = 1 and at the chosen temperatures, and of clean accuracy.

    Takes M ModelEvidence and the chosen temperatures by name, None if there is none. Returns `agreement` and `baseline`
    of calibration.json, with None for an undefined correlation.
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
    """Spearman correlation of aggregates (M,) `before` and `after` calibration with clean and robust accuracy, by name.

    Also with attack distances if every model has one.
    """
    return {
        name: {"before": spearman_or_none(before, values), "after": spearman_or_none(after, values)}
        for name, values in _against(models).items()
    }


def _against(models):
    # Quantities (M,) by name that aggregates are correlated with; attack distances only if every model has one.
    quantities = {
        CLEAN: np.array([model.clean_accuracy for model in models]),
        ROBUST: np.array([model.robust_accuracy for model in models]),
    }
    distances = np.array([model.report_distance for model in models])
    return quantities if np.isnan(distances).any() else quantities | {DISTANCE: distances}
