"""What temperatures are chosen by: scores over the temperature, accuracies and distances of each model."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.calibration import attack_free
from gfscore.audit.calibration_results import Correlations
from gfscore.audit.samples import ModelLogits
from gfscore.audit.settings import CalibrationSplit
from gfscore.audit.values import AuditValues, row_generator
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.core.identity import ModelName, label_of
from gfscore.statistics.classes import choosing_samples, class_means, split_samples
from gfscore.statistics.curves import ScoreCurves, sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.statistics.ranking import spearman_or_none
from gfscore.statistics.survival import mean_distance
from gfscore.tables.parquet_tables import read_table
from gfscore.tables.table import MEASURED, Column, Table

SWEEPS = Table(
    name="sweeps",
    version=1,
    columns=(
        *MEASURED,
        Column("temperature", pa.float64(), "Chebyshev point in log T"),
        Column("class_index", pa.int32(), "class, 0..K-1"),
        Column("n", pa.int64(), "samples of the class"),
        Column("value", pa.float64(), "class score at this temperature; null without samples"),
        Column("accuracy", pa.float64(), "clean accuracy of the class; null without samples"),
    ),
)
"""Class scores of all models over the temperature range."""

Part = tuple[NDArray[np.floating], NDArray[np.integer]]
"""Logits (n, K) and labels (n,) of some samples."""

CLEAN, ROBUST, DISTANCE = "clean accuracy", "robust accuracy", "attack distance"
"""Quantities that aggregate scores are correlated with; keys of `agreement` in calibration.json."""


def alone(against: str) -> str:
    """Key of `baseline` in calibration.json: rank correlation of clean accuracy with one of these quantities."""
    return f"clean accuracy alone vs {against}"


def sweep_frame(
    evidence: ModelLogits, *, model: ModelName, measure: str, activation: str, low: float, high: float
) -> pd.DataFrame:
    """Rows of the table sweeps of one model.

    Parameters
    ----------
    evidence : ModelLogits
    model, measure : ModelName, str
        What the rows are of.
    activation : str
        Activation of the measure.
    low, high : float
        Ends of the range of temperatures.
    """
    logits = evidence.logits
    labels = evidence.labels
    classes = logits.shape[1]
    curves = sweep_class_scores(logits, labels, classes, activation=activation, low=low, high=high)
    points = len(curves.temperatures)
    accuracy = class_means(predictions(logits, labels) == labels, labels, classes)
    return pd.DataFrame(
        {
            **model.columns(),
            "measure": measure,
            "temperature": np.repeat(curves.temperatures, classes),
            "class_index": np.tile(np.arange(classes, dtype=np.int32), points),
            "n": np.tile(curves.n, points),
            "value": curves.values.ravel(),
            "accuracy": np.tile(accuracy, points),
        }
    )


def read_sweeps(path: Path | str, *, audit: str) -> dict[str, ScoreCurves]:
    """ScoreCurves by "threat/model" from the table sweeps of an audit."""
    table = read_table(path, SWEEPS, expect={"audit": audit})
    curves = {}
    for (threat, model), rows in table.groupby(["threat", "model"], sort=False):
        label = label_of({"threat": threat, "model": model})
        curves[label] = ScoreCurves.of_rows(rows, rows["class_index"].nunique())
    return curves


@dataclass(frozen=True)
class ModelEvidence:
    """Evidence on one model for calibration.

    Without a split of the samples, all of them both choose the temperature and report the scores.

    Parameters
    ----------
    name : str
        Label of the model.
    curves : ScoreCurves
        Class scores over the temperature, on the samples that choose it.
    class_accuracy : ndarray (K,) of float64
        Clean accuracy of each class on these samples, NaN without samples.
    attack_distance : float
        Mean distance of these samples to adversarial examples, 0 for misclassified ones; NaN if unknown.
    report_curves : ScoreCurves
        Class scores over the temperature, on the samples that report.
    clean_accuracy, report_distance : float
        Clean accuracy and mean distance of the samples that report.
    robust_accuracy : float
        Fraction, NaN if unknown.
    checkpoint, dataset_digest : str
        Identify model and data.
    read_parts : callable
        Reads two disjoint parts of the samples, each (logits, labels): the first chooses a temperature of this model
        alone, the second reports it. Read when needed, so that not all logits are in memory.
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


