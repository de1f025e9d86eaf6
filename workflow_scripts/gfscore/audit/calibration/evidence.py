"""Evidence on models for calibration, and rank correlations of their scores."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free
from gfscore.audit.values import AuditValues, row_generator
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName, label_of
from gfscore.statistics.classes import choosing_samples, class_means, split_samples
from gfscore.statistics.curves import ScoreCurves, sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.statistics.ranking import spearman_or_none
from gfscore.statistics.survival import mean_distance

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


# ---- Evidence on the models of an audit for calibration, from their values and logits.


def evidence_of_models(
    inputs: AuditValues,
    curves: Mapping[str, ScoreCurves],
    accuracies: Mapping[ModelName, Mapping[str, Any]],
    *,
    distances: str | None,
    seed: int,
    split: Mapping[str, Any] | None,
) -> list[ModelEvidence]:
    """ModelEvidence of the models of an audit.

    Takes AuditValues, the score curves by model label, the `accuracies` of each model (from accuracies_of), and the
    name of the l2 measure of kind minimal that gives `distances`, or None. Without a `split` all samples both choose
    the common temperature and report the scores, and `seed` determines the half that is held
    out for the likelihood objective. A split (share and seed) divides the samples, equally in all models, into those
    that choose every temperature and those that report. Raises InputError if no choosing sample has a distance.
    """
    how = {"distances": distances, "seed": seed, "split": split}
    return [
        _of_model(inputs, model, curves[model.label], accuracies[model]["robust_accuracy"], **how)
        for model in inputs.included
    ]


def _of_model(inputs, model, curves, robust_accuracy, *, distances, seed, split):
    found = inputs.logits_of(model)
    sample_id, labels, logits = found.sample_id, found.labels, found.logits
    classes, report_curves = logits.shape[1], curves
    correct = predictions(logits, labels) == labels
    chooses = reports = np.ones(len(labels), dtype=bool)
    held_out = split_samples(sample_id, labels, share=0.5, rng=row_generator(seed, model.columns()))
    if split is not None:
        low, high = curves.temperatures[[0, -1]]
        activation = inputs.subject.activation
        swept = {"activation": activation, "low": low, "high": high}
        held_out = chooses = choosing_samples(sample_id, labels, split)
        reports = ~chooses
        curves, report_curves = (
            sweep_class_scores(logits[part], labels[part], classes, **swept) for part in (chooses, reports)
        )
    attack_distance, report_distance = _mean_distances(
        inputs, model, distances, parts=(sample_id[chooses], sample_id[reports])
    )
    return ModelEvidence(
        name=model.label,
        curves=curves,
        class_accuracy=class_means(correct[chooses], labels[chooses], classes),
        report_curves=report_curves,
        clean_accuracy=float(np.mean(correct[reports])),
        report_distance=report_distance,
        robust_accuracy=robust_accuracy,
        attack_distance=attack_distance,
        checkpoint=found.identity["checkpoint_sha256"],
        dataset_digest=found.identity["dataset_digest"],
        read_parts=partial(_parts, inputs, model, held_out),
    )


def _parts(inputs, model, held_out):
    evidence = inputs.logits_of(model)
    return tuple((evidence.logits[part], evidence.labels[part]) for part in (held_out, ~held_out))


def _mean_distances(inputs, model, measure, *, parts):
    # Mean distance over the choosing and over the reporting samples, whose identifiers are `parts`.
    if measure is None:
        return float("nan"), float("nan")
    rows = inputs.table(model, measure)
    of_parts = [rows.loc[rows["sample_id"].isin(part), "value"].to_numpy() for part in parts]
    if not len(of_parts[0]):
        raise InputError(
            f"{inputs.path(model, measure)}: none of its {len(rows)} samples is among those that choose the "
            "temperature; use a larger `subset` for the measure, or set `split: null` in the audit's calibration"
        )
    return [mean_distance(values) for values in of_parts]


def accuracies_of(
    models: Iterable[ModelName],
    published: Iterable[Mapping[str, Any]],
    paths_to_manifests: Iterable[Path | str],
) -> dict[ModelName, dict[str, Any]]:
    """Published and robust accuracies of each model, as columns of model_summary.

    `published` are their published accuracies (fractions or None). The
    robust accuracy is that in the checkpoint's manifest, else the published one, else NaN; robust_accuracy_source
    states its origin.
    """
    manifests = {label_of(manifest): manifest for manifest in map(read_json, paths_to_manifests)}
    accuracies = {}
    for model, known in zip(models, published, strict=True):
        manifest = manifests.get(model.label, {})
        value, source = manifest.get("robust_accuracy"), manifest.get("robust_accuracy_attack")
        if value is None and known["published_robust_accuracy"] is not None:
            value, source = known["published_robust_accuracy"], "published"
        robust = {"robust_accuracy": float("nan") if value is None else value, "robust_accuracy_source": source}
        accuracies[model] = {**known, **robust}
    return accuracies
