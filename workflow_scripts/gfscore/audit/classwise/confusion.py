"""Confusions between classes and the errors of each class: tables `confusions` and `class_errors`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.values import AuditValues
from gfscore.core.identity import ModelName
from gfscore.core.names import model_labels
from gfscore.statistics.quotients import ratio
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import CLASS, MEASURED, Column, Table

CONDITION: tuple[Column, ...] = (
    Column("corruption", pa.string(), "kind of corruption; null for all together, or none"),
    Column("severity", pa.int32(), "1 (mild) to 5 (strong); null for all together, or none"),
)

CONFUSION_TABLE = Table(
    name="confusions",
    version=2,
    columns=(
        *MEASURED,
        *CONDITION,
        Column("true_index", pa.int32(), "true class, 0..K-1"),
        Column("predicted_index", pa.int32(), "predicted class, 0..K-1"),
        Column("count", pa.int64(), "samples, or corrupted copies of samples; pairs that never occur have no row"),
    ),
)

CLASS_ERRORS = Table(
    name="class_errors",
    version=2,
    columns=(
        *MEASURED,
        *CONDITION,
        *CLASS,
        Column("n", pa.int64(), "samples of the class, or corrupted copies of them"),
        Column("recall", pa.float64(), "share of the class that is recognised: what is usually called class accuracy"),
        Column("precision", pa.float64(), "share of the predictions of the class that are right"),
        Column("f1", pa.float64(), "harmonic mean of recall and precision"),
        Column("one_vs_rest_accuracy", pa.float64(), "(TP + TN) / N, the class-wise analysis paper's CWA"),
        Column(
            "false_positive_rate", pa.float64(), "share of the other classes' samples that are taken for this class"
        ),
        Column("cfps", pa.float64(), "share of all errors that fall on this class (CFPS)"),
        Column("cfps_relative", pa.float64(), "CFPS times K: 1 when errors fall on all classes alike"),
        Column("false_positives", pa.float64(), "samples of other classes that are taken for this class"),
    ),
)


# ---- matrices ----


def confusion_matrix(labels: ArrayLike, predictions: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Samples by true class and predicted class.

    Parameters
    ----------
    labels : array of int, shape (N,)
        True classes in 0..K-1.
    predictions : array of int, shape (N,)
        Predicted classes. One outside 0..K-1 (an abstention) is counted in no column.
    classes : int
        Number of classes K.

    Returns
    -------
    array of int64, shape (K, K)
        True classes in rows, predicted ones in columns. The sum of a row may be less than the number of samples.
    """
    labels = np.asarray(labels, dtype=np.int64)
    predictions = np.asarray(predictions, dtype=np.int64)
    inside = (predictions >= 0) & (predictions < classes)
    cells = labels[inside] * classes + predictions[inside]
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def row_shares(matrix: ArrayLike, n: ArrayLike) -> NDArray[np.float64]:
    """Confusion matrix (K, K) as shares of the n samples (K,) of each class; NaN for classes without samples.

    Rows sum to 1, to less where there are abstentions; the diagonal is the recall.
    """
    return ratio(matrix, np.asarray(n)[:, None])


def class_errors(matrix: ArrayLike, n: ArrayLike) -> pd.DataFrame:
    """Errors of each class by a confusion matrix.

    Parameters
    ----------
    matrix : array, shape (K, K)
        Confusion matrix.
    n : array, shape (K,)
        Samples of the classes, abstentions included.

    Returns
    -------
    DataFrame
        K rows, NaN where undefined:

        - ``recall`` TP / (TP + FN), usually called class accuracy
        - ``precision`` TP / (TP + FP)
        - ``f1`` harmonic mean of recall and precision
        - ``one_vs_rest_accuracy`` (TP + TN) / N, the class-wise accuracy of the class-wise analysis paper, about
          1 - 1/K for a class that is never predicted
        - ``false_positive_rate`` FP / (FP + TN)
        - ``cfps`` class false positive score, FP / all errors, which sums to 1 over classes; to less where there are
          abstentions
        - ``cfps_relative`` K times cfps: 1 if errors are evenly distributed over classes
        - ``false_positives`` FP

    References
    ----------
    Class-wise analysis paper, section 3. Where its definitions differ from common use, both are included.
    """
    matrix = np.asarray(matrix, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)
    correct = np.diag(matrix)
    false_positives = matrix.sum(axis=0) - correct
    total = n.sum()
    errors = (n - correct).sum()
    cfps = ratio(false_positives, errors)
    return pd.DataFrame(
        {
            "recall": ratio(correct, n),
            "precision": ratio(correct, correct + false_positives),
            # From counts, so that it is 0 without true positives, and undefined only without samples and predictions.
            "f1": ratio(2 * correct, n + correct + false_positives),
            "one_vs_rest_accuracy": (total - (n - correct) - false_positives) / total,
            "false_positive_rate": ratio(false_positives, total - n),
            "cfps": cfps,
            "cfps_relative": len(n) * cfps,
            "false_positives": false_positives,
        }
    )


