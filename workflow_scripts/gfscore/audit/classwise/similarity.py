"""How alike two classifiers err, and how alike they would look by chance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gfscore.audit.classwise.confusion import confusion_matrix, row_shares, share


@dataclass(frozen=True)
class Similarity:
    """One measure of how alike two classifiers predict the same samples.

    `value` of the pair; `baseline` its mean when what the classifiers share is shuffled away; `p_value`, the share of
    shuffles that reach the value (one-sided, the observed order counted), NaN where the value is undefined.
    """

    value: float
    baseline: float
    p_value: float


def similarities(
    labels: ArrayLike, first: ArrayLike, second: ArrayLike, classes: int, *, shuffles: int, rng: np.random.Generator
) -> tuple[dict[str, Similarity], list[Similarity]]:
    """Similarity of two classifiers' predictions of the same N samples: `(by_name, by_class)`.

    Takes `labels`, `first`, `second` (N,) int, K and a numpy Generator. `by_class` lists for each of the K classes the
    agreement on its samples, right or wrong alike, shuffled among them; NaN without samples. `by_name` maps these names
    to the Similarity on all samples. Cosines of non-negative vectors are near 1 whatever the classifiers do, so each
    value stands beside a baseline:
    confusion_cosine  of the row-normalised confusion matrices; shuffled by renaming the second's classes, so that
                      both still have a heavy diagonal (the renaming moves rows and columns together)
    error_cosine      the same without the diagonal: which classes are taken for which, once wrong
    recall_cosine     of the recalls; shuffled likewise
    agreement         share of samples with equal predictions; shuffled among the samples of each true class
    kappa             Cohen's kappa of the predictions; shuffled likewise
    error_overlap     samples that both get wrong over those that either gets wrong; shuffled likewise
    A renaming that changes nothing is one in K!, so p-values of the cosines hardly get below 1/K!: for two or three
    classes they cannot be small.
    Source: class-wise analysis paper, appendix B, which prints the first without a baseline.
    """
    labels, first, second = (np.asarray(values, dtype=np.int64) for values in (labels, first, second))
    matrices = [row_shares(confusion_matrix(labels, predicted, classes)) for predicted in (first, second)]
    matrices = [np.nan_to_num(matrix) for matrix in matrices]
    observed = _of_matrices(*matrices) | _of_samples(labels, first, second, classes)
    of_classes = _of_classes(labels, first, second, classes)
    members = _members(labels)
    shuffled, shuffled_classes = [], []
    for _ in range(shuffles):
        order = rng.permutation(classes)
        renamed = _of_matrices(matrices[0], matrices[1][np.ix_(order, order)])
        moved = second[_within_classes(members, rng)]
        shuffled.append(renamed | _of_samples(labels, first, moved, classes))
        shuffled_classes.append(_of_classes(labels, first, moved, classes))
    by_name = {
        name: Similarity(value, *_against([other[name] for other in shuffled], value))
        for name, value in observed.items()
    }
    others = np.transpose(shuffled_classes) if shuffles else np.empty((classes, 0))
    by_class = [
        Similarity(float(value), *_against(found, value)) for value, found in zip(of_classes, others, strict=True)
    ]
    return by_name, by_class


def _of_matrices(a, b):
    off = ~np.eye(len(a), dtype=bool)
    return {
        "confusion_cosine": _cosine(a.ravel(), b.ravel()),
        "error_cosine": _cosine(a[off], b[off]),
        "recall_cosine": _cosine(np.diag(a), np.diag(b)),
    }


def _of_samples(labels, first, second, classes):
    either = (first != labels) | (second != labels)
    both = (first != labels) & (second != labels)
    agreement = float(np.mean(first == second))
    # An abstention is a prediction of its own.
    counts = [np.bincount(np.where(p < 0, classes, p), minlength=classes + 1) / len(p) for p in (first, second)]
    chance = float(counts[0] @ counts[1])
    return {
        "agreement": agreement,
        "kappa": (agreement - chance) / (1 - chance) if chance < 1 else float("nan"),
        "error_overlap": float(both.sum() / either.sum()) if either.any() else float("nan"),
    }


def _of_classes(labels, first, second, classes):
    same, n = (np.bincount(labels[chosen], minlength=classes) for chosen in (first == second, slice(None)))
    return share(same, n)


def _cosine(a, b):
    length = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / length) if length > 0 else float("nan")


def _members(labels):
    # Rows of each class, ascending.
    return np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels))[:-1])


def _within_classes(members, rng):
    order = np.empty(sum(map(len, members)), dtype=np.int64)
    for rows in members:
        order[rows] = rng.permutation(rows)
    return order


def _against(others, value):
    others = np.asarray(others, dtype=np.float64)
    if np.isnan(value) or not len(others):
        return float("nan"), float("nan")
    # Rounding must not make a shuffle that changes nothing look smaller than the observed order.
    reached = np.count_nonzero(others >= value - 1e-12)
    return float(np.nanmean(others)), (1 + reached) / (1 + len(others))
