"""Success of targeted attacks by class, and whether CFPS or recall better predicts it.

Tables `target_success`, `target_matrix` and `target_predictors`.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.classwise.confusion import class_errors, confusion_matrix
from gfscore.audit.values import AuditValues
from gfscore.statistics.quotients import ratio
from gfscore.statistics.ranking import spearman
from gfscore.tables.parquet_tables import stacked_tables
from gfscore.tables.table import MEASURED, Column, Table

TARGET_SUCCESS = Table(
    name="target_success",
    version=1,
    columns=(
        *MEASURED,
        Column("class_index", pa.int32(), "target, 0..K-1"),
        Column("class_name", pa.string(), "name of the target"),
        Column("n", pa.int64(), "samples of the other classes"),
        Column("success", pa.float64(), "share of these classified as the target under attack"),
        Column("clean", pa.float64(), "share classified as the target without attack"),
        Column("excess", pa.float64(), "success minus clean"),
        Column("among_misclassified", pa.float64(), "share of the target among those misclassified under attack"),
        Column("cfps", pa.float64(), "class false positive score of the target, without attack"),
        Column("miss_rate", pa.float64(), "1 - recall of the target class, without attack"),
    ),
)

TARGET_MATRIX = Table(
    name="target_matrix",
    version=1,
    columns=(
        *MEASURED,
        Column("source_index", pa.int32(), "true class, 0..K-1"),
        Column("target_index", pa.int32(), "target class of the attack"),
        Column(
            "success", pa.float64(), "share of the true class's samples classified as the target; null without samples"
        ),
    ),
)

TARGET_PREDICTORS = Table(
    name="target_predictors",
    version=1,
    columns=(
        *MEASURED,
        Column("errors_of", pa.string(), "measure whose clean predictions give CFPS and recall"),
        Column("definition", pa.string(), "column of target_success that is predicted"),
        Column("classes", pa.int64(), "classes compared"),
        Column("rho_cfps", pa.float64(), "Spearman over classes of CFPS and success; null where undefined"),
        Column("rho_miss_rate", pa.float64(), "Spearman over classes of 1 - recall and success; null where undefined"),
        Column("difference", pa.float64(), "rho_cfps - rho_miss_rate; positive: CFPS predicts better"),
    ),
)

DEFINITIONS = ("success", "excess", "among_misclassified")
"""Definitions of targeted success, columns of target_success."""


def target_success(
    labels: ArrayLike, targets: ArrayLike, predictions: ArrayLike, clean_predictions: ArrayLike, classes: int
) -> tuple[pd.DataFrame, NDArray[np.float64]]:
    """Success of targeted attacks by target class t, over the samples of all other classes.

    Parameters
    ----------
    labels, targets : array of int, shape (R,)
        Label y and target t, one row per sample and target.
    predictions, clean_predictions : array of int, shape (R,)
        Predictions under attack f(x') and without it f(x).
    classes : int
        Number of classes K.

    Returns
    -------
    by_target : DataFrame
        K rows, NaN where undefined:

        - ``n`` samples with y != t
        - ``success`` P(f(x') = t | y != t), in [0, 1]
        - ``clean`` P(f(x) = t | y != t), in [0, 1]
        - ``excess`` success minus clean, in [-1, 1]
        - ``among_misclassified`` P(f(x') = t | y != t, f(x') != y), in [0, 1]
    matrix : array of float64, shape (K, K)
        P(f(x') = t | y = s) in row s (source) and column t; NaN on the diagonal and in rows without samples.

    References
    ----------
    Class-wise analysis paper, section 5.
    """
    labels = np.asarray(labels, dtype=np.int64)
    targets = np.asarray(targets, dtype=np.int64)
    predictions = np.asarray(predictions, dtype=np.int64)
    clean_predictions = np.asarray(clean_predictions, dtype=np.int64)
    reached = predictions == targets
    misclassified = predictions != labels
    n = np.bincount(targets, minlength=classes)
    hits = np.bincount(targets[reached], minlength=classes)
    clean_hits = np.bincount(targets[clean_predictions == targets], minlength=classes)
    misses = np.bincount(targets[misclassified], minlength=classes)
    success = ratio(hits, n)
    clean = ratio(clean_hits, n)

    cells = labels * classes + targets
    n_by_source = np.bincount(cells, minlength=classes**2).reshape(classes, classes)
    hits_by_source = np.bincount(cells[reached], minlength=classes**2).reshape(classes, classes)
    by_target = {
        "n": n,
        "success": success,
        "clean": clean,
        "excess": success - clean,
        "among_misclassified": ratio(hits, misses),
    }
    return pd.DataFrame(by_target), ratio(hits_by_source, n_by_source)


def predictors(
    success: NDArray[np.float64], *, cfps: NDArray[np.float64], miss_rate: NDArray[np.float64]
) -> dict[str, int | float]:
    """Spearman correlation over classes of CFPS, and of 1 - recall, with targeted success.

    Parameters
    ----------
    success, cfps, miss_rate : array of float64, shape (K,)
        Only classes where all three are defined count.

    Returns
    -------
    dict
        Columns classes, rho_cfps, rho_miss_rate and difference of target_predictors.
    """
    defined = ~(np.isnan(success) | np.isnan(cfps) | np.isnan(miss_rate))
    rho_cfps = float(spearman(cfps[defined], success[defined]))
    rho_miss_rate = float(spearman(miss_rate[defined], success[defined]))
    return {
        "classes": int(defined.sum()),
        "rho_cfps": rho_cfps,
        "rho_miss_rate": rho_miss_rate,
        "difference": rho_cfps - rho_miss_rate,
    }


def target_tables(audit_values: AuditValues, class_names: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Tables of all measures of kind targeted, by name; empty without one.

    CFPS and recall come from the audit's first measure of kind clean, or else from the clean predictions of the
    attacked samples.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    class_names : sequence of str
        Names of the K classes.
    """
    targeted = audit_values.subject.of_kind("targeted")
    clean = audit_values.subject.of_kind("clean")
    if not targeted:
        return {}

    classes = len(class_names)
    sources, targets = np.nonzero(~np.eye(classes, dtype=bool))
    frames = defaultdict(list)
    for model, measure in product(audit_values.included, targeted):
        key = {**model.columns(), "measure": measure.name}
        attacked = audit_values.table(model, measure.name)
        if clean:
            samples = audit_values.table(model, clean[0].name)
            clean_predictions = samples["prediction"]
        else:
            samples = attacked.drop_duplicates("sample_id")
            clean_predictions = samples["clean_prediction"]
        labels = samples["label"].to_numpy()
        matrix = confusion_matrix(labels, clean_predictions, classes)
        errors = class_errors(matrix, np.bincount(labels, minlength=classes))
        by_target, success = target_success(
            attacked["label"], attacked["target"], attacked["prediction"], attacked["clean_prediction"], classes
        )
        by_target = by_target.assign(cfps=errors["cfps"], miss_rate=1 - errors["recall"])
        names = {"class_index": np.arange(classes), "class_name": list(class_names)}
        by_pair = {"source_index": sources, "target_index": targets, "success": success[sources, targets]}
        frames["target_success"].append(by_target.assign(**key, **names))
        frames["target_matrix"].append(pd.DataFrame({**key, **by_pair}))

        rows = []
        for definition in DEFINITIONS:
            correlations = predictors(
                by_target[definition].to_numpy(),
                cfps=by_target["cfps"].to_numpy(),
                miss_rate=by_target["miss_rate"].to_numpy(),
            )
            rows.append({**key, "definition": definition, **correlations})
        errors_of = clean[0].name if clean else measure.name
        frames["target_predictors"].append(pd.DataFrame(rows).assign(errors_of=errors_of))
    return stacked_tables((TARGET_SUCCESS, TARGET_MATRIX, TARGET_PREDICTORS), frames)
