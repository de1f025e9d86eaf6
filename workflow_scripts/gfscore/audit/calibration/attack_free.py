"""Objectives that choose the temperature of the attack-free margin score without attacks.

What the GF-Score paper defines (Eq. 8) is not what its reported numbers measure (docs/what-reproduces.md), so each has
a separate name. Here they are defined as functions of the temperature; rank_objectives finds where the rank objectives
are constant, and largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from gfscore.statistics.curves import ScoreCurves
from gfscore.statistics.margins import BLOCK_ELEMENTS, require_temperature
from gfscore.statistics.ranking import spearman

Objective = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Function from temperatures (T,) to values (T,) or (T, M)."""

STABILITY_STEPS = 10
"""Steps in each half of the stability window [T - delta, T + delta]."""


def cross_model_accuracy(curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64]) -> Objective:
    """Eq. 8 as written: Spearman over models between aggregate score at T and clean accuracy.

    For softmax it tends to +1 as T -> 0 by construction, since the score tends to B times accuracy
    (docs/what-reproduces.md).

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    class_accuracy : ndarray (M, K) of float64
        Clean accuracy of each class, NaN for a class without samples.

    Returns
    -------
    Objective
        Values in [-1, 1].
    """
    scores = aggregates(curves)
    accuracy = aggregate_accuracy(curves, class_accuracy)

    def objective(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(spearman(scores(temperatures), accuracy))

    return objective


def aggregates(curves: Sequence[ScoreCurves]) -> Objective:
    """Aggregate scores of M models over the temperature: a function from temperatures (T,) to values (T, M)."""

    def scores(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([_aggregate(curve(temperatures), curve.n) for curve in curves], axis=1)

    return scores


def aggregate_accuracy(curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clean accuracy over all samples (M,), from class accuracies (M, K) and the class sizes of M ScoreCurves."""
    return np.array([_aggregate(row[None], curve.n)[0] for row, curve in zip(class_accuracy, curves, strict=True)])


def within_model_class_accuracy(curves: Sequence[ScoreCurves], class_accuracy: NDArray[np.float64]) -> Objective:
    """Mean over models of the Spearman over classes between class scores at T and class accuracies.

    This is what the numbers reported in the GF-Score paper are (docs/what-reproduces.md). Models whose class accuracies
    are all equal do not count.

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    class_accuracy : ndarray (M, K) of float64
        Clean accuracy of each class, NaN for a class without samples.

    Returns
    -------
    Objective
        Values in [-1, 1], NaN where no model counts.
    """

    def objective(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        correlations = []
        for curve, accuracy in zip(curves, class_accuracy, strict=True):
            present = curve.n > 0
            correlations.append(spearman(curve(temperatures)[:, present], accuracy[present]))
        return _mean_without_nan(np.array(correlations))

    return objective


def ranking_stability(
    curves: Sequence[ScoreCurves], *, delta: float, low: float, high: float, endpoints_only: bool = False
) -> Objective:
    """Eq. 9: mean over models of the stability of the ranking of classes under small changes of T.

    For each model the smallest Spearman between its class scores at T and at any T' in [T - delta, T + delta].

    Parameters
    ----------
    curves : sequence of M ScoreCurves
    delta : float
        Half-width of the window.
    low, high : float
        Range of temperatures, to which the window is clipped.
    endpoints_only : bool
        Whether the window is sampled at its two ends, which is what the authors ran, rather than at
        2 * STABILITY_STEPS + 1 points.

    Returns
    -------
    Objective
        Values in [-1, 1].
    """
    steps = np.linspace(-1, 1, 2 * STABILITY_STEPS + 1)
    if endpoints_only:
        steps = np.array([-1.0, 1.0])

    def objective(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        window = np.clip(np.asarray(temperatures)[:, None] + delta * steps, low, high)
        stability = []
        for curve in curves:
            present = curve.n > 0
            center = curve(temperatures)[:, None, present]
            neighbours = curve(window.ravel())[:, present].reshape(*window.shape, -1)
            stability.append(spearman(center, neighbours).min(axis=1))
        return _mean_without_nan(np.array(stability))

    return objective


def log_loss(logits: NDArray[np.floating], labels: NDArray[np.integer], temperature: float) -> float:
    """Mean negative log-likelihood of the true class under softmax(z / T).

    Parameters
    ----------
    logits : ndarray (N, K)
    labels : ndarray (N,) of int
    temperature : float
        Above 0.

    Returns
    -------
    float
        In nats, lower is better.
    """
    require_temperature(temperature)
    total = np.empty(len(labels))
    true_class = np.empty(len(labels))
    for rows, shifted in _shifted_blocks(logits, temperature):
        true_class[rows] = np.take_along_axis(shifted, labels[rows, None], axis=1)[:, 0]
        total[rows] = np.exp(shifted, out=shifted).sum(axis=1)
    return float(np.mean(np.log(total) - true_class))


def likelihood_temperature(
    logits: NDArray[np.floating], labels: NDArray[np.integer], *, low: float, high: float
) -> float:
    """Temperature that minimises the log-loss of one model on held-out samples (temperature scaling).

    The log-loss is convex in 1/T, so a bounded search finds the minimum.

    Parameters
    ----------
    logits : ndarray (N, K)
        Logits of the held-out samples.
    labels : ndarray (N,) of int
    low, high : float
        Range of temperatures.

    References
    ----------
    Guo et al. 2017.
    """
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
    """Expected calibration error of each class's predicted probability.

    For class k: mean over samples of |mean predicted probability of k - share of label k| within equal-width bins.

    Parameters
    ----------
    logits : ndarray (N, K)
    labels : ndarray (N,) of int
    temperature : float
        Above 0.
    bins : int
        Number of bins.

    Returns
    -------
    ndarray (K,) of float64
        In [0, 1], 0 is calibrated; NaN for a class without samples.

    References
    ----------
    Class-wise ECE, Kull et al. 2019.
    """
    require_temperature(temperature)
    classes = logits.shape[1]
    gap = np.zeros(classes * bins)
    for rows, shifted in _shifted_blocks(logits, temperature):
        probability = np.exp(shifted, out=shifted)
        probability /= probability.sum(axis=1, keepdims=True)
        cell = np.minimum((probability * bins).astype(np.intp), bins - 1) + bins * np.arange(classes)
        probability[np.arange(len(probability)), labels[rows]] -= 1
        gap += np.bincount(cell.ravel(), weights=probability.ravel(), minlength=len(gap))
    error = np.abs(gap.reshape(classes, bins)).sum(axis=1) / len(labels)
    error[np.bincount(labels, minlength=classes) == 0] = np.nan
    return error


def _shifted_blocks(logits: NDArray[np.floating], temperature: float) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    # Rows as a slice, and z / T minus its row maximum, a float64 copy. Blocks keep time and memory low, since the
    # likelihood objective passes over all logits hundreds of times.
    step = max(1, BLOCK_ELEMENTS // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        shifted = logits[rows].astype(np.float64)
        shifted /= temperature
        shifted -= shifted.max(axis=1, keepdims=True)
        yield rows, shifted


def _aggregate(class_scores: NDArray[np.float64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    present = n > 0
    return class_scores[:, present] @ (n[present] / n.sum())


def _mean_without_nan(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    defined = ~np.isnan(rows)
    total = np.where(defined, rows, 0).sum(axis=0)
    count = defined.sum(axis=0)
    return np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
