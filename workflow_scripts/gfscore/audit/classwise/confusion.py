"""Which class a classifier takes for which: confusion matrices and what they say about each class."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class ClassErrors:
    """What a confusion matrix says about each of K classes; all (K,) float64, NaN where undefined.

    `recall` TP / (TP + FN), what is usually called class accuracy; `precision` TP / (TP + FP); `f1`, their harmonic
    mean; `one_vs_rest_accuracy` (TP + TN) / N, the class-wise accuracy as the class-wise analysis paper prints it: a
    class that is never recognised still gets about 1 - 1/K; `false_positive_rate` FP / (FP + TN); `cfps`, the class
    false positive score FP / all errors, which sums to 1 over classes; `cfps_relative` K times that: 1 when errors
    fall on every class alike. CFPS is the one number here of which less is better for the class as a target.
    `false_positives` FP.
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

    A prediction outside 0..K-1 (an abstention) is an error without a class: it is counted in no column, so a row may
    sum to less than the class has samples.
    """
    labels, predictions = np.asarray(labels, dtype=np.int64), np.asarray(predictions, dtype=np.int64)
    inside = (predictions >= 0) & (predictions < classes)
    cells = labels[inside] * classes + predictions[inside]
    return np.bincount(cells, minlength=classes * classes).reshape(classes, classes)


def class_errors(matrix: ArrayLike, n: ArrayLike) -> ClassErrors:
    """ClassErrors of a confusion matrix (K, K) whose classes have `n` (K,) samples, abstentions included.

    Source: class-wise analysis paper, section 3; where its definitions differ from common use, both are given.
    """
    matrix, n = np.asarray(matrix, dtype=np.float64), np.asarray(n, dtype=np.float64)
    right = np.diag(matrix)
    wrong_here = matrix.sum(axis=0) - right
    total = n.sum()
    cfps = share(wrong_here, np.full(len(n), (n - right).sum()))
    precision, recall = share(right, right + wrong_here), share(right, n)
    return ClassErrors(
        recall=recall,
        precision=precision,
        # With counts, so that a class that is neither seen nor predicted is undefined, and 0 true positives give 0.
        f1=share(2 * right, n + right + wrong_here),
        one_vs_rest_accuracy=(total - (n - right) - wrong_here) / total,
        false_positive_rate=share(wrong_here, total - n),
        cfps=cfps,
        cfps_relative=len(n) * cfps,
        false_positives=wrong_here,
    )


def strong_and_weak(recall: ArrayLike, accuracy: float) -> NDArray[np.str_]:
    """Group of each class, (K,) str: strong above the overall accuracy, weak below, neither at it or without samples.

    Source: class-wise analysis paper, section 3. The classes of any model split so, however alike they are.
    """
    recall = np.asarray(recall, dtype=np.float64)
    return np.select([recall > accuracy, recall < accuracy], ["strong", "weak"], default="neither")


def mean_confusion(matrices: Iterable[ArrayLike]) -> NDArray[np.float64]:
    """Mean over models of their row-normalised confusions, M matrices (K, K); NaN rows for classes without samples.

    Every model counts alike, however many samples it was measured on.
    """
    return np.mean([row_shares(matrix) for matrix in matrices], axis=0)


def row_shares(matrix: ArrayLike) -> NDArray[np.float64]:
    """Confusion matrix (K, K) with rows that sum to 1; NaN where a class has no sample."""
    matrix = np.asarray(matrix, dtype=np.float64)
    return share(matrix, np.broadcast_to(matrix.sum(axis=1, keepdims=True), matrix.shape))


def share(part: NDArray[np.number], whole: NDArray[np.number]) -> NDArray[np.float64]:
    """Quotients of arrays of one shape, NaN where `whole` is 0."""
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole > 0)
