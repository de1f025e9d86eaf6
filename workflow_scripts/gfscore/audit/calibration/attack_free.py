"""Objectives by ranks that choose the temperature of the attack-free margin score without attacks.

What the GF-Score paper defines (Eq. 8) is not what its reported numbers measure (docs/what-reproduces.md), so each has
a separate name. Here they are defined as functions of the temperature; rank_objectives finds where the rank objectives
are constant, and largest.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.curves import ScoreCurves
from gfscore.statistics.quotients import ratio
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
    are all equal do not count; see mean_over_models.

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
        return mean_over_models(np.array(correlations))

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
        return mean_over_models(np.array(stability))

    return objective


def mean_over_models(by_model: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over models of their values (M, T) at each temperature, (T,).

    A value is NaN where all class scores of a model are tied: they say nothing, so it counts as 0. If models were left
    out there, an objective would be largest where only the others have scores. A model without any value does not
    count. NaN where no model has a value: no temperature to choose, even if all others have an objective below 0.
    """
    counted = ~np.isnan(by_model).all(axis=1)
    means = ratio(np.nan_to_num(by_model).sum(axis=0), counted.sum())
    return np.where(np.isnan(by_model).all(axis=0), np.nan, means)


def _aggregate(class_scores: NDArray[np.float64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    present = n > 0
    return class_scores[:, present] @ (n[present] / n.sum())
