"""Objectives that choose the temperature of the attack-free margin score without attacks.

What the GF-Score paper defines (Eq. 8) is not what its reported numbers measure (docs/what-reproduces.md), so each has
a separate name. Here they are defined as functions of the temperature; rank_objectives finds where the rank objectives
are constant, and largest.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.curves import ScoreCurves
from gfscore.statistics.margins import BLOCK_ELEMENTS, require_temperature
from gfscore.statistics.ranking import spearman

Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Function from temperatures (T,) to values (T,) or (T, M)."""

STABILITY_STEPS = 10
"""Steps in each half of the stability window [T - delta, T + delta]."""


def cross_model_accuracy(curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64]) -> Objective:
    """Eq. 8 as written: Spearman over models between aggregate score at T and clean accuracy.

    `curves` are M ScoreCurves, `class_accuracy` (M, K) clean accuracy per class, NaN for a class without samples.
    Returns a function from temperatures (T,) to values (T,) in [-1, 1]. For softmax it tends to +1 as T -> 0 by
    construction, since the score tends to B times accuracy (docs/what-reproduces.md).
    """
    scores, accuracy = aggregates(curves), aggregate_accuracy(curves, class_accuracy)
    return lambda temperatures: np.asarray(spearman(scores(temperatures), accuracy))


def aggregates(curves: Sequence[ScoreCurves]) -> Objective:
    """Function from temperatures (T,) to the aggregate score of each of M ScoreCurves, (T, M)."""
    return lambda temperatures: np.stack([_aggregate(curve(temperatures), curve.n) for curve in curves], axis=1)


def aggregate_accuracy(curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clean accuracy over all samples (M,), from class accuracies (M, K) and the class sizes of M ScoreCurves."""
    return np.array([_aggregate(row[None], curve.n)[0] for row, curve in zip(class_accuracy, curves, strict=True)])


def within_model_class_accuracy(curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64]) -> Objective:
    """Mean over models of the Spearman over classes between class scores at T and class accuracies.

    This is what the numbers reported in the GF-Score paper are (docs/what-reproduces.md). Arguments as in
    cross_model_accuracy; models whose class accuracies are all equal are left out.
    """

    def objective(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        agreement = []
        for curve, accuracy in zip(curves, class_accuracy, strict=True):
            present = curve.n > 0
            agreement.append(spearman(curve(temperatures)[:, present], accuracy[present]))
        return _mean_of_known(np.array(agreement))

    return objective


def ranking_stability(
    curves: Sequence[ScoreCurves], *, delta: float, low: float, high: float, endpoints_only: bool = False
) -> Objective:
    """Eq. 9: mean over models of the stability of the ranking of classes under small changes of T.

    For each model the smallest Spearman between its class scores at T and at any T' in [T - delta, T + delta],
    clipped to [low, high]; the window is sampled at 2 * STABILITY_STEPS + 1 points, or at its two ends only with
    `endpoints_only`, which is what the authors ran.
    """
    steps = np.array([-1.0, 1.0]) if endpoints_only else np.linspace(-1, 1, 2 * STABILITY_STEPS + 1)

    def objective(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        window = np.clip(np.asarray(temperatures)[:, None] + delta * steps, low, high)
        stability = []
        for curve in curves:
            present = curve.n > 0
            center = curve(temperatures)[:, None, present]
            around = curve(window.ravel())[:, present].reshape(*window.shape, -1)
            stability.append(spearman(center, around).min(axis=1))
        return _mean_of_known(np.array(stability))

    return objective


def log_loss(logits: NDArray[np.floating], labels: NDArray[np.integer], temperature: float) -> float:
    """Mean negative log-likelihood of the true class under softmax(z / T), in nats, lower is better."""
    require_temperature(temperature)
    total, own = np.empty(len(labels)), np.empty(len(labels))
    for rows, shifted in _shifted(logits, temperature):
        own[rows] = np.take_along_axis(shifted, labels[rows, None], axis=1)[:, 0]
        total[rows] = np.exp(shifted, out=shifted).sum(axis=1)
    return float(np.mean(np.log(total) - own))


def likelihood_temperature(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, low: float, high: float
) -> float:
    """Temperature in [low, high] that minimises the log-loss of one model on held-out samples (temperature scaling).

    Takes `logits` (N, K) and `labels` (N,) of the held-out samples. The log-loss is convex in 1/T, so a bounded search
    finds the minimum. Source: Guo et al. 2017.
    """
    from scipy.optimize import minimize_scalar

    minimum = minimize_scalar(
        lambda log_t: log_loss(logits, labels, float(np.exp(log_t))),
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(minimum.x))


def class_calibration_error(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, temperature: float, bins: int = 15
) -> NDArray[np.float64]:
    """Expected calibration error of each class's predicted probability, (K,) in [0, 1], 0 is calibrated.

    For class k: mean over samples of |mean predicted probability of k - share of label k| within equal-width bins.
    NaN for a class without samples. Source: class-wise ECE, Kull et al. 2019.
    """
    require_temperature(temperature)
    classes = logits.shape[1]
    gap = np.zeros(classes * bins)
    for rows, shifted in _shifted(logits, temperature):
        probability = np.exp(shifted, out=shifted)
        probability /= probability.sum(axis=1, keepdims=True)
        cell = np.minimum((probability * bins).astype(np.intp), bins - 1) + bins * np.arange(classes)
        probability[np.arange(len(probability)), labels[rows]] -= 1
        gap += np.bincount(cell.ravel(), weights=probability.ravel(), minlength=len(gap))
    error = np.abs(gap.reshape(classes, bins)).sum(axis=1) / len(labels)
    error[np.bincount(labels, minlength=classes) == 0] = np.nan
    return error


def _shifted(logits, temperature):
    # Yields blocks: rows as a slice, and z / T minus its row maximum, a float64 copy. Blocks keep time and memory low,
    # since the likelihood objective passes over all logits hundreds of times.
    step = max(1, BLOCK_ELEMENTS // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        shifted = logits[rows].astype(np.float64)
        shifted /= temperature
        shifted -= shifted.max(axis=1, keepdims=True)
        yield rows, shifted


def _aggregate(class_scores, n):
    present = n > 0
    return class_scores[:, present] @ (n[present] / n.sum())


def _mean_of_known(rows):
    known = ~np.isnan(rows)
    total = np.where(known, rows, 0).sum(axis=0)
    count = known.sum(axis=0)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
