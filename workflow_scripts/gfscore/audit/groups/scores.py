"""Rows of the table group_scores: values of measures by group, and by class within group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gfscore.audit.agreement.columns import ALL, ALL_NAME
from gfscore.measures import measure_of
from gfscore.statistics.class_bounds import bounds_of
from gfscore.statistics.classes import class_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gfscore.audit.groups.grouping import Grouping
    from gfscore.audit.measured import Measured
    from gfscore.statistics.class_bounds import ClassBounds


def group_score_rows(
    measured: Iterable[Measured],
    measures: Mapping[str, Mapping[str, Any]],
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    intervals: Mapping[str, Any],
    minimum_cell: int,
) -> list[dict[str, Any]]:
    """Rows of group_scores of the Measured values at T = 1; `measures` are the settings by measure, see score_rows."""
    shared: dict[str, Any] = {"intervals": intervals, "minimum_cell": minimum_cell}
    return [
        row
        for item in measured
        if not item.calibrated
        for row in score_rows(item, grouping, class_names, settings=measures[item.key["measure"]], **shared)
    ]


def score_rows(
    measured: Measured,
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    settings: Mapping[str, Any],
    intervals: Mapping[str, Any],
    minimum_cell: int,
) -> list[dict[str, Any]]:
    """Rows of group_scores for one Measured at T = 1: for each attribute its groups, then its groups by class.

    Takes a Grouping, K names, the settings of the measure, the section `intervals` of the configuration, and the number
    of samples below which a cell is marked as small. The bounds of all groups of an attribute are simultaneous, and so
    are those of all its cells.
    # ASSUME: samples of a group, or cell, are independent draws from it, and thresholds do not depend on them.
    """
    part, rows = grouping.balanced_part(measured.sample_id), []
    for attribute, groups in grouping.groups.items():
        group = grouping.of(attribute, measured.sample_id)
        shared = {key: measured.key[key] for key in ("dataset", "threat", "model", "measure")}
        shared |= {"attribute": attribute, "left_out": int((group < 0).sum()), "confidence": intervals["confidence"]}
        for indices, names in (([ALL], [ALL_NAME]), (range(len(class_names)), class_names)):
            cells = group if indices == [ALL] else group * len(names) + measured.labels
            count, shared_by = len(groups) * len(names), {"settings": settings, "intervals": intervals}
            rows_of_cells = _cells(measured, cells, group >= 0, count, part=part, **shared_by)
            for place, cell in enumerate(rows_of_cells):
                index, k = divmod(place, len(names))
                key = {"group_index": index, "group": groups[index], "class_index": indices[k], "class_name": names[k]}
                rows.append(shared | key | cell | {"small": bool(cell["n"] < minimum_cell)})
    return rows


def _cells(measured, cells, known, count, *, part, settings, intervals):
    bounds = group_bounds(measured, cells, known, count, settings=settings, intervals=intervals)
    low, high = bounds.interval(1 - intervals["confidence"])
    values, rows = bounds.samples.summary, []
    for index in range(count):
        row = {"n": values.n[index], "value": values.mean[index], "low": low[index], "high": high[index]}
        rows.append(row | {"interval": bounds.method})
    if part is None:
        return rows
    after = class_values(measured.values[part & known], cells[part & known], count)
    return [
        row | {"balanced_n": n, "balanced_value": value}
        for row, n, value in zip(rows, after.n, after.mean, strict=True)
    ]


def group_bounds(
    measured: Measured,
    cells: NDArray[np.int64],
    known: NDArray[np.bool_],
    count: int,
    *,
    settings: Mapping[str, Any],
    intervals: Mapping[str, Any],
) -> ClassBounds:
    """ClassBounds of a Measured by `cells` (N,) in 0..count-1 instead of classes, over the samples `known` (N,)."""
    upper = measured.upper_values
    return bounds_of(
        measured.values[known],
        cells[known],
        count,
        measure=measure_of(settings),
        intervals=intervals,
        upper_values=None if upper is None else upper[known],
    )
