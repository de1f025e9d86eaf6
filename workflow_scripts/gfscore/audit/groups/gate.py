"""Bounds of the values of groups, for gate rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.groups.scores import group_bounds
from gfscore.audit.verdicts.gate_rules import GROUP_GAP, evidence_of

if TYPE_CHECKING:
    from gfscore.audit.inputs import AuditInputs
    from gfscore.audit.verdicts.verdict import Candidate


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
        measure, candidate = measured.key["measure"], by_model[measured.key["threat"], measured.key["model"]]
        for rule in judged:
            if rule["measure"] == measure:
                names = grouping.groups[rule["attribute"]]
                group = grouping.of(rule["attribute"], measured.sample_id)
                settings = inputs.measures[measure]
                candidate.names[evidence_of(rule)] = names
                candidate.bounds[evidence_of(rule)] = group_bounds(
                    measured, group, group >= 0, len(names), settings=settings, intervals=intervals
                )
