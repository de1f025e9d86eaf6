"""What the gate judges: each model of an audit with bounds for every rule."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.agreement.falsification import l2_distance_measures, violations_of
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import AuditValues, SampleValues
from gfscore.audit.verdicts.declines import PairedDifferences
from gfscore.audit.verdicts.gate_rules import FALSIFICATION, GROUP_GAP, BoundsKey, RuleSettings
from gfscore.core.errors import InputError
from gfscore.core.identity import ModelName
from gfscore.measures import Measure
from gfscore.statistics.class_bounds import ClassBounds, bounds_of

SampleCounts = dict[str, NDArray[np.int64]]
"""Numbers of samples by class: measured, expected, rows."""

CONTRADICTION = Measure(
    title="Score contradicted by an attack",
    value_range=(0.0, 1.0),
    unit="share of correct samples",
    explanation="1 when an adversarial example was found nearer than the score, else 0.",
    binary=True,
)


@dataclass(frozen=True)
class Candidate:
    """A model at the gate.

    Parameters
    ----------
    threat, model : str
        Threat model and name.
    class_names : list of str
        Names of the K classes.
    bounds : dict of BoundsKey to ClassBounds
        Bounds of the K classes, of groups, or of all samples together.
    counts : dict
        Numbers of samples by class (see SampleValues.counts): for class values, and for bounds with other numbers.
    group_names : dict
        Names of the groups, for bounds of groups.
    """

    threat: str
    model: str
    class_names: list[str]
    bounds: dict[BoundsKey, ClassBounds]
    counts: dict[BoundsKey, SampleCounts] = field(default_factory=dict)
    group_names: dict[BoundsKey, list[str]] = field(default_factory=dict)

    def counts_of(self, key: BoundsKey) -> SampleCounts | None:
        """Numbers of samples that bounds rest on; where none are stated, the numbers for class values."""
        return self.counts.get(key, self.counts.get(BoundsKey(key.measure)))

    def names_of(self, key: BoundsKey) -> list[str]:
        """Names of the classes or groups that bounds are about."""
        return self.group_names.get(key, self.class_names)


@dataclass(frozen=True)
class GroupBounds:
    """Bounds of the groups of samples that rules compare.

    Parameters
    ----------
    names : dict
        Names of the groups by BoundsKey.
    by_model : dict
        ClassBounds of these groups by model and BoundsKey.
    """

    names: dict[BoundsKey, list[str]] = field(default_factory=dict)
    by_model: dict[ModelName, dict[BoundsKey, ClassBounds]] = field(default_factory=dict)


def candidates_of(
    measured: Iterable[SampleValues],
    class_names: Sequence[str],
    *,
    rules: Sequence[RuleSettings],
    intervals: IntervalSettings,
    label_error_rates: ArrayLike | None,
    contradictions: Mapping[ModelName, Mapping[BoundsKey, ClassBounds]] | None = None,
    groups: GroupBounds | None = None,
    differences: Mapping[ModelName, Mapping[BoundsKey, PairedDifferences]] | None = None,
) -> list[Candidate]:
    """Models at the gate, with bounds of what rules judge: class values, groups, falsification rates, declines.

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
    contradictions : mapping, optional
        Bounds of falsification rates, from contradiction_bounds.
    groups : GroupBounds, optional
        Bounds of groups, from group_bounds.
    differences : mapping, optional
        Differences from an earlier release, from paired_with_release.
    """
    judged_measures = {rule.measure for rule in rules}
    bounds: dict[ModelName, dict[BoundsKey, ClassBounds]] = {}
    counts: dict[ModelName, dict[BoundsKey, SampleCounts]] = {}
    for values in measured:
        if values.measure.name not in judged_measures or values.calibrated:
            continue
        key = BoundsKey(values.measure.name)
        class_bounds = values.bounds(len(class_names), intervals=intervals, label_error_rates=label_error_rates)
        bounds.setdefault(values.model, {})[key] = class_bounds
        counts.setdefault(values.model, {})[key] = values.counts(len(class_names))

    for model, by_key in (differences or {}).items():
        for key, paired in by_key.items():
            bounds[model][key] = paired.bounds(
                len(class_names), intervals=intervals, label_error_rates=label_error_rates
            )
            counts[model][key] = paired.counts(len(class_names))

    contradictions = contradictions or {}
    groups = groups or GroupBounds()
    candidates = []
    for model, bounds_of_model in bounds.items():
        candidates.append(
            Candidate(
                threat=model.threat,
                model=model.classifier,
                class_names=list(class_names),
                bounds={**bounds_of_model, **contradictions.get(model, {}), **groups.by_model.get(model, {})},
                counts=counts[model],
                group_names=groups.names,
            )
        )
    return candidates


def contradiction_bounds(
    audit_values: AuditValues,
    *,
    rules: Sequence[RuleSettings],
    class_names: Sequence[str],
    intervals: IntervalSettings,
) -> dict[ModelName, dict[BoundsKey, ClassBounds]]:
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
    by_model: dict[ModelName, dict[BoundsKey, ClassBounds]] = {}
    for model in audit_values.included:
        by_model[model] = {}
        for rule in falsification_rules:
            scores = audit_values.table(model, rule.measure)[["sample_id", "label", "value", "correct"]]
            distances = audit_values.table(model, distance_measure.name)[["sample_id", "value", "censored"]]
            scored = distances.merge(scores, on="sample_id", suffixes=("_distance", ""), validate="one_to_one")
            if len(scored) < len(distances):
                path_to_distances = audit_values.path(model, distance_measure.name)
                path_to_scores = audit_values.path(model, rule.measure)
                raise InputError(
                    f"{path_to_distances}: samples without a score in {path_to_scores}; measure both on the same "
                    "dataset"
                )
            both_correct, violations = violations_of(
                scored["value"].to_numpy(),
                scored["correct"].to_numpy(),
                scored["value_distance"].to_numpy(),
                scored["censored"].to_numpy(),
            )

            # Correct samples whose distance is missing may contradict the score.
            expected = audit_values.expected(model, distance_measure.name).sample_id
            missing = expected[~np.isin(expected, distances["sample_id"])]
            labels_without_distance = scores.loc[
                scores["sample_id"].isin(missing) & scores["correct"], "label"
            ].to_numpy()
            labels = np.concatenate([scored["label"].to_numpy()[both_correct], labels_without_distance])
            violated = np.concatenate([violations[both_correct], np.zeros(len(labels_without_distance))])
            possibly_violated = np.concatenate([violations[both_correct], np.ones(len(labels_without_distance))])

            classes = len(class_names)
            if rule.class_ is None:
                # All samples are one class.
                labels = np.zeros_like(labels)
                classes = 1
            by_model[model][rule.bounds_key] = bounds_of(
                violated,
                labels,
                classes,
                measure=CONTRADICTION,
                intervals=intervals,
                upper_values=possibly_violated,
            )
    return by_model


def group_bounds(
    audit_values: AuditValues,
    path_to_attributes: Path | str,
    *,
    rules: Sequence[RuleSettings],
    intervals: IntervalSettings,
) -> GroupBounds:
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
    intervals : IntervalSettings

    Notes
    -----
    # ASSUME: labels are correct, and samples of a group are independent draws from it.
    """
    gap_rules = [rule for rule in rules if rule.statistic == GROUP_GAP]
    if not gap_rules:
        return GroupBounds()
    attributes = list(dict.fromkeys(str(rule.attribute) for rule in gap_rules))
    measures = dict.fromkeys(rule.measure for rule in gap_rules)
    dataset = audit_values.subject.models[0].dataset
    grouping = Grouping.read(path_to_attributes, dataset=dataset, attributes=attributes)

    names = {rule.bounds_key: grouping.groups[str(rule.attribute)] for rule in gap_rules}
    by_model: dict[ModelName, dict[BoundsKey, ClassBounds]] = {}
    for values in audit_values.uncalibrated(measures):
        bounds_of_model = by_model.setdefault(values.model, {})
        for rule in gap_rules:
            if rule.measure == values.measure.name:
                cells = grouping.group_indices(str(rule.attribute), values.sample_id)
                groups = len(names[rule.bounds_key])
                bounds_of_model[rule.bounds_key] = values.bounds(groups, intervals=intervals, cells=cells)
    return GroupBounds(names, by_model)
