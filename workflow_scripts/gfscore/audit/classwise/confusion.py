"""Confusion matrices and the errors of each class."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class ClassErrors:
    """Errors of K classes by a confusion matrix, each (K,) float64, NaN where undefined.

    `recall` TP / (TP + FN), usually called class accuracy; `precision` TP / (TP + FP); `f1`, their harmonic mean;
    `one_vs_rest_accuracy` (TP + TN) / N, the class-wise accuracy of the class-wise analysis paper, which is about
    1 - 1/K for a class that is never predicted; `false_positive_rate` FP / (FP + TN); `cfps`, the class false positive
    score FP / all errors, which sums to 1 over classes; `cfps_relative`, K times cfps, which is 1 if errors are evenly
    distributed over classes; `false_positives` FP.
    """

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    f1: NDArray[np.float64]
    one_vs_rest_accuracy: NDArray[np.float64]
    false_positive_rate: NDArray[np.float64]
    cfps: NDArray[np.float64]
    cfps_relative: NDArray[np.float64]
    false_positives: NDArray[np.float64]


def confusion_matrix(labels: ArrayLike, predictions: ArrayLike, classes: int) -> NDArray[np.int64]:
    """Samples by true class (rows) and predicted class (columns), (K, K) int64.

    A prediction outside 0..K-1 (an abstention) is counted in no column, so the sum of a row may be less than the number
    of samples of the class.
    """
    labels, predictions = np.asarray(labels, dtype=np.int64), np.asarray(predictions, dtype=np.int64)
    inside = (predictions >= 0) & (predictions < classes)
    cells = labels[inside] * classes + predictions[inside]
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def class_errors(matrix: ArrayLike, n: ArrayLike) -> ClassErrors:
    """ClassErrors of a confusion matrix (K, K) whose classes have `n` (K,) samples, abstentions included.

    Source: class-wise analysis paper, section 3; where its definitions differ from common use, both are included.
    """
    matrix, n = np.asarray(matrix, dtype=np.float64), np.asarray(n, dtype=np.float64)
    correct = np.diag(matrix)
    false_positives = matrix.sum(axis=0) - correct
    total = n.sum()
    cfps = share(false_positives, np.full(len(n), (n - correct).sum()))
    return ClassErrors(
        recall=share(correct, n),
        precision=share(correct, correct + false_positives),
        # From counts, so that it is 0 without true positives, and undefined only without samples and predictions.
        f1=share(2 * correct, n + correct + false_positives),
        one_vs_rest_accuracy=(total - (n - correct) - false_positives) / total,
        false_positive_rate=share(false_positives, total - n),
        cfps=cfps,
        cfps_relative=len(n) * cfps,
        false_positives=false_positives,
    )


def strong_and_weak(recall: ArrayLike, accuracy: float) -> NDArray[np.str_]:
    """Group of each class, (K,) str: "strong" above the overall accuracy, "weak" below, else "neither".

    Source: class-wise analysis paper, section 3. The groups exist in every model, however small the differences are.
    """
    recall = np.asarray(recall, dtype=np.float64)
    return np.select([recall > accuracy, recall < accuracy], ["strong", "weak"], default="neither")


def row_shares(matrix: ArrayLike) -> NDArray[np.float64]:
    """Confusion matrix (K, K) with rows that sum to 1; NaN for classes without samples."""
    matrix = np.asarray(matrix, dtype=np.float64)
    return share(matrix, np.broadcast_to(matrix.sum(axis=1, keepdims=True), matrix.shape))


def share(part: NDArray[np.number], whole: NDArray[np.number]) -> NDArray[np.float64]:
    """Quotients of arrays of one shape, NaN where `whole` is 0."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
