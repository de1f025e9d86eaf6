"""Rows of the tables on targeted attacks, and whether CFPS or recall better predicts their success by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.classwise.confusion import class_errors, confusion_matrix
from gfscore.audit.classwise.targets import target_success
from gfscore.statistics.ranking import spearman

if TYPE_CHECKING:
    from gfscore.audit.inputs import AuditInputs

DEFINITIONS = ("success", "excess", "among_misclassified")
"""Definitions of targeted success, columns of target_success."""

EXACT_MODELS = 16
"""Largest number of models whose signs (2^16) are enumerated."""

ROUNDING = 1e-12


@dataclass(frozen=True)
class Contest:
    """Comparison of CFPS and 1 - recall as predictors of targeted success, over M models.

    `models`: number with a defined difference; `mean` of rho_cfps - rho_miss_rate, in [-2, 2], NaN without models; `p`:
    two-sided p-value, in (0, 1], NaN likewise.
    """

    models: int
    mean: float
    p: float


def target_tables(inputs: AuditInputs, class_names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Rows of target_success, target_matrix and target_predictors by table name, from AuditInputs and K names.

    Empty without a measure of kind targeted. CFPS and recall are those of the audit's first measure of kind clean, or
    else of the clean predictions of the attacked samples.
    """
    if not any(settings["kind"] == "targeted" for settings in inputs.measures.values()):
        return {}
    clean = next((name for name, settings in inputs.measures.items() if settings["kind"] == "clean"), None)
    rows: dict[str, list[dict[str, Any]]] = {"target_success": [], "target_matrix": [], "target_predictors": []}
    for model, own in inputs.by_model():
        for measure, settings in inputs.measures.items():
            if settings["kind"] == "targeted":
                samples = own[measure]
                errors = _errors(samples, own, clean, len(class_names))
                found = _of_one({**model, "measure": measure}, samples, errors, class_names, errors_of=clean or measure)
                for table, listed in found.items():
                    rows[table] += listed
    return rows


def _errors(samples, own, clean, classes):
    if clean is not None:
        samples = own[clean]
        predictions = samples["prediction"]
    else:
        samples = samples.drop_duplicates("sample_id")
        predictions = samples["clean_prediction"]
    labels = samples["label"].to_numpy()
    return class_errors(confusion_matrix(labels, predictions, classes), np.bincount(labels, minlength=classes))


def _of_one(key, samples, errors, class_names, *, errors_of):
    classes = len(class_names)
    names = ("label", "target", "prediction", "clean_prediction")
    labels, targets, predictions, clean = (samples[name].to_numpy() for name in names)
    found = target_success(labels, targets, predictions, clean, classes)
    columns = {name: getattr(found, name) for name in ("n", "clean", *DEFINITIONS)}
    columns |= {"cfps": errors.cfps, "miss_rate": 1 - errors.recall}
    return {
        "target_success": [
            {**key, "class_index": k, "class_name": class_names[k], **{name: x[k] for name, x in columns.items()}}
            for k in range(classes)
        ],
        "target_matrix": [
            {**key, "source_index": source, "target_index": target, "success": found.matrix[source, target]}
            for source, target in product(range(classes), repeat=2)
            if source != target
        ],
        "target_predictors": [
            {**key, "errors_of": errors_of, "definition": name}
            | predictors(columns[name], cfps=errors.cfps, miss_rate=1 - errors.recall)
            for name in DEFINITIONS
        ],
    }


def predictors(
    success: NDArray[np.float64], *, cfps: NDArray[np.float64], miss_rate: NDArray[np.float64]
) -> dict[str, int | float]:
    """Columns of target_predictors: Spearman correlation over classes of CFPS and of 1 - recall with targeted success.

    All arguments are (K,). Only classes where all three are defined count.
    """
    known = ~(np.isnan(success) | np.isnan(cfps) | np.isnan(miss_rate))
    by_cfps, by_miss = (float(spearman(values[known], success[known])) for values in (cfps, miss_rate))
    counts = {"classes": int(known.sum()), "rho_cfps": by_cfps, "rho_miss_rate": by_miss}
    return {**counts, "difference": by_cfps - by_miss}


def contest(differences: ArrayLike, *, seed: int = 0, draws: int = 9999) -> Contest:
    """Contest of `differences` (M,), without NaN: a sign-flip test of their mean, exact for up to EXACT_MODELS models.

    For more models, `draws` random sign vectors with `seed` are used, with the observed signs included. The null
    hypothesis is that the differences are symmetric about 0. p is at least 2 / 2^M, which is 0.0625 for M = 5.
    # ASSUME: models are independent, which does not hold for models of one family or training set.
    """
    known = np.asarray(differences, dtype=np.float64)
    known = known[~np.isnan(known)]
    if len(known) == 0:
        return Contest(0, math.nan, math.nan)
    if len(known) <= EXACT_MODELS:
        signs = np.array(list(product((1.0, -1.0), repeat=len(known))))
    else:
        drawn = np.random.default_rng(seed).choice(np.array([1.0, -1.0]), size=(draws, len(known)))
        signs = np.vstack([np.ones(len(known)), drawn])
    means = signs @ known / len(known)
    return Contest(len(known), float(known.mean()), float(np.mean(np.abs(means) >= abs(means[0]) - ROUNDING)))
