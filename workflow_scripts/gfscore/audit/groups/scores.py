"""Values of measures by group of samples: rows of the table group_scores, and bounds for rules of the gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.audit.agreement.columns import ALL, ALL_NAME
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.verdicts.gate_rules import GROUP_GAP, evidence_of
from gfscore.statistics.classes import class_values

if TYPE_CHECKING:
    from pathlib import Path

    from gfscore.audit.inputs import AuditInputs
    from gfscore.audit.measured import Measured
    from gfscore.audit.verdicts.verdict import Candidate


def group_score_rows(
    measured: Iterable[Measured],
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    intervals: Mapping[str, Any],
    minimum_cell: int,
) -> list[dict[str, Any]]:
    """Rows of group_scores of the Measured values at T = 1: for each attribute its groups, then its groups by class.

    Takes a Grouping, K names, the section `intervals` of the configuration, and the number of samples below which a
    cell is marked as small. The bounds of all groups of an attribute are simultaneous, and so are those of all its
    cells.
    # ASSUME: samples of a group, or cell, are independent draws from it, and thresholds do not depend on them.
    """
    rows = []
    for item in measured:
        if item.calibrated:
            continue
        part = grouping.balanced_part(item.sample_id)
        for attribute, groups in grouping.groups.items():
            group = grouping.of(attribute, item.sample_id)
            shared = {name: item.key[name] for name in ("dataset", "threat", "model", "measure")}
            shared |= {"attribute": attribute, "left_out": int((group < 0).sum())}
            for indices, names in (([ALL], [ALL_NAME]), (range(len(class_names)), class_names)):
                cells = group if indices == [ALL] else group * len(names) + item.labels
                for place, cell in enumerate(_cells(item, cells, len(groups) * len(names), part, intervals)):
                    index, k = divmod(place, len(names))
                    key = {"group_index": index, "group": groups[index]}
                    key |= {"class_index": indices[k], "class_name": names[k]}
                    rows.append(shared | key | cell | {"small": bool(cell["n"] < minimum_cell)})
    return rows


def _cells(measured, cells, count, part, intervals):
    bounds = measured.bounds(count, intervals=intervals, cells=cells)
    low, high = bounds.interval(1 - intervals["confidence"])
    values = bounds.samples.summary
    columns = {"n": values.n, "value": values.mean, "low": low, "high": high}
    if part is not None:
        chosen = part & (cells >= 0)
        after = class_values(measured.values[chosen], cells[chosen], count)
        columns |= {"balanced_n": after.n, "balanced_value": after.mean}
    shared = {"interval": bounds.method, "confidence": intervals["confidence"]}
    return [shared | {name: column[cell] for name, column in columns.items()} for cell in range(count)]


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
