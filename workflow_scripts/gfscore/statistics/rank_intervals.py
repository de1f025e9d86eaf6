"""Ranks of models with confidence intervals."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.statistics.multiplicity import holm


def rank_intervals(
    p_values: Sequence[NDArray[np.float64]], pairs: ArrayLike, *, models: int, alpha: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Simultaneous confidence intervals of the ranks of M models, 1 for the best.

    Takes one-sided p-values `(first_better, second_better)`, each (P,), of all P = M (M - 1) / 2 `pairs` (P, 2) of
    model indices, the number of `models`, and `alpha`. Holm's procedure over both directions of all pairs finds the
    models that differ; a model's rank is then at least 1 + the number of significantly better models and at most M -
    the number of significantly worse ones. Returns `(best, worst)`, each (M,) int64. With probability at least
    1 - alpha every model's true rank lies between; models of equal value may take any of their shared ranks.
    Source: Mogstad, Romano, Shaikh and Wilhelm 2024, Theorem 3.1.
    """
    pairs = np.asarray(pairs).reshape(-1, 2)
    significant = holm(np.concatenate(p_values), family=2 * len(pairs)) <= alpha
    first, second = pairs.T
    winners = np.concatenate([first, second])[significant]
    losers = np.concatenate([second, first])[significant]
    best = 1 + np.bincount(losers, minlength=models)
    worst = models - np.bincount(winners, minlength=models)
    return best, worst
