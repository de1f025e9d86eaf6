"""Rows of the table falsification, and bounds of the falsification rate for gate rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.audit.agreement.columns import ALL, ALL_NAME
from gfscore.audit.agreement.falsification import Distances, contradicted, falsification
from gfscore.audit.inputs import chosen_temperature
from gfscore.audit.verdicts.gate_rules import FALSIFICATION, evidence_of
from gfscore.core.errors import InputError
from gfscore.core.identity import UNCALIBRATED, label_of
from gfscore.measures import Measure
from gfscore.statistics.class_bounds import bounds_of
from gfscore.statistics.splits import choosing_samples

if TYPE_CHECKING:
    from gfscore.audit.inputs import AuditInputs
    from gfscore.audit.verdicts.verdict import Candidate

CONTRADICTION = Measure(
    title="Score contradicted by an attack",
    value_range=(0.0, 1.0),
    unit="share of correct samples",
    explanation="1 when an adversarial example was found nearer than the score, else 0.",
    binary=True,
)


def falsification_rows(inputs: AuditInputs, class_names: Sequence[str], *, alpha: float) -> list[dict[str, Any]]:
    """Rows of falsification by model, measure of kind great, l2 measure of kind minimal, and temperature.

    For each, one row per class, then one for all samples. Takes AuditInputs with the logits of all models, K names and
    the error of each interval. Rows at a temperature that was chosen on the same samples have no interval; an audit
    with split samples counts those that report.
    """
    rows, distances_of = [], falsifying(inputs.measures)
    for model, own in inputs.by_model() if distances_of else ():
        evidence = inputs.logits_of(model)
        for against in distances_of:
            distances = _distances(own[against], inputs.measures[against]["largest_distance"])
            for measure, settings in inputs.measures.items():
                if settings["kind"] != "great":
                    continue
                key = {**model, "measure": measure, "distances": against}
                chosen = inputs.calibrations if measure == inputs.calibrated_measure else {}
                for temperature in _temperatures(chosen, label_of(model)):
                    rows += _rows(key, evidence, distances, settings, class_names, temperature=temperature, alpha=alpha)
    return rows


def falsifying(measures: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names of the measures whose distances the score can be compared with: those of kind minimal in l2."""
    return [name for name, entry in measures.items() if entry["kind"] == "minimal" and entry["norm"] == "l2"]


def add_contradictions(
    candidates: Iterable[Candidate],
    inputs: AuditInputs,
    *,
    rules: Sequence[Mapping[str, Any]],
    class_names: Sequence[str],
    intervals: Mapping[str, Any],
) -> None:
    """Add bounds of the falsification rate at T = 1 to each Candidate, for the rules that judge it.

    Takes AuditInputs of an audit with one l2 measure of kind minimal. Uses the samples that both measures classify
    correctly.
    # ASSUME: labels are correct, and correct samples are independent draws from the correct samples of the class.
    """
    judged = [rule for rule in rules if rule["statistic"] == FALSIFICATION]
    if not judged:
        return
    (against,) = falsifying(inputs.measures)
    by_model = {(candidate.threat, candidate.model): candidate for candidate in candidates}
    for model, own in inputs.by_model():
        candidate = by_model[model["threat"], model["model"]]
        for rule in judged:
            measure = rule["measure"]
            labels, violated, may_be = _contradictions(own, measure, against)
            together = rule.get("class") is None
            candidate.bounds[evidence_of(rule)] = bounds_of(
                violated.astype(np.float64),
                np.zeros_like(labels) if together else labels,
                1 if together else len(class_names),
                measure=CONTRADICTION,
                intervals=intervals,
                upper_values=may_be.astype(np.float64),
            )


def _contradictions(own, measure, against):
    # Labels of the samples that are right by both measures, which of them contradict the score, and which may: those
    # too whose distance is missing.
    scores = own[measure][["sample_id", "label", "value", "correct"]]
    distances = own[against][["sample_id", "value", "censored"]]
    both = distances.merge(scores, on="sample_id", suffixes=("_distance", ""), validate="one_to_one")
    if len(both) < len(distances):
        raise InputError(
            f"{own.path(against)}: samples without a score in {own.path(measure)}; measure both on the same dataset"
        )
    columns = (both[name].to_numpy() for name in ("value", "correct", "value_distance", "censored"))
    right, violated = contradicted(*columns)
    missing = ~np.isin(own.expected(against).sample_id, distances["sample_id"])
    lacking = scores[scores["sample_id"].isin(own.expected(against).sample_id[missing]) & scores["correct"]]
    labels = np.concatenate([both["label"].to_numpy()[right], lacking["label"].to_numpy()])
    unknown = np.arange(len(labels)) >= right.sum()
    violated = np.concatenate([violated[right], np.zeros(len(lacking), dtype=bool)])
    return labels, violated, violated | unknown


def _distances(samples, largest):
    sample_id, value, censored = (samples[name].to_numpy() for name in ("sample_id", "value", "censored"))
    return Distances(sample_id, value, censored, norm="l2", largest=float(largest))


def _temperatures(calibrations, label):
    # T = 1, then each chosen temperature: `(objective, temperature, split of the samples)`.
    yield UNCALIBRATED, 1.0, None
    for objective, result in calibrations.items():
        temperature = chosen_temperature(result, label)
        if temperature is not None:
            yield objective, temperature, result["split"]


def _rows(key, evidence, distances, settings, class_names, *, temperature, alpha):
    calibration, value, split = temperature
    fresh = calibration == UNCALIBRATED or split is not None
    sample_id, labels, logits = evidence.sample_id, evidence.labels, evidence.logits
    if split is not None:
        reports = set(sample_id[~choosing_samples(sample_id, labels, split)])
        distances = _only(distances, np.array([name in reports for name in distances.sample_id], dtype=bool))
    found = falsification(
        sample_id, labels, logits, distances, activation=settings["activation"], temperature=value, alpha=alpha
    )
    key = {**key, "calibration": calibration, "temperature": value, "confidence": 1 - alpha if fresh else None}
    groups = [(k, class_names[k], group) for k, group in enumerate(found.classes)]
    return [
        {**key, "class_index": index, "class_name": name, **vars(group)}
        | ({} if fresh else {"low": None, "high": None, "p_mean": None})
        for index, name, group in [*groups, (ALL, ALL_NAME, found.model)]
    ]


def _only(distances, chosen):
    sample_id, value, censored = (
        np.asarray(values)[chosen] for values in (distances.sample_id, distances.value, distances.censored)
    )
    return Distances(sample_id, value, censored, norm=distances.norm, largest=distances.largest)
