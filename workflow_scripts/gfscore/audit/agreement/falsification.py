"""Where attacks refute the attack-free margin score as a statement about distances.

The score g is proposed as a lower bound on the distance to the nearest adversarial example. One example that was found
nearer than g disproves that for its sample; that none was found proves nothing, because attacks can fail.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.numbers import count, interval, number, percent, setting
from gfscore.statistics.binomial import clopper_pearson
from gfscore.statistics.bounded_means import one_sided_p_values
from gfscore.statistics.margins import own_and_rival, scores
from gfscore.statistics.scale import SCALE


@dataclass(frozen=True)
class Distances:
    """Distances of one model's minimal measure, one row per sample.

    `sample_id` (N,) unique; `value` (N,) float64, 0 for a misclassified sample; `censored` (N,) bool; `norm` of the
    measure; `largest`, the largest distance searched, which no value exceeds.
    """

    sample_id: NDArray[np.str_]
    value: NDArray[np.float64]
    censored: NDArray[np.bool_]
    norm: str
    largest: float


@dataclass(frozen=True)
class Falsified:
    """Samples of one group, a class or a whole model, whose score a found adversarial example contradicts.

    `n` samples measured both ways; `correct` of them classified correctly; `violations`, those among the correct whose
    score exceeds the distance of an adversarial example found; `rate` their share in [0, 1], 0 being no contradiction
    and no confirmation; `low` and `high` its Clopper-Pearson interval, these four NaN without correct samples;
    `censored` of the n; `mean_score` and `mean_distance` over the n, misclassified samples at 0, NaN without samples;
    `p_mean` the p-value of "the mean score is at most the mean distance found", one-sided and by betting: exact for
    every n, 1 without samples.
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
    """Falsification of one model's score at one temperature: `classes`, a list of K Falsified, and the `model`."""

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

    Takes `sample_id` (N,), `labels` (N,) and `logits` (N, K) of the scored samples and Distances, which may be of a
    subset; they are joined by sample_id. `alpha` is the error of each interval, which is not simultaneous over
    classes; it holds for samples drawn independently, and for the attack that was run. The rate is a lower bound on
    the share of samples whose score exceeds the true distance. A sample counts as correct when both measurements
    classify it so. Raises InputError for distances in another norm than l2, an unknown or a repeated sample.
    """
    if distances.norm != "l2":
        raise InputError(
            f"the attack-free score is proposed as an l2 distance and cannot be compared with {distances.norm} ones; "
            "measure minimal perturbations with norm: l2"
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
    """Which samples count as correct, and which of their scores an adversarial example contradicts: two (N,) bool.

    Takes `score` (N,), `correct` (N,) bool, clean correctness where the score was measured, and `value` and `censored`
    (N,) of the minimal measure. A sample counts as correct when both measurements classify it so.
    """
    right = correct & ((value > 0) | censored)
    return right, right & ~censored & (score > value)


def sentence(result: Falsification, *, name: str) -> str:
    """What a Falsification says of one model, in plain words; `name` is the model's."""
    found, temperature = result.model, f"T = {setting(result.temperature)}"
    of_correct = f"{count(found.correct)} correctly classified samples"
    if found.correct == 0:
        return f"Nothing can be said about the attack-free score of {name}: no measured sample is classified correctly"
    if found.violations == 0:
        return (
            f"No adversarial example nearer than the attack-free score at {temperature} was found for any of the "
            f"{of_correct} of {name}, which confirms nothing: attacks that fail do not prove that there is none"
        )
    means = f"on average over the {count(found.n)} measured samples the score is {number(found.mean_score)} and the "
    limit = f", {count(found.censored)} of them not found and counted at the largest searched" if found.censored else ""
    means += f"distance found {number(found.mean_distance)}{limit}"
    return (
        f"The attack-free score of {name} at {temperature} is refuted by its attack distances as a lower bound on the "
        f"l2 distance to the nearest adversarial example: for {count(found.violations)} of {of_correct} "
        f"(share {number(found.rate)}, {percent(result.confidence)} interval "
        f"{interval(found.low, found.high, highest=1)}) one was found nearer than the score; {means}"
    )


def _p_value_of_means(excess, largest, alpha):
    # The excess of a score over a distance lies from -largest to SCALE.
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
    # Row of each wanted sample among all of them.
    rows = {name: row for row, name in enumerate(among)}
    if len(rows) < len(among) or len(set(wanted)) < len(wanted):
        raise InputError("a sample_id occurs twice; distances and scores are joined by it, so each must be unique")
    unknown = [name for name in wanted if name not in rows]
    if unknown:
        raise InputError(
            f"{len(unknown)} samples have a distance but no logits, {unknown[0]!r} the first; "
            "measure both on one dataset"
        )
    return np.array([rows[name] for name in wanted], dtype=np.int64)
