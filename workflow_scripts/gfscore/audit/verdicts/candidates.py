"""What the gate judges: each model of an audit with bounds for every rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.agreement.falsification import l2_distance_measures, violations_of
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import AuditValues, SampleValues
from gfscore.audit.verdicts.declines import ReleaseFile, paired
from gfscore.audit.verdicts.gate_rules import DECLINE, FALSIFICATION, GROUP_GAP, BoundsKey, RuleSettings
from gfscore.audit.verdicts.verdict import SampleCounts
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.measures import Measure
from gfscore.statistics.class_bounds import ClassBounds, bounds_of

ALL_CLASSES = "all classes"
"""Name of the one class of rules that judge all samples together."""

CONTRADICTION = Measure(
    title="Score contradicted by an attack",
    value_range=(0.0, 1.0),
    unit="share of correct samples",
    explanation="1 when an adversarial example was found nearer than the score, else 0.",
    binary=True,
)


@dataclass(frozen=True)
class JudgedClasses:
    """Classes of a model, its groups, or all samples as one class, as a rule judges them.

    Parameters
    ----------
    bounds : ClassBounds
        Bounds of what the rule is about.
    names : list of str
        Names of the classes or groups.
    counts : SampleCounts or None
        Numbers of samples; None where they are not stated.
    """

    bounds: ClassBounds
    names: list[str]
    counts: SampleCounts | None = None


JudgedByModel = dict[ModelName, dict[BoundsKey, JudgedClasses]]
"""What rules judge, by model and by the key of its bounds."""


@dataclass(frozen=True)
class Candidate:
    """A model at the gate.

    Parameters
    ----------
    threat, model : str
        Threat model and name.
    judged : dict of BoundsKey to JudgedClasses
        What rules judge.
    """

    threat: str
    model: str
    judged: dict[BoundsKey, JudgedClasses]


def sample_counts(counts: Mapping[str, NDArray[np.int64]]) -> SampleCounts:
    """Numbers of samples, in all and by class, from arrays (K,): measured, expected, rows."""
    return SampleCounts(
        measured=int(counts["measured"].sum()),
        expected=int(counts["expected"].sum()),
        rows=int(counts["rows"].sum()),
        by_class={name: of_classes.tolist() for name, of_classes in counts.items()},
    )


def candidates_of(
    measured: Iterable[SampleValues],
    class_names: Sequence[str],
    *,
    rules: Sequence[RuleSettings],
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None,
    others: Sequence[JudgedByModel] = (),
) -> list[Candidate]:
    """Models at the gate, with bounds of what rules judge.

    Parameters
    ----------
    measured : iterable of SampleValues
        Values of the audit; those at a chosen temperature are left out.
    class_names : sequence of str
        Names of the K classes.
    rules : sequence of RuleSettings
        Rules of the gate.
    intervals : IntervalSettings
    label_error_rates : array of float, shape (K,), or None
        Rates of wrong labels; None where labels are assumed right.
    others : sequence of JudgedByModel
        What rules judge besides class values: falsification rates, groups and declines.
    """
    judged_measures = {rule.measure for rule in rules}
    classes = len(class_names)
    by_model: JudgedByModel = {}
    for values in measured:
        if values.measure.name not in judged_measures or values.calibrated:
            continue
        bounds = values.bounds(classes, intervals=intervals, label_error_rates=label_error_rates)
        class_values = JudgedClasses(bounds, list(class_names), sample_counts(values.counts(classes)))
        by_model.setdefault(values.model, {})[BoundsKey(values.measure.name)] = class_values

    candidates = []
    for model, judged in by_model.items():
        for other in others:
            judged.update(other.get(model, {}))
        candidates.append(Candidate(model.threat, model.classifier, judged))
    return candidates


def contradiction_bounds(
    audit_values: AuditValues,
    *,
    rules: Sequence[RuleSettings],
    class_names: Sequence[str],
    intervals: IntervalSettings,
) -> JudgedByModel:
    """Bounds of the falsification rate at T = 1 of each model, for the rules that judge it.

    The rate is of the samples that score and attack both classify correctly.

    Parameters
    ----------
    audit_values : AuditValues
        Values of an audit with one l2 measure of kind minimal, where a rule judges the rate.
    rules : sequence of RuleSettings
        Rules of the gate.
    class_names : sequence of str
        Names of the K classes.
    intervals : IntervalSettings

    Notes
    -----
    # ASSUME: labels are correct, and correct samples are independent draws from the correct samples of the class.
    """
    falsification_rules = [rule for rule in rules if rule.statistic == FALSIFICATION]
    if not falsification_rules:
        return {}
    (distance_measure,) = l2_distance_measures(audit_values.subject.measures)
    by_model: JudgedByModel = {}
    for model in audit_values.included:
        by_model[model] = {}
        for rule in falsification_rules:
            labels, violated, possibly_violated = _violations(audit_values, model, rule.measure, distance_measure.name)
            names = list(class_names)
            if rule.class_ is None:
                labels = np.zeros_like(labels)
                names = [ALL_CLASSES]
            bounds = bounds_of(
                violated,
                labels,
                len(names),
                measure=CONTRADICTION,
                intervals=intervals,
                upper_values=possibly_violated,
            )
            counts = audit_values.sample_values(model, rule.measure).counts(len(class_names))
            by_model[model][rule.bounds_key] = JudgedClasses(bounds, names, sample_counts(counts))
    return by_model


def _violations(
    audit_values: AuditValues, model: ModelName, score_measure: str, distance_measure: str
) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    # Labels of the n samples that score and attack both classify correctly, and 1 where the score is contradicted, as
    # the smallest and the largest number that is possible; each (n,).
    scores = audit_values.table(model, score_measure)[["sample_id", "label", "value", "correct"]]
    distances = audit_values.table(model, distance_measure)[["sample_id", "value", "censored"]]
    scored = distances.merge(scores, on="sample_id", suffixes=("_distance", ""), validate="one_to_one")
    if len(scored) < len(distances):
        path_to_distances = audit_values.path(model, distance_measure)
        path_to_scores = audit_values.path(model, score_measure)
        raise InputError(
            f"{path_to_distances}: samples without a score in {path_to_scores}; measure both on the same dataset"
        )
    both_correct, violations = violations_of(
        scored["value"].to_numpy(),
        scored["correct"].to_numpy(),
        scored["value_distance"].to_numpy(),
        scored["censored"].to_numpy(),
    )

    # Correct samples whose distance is missing may contradict the score.
    expected = audit_values.expected(model, distance_measure).sample_id
    missing = expected[~np.isin(expected, distances["sample_id"])]
    labels_without_distance = scores.loc[scores["sample_id"].isin(missing) & scores["correct"], "label"].to_numpy()
    labels = np.concatenate([scored["label"].to_numpy()[both_correct], labels_without_distance])
    violated = np.concatenate([violations[both_correct], np.zeros(len(labels_without_distance))])
    possibly_violated = np.concatenate([violations[both_correct], np.ones(len(labels_without_distance))])
    return labels, violated, possibly_violated


def group_bounds(
    audit_values: AuditValues,
    path_to_attributes: Path | str,
    *,
    rules: Sequence[RuleSettings],
    class_names: Sequence[str],
    intervals: IntervalSettings,
) -> JudgedByModel:
    """Bounds and names of the groups of samples, for the rules that judge GROUP_GAP.

    Bounds of a group without samples are the range of the measure; samples without a value of the attribute are in no
    group.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    path_to_attributes : path
        Table of attributes of the dataset, which is read only if there is such a rule.
    rules : sequence of RuleSettings
        Rules of the gate.
    class_names : sequence of str
        Names of the K classes, by which samples are counted.
    intervals : IntervalSettings

    Notes
    -----
    # ASSUME: labels are correct, and samples of a group are independent draws from it.
    """
    gap_rules = [rule for rule in rules if rule.statistic == GROUP_GAP]
    if not gap_rules:
        return {}
    attributes = list(dict.fromkeys(str(rule.attribute) for rule in gap_rules))
    measures = dict.fromkeys(rule.measure for rule in gap_rules)
    dataset = audit_values.subject.models[0].dataset
    grouping = Grouping.read(path_to_attributes, dataset=dataset, attributes=attributes)

    by_model: JudgedByModel = {}
    for values in audit_values.uncalibrated(measures):
        by_model.setdefault(values.model, {})
        counts = sample_counts(values.counts(len(class_names)))
        for rule in gap_rules:
            if rule.measure == values.measure.name:
                names = grouping.groups[str(rule.attribute)]
                cells = grouping.group_indices(str(rule.attribute), values.sample_id)
                bounds = values.bounds(len(names), intervals=intervals, cells=cells)
                by_model[values.model][rule.bounds_key] = JudgedClasses(bounds, names, counts)
    return by_model


def decline_bounds(
    audit_values: AuditValues,
    path_to_release: Path | str,
    *,
    rules: Sequence[RuleSettings],
    class_names: Sequence[str],
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None,
) -> JudgedByModel:
    """Bounds of the mean differences from the earlier release of each model, for the rules that judge DECLINE.

    Parameters
    ----------
    audit_values : AuditValues
        Values of the audit.
    path_to_release : path
        Table release_values, which is read only if there is such a rule.
    rules : sequence of RuleSettings
        Rules of the gate.
    class_names : sequence of str
        Names of the K classes.
    intervals : IntervalSettings
    label_error_rates : array of float, shape (K,), or None
        Rates of wrong labels; None where labels are assumed right.
    """
    measures = {rule.bounds_key: rule.measure for rule in rules if rule.statistic == DECLINE}
    if not measures:
        return {}

    release = ReleaseFile(path_to_release)
    classes = len(class_names)
    by_model: JudgedByModel = {}
    for model in audit_values.included:
        by_model[model] = {}
        for key, measure in measures.items():
            earlier = release.read(model, measure)
            differences = paired(earlier, audit_values.sample_values(model, measure), where=path_to_release)
            bounds = differences.bounds(classes, intervals=intervals, label_error_rates=label_error_rates)
            counts = sample_counts(differences.counts(classes))
            by_model[model][key] = JudgedClasses(bounds, list(class_names), counts)
    return by_model
