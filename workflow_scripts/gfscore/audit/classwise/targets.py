"""Rows of the tables on targeted attacks, and whether CFPS or recall better predicts their success by class."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.classwise.confusion import class_errors, confusion_matrix, share
from gfscore.audit.values import AuditValues
from gfscore.core.errors import InputError
from gfscore.statistics.ranking import spearman

DEFINITIONS = ("success", "excess", "among_misclassified")
"""Definitions of targeted success, columns of target_success."""


def target_tables(inputs: AuditValues, class_names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Rows of target_success, target_matrix and target_predictors by table name, from AuditValues and K names.

    Empty without a measure of kind targeted. CFPS and recall are those of the audit's first measure of kind clean, or
    else of the clean predictions of the attacked samples.
    """
    targeted, clean = ([measure.name for measure in inputs.subject.of_kind(kind)] for kind in ("targeted", "clean"))
    tables = ("target_success", "target_matrix", "target_predictors") if targeted else ()
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for model in inputs.included:
        for measure in targeted:
            samples = inputs.table(model, measure)
            plain = inputs.table(model, clean[0]) if clean else samples.drop_duplicates("sample_id")
            errors = _errors(plain, "prediction" if clean else "clean_prediction", len(class_names))
            found = _of_one(
                {**model.columns(), "measure": measure}, samples, errors, class_names, clean[0] if clean else measure
            )
            for table, listed in found.items():
                rows[table] += listed
    return rows


def _errors(samples, column, classes):
    labels = samples["label"].to_numpy()
    return class_errors(confusion_matrix(labels, samples[column], classes), np.bincount(labels, minlength=classes))


def _of_one(key, samples, errors, class_names, errors_of):
    classes, names = len(class_names), ("label", "target", "prediction", "clean_prediction")
    labels, targets, predictions, clean = (samples[name].to_numpy() for name in names)
    columns = target_success(labels, targets, predictions, clean, classes)
    matrix = columns.pop("matrix")
    predictors_of = {"cfps": errors.cfps, "miss_rate": 1 - errors.recall}
    return {
        "target_success": [
            {**key, "class_index": k, "class_name": class_names[k]}
            | {name: column[k] for name, column in (columns | predictors_of).items()}
            for k in range(classes)
        ],
        "target_matrix": [
            {**key, "source_index": source, "target_index": target, "success": matrix[source, target]}
            for source, target in permutations(range(classes), 2)
        ],
        "target_predictors": [
            {**key, "errors_of": errors_of, "definition": name, **predictors(columns[name], **predictors_of)}
            for name in DEFINITIONS
        ],
    }


def target_success(
    labels: ArrayLike, targets: ArrayLike, predictions: ArrayLike, clean_predictions: ArrayLike, classes: int
) -> dict[str, NDArray[np.float64]]:
    """Success of targeted attacks by target class t, over the samples of all other classes, by name.

    Takes arrays (R,) int, one row per sample and target: label y, target, prediction under attack f(x') and without it
    f(x); `classes` K. Each (K,) float64, NaN where undefined: `n` samples with y != t; `success` P(f(x') = t | y != t),
    in [0, 1]; `clean` P(f(x) = t | y != t); `excess`, success minus clean, in [-1, 1]; `among_misclassified`
    P(f(x') = t | y != t, f(x') != y), in [0, 1]; and `matrix` (K, K): P(f(x') = t | y = s) in row s (source) and column
    t, NaN on the diagonal and in rows without samples. Raises InputError for a row whose target is its label. Source:
    class-wise analysis paper, section 5.
    """
    labels, targets, predictions, clean = (
        np.asarray(values, dtype=np.int64) for values in (labels, targets, predictions, clean_predictions)
    )
    same = labels == targets
    if same.any():
        raise InputError(f"row {int(same.argmax())}: target {targets[same][0]} is the label; give another target")
    reached, misclassified = predictions == targets, predictions != labels

    def counted(chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(targets[chosen], minlength=classes)

    n = counted(~same)
    success, without = share(counted(reached), n), share(counted(clean == targets), n)
    cells = labels * classes + targets
    pairs, hits = (
        np.bincount(cells[rows], minlength=classes**2).reshape(classes, classes) for rows in (~same, reached)
    )
    return {
        "n": n.astype(np.float64),
        "success": success,
        "clean": without,
        "excess": success - without,
        "among_misclassified": share(counted(reached), counted(misclassified)),
        "matrix": share(hits, pairs),
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
