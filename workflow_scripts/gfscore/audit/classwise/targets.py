"""Success of targeted attacks by target and source class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.classwise.confusion import share
from gfscore.core.errors import InputError


@dataclass(frozen=True)
class TargetSuccess:
    """Success of targeted attacks by target class t, over the samples of all other classes.

    Each (K,) float64, NaN where undefined; x' is the attacked sample, y its label. `n` samples with y != t; `success`
    P(f(x') = t | y != t), in [0, 1]; `clean` P(f(x) = t | y != t), without attack; `excess`, success minus clean, in
    [-1, 1]; `among_misclassified` P(f(x') = t | y != t, f(x') != y), in [0, 1]. `matrix` (K, K): P(f(x') = t | y = s)
    in row s (source) and column t, NaN on the diagonal and in rows without samples.
    """

    n: NDArray[np.float64]
    success: NDArray[np.float64]
    clean: NDArray[np.float64]
    excess: NDArray[np.float64]
    among_misclassified: NDArray[np.float64]
    matrix: NDArray[np.float64]


def target_success(
    labels: ArrayLike, targets: ArrayLike, predictions: ArrayLike, clean_predictions: ArrayLike, classes: int
) -> TargetSuccess:
    """TargetSuccess of the rows of a targeted measure, one row per sample and target.

    Takes arrays (R,) int: label, target, prediction under attack and without it; `classes` K. `success` is the mean of
    a column of the matrix weighted by the samples of the source classes. Raises InputError for a row whose target is
    its label. Source: class-wise analysis paper, section 5.
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

    n = counted(np.ones(len(labels), dtype=bool))
    success, without = share(counted(reached), n), share(counted(clean == targets), n)
    cells = labels * classes + targets
    pairs = np.bincount(cells, minlength=classes**2).reshape(classes, classes)
    hits = np.bincount(cells[reached], minlength=classes**2).reshape(classes, classes)
    return TargetSuccess(
        n=n.astype(np.float64),
        success=success,
        clean=without,
        excess=success - without,
        among_misclassified=share(counted(reached), counted(misclassified)),
        matrix=share(hits, pairs),
    )
