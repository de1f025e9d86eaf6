"""What the gate judges: each model of an audit with bounds for every rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.agreement.falsification import contradicted, falsifying
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.values import AuditInputs, Measured
from gfscore.audit.verdicts.gate_rules import FALSIFICATION, GROUP_GAP, evidence_of
from gfscore.core.errors import InputError
from gfscore.measures import Measure
from gfscore.statistics.class_bounds import bounds_of


@dataclass(frozen=True)
class Candidate:
    """A model at the gate.

    `bounds` maps what each rule rests on (gate_rules.evidence_of) to bounds of its K classes, or of all
    together: ClassBounds, or anything with the same `samples`, `value_range`, `method`, `n` and bounds; `counts` maps
    each measure to the numbers of its samples; `names` maps the keys of bounds of groups to the names of these.
    """

    threat: str
    model: str
    class_names: list[str]
    bounds: dict[str | tuple[str, str, str], Any]
    counts: dict[str, dict[str, NDArray[np.int64]]] = field(default_factory=dict)
    names: dict[str | tuple[str, str, str], list[str]] = field(default_factory=dict)


def candidates_of(
    measured: Iterable[Measured],
    class_names: Sequence[str],
    *,
    rules: Sequence[Mapping[str, Any]],
    intervals: Mapping[str, Any],
    label_error_rates: ArrayLike | None,
) -> list[Candidate]:
    """Candidates from Measured values, those at a chosen temperature left out.

    Takes an iterable of Measured, K names, the rules, config's section `intervals`, and the rates of wrong labels, (K,)
    or None.
    """
    judged = {rule["measure"] for rule in rules}
    found: dict[tuple[str, str], Candidate] = {}
    for item in measured:
        name = item.key["measure"]
        if name not in judged or item.calibrated:
            continue
        key = item.key["threat"], item.key["model"]
        candidate = found.setdefault(key, Candidate(*key, class_names=list(class_names), bounds={}))
        candidate.bounds[name] = item.bounds(len(class_names), intervals=intervals, label_error_rates=label_error_rates)
        candidate.counts[name] = item.counts(len(class_names))
    return list(found.values())


CONTRADICTION = Measure(
    title="Score contradicted by an attack",
    value_range=(0.0, 1.0),
    unit="share of correct samples",
    explanation="1 when an adversarial example was found nearer than the score, else 0.",
    binary=True,
)


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
        for rule in judged:
            labels, violated, may_be = _contradictions(own, rule["measure"], against)
            together = rule.get("class") is None
            by_model[model["threat"], model["model"]].bounds[evidence_of(rule)] = bounds_of(
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
    right, violated = contradicted(
        *(both[name].to_numpy() for name in ("value", "correct", "value_distance", "censored"))
    )
    expected = own.expected(against).sample_id
    missing = expected[~np.isin(expected, distances["sample_id"])]
    lacking = scores.loc[scores["sample_id"].isin(missing) & scores["correct"], "label"].to_numpy()
    labels = np.concatenate([both["label"].to_numpy()[right], lacking])
    violated = np.concatenate([violated[right], np.zeros(len(lacking), dtype=bool)])
    return labels, violated, violated | (np.arange(len(labels)) >= right.sum())


def add_group_bounds(
    candidates: Iterable[Candidate],
    inputs: AuditInputs,
    path_to_attributes: Path | str,
    *,
    rules: Sequence[Mapping[str, Any]],
    intervals: Mapping[str, Any],
) -> None:
    """Add bounds and names of its groups to each Candidate, for the rules that judge group_gap.

    Takes AuditInputs and the table of attributes of the dataset, which is read only if there is such a rule. The bounds
    of a group without samples are the range of the measure; samples without a value of the attribute are in no group.
    # ASSUME: labels are correct, and samples of a group are independent draws from it.
    """
    judged = [rule for rule in rules if rule["statistic"] == GROUP_GAP]
    if not judged:
        return
    attributes = list(dict.fromkeys(rule["attribute"] for rule in judged))
    grouping = Grouping.read(path_to_attributes, dataset=inputs.models[0]["dataset"], attributes=attributes)
    by_model = {(candidate.threat, candidate.model): candidate for candidate in candidates}
    for measured in inputs.uncalibrated(dict.fromkeys(rule["measure"] for rule in judged)):
        candidate = by_model[measured.key["threat"], measured.key["model"]]
        for rule in judged:
            if rule["measure"] == measured.key["measure"]:
                names, group = grouping.groups[rule["attribute"]], grouping.of(rule["attribute"], measured.sample_id)
                candidate.names[evidence_of(rule)] = names
                candidate.bounds[evidence_of(rule)] = measured.bounds(len(names), intervals=intervals, cells=group)