# ---- tables ----


@dataclass(frozen=True)
class Predictions:
    """Predictions of one model under one measure.

    Parameters
    ----------
    model : ModelName
    measure : str
        Name of the measure.
    samples : DataFrame
        Rows with sample_id, label and prediction; for corrupted copies with corruption and severity too.
    corrupted : bool
        Whether the rows are of corrupted copies.
    several_copies : bool
        Whether there are several rows per sample.
    """

    model: ModelName
    measure: str
    samples: pd.DataFrame
    corrupted: bool = False
    several_copies: bool = False

    def columns(self) -> dict[str, str]:
        """Columns of a table that name the model and the measure."""
        return {**self.model.columns(), "measure": self.measure}


def predictions_of(audit_values: AuditValues) -> Iterator[Predictions]:
    """Yield the predictions of each model of an audit under each measure that predicts."""
    for model in audit_values.included:
        for name, measure in audit_values.subject.measures.items():
            if measure.kind.predicts:
                yield Predictions(
                    model=model,
                    measure=name,
                    samples=audit_values.table(model, name),
                    corrupted=measure.kind.name == "corruption",
                    several_copies=measure.description.several_copies,
                )


def confusion_tables(
    predictions: Sequence[Predictions], class_names: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables `confusions` and `class_errors`; of corruptions also for each corruption and severity.

    Parameters
    ----------
    predictions : sequence of Predictions
        All predictions of an audit.
    class_names : sequence of str
        Names of the K classes.
    """
    confusions = []
    errors = []
    for predictions_of_model in predictions:
        conditions = [["corruption", "severity"]] if predictions_of_model.corrupted else []
        for condition, samples in by_condition(predictions_of_model.samples, *conditions):
            labels = samples["label"].to_numpy()
            n = np.bincount(labels, minlength=len(class_names))
            matrix = confusion_matrix(labels, samples["prediction"], len(class_names))
            key = {**predictions_of_model.columns(), **condition}
            # Without the cells of 0: 95 conditions of 1,000 classes have millions of cells.
            true, predicted = np.nonzero(matrix)
            cells = {"true_index": true, "predicted_index": predicted, "count": matrix[true, predicted]}
            confusions.append(pd.DataFrame({**key, **cells}))
            classes = {"class_index": np.arange(len(class_names)), "class_name": list(class_names), "n": n}
            errors.append(class_errors(matrix, n).assign(**key, **classes))
    return stacked(CONFUSION_TABLE, confusions), stacked(CLASS_ERRORS, errors)


def by_condition(samples: pd.DataFrame, *conditions: list[str]) -> Iterator[tuple[dict[str, object], pd.DataFrame]]:
    """Yield all rows of a samples table under {}, then for each list of columns the rows of each of its values."""
    yield {}, samples
    for columns in conditions:
        for values, rows in samples.groupby(columns, sort=False):
            yield dict(zip(columns, values, strict=True)), rows


def confusion_matrices(confusions: pd.DataFrame, classes: int) -> dict[str, NDArray[np.float64]]:
    """Confusion matrices of counts by the label of the model.

    Parameters
    ----------
    confusions : DataFrame
        Rows of the table `confusions` of one measure and condition.
    classes : int
        Number of classes K.

    Returns
    -------
    dict
        Arrays (K, K) by label.
    """
    matrices = {}
    for label, rows in confusions.assign(label=model_labels(confusions)).groupby("label", sort=False):
        matrix = np.zeros((classes, classes))
        matrix[rows["true_index"], rows["predicted_index"]] = rows["count"]
        matrices[str(label)] = matrix
    return matrices
