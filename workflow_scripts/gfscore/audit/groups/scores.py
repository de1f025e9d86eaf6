"""Values of measures by group of samples: rows of the table group_scores, and bounds for rules of the gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.audit.groups.grouping import Grouping
from gfscore.statistics.classes import class_values
from gfscore.tables.table import ALL, ALL_NAME

if TYPE_CHECKING:
    from gfscore.audit.values import SampleValues
import numpy as np
import pandas as pd

from gfscore.audit.metrics.rdi import largest_gap


def group_score_rows(
    measured: Iterable[SampleValues],
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    intervals: Mapping[str, Any],
    minimum_cell: int,
) -> list[dict[str, Any]]:
    """Rows of group_scores of the SampleValues at T = 1: for each attribute its groups, then its groups by class.

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
            shared: dict[str, Any] = {**item.model.columns(), "measure": item.measure.name}
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
        after = class_values(measured.low[chosen], cells[chosen], count)
        columns |= {"balanced_n": after.n, "balanced_value": after.mean}
    shared = {"interval": bounds.method, "confidence": intervals["confidence"]}
    return [shared | {name: column[cell] for name, column in columns.items()} for cell in range(count)]


_ENDS = ("lowest", "highest", "low_value", "high_value", "gap")

GAP_COLUMNS = [
    *("dataset", "threat", "model", "measure", "attribute", "groups"),
    *_ENDS,
    *(f"sampled_{name}" for name in _ENDS),
    *("gap_low", "gap_high", "small", "confidence", "value"),
]
"""Columns of group_gaps."""


def group_gaps(scores: pd.DataFrame) -> pd.DataFrame:
    """Differences between the groups of each attribute, a data frame with one row per model, measure and attribute.

    Takes group_scores rows. `lowest` and `highest` name the groups with the smallest and largest value, `gap` is the
    difference of these values, and `gap_low`, `gap_high` bound the true one with the joint confidence of the groups'
    own bounds. Groups without samples count in the bounds alone; `small` says that one of the two has few samples;
    `sampled_gap` and the like compare the groups with enough samples, NaN for fewer than two of them.
    """
    whole = scores[scores["class_index"] == ALL]
    rows = []
    for (threat, model, measure, attribute), own in whole.groupby(
        ["threat", "model", "measure", "attribute"], sort=False
    ):
        known = own[own["n"] > 0]
        if len(own) < 2 or known.empty:
            continue
        low, high = (own[name].to_numpy() for name in ("low", "high"))
        ends = known.loc[known["value"].idxmin()], known.loc[known["value"].idxmax()]
        sampled = known[~known["small"]]
        rows.append(
            {
                "dataset": own["dataset"].iloc[0], "threat": threat, "model": model, "measure": measure,
                "attribute": attribute, "groups": len(own), **_ends(known),
                **{f"sampled_{name}": value for name, value in _ends(sampled).items() if len(sampled) > 1},
                "gap_low": largest_gap(low, high),
                "gap_high": largest_gap(high, low), "small": bool(ends[0]["small"] or ends[1]["small"]),
                "confidence": own["confidence"].iloc[0], "value": float(np.average(known["value"], weights=known["n"])),
            }
        )  # fmt: skip
    return pd.DataFrame(rows, columns=GAP_COLUMNS)


def _ends(groups):
    if groups.empty:
        return {}
    low, high = (groups.loc[place] for place in (groups["value"].idxmin(), groups["value"].idxmax()))
    return {
        "lowest": low["group"], "highest": high["group"], "low_value": low["value"], "high_value": high["value"],
        "gap": high["value"] - low["value"],
    }  # fmt: skip


def widest_attributes(gaps: pd.DataFrame, most: int) -> list[str]:
    """Names of the `most` attributes with the largest differences in any model, in the order of the table."""
    largest = gaps.groupby("attribute", sort=False)["gap"].max()
    kept = set(largest.sort_values(ascending=False, kind="stable").index[:most])
    return [name for name in largest.index if name in kept]
