"""Relations of two columns of numbers: orders of models, and scores against distances that attacks found."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gfscore.statistics.multiplicity import SIGNIFICANT, holm
from gfscore.statistics.ranking import EXACT_UP_TO, exact_p_value_of, spearman

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

FEW_MODELS = 5
"""With fewer, no rank correlation can be significant: of the 4! orders of four models two are already 8%."""

ROUNDING = 1e-12

REFUTED, NOT_SETTLED, NOT_REFUTED = "refuted", "not settled", "not refuted"
"""Outcomes of the comparison of a mean score with attack distances."""


def rank_relation(x: ArrayLike, y: ArrayLike) -> tuple[float, bool]:
    """Spearman rank correlation over models and whether it is clear, as a pair.

    Clear: two-sided p at most SIGNIFICANT, by every permutation up to EXACT_UP_TO models, by Student's t approximation
    beyond; never where models are few. Descriptive, since models share the samples.
    """
    rho = float(spearman(x, y))
    pairs = int((np.isfinite(x) & np.isfinite(y)).sum())
    if math.isnan(rho) or pairs < FEW_MODELS:
        return rho, False
    if pairs <= EXACT_UP_TO:
        return rho, exact_p_value_of(x, y) <= SIGNIFICANT
    from scipy.special import stdtr

    statistic = abs(rho) * math.sqrt((pairs - 2) / max(1e-12, 1 - rho**2))
    return rho, float(2 * stdtr(pairs - 2, -statistic)) <= SIGNIFICANT


def mean_scores_against_distances(rows: pd.DataFrame) -> NDArray[np.object_]:
    """Whether the mean score of each model is REFUTED, NOT_SETTLED or NOT_REFUTED by its mean distance, as words (M,).

    Takes falsification rows at T = 1 of all samples, one per model, of one score and one measure of distances. Refuted
    where the mean score surely exceeds the mean distance, by Holm over the models at the confidence of the rows, and
    every sample was broken. One that was not counts at the largest distance searched, which may lie below its true
    distance, so that the mean distance no longer bounds the true mean from above.
    """
    above = rows["mean_score"].to_numpy() > rows["mean_distance"].to_numpy()
    sure = holm(rows["p_mean"], family=len(rows)) <= 1 - rows["confidence"].to_numpy() + ROUNDING
    broken = rows["censored"].to_numpy() == 0
    return np.select([above & sure & broken, above], [REFUTED, NOT_SETTLED], NOT_REFUTED).astype(object)
