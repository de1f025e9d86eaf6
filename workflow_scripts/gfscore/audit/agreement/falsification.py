"""Falsification of the attack-free margin score by attack distances: table `falsification`.

The score g is proposed as a lower bound of the distance to the nearest adversarial example. An adversarial example
nearer than g disproves this for its sample; a failed attack proves nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import cast

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.calibration_results import Calibrations
from gfscore.audit.samples import ModelLogits
from gfscore.audit.settings import CalibrationSplit
from gfscore.audit.values import AuditValues
from gfscore.core.identity import ALL, ALL_NAME, UNCALIBRATED, ModelName
from gfscore.measures import NamedMeasure
from gfscore.measures.great import Great
from gfscore.measures.minimal import Minimal
from gfscore.statistics import SCALE
from gfscore.statistics.betting import one_sided_p_values
from gfscore.statistics.classes import choosing_samples
from gfscore.statistics.margins import scores, true_and_rival_logits
from gfscore.statistics.multiple_tests import holm, is_significant
from gfscore.statistics.proportions import clopper_pearson
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import CALIBRATION, CLASS_OR_ALL, MEASURED, Column, Table

FALSIFICATION_TABLE = Table(
    name="falsification",
    version=1,
    columns=(
        *MEASURED,
        Column("distances", pa.string(), "measure of kind minimal that the score is compared with"),
        CALIBRATION,
        Column("temperature", pa.float64(), "temperature of the score"),
        *CLASS_OR_ALL,
        Column("n", pa.int64(), "samples with both a score and a distance"),
        Column("correct", pa.int64(), "of these, classified correctly by both measures"),
        Column("violations", pa.int64(), "of these, with an adversarial example nearer than the score"),
        Column(
            "rate", pa.float64(), "violations / correct, a lower bound of the true share; null without correct samples"
        ),
        Column(
            "low",
            pa.float64(),
            "lower Clopper-Pearson bound of this row alone; null without correct samples, or if T was chosen on these "
            "samples",
        ),
        Column(
            "high",
            pa.float64(),
            "upper bound of the share that these attacks contradict, not of the true one; null where low is",
        ),
        Column("confidence", pa.float64(), "confidence of the bounds; null if T was chosen on these samples"),
        Column("censored", pa.int64(), "samples without an adversarial example found"),
        Column("mean_score", pa.float64(), "mean score over the n samples, 0 if misclassified"),
        Column("mean_distance", pa.float64(), "mean distance, 0 if misclassified, the largest searched if censored"),
        Column(
            "p_mean",
            pa.float64(),
            "p-value by betting of the hypothesis mean score <= mean_distance; null if T was chosen on these samples",
        ),
    ),
)

REFUTED = "refuted"
NOT_SETTLED = "not settled"
NOT_REFUTED = "not refuted"

INFERENCE_COLUMNS = ["confidence", "low", "high", "p_mean"]
"""Bounds and p-values, which are valid only where no temperature was chosen on the same samples."""


def falsification_table(
    audit_values: AuditValues, class_names: Sequence[str], *, calibrations: Calibrations, alpha: float
) -> pd.DataFrame:
    """Table `falsification`: for each model, measure of distances, score and temperature the classes, then all samples.

    Rows at a temperature that was chosen on the same samples have no interval. With a calibration split, rows at a
    chosen temperature are of the reporting samples. The table is empty without logits or an l2 measure of kind minimal.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    class_names : sequence of str
        Names of the K classes.
    calibrations : mapping of str to Calibration
        By objective.
    alpha : float
        Error of each interval.
    """
    distance_measures = l2_distance_measures(audit_values.subject.measures)
    if not audit_values.subject.logits or not distance_measures:
        return stacked(FALSIFICATION_TABLE, [])

    frames = []
    for model in audit_values.included:
        evidence = audit_values.logits_of(model)
        for distance_measure, score in product(distance_measures, audit_values.subject.of_kind("great")):
            is_calibrated = score.name == audit_values.subject.calibrated_measure
            for calibration, temperature, split in _temperatures(calibrations if is_calibrated else {}, model):
                distances = audit_values.table(model, distance_measure.name)
                if split is not None:
                    distances = _of_reporting_samples(distances, evidence, split)
                frame = falsification(
                    evidence.sample_id,
                    evidence.labels,
                    evidence.logits,
                    distances,
                    largest=cast(Minimal, distance_measure.settings).largest_distance,
                    activation=cast(Great, score.settings).activation,
                    temperature=temperature,
                    alpha=alpha,
                )
                frame = frame.assign(
                    **model.columns(),
                    measure=score.name,
                    distances=distance_measure.name,
                    calibration=calibration,
                    temperature=temperature,
                    class_index=[*range(len(class_names)), ALL],
                    class_name=[*class_names, ALL_NAME],
                    confidence=1 - alpha,
                )
                if calibration != UNCALIBRATED and split is None:
                    frame[INFERENCE_COLUMNS] = np.nan
                frames.append(frame)
    return stacked(FALSIFICATION_TABLE, frames)


def _of_reporting_samples(distances: pd.DataFrame, evidence: ModelLogits, split: CalibrationSplit) -> pd.DataFrame:
    # Without the samples that chose the temperature.
    chose = choosing_samples(evidence.sample_id, evidence.labels, share=split.share, seed=split.seed)
    return distances[distances["sample_id"].isin(evidence.sample_id[~chose])]


def _temperatures(calibrations: Calibrations, model: ModelName) -> Iterator[tuple[str, float, CalibrationSplit | None]]:
    # T = 1, then each chosen temperature: objective, temperature, split of the samples.
    yield UNCALIBRATED, 1.0, None
    for objective, calibration in calibrations.items():
        temperature = calibration.temperature_of(model.label)
        if temperature is not None:
            yield objective, temperature, calibration.split


def l2_distance_measures(measures: Mapping[str, NamedMeasure]) -> list[NamedMeasure]:
    """Measures whose distances a score can be compared with: kind minimal, norm l2."""
    distances = []
    for measure in measures.values():
        if isinstance(measure.settings, Minimal) and measure.settings.norm == "l2":
            distances.append(measure)
    return distances


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
) -> pd.DataFrame:
    """Falsification of the attack-free score of one model, by class, then of all samples.

    Parameters
    ----------
    sample_id : array of str, shape (N,)
    labels : array of int, shape (N,)
    logits : array of float, shape (N, K)
        Logits of the scored samples.
    distances : DataFrame
        l2 distances of the same samples or a subset: sample_id (unique), value (0 for a misclassified sample) and
        censored.
    largest : float
        Largest distance searched.
    activation : str
        Activation of the score.
    temperature : float
        Temperature of the score.
    alpha : float
        Error of each interval, which is not simultaneous over classes. It holds for independent samples and for the
        attacks that were run.

    Returns
    -------
    DataFrame
        K + 1 rows; all but the counts and `p_mean` are NaN without samples.

        - ``n`` samples, of which ``censored`` have no adversarial example; ``correct`` samples, which both measures
          classify correctly; ``violations``, correct samples whose score exceeds the distance of an adversarial example
        - ``rate`` of violations in [0, 1], a lower bound of the share of samples whose score exceeds the true distance;
          0 is no confirmation
        - ``low``, ``high`` its Clopper-Pearson interval
        - ``mean_score``, ``mean_distance`` misclassified samples at 0
        - ``p_mean`` one-sided p-value by betting of "the mean score is at most the mean distance", valid for every n, 1
          without samples
    """
    rows = pd.Index(sample_id).get_indexer(distances["sample_id"])
    labels = labels[rows]
    logits = logits[rows]
    score = scores(logits, labels, activation=activation, temperature=temperature)
    distance = distances["value"].to_numpy(np.float64)
    censored = distances["censored"].to_numpy(bool)
    true_logit, rival_logit = true_and_rival_logits(logits, labels)
    both_correct, violated = violations_of(score, true_logit > rival_logit, distance, censored)

    # The difference of score and distance is between -largest and SCALE.
    bound = max(SCALE, largest)
    excess = np.clip(score - distance, -bound, bound)
    groups = [labels == k for k in range(logits.shape[1])]
    groups.append(np.ones(len(labels), dtype=bool))
    result = []
    for group in groups:
        n = int(group.sum())
        correct = int(both_correct[group].sum())
        violations = int(violated[group].sum())
        rate = low = high = np.nan
        if correct:
            rate = violations / correct
            low, high = clopper_pearson(violations, correct, alpha=alpha)
        p_values, _ = one_sided_p_values(excess[group][:, None], bound=bound, alpha=alpha)
        result.append(
            {
                "n": n,
                "correct": correct,
                "violations": violations,
                "censored": int(censored[group].sum()),
                "mean_score": float(score[group].mean()) if n else np.nan,
                "mean_distance": float(distance[group].mean()) if n else np.nan,
                "p_mean": float(p_values[0]),
                "rate": rate,
                "low": low,
                "high": high,
            }
        )
    return pd.DataFrame(result)


def violations_of(
    score: NDArray[np.float64], correct: NDArray[np.bool_], distance: NDArray[np.float64], censored: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Samples that both measures classify correctly, and those of them whose score exceeds an attack distance.

    Parameters
    ----------
    score : array of float, shape (N,)
    correct : array of bool, shape (N,)
        Whether the scored classifier is right.
    distance : array of float, shape (N,)
        Distance of the nearest adversarial example found, 0 for a misclassified sample.
    censored : array of bool, shape (N,)
        Whether none was found.

    Returns
    -------
    both_correct, violated : array of bool, shape (N,)
    """
    both_correct = correct & ((distance > 0) | censored)
    return both_correct, both_correct & ~censored & (score > distance)


def mean_scores_against_distances(rows: pd.DataFrame, *, left_out: int) -> NDArray[np.object_]:
    """Whether the mean score of each model is refuted by its mean distance.

    Refuted where the mean score surely exceeds the mean distance, by Holm over the models at the confidence of the
    rows, and every sample was broken. One that was not counts at the largest distance searched, which may lie below
    its true distance, so that the mean distance no longer bounds the true mean from above.

    Parameters
    ----------
    rows : DataFrame
        Rows of `falsification` at T = 1 of all samples, one per model, of one score and one measure of distances.
    left_out : int
        Number of models that take no part, which Holm's adjustment counts (see AuditValues.left_out).

    Returns
    -------
    array of str, shape (M,)
        REFUTED, NOT_SETTLED or NOT_REFUTED.
    """
    above = rows["mean_score"].to_numpy() > rows["mean_distance"].to_numpy()
    sure = is_significant(holm(rows["p_mean"], family=len(rows) + left_out), level=1 - rows["confidence"].to_numpy())
    broken = rows["censored"].to_numpy() == 0
    return np.select([above & sure & broken, above], [REFUTED, NOT_SETTLED], NOT_REFUTED).astype(object)