def evidence_of_models(
    audit_values: AuditValues,
    curves: Mapping[str, ScoreCurves],
    accuracies: Mapping[ModelName, Mapping[str, object]],
    *,
    distances: str | None,
    seed: int,
    split: CalibrationSplit | None,
) -> list[ModelEvidence]:
    """Evidence on the models of an audit that take part.

    Parameters
    ----------
    audit_values : AuditValues
    curves : mapping
        Score of each model over the temperature, by label.
    accuracies : mapping
        Accuracies of each model, from accuracies_of.
    distances : str or None
        The l2 measure of kind minimal whose distances are used.
    seed : int
        Determines, without a split, the half that is held out for the likelihood objective.
    split : CalibrationSplit or None
        Split into the samples that choose every temperature, equally in all models, and those that report.

    Raises
    ------
    InputError
        If no choosing sample has a distance, or a part of the split has samples of fewer than two classes.
    """
    evidence = []
    for model in audit_values.included:
        evidence.append(
            _evidence_of_model(
                audit_values,
                model,
                curves[model.label],
                cast(float, accuracies[model]["robust_accuracy"]),
                distances=distances,
                seed=seed,
                split=split,
            )
        )
    return evidence


def _evidence_of_model(
    audit_values: AuditValues,
    model: ModelName,
    curves: ScoreCurves,
    robust_accuracy: float,
    *,
    distances: str | None,
    seed: int,
    split: CalibrationSplit | None,
) -> ModelEvidence:
    # The logits of one model are released before those of the next are read.
    model_logits = audit_values.logits_of(model)
    labels = model_logits.labels
    logits = model_logits.logits
    classes = logits.shape[1]
    correct = predictions(logits, labels) == labels

    chooses = np.ones(len(labels), dtype=bool)
    reports = chooses
    held_out = split_samples(model_logits.sample_id, labels, share=0.5, rng=row_generator(seed, model.columns()))
    report_curves = curves
    if split is not None:
        chooses = choosing_samples(model_logits.sample_id, labels, share=split.share, seed=split.seed)
        reports = ~chooses
        held_out = chooses
        for samples_of_part, task in ((chooses, "choose"), (reports, "report")):
            if len(np.unique(labels[samples_of_part])) < 2:
                raise InputError(
                    f"calibration: split: with the share {split.share:g} {np.count_nonzero(samples_of_part)} of "
                    f"{len(labels)} samples {task} the temperature, of fewer than two classes; choose a share nearer "
                    "to 0.5, or set `split: null` in the audit's calibration"
                )
        low, high = curves.temperatures[[0, -1]]
        sweep = partial(sweep_class_scores, activation=audit_values.subject.activation, low=low, high=high)
        curves = sweep(logits[chooses], labels[chooses], classes)
        report_curves = sweep(logits[reports], labels[reports], classes)

    attack_distance = np.nan
    report_distance = np.nan
    if distances is not None:
        samples = audit_values.table(model, distances)
        chosen = samples.loc[samples["sample_id"].isin(model_logits.sample_id[chooses]), "value"]
        reported = samples.loc[samples["sample_id"].isin(model_logits.sample_id[reports]), "value"]
        if chosen.empty:
            raise InputError(
                f"{audit_values.path(model, distances)}: none of its {len(samples)} samples is among those that choose "
                "the temperature; use a larger `subset` for the measure, or set `split: null` in the audit's "
                "calibration"
            )
        attack_distance = mean_distance(chosen.to_numpy())
        report_distance = mean_distance(reported.to_numpy())

    return ModelEvidence(
        name=model.label,
        curves=curves,
        class_accuracy=class_means(correct[chooses], labels[chooses], classes),
        attack_distance=attack_distance,
        report_curves=report_curves,
        clean_accuracy=float(np.mean(correct[reports])),
        report_distance=report_distance,
        robust_accuracy=robust_accuracy,
        checkpoint=cast(str, model_logits.identity["checkpoint_sha256"]),
        dataset_digest=cast(str, model_logits.identity["dataset_digest"]),
        read_parts=partial(_read_parts, audit_values, model, held_out),
    )


