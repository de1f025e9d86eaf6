"""Rows of the tables confusions, class_errors and similarities from the predictions of an audit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.classwise.confusion import class_errors, confusion_matrix, strong_and_weak
from gfscore.audit.classwise.corruptions import conditions_of
from gfscore.audit.classwise.similarity import similarities
from gfscore.audit.values import row_generator
from gfscore.core.identity import label_of
from gfscore.core.names import model_labels

if TYPE_CHECKING:
    from gfscore.audit.values import AuditValues


@dataclass(frozen=True)
class Predicted:
    """Predictions of one model under one measure: `samples`, a data frame with label, prediction and conditions.

    `key` holds dataset, threat, model, measure; `corrupted`: whether rows have a corruption and severity;
    `several_copies`: whether there are several rows per sample.
    """

    key: dict[str, str]
    samples: pd.DataFrame
    corrupted: bool = False
    several_copies: bool = False


def confusion_tables(
    inputs: AuditValues, class_names: Sequence[str], *, shuffles: int, models: int, seed: int
) -> dict[str, Any]:
    """Rows of confusions, class_errors and similarities of an audit; arguments as in similarity_rows.

    Confusions are a data frame, since 95 conditions of 1,000 classes have millions of cells.
    """
    predicted = list(predictions_of(inputs))
    found = [confusions_and_errors(item, class_names) for item in predicted]
    cells = [part for parts, _ in found for part in parts]
    return {
        "confusions": pd.concat(cells, ignore_index=True) if cells else [],
        "class_errors": [row for _, rows in found for row in rows],
        "similarities": similarity_rows(predicted, class_names, shuffles=shuffles, models=models, seed=seed),
    }


def predictions_of(inputs: AuditValues) -> Iterator[Predicted]:
    """Yield Predicted for each model of an audit and each measure with predictions."""
    for model in inputs.included:
        for name, measure in inputs.subject.measures.items():
            if measure.kind.predicts:
                key, corrupted = {**model.columns(), "measure": name}, measure.kind.name == "corruption"
                yield Predicted(key, inputs.table(model, name), corrupted, measure.measure.several_copies)


def confusions_and_errors(
    predicted: Predicted, class_names: Sequence[str]
) -> tuple[list[pd.DataFrame], list[dict[str, Any]]]:
    """Rows of confusions, the non-zero cells as data frames, and of class_errors, of one model and measure.

    For corruptions also of each corruption and severity.
    """
    parts, rows, classes = [], [], len(class_names)
    keys = [["corruption", "severity"]] if predicted.corrupted else []
    for condition, samples in conditions_of(predicted.samples, *keys):
        shared = predicted.key | condition
        labels = samples["label"].to_numpy()
        n, matrix = np.bincount(labels, minlength=classes), confusion_matrix(labels, samples["prediction"], classes)
        true, guess = np.nonzero(matrix)
        cells = {"true_index": true, "predicted_index": guess, "count": matrix[true, guess]}
        parts.append(pd.DataFrame(cells).assign(**shared))
        columns = asdict(class_errors(matrix, n))
        columns |= {"n": n, "group": strong_and_weak(columns["recall"], np.trace(matrix) / n.sum())}
        rows += [
            {**shared, "class_index": k, "class_name": name, **{column: of[k] for column, of in columns.items()}}
            for k, name in enumerate(class_names)
        ]
    return parts, rows


def confusion_matrices(confusions: pd.DataFrame, classes: int) -> dict[str, NDArray[np.float64]]:
    """Confusion matrices (K, K) of counts by model label, from rows of confusions of one measure and condition."""
    matrices = {}
    for label, rows in confusions.assign(label=model_labels(confusions)).groupby("label", sort=False):
        matrices[label] = np.zeros((classes, classes))
        matrices[label][rows["true_index"], rows["predicted_index"]] = rows["count"]
    return matrices


def similarity_rows(
    predicted: Sequence[Predicted], class_names: Sequence[str], *, shuffles: int, models: int, seed: int
) -> list[dict[str, Any]]:
    """Rows of similarities for all pairs of the first `models` models of the audit, by measure.

    `predicted` are all Predicted of the audit; measures with several rows per sample are left out. Compares the samples
    that both models have: all together, and, for the agreement, also by class.
    """
    rows, classes = [], len(class_names)
    single = [item for item in predicted if not item.several_copies]
    for measure in dict.fromkeys(item.key["measure"] for item in single):
        chosen = [item for item in single if item.key["measure"] == measure][:models]
        for a, b in combinations(chosen, 2):
            pair = a.samples[["sample_id", "label", "prediction"]].merge(
                b.samples[["sample_id", "prediction"]], on="sample_id", suffixes=("", "_b"), validate="one_to_one"
            )
            if pair.empty:
                continue
            key = {"dataset": a.key["dataset"], "measure": measure}
            key |= {"first": label_of(a.key), "second": label_of(b.key)}
            labels, first, second = (pair[name].to_numpy() for name in ("label", "prediction", "prediction_b"))
            rng = row_generator(seed, key)
            by_name, by_class = similarities(labels, first, second, classes, shuffles=shuffles, rng=rng)
            rows += [{**key, "similarity": name, "n": len(pair), **asdict(item)} for name, item in by_name.items()]
            n = np.bincount(pair["label"], minlength=classes)
            rows += [
                {**key, "similarity": "agreement", "class_index": k, "class_name": name, "n": n[k]}
                | asdict(by_class[k])
                for k, name in enumerate(class_names)
            ]
    return rows
