"""Similarity of the predictions and errors of two classifiers, with a baseline by chance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from gfscore.audit.classwise.confusion import confusion_matrix, row_shares, share


@dataclass(frozen=True)
class Similarity:
    """Similarity of two classifiers on the same samples.

    `value` of the pair; `baseline`, its mean over random permutations; `p_value`, the share of permutations that reach
    the value (one-sided, the observed order included), NaN where the value is undefined.
    """

    value: float
    baseline: float
    p_value: float


def similarities(
    labels: ArrayLike, first: ArrayLike, second: ArrayLike, classes: int, *, shuffles: int, rng: np.random.Generator
) -> tuple[dict[str, Similarity], list[Similarity]]:
    """Similarities of two classifiers' predictions of the same N samples: `(by_name, by_class)`.

    Takes `labels`, `first`, `second` (N,) int, K and a numpy Generator. `by_class` holds for each of the K classes the
    agreement on its samples, NaN without samples. `by_name` maps these names to the Similarity on all samples, each
    with a baseline, since cosines of non-negative vectors are always near 1:
    confusion_cosine  of the row-normalised confusion matrices; permuted by renaming the classes of the second in rows
                      and columns, which keeps its diagonal
    error_cosine      the same without the diagonal
    recall_cosine     of the recalls; permuted likewise
    agreement         share of samples with equal predictions; permuted among the samples of each true class
    kappa             Cohen's kappa of the predictions; permuted likewise
    error_overlap     samples misclassified by both over those misclassified by either; permuted likewise
    The identity is one of K! renamings, so p-values of the cosines are hardly below 1/K!.
    Source: class-wise analysis paper, appendix B, which reports the first without a baseline.
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
    # Abstentions count as an additional class.
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
    # Tolerance for permutations that give the observed value up to rounding.
    reached = np.count_nonzero(others >= value - 1e-12)
    return float(np.nanmean(others)), (1 + reached) / (1 + len(others))