def _read_parts(audit_values: AuditValues, model: ModelName, held_out: NDArray[np.bool_]) -> tuple[Part, Part]:
    model_logits = audit_values.logits_of(model)
    reported = ~held_out
    return (
        (model_logits.logits[held_out], model_logits.labels[held_out]),
        (model_logits.logits[reported], model_logits.labels[reported]),
    )


def accuracies_of(
    models: Iterable[ModelName],
    published: Iterable[Mapping[str, object]],
    paths_to_manifests: Iterable[Path | str],
) -> dict[ModelName, dict[str, object]]:
    """Published and robust accuracies of each model, as columns of model_summary.

    Parameters
    ----------
    models : iterable of ModelName
    published : iterable of mapping
        Published accuracies of each model, fractions or None.
    paths_to_manifests : iterable of path
        Manifests of trained checkpoints, of any of the models.

    Returns
    -------
    dict
        By model the published accuracies, `robust_accuracy` (that in the checkpoint's manifest, else the published
        one, else NaN) and `robust_accuracy_source`, its origin.
    """
    manifests = {}
    for path in paths_to_manifests:
        manifest = read_json(path)
        manifests[label_of(manifest)] = manifest

    accuracies = {}
    for model, published_of_model in zip(models, published, strict=True):
        manifest = manifests.get(model.label, {})
        robust = manifest.get("robust_accuracy")
        source = manifest.get("robust_accuracy_attack")
        if robust is None and published_of_model["published_robust_accuracy"] is not None:
            robust = published_of_model["published_robust_accuracy"]
            source = "published"
        accuracies[model] = {
            **published_of_model,
            "robust_accuracy": float("nan") if robust is None else robust,
            "robust_accuracy_source": source,
        }
    return accuracies


def models_digest(models: Sequence[ModelEvidence]) -> str:
    """SHA-256 of the models and data that a temperature was chosen on; other digests mean incomparable scores."""
    described = sorted([model.name, model.checkpoint, model.dataset_digest] for model in models)
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()


def baseline_of(models: Sequence[ModelEvidence]) -> dict[str, float | None]:
    """Rank correlation of clean accuracy with each other quantity, by the key of `alone`; None where undefined."""
    quantities = _quantities(models)
    baseline = {}
    for name, quantity in quantities.items():
        if name != CLEAN:
            baseline[alone(name)] = spearman_or_none(quantities[CLEAN], quantity)
    return baseline


def agreement_at(models: Sequence[ModelEvidence], chosen: Mapping[str, float | None]) -> dict[str, Correlations]:
    """Rank correlations of the aggregates at T = 1 and at the chosen temperatures, by quantity.

    Parameters
    ----------
    models : sequence of M ModelEvidence
    chosen : mapping
        Chosen temperatures by name of the model, None if there is none.
    """
    temperatures = np.array([chosen[model.name] or np.nan for model in models])
    scores = attack_free.aggregates([model.report_curves for model in models])
    before = scores(np.ones(1))[0]
    after = np.full(len(models), np.nan)
    if not np.isnan(temperatures).any():
        after = scores(temperatures).diagonal()

    correlations = {}
    for name, quantity in _quantities(models).items():
        correlations[name] = Correlations(
            before=spearman_or_none(before, quantity), after=spearman_or_none(after, quantity)
        )
    return correlations


def _quantities(models: Sequence[ModelEvidence]) -> dict[str, NDArray[np.float64]]:
    # Quantities (M,) by name that aggregates are correlated with; attack distances only if every model has one.
    quantities = {
        CLEAN: np.array([model.clean_accuracy for model in models]),
        ROBUST: np.array([model.robust_accuracy for model in models]),
    }
    distances = np.array([model.report_distance for model in models])
    if not np.isnan(distances).any():
        quantities[DISTANCE] = distances
    return quantities
