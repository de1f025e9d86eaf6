"""Falsification of the attack-free margin score by attack distances: rows of its table, and bounds for gate rules.

The score g is proposed as a lower bound of the distance to the nearest adversarial example. An adversarial example
nearer than g disproves this for its sample; a failed attack proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gfscore.audit.values import chosen_temperature
from gfscore.core.errors import InputError
from gfscore.core.identity import UNCALIBRATED
from gfscore.measures import NamedMeasure
from gfscore.statistics import SCALE
from gfscore.statistics.betting import one_sided_p_values
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.margins import scores, true_and_rival_logits
from gfscore.statistics.proportions import clopper_pearson
from gfscore.tables.table import ALL, ALL_NAME

if TYPE_CHECKING:
    from gfscore.audit.values import AuditValues
import math
from typing import TYPE_CHECKING

from gfscore.statistics.multiple_tests import SIGNIFICANT, holm
from gfscore.statistics.ranking import EXACT_UP_TO, exact_p_value_of, spearman

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray


def falsification_rows(
    inputs: AuditValues, class_names: Sequence[str], *, calibrations: Mapping[str, Any], alpha: float
) -> list[dict[str, Any]]:
    """Rows of falsification by model, measure of kind great, l2 measure of kind minimal, and temperature.

    For each, one row per class, then one for all samples. Takes AuditValues, K names, the contents of
    calibration.json and the error of each interval;
    no rows without logits or distances. Rows at a temperature that was chosen on the same samples have no interval; an
    audit with split samples counts those that report.
    """
    rows, distances_of = [], falsifying(inputs.subject.measures) if inputs.subject.logits else []
    great = {measure.name: measure.entry()["activation"] for measure in inputs.subject.of_kind("great")}
    groups = [*enumerate(class_names), (ALL, ALL_NAME)]
    for model in inputs.included if distances_of else ():
        evidence = inputs.logits_of(model)
        given = evidence.sample_id, evidence.labels, evidence.logits
        for against in distances_of:
            for measure, activation in great.items():
                chosen = calibrations if measure == inputs.subject.calibrated_measure else {}
                for calibration, temperature, split in _temperatures(chosen, model):
                    distances = inputs.table(model, against.name)
                    if split is not None:
                        reports = evidence.sample_id[~choosing_samples(evidence.sample_id, evidence.labels, split)]
                        distances = distances[distances["sample_id"].isin(reports)]
                    how = {"activation": activation, "temperature": temperature, "alpha": alpha}
                    how["largest"] = float(against.entry()["largest_distance"])
                    key = {**model.columns(), "measure": measure, "distances": against.name, "calibration": calibration}
                    key |= {"temperature": temperature, "confidence": 1 - alpha}
                    fresh = calibration == UNCALIBRATED or split is not None
                    void = {} if fresh else dict.fromkeys(("confidence", "low", "high", "p_mean"))
                    rows += [
                        {**key, "class_index": index, "class_name": name, **found, **void}
                        for (index, name), found in zip(groups, falsification(*given, distances, **how), strict=True)
                    ]
    return rows


def _temperatures(calibrations, model):
    # T = 1, then each chosen temperature: `(objective, temperature, split of the samples)`.
    yield UNCALIBRATED, 1.0, None
    for objective, result in calibrations.items():
        temperature = chosen_temperature(result, model)
        if temperature is not None:
            yield objective, temperature, result["split"]


def falsifying(measures: Mapping[str, NamedMeasure]) -> list[NamedMeasure]:
    """Measures whose distances the score can be compared with: those of kind minimal in l2."""
    minimal = [measure for measure in measures.values() if measure.kind.name == "minimal"]
    return [measure for measure in minimal if measure.entry()["norm"] == "l2"]


def falsification(
    sample_id: NDArray[np.str_],
    labels: NDArray[np.integer],
    logits: NDArray[np.floating],
    distances: pd.DataFrame,
    *,
    largest: float,
    activation: str,
    temperature: float = 1.0,
    alpha: float = 0.05,
) -> list[dict[str, Any]]:
    """Falsification of the attack-free score of one model, by class, then of all samples: K + 1 mappings.

    Takes `sample_id` (N,), `labels` (N,) and `logits` (N, K) of the scored samples, and l2 `distances` of the same
    samples or a subset: sample_id (unique), value (0 for a misclassified sample) and censored, searched up to
    `largest`. `alpha` is the error of each interval, which is not simultaneous over classes; it holds for independent
    samples and for the attacks that were run. A mapping has the columns of the table: `correct` samples by both
    measures; `violations`, those whose score exceeds the distance of an adversarial example; `rate`, their share in
    [0, 1], a lower bound of the share of samples whose score exceeds the true distance, of which 0 is no confirmation;
    `low`, `high`, its Clopper-Pearson interval; means, misclassified samples at 0; `p_mean`, the one-sided p-value by
    betting of "the mean score is at most the mean distance", valid for every n, 1 without samples. The others are NaN
    where there are no samples. Raises InputError for a distance of an unknown sample.
    """
    rows = pd.Index(sample_id).get_indexer(distances["sample_id"])
    if (rows < 0).any():
        first = distances["sample_id"].iloc[int((rows < 0).argmax())]
        raise InputError(
            f"{(rows < 0).sum()} samples have a distance but no logits, the first is {first!r}; measure both on the "
            "same dataset"
        )
    labels, logits = labels[rows], logits[rows]
    g = scores(logits, labels, activation=activation, temperature=temperature)
    value, censored = distances["value"].to_numpy(np.float64), distances["censored"].to_numpy(bool)
    own, rival = true_and_rival_logits(logits, labels)
    right, violated = contradicted(g, own > rival, value, censored)
    # The difference of score and distance is between -largest and SCALE.
    bound = max(SCALE, largest)
    excess = np.clip(g - value, -bound, bound)

    def group(chosen: NDArray[np.bool_]) -> dict[str, Any]:
        n, correct, violations = (int(which[chosen].sum()) for which in (np.ones_like(right), right, violated))
        rate, low, high, score, distance = (np.nan,) * 5
        if correct:
            rate, (low, high) = violations / correct, clopper_pearson(violations, correct, alpha=alpha)
        if n:
            score, distance = float(g[chosen].mean()), float(value[chosen].mean())
        p_mean = float(one_sided_p_values(excess[chosen][:, None], bound=bound, alpha=alpha)[0][0])
        counts = {"n": n, "correct": correct, "violations": violations, "censored": int(censored[chosen].sum())}
        means = {"mean_score": score, "mean_distance": distance, "p_mean": p_mean}
        return counts | {"rate": rate, "low": low, "high": high} | means

    return [*(group(labels == k) for k in range(logits.shape[1])), group(np.ones(len(labels), dtype=bool))]


def contradicted(
    score: NDArray[np.float64], correct: NDArray[np.bool_], value: NDArray[np.float64], censored: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Samples that both measures classify correctly, and those of them whose score is contradicted: two (N,) bool."""
    right = correct & ((value > 0) | censored)
    return right, right & ~censored & (score > value)


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
