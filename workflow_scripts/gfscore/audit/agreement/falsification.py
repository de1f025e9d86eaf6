"""Falsification of the attack-free margin score by attack distances.

The score g is proposed as a lower bound of the distance to the nearest adversarial example. An adversarial example
nearer than g disproves this for its sample; a failed attack proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.binomial import clopper_pearson
from gfscore.statistics.bounded_means import one_sided_p_values
from gfscore.statistics.margins import own_and_rival, scores
from gfscore.statistics.scale import SCALE


@dataclass(frozen=True)
class Distances:
    """Distances of one model by a measure of kind minimal, one row per sample.

    `sample_id` (N,) unique; `value` (N,) float64, 0 for a misclassified sample; `censored` (N,) bool; `norm` of the
    measure; `largest`, the largest distance searched.
    """

    sample_id: NDArray[np.str_]
    value: NDArray[np.float64]
    censored: NDArray[np.bool_]
    norm: str
    largest: float


@dataclass(frozen=True)
class Falsified:
    """Falsification of the scores of one class or of all samples.

    `n` samples with score and distance; `correct`, those classified correctly; `violations`, the correct ones whose
    score exceeds the distance of an adversarial example; `rate` their share in [0, 1], of which 0 is no confirmation;
    `low` and `high` its Clopper-Pearson interval; rate, low and high are NaN without correct samples; `censored` of the
    n; `mean_score` and `mean_distance` over the n, misclassified samples at 0, NaN without samples; `p_mean`, the
    one-sided p-value by betting of "the mean score is at most the mean distance", valid for every n, 1 without samples.
    """

    n: int
    correct: int
    violations: int
    rate: float
    low: float
    high: float
    censored: int
    mean_score: float
    mean_distance: float
    p_mean: float


@dataclass(frozen=True)
class Falsification:
    """Falsification of one model's scores at one temperature: by class (K items of Falsified), and of all samples."""

    temperature: float
    confidence: float
    classes: list[Falsified]
    model: Falsified


def falsification(
    sample_id: NDArray[np.str_],
    labels: NDArray[np.integer],
    logits: NDArray[np.floating],
    distances: Distances,
    *,
    activation: str,
    temperature: float = 1.0,
    alpha: float = 0.05,
) -> Falsification:
    """Falsification rate of the attack-free score of one model, per class and overall.

    Takes `sample_id` (N,), `labels` (N,) and `logits` (N, K) of the scored samples and Distances of the same samples or
    a subset, joined by sample_id. `alpha` is the error of each interval, which is not simultaneous over classes; it
    holds for independent samples and for the attacks that were run. The rate is a lower bound of the share of samples
    whose score exceeds the true distance. A sample counts as correct if both measures classify it correctly. Raises
    InputError for distances in a norm other than l2, and for an unknown or repeated sample.
    """
    if distances.norm != "l2":
        raise InputError(
            f"the attack-free score is proposed as an l2 distance and cannot be compared with {distances.norm} "
            "distances; measure minimal perturbations with norm: l2"
        )
    rows = _rows_of(distances.sample_id, np.asarray(sample_id))
    labels, logits = np.asarray(labels)[rows], np.asarray(logits)[rows]
    g = scores(logits, labels, activation=activation, temperature=temperature)
    value, censored = np.asarray(distances.value, dtype=np.float64), np.asarray(distances.censored, dtype=bool)
    own, rival = own_and_rival(logits, labels)
    right, violated = contradicted(g, own > rival, value, censored)

    def group(chosen: NDArray[np.bool_]) -> Falsified:
        p_mean = _p_value_of_means(g[chosen] - value[chosen], distances.largest, alpha)
        arrays = (of[chosen] for of in (g, value, censored, right, violated))
        return _falsified(*arrays, p_mean=p_mean, alpha=alpha)

    return Falsification(
        temperature=float(temperature),
        confidence=1 - alpha,
        classes=[group(labels == k) for k in range(logits.shape[1])],
        model=group(np.ones(len(labels), dtype=bool)),
    )


def contradicted(
    score: NDArray[np.float64], correct: NDArray[np.bool_], value: NDArray[np.float64], censored: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Samples that both measures classify correctly, and those of them whose score is contradicted: two (N,) bool.

    Takes `score` (N,) and `correct` (N,) bool of the score's measure, and `value` and `censored` (N,) of the measure of
    kind minimal.
    """
    right = correct & ((value > 0) | censored)
    return right, right & ~censored & (score > value)


def _p_value_of_means(excess, largest, alpha):
    # The difference of score and distance is between -largest and SCALE.
    bound = max(SCALE, largest)
    return float(one_sided_p_values(np.clip(excess, -bound, bound)[:, None], bound=bound, alpha=alpha)[0][0])


def _falsified(g, value, censored, right, violated, *, p_mean, alpha):
    n, correct, violations = len(g), int(right.sum()), int(violated.sum())
    rate, low, high = np.nan, np.nan, np.nan
    if correct:
        rate = violations / correct
        low, high = clopper_pearson(violations, correct, alpha=alpha)
    means = (float(g.mean()), float(value.mean())) if n else (np.nan, np.nan)
    return Falsified(n, correct, violations, rate, low, high, int(censored.sum()), *means, p_mean)


def _rows_of(wanted, among):
    # Row of each sample of `wanted` in `among`.
    rows = {name: row for row, name in enumerate(among)}
    if len(rows) < len(among) or len(set(wanted)) < len(wanted):
        raise InputError("a sample_id is repeated; make them unique, since distances and scores are joined by it")
    unknown = [name for name in wanted if name not in rows]
    if unknown:
        raise InputError(
            f"{len(unknown)} samples have a distance but no logits, the first is {unknown[0]!r}; measure both on the "
            "same dataset"
        )
    return np.array([rows[name] for name in wanted], dtype=np.int64)
