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
from gfscore.audit.classwise.corruption_rows import conditions_of
from gfscore.audit.classwise.similarity import similarities
from gfscore.audit.measured import row_generator
from gfscore.core.identity import label_of
from gfscore.core.names import model_labels
from gfscore.measures import KINDS, measure_of

if TYPE_CHECKING:
    from gfscore.audit.inputs import AuditInputs


@dataclass(frozen=True)
class Predicted:
    """Predictions of one model under one measure: a data frame with label, prediction and conditions.

    `several_copies`: whether there are several rows per sample.
    """

    model: dict[str, str]
    measure: str
    kind: str
    samples: pd.DataFrame
    several_copies: bool = False

    @property
    def key(self) -> dict[str, str]:
        """Dataset, threat, model, measure."""
        return {**self.model, "measure": self.measure}

    def conditions(self) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
        """Yield all rows, and for corruptions those of each corruption and severity, as conditions_of does."""
        keys = [["corruption", "severity"]] if self.kind == "corruption" else []
        return conditions_of(self.samples, *keys)


def confusion_tables(
    inputs: AuditInputs, class_names: Sequence[str], *, shuffles: int, models: int, seed: int
) -> dict[str, Any]:
    """Rows of confusions, class_errors and similarities of an audit; arguments as in similarity_rows."""
    predicted = list(predictions_of(inputs))
    cells = [confusion_rows(item, len(class_names)) for item in predicted]
    return {
        "confusions": pd.concat(cells, ignore_index=True) if cells else [],
        "class_errors": [row for item in predicted for row in error_rows(item, class_names)],
        "similarities": similarity_rows(predicted, class_names, shuffles=shuffles, models=models, seed=seed),
    }


def predictions_of(inputs: AuditInputs) -> Iterator[Predicted]:
    """Yield Predicted for each model of an audit and each measure with predictions."""
    for model, own in inputs.by_model():
        for measure in own:
            settings = inputs.measures[measure]
            kind = settings["kind"]
            if KINDS[kind].predicts:
                several = measure_of(settings).several_copies
                yield Predicted(dict(model), measure, kind, own[measure], several)


def confusion_rows(predicted: Predicted, classes: int) -> pd.DataFrame:
    """Rows of confusions: the non-zero cells of a measure, and for corruptions also of each corruption and severity.

    A data frame, since 95 conditions of 1,000 classes have millions of cells.
    """
    parts = []
    for condition, samples in predicted.conditions():
        matrix = confusion_matrix(samples["label"], samples["prediction"], classes)
        true, guess = np.nonzero(matrix)
        cells = {"true_index": true, "predicted_index": guess, "count": matrix[true, guess]}
        parts.append(pd.DataFrame(cells).assign(**predicted.key, **condition))
    return pd.concat(parts, ignore_index=True)


def confusion_matrices(confusions: pd.DataFrame, classes: int) -> dict[str, NDArray[np.float64]]:
    """Confusion matrices (K, K) of counts by model label, from rows of confusions of one measure and condition."""
    matrices = {}
    for label, rows in confusions.assign(label=model_labels(confusions)).groupby("label", sort=False):
        matrices[label] = np.zeros((classes, classes))
        matrices[label][rows["true_index"], rows["predicted_index"]] = rows["count"]
    return matrices


def error_rows(predicted: Predicted, class_names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of class_errors of a measure, and for corruptions also of each corruption and severity."""
    return [
        row
        for condition, samples in predicted.conditions()
        for row in _error_rows(predicted.key, samples, class_names, condition)
    ]


def _error_rows(key, samples, class_names, condition):
    labels, classes = samples["label"].to_numpy(), len(class_names)
    n = np.bincount(labels, minlength=classes)
    matrix = confusion_matrix(labels, samples["prediction"], classes)
    columns = asdict(class_errors(matrix, n))
    group = strong_and_weak(columns["recall"], np.trace(matrix) / n.sum())
    return [
        {**key, **condition, "class_index": k, "class_name": class_names[k], "n": n[k], "group": group[k]}
        | {name: values[k] for name, values in columns.items()}
        for k in range(classes)
    ]


def similarity_rows(
    predicted: Sequence[Predicted], class_names: Sequence[str], *, shuffles: int, models: int, seed: int
) -> list[dict[str, Any]]:
    """Rows of similarities for all pairs of the first `models` models of the audit, by measure.

    `predicted` are all Predicted of the audit; measures with several rows per sample are left out. Compares the samples
    that both models have: all together, and, for the agreement, also by class.
    """
    rows, classes = [], len(class_names)
    single = [item for item in predicted if not item.several_copies]
    for measure in dict.fromkeys(item.measure for item in single):
        chosen = [item for item in single if item.measure == measure][:models]
        for a, b in combinations(chosen, 2):
            pair = a.samples[["sample_id", "label", "prediction"]].merge(
                b.samples[["sample_id", "prediction"]], on="sample_id", suffixes=("", "_b"), validate="one_to_one"
            )
            if pair.empty:
                continue
            key = {"dataset": a.model["dataset"], "measure": measure}
            key |= {"first": label_of(a.model), "second": label_of(b.model)}
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
