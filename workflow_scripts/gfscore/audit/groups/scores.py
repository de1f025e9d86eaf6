"""Values of measures by group of samples, and the differences between groups: table `group_scores`."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.metrics.rdi import largest_gap
from gfscore.audit.settings import IntervalSettings
from gfscore.audit.values import SampleValues
from gfscore.core.identity import ALL, ALL_NAME
from gfscore.statistics.classes import class_values
from gfscore.tables.parquet_tables import stacked
from gfscore.tables.table import MODEL, Column, Table

GROUP_SCORES = Table(
    name="group_scores",
    version=1,
    columns=(
        *MODEL,
        Column("measure", pa.string(), "key of config.yaml's measures, a score at T = 1"),
        Column("attribute", pa.string(), "attribute that defines the groups"),
        Column("group_index", pa.int32(), "group, 0..G-1"),
        Column("group", pa.string(), "name of the group"),
        Column("class_index", pa.int32(), "class, 0..K-1; -1 for all samples of the group"),
        Column("class_name", pa.string(), "name of the class; all for all samples of the group"),
        Column("n", pa.int64(), "samples of the group, or of the class within it"),
        Column("value", pa.float64(), "mean of the measure over them; null without samples"),
        Column(
            "low", pa.float64(), "lower bound, simultaneous over the groups of the attribute, or over all its cells"
        ),
        Column(
            "high", pa.float64(), "upper bound, simultaneous over the groups of the attribute, or over all its cells"
        ),
        Column("interval", pa.string(), "interval method"),
        Column("confidence", pa.float64(), "simultaneous confidence of the bounds"),
        Column("small", pa.bool_(), "fewer samples than the audit's minimum_cell"),
        Column("left_out", pa.int64(), "samples of the audit without a value of the attribute"),
        Column("balanced_n", pa.int64(), "samples in the balanced subsample; null without one"),
        Column("balanced_value", pa.float64(), "mean of the measure over them"),
    ),
)

ENDS = ("lowest", "highest", "low_value", "high_value", "gap")

GAP_COLUMNS = [
    *("dataset", "threat", "model", "measure", "attribute", "groups"),
    *ENDS,
    *(f"sampled_{name}" for name in ENDS),
    *(f"sure_{name}" for name in ENDS),
    *("gap_low", "gap_high", "small", "confidence", "value"),
]
"""Columns of group_gaps."""


def group_score_table(
    values: Iterable[SampleValues],
    grouping: Grouping,
    class_names: Sequence[str],
    *,
    intervals: IntervalSettings,
    minimum_cell: int,
) -> pd.DataFrame:
    """Table `group_scores` of values at T = 1: for each attribute its groups, then its groups by class.

    The bounds of all groups of an attribute are simultaneous, and so are the bounds of all its cells.

    Parameters
    ----------
    values : iterable of SampleValues
        Values of the audit; those at a chosen temperature are left out.
    grouping : Grouping
        Groups that are compared.
    class_names : sequence of str
        Names of the K classes.
    intervals : IntervalSettings
    minimum_cell : int
        Number of samples below which a cell is small.

    Notes
    -----
    # ASSUME: samples of a group, or cell, are independent draws from it, and thresholds do not depend on them.
    """
    frames = []
    for sample_values in values:
        if sample_values.calibrated:
            continue
        balanced = grouping.balanced_subsample(sample_values.sample_id)
        for attribute, groups in grouping.groups.items():
            # By sample: the index of its group, and of its group and class; negative without a group.
            group_of_sample = grouping.group_indices(attribute, sample_values.sample_id)
            cell_of_sample = group_of_sample * len(class_names) + sample_values.labels
            cell_of_sample = np.where(group_of_sample < 0, -1, cell_of_sample)
            columns: dict[str, Any] = {
                **sample_values.model.columns(),
                "measure": sample_values.measure.name,
                "attribute": attribute,
                "left_out": int((group_of_sample < 0).sum()),
            }
            whole_groups = ([ALL], [ALL_NAME], group_of_sample)
            groups_by_class = (range(len(class_names)), class_names, cell_of_sample)
            for indices, names, cells in (whole_groups, groups_by_class):
                columns["class_index"] = np.tile(indices, len(groups))
                columns["class_name"] = np.tile(names, len(groups))
                columns |= _cell_columns(
                    sample_values, cells, groups, len(names), balanced=balanced, intervals=intervals
                )
                columns["small"] = columns["n"] < minimum_cell
                frames.append(pd.DataFrame(columns))
    return stacked(GROUP_SCORES, frames)


def _cell_columns(
    values: SampleValues,
    cells: NDArray[np.int64],
    groups: Sequence[str],
    classes: int,
    *,
    balanced: NDArray[np.bool_] | None,
    intervals: IntervalSettings,
) -> dict[str, Any]:
    # Columns with a row for each cell: group after group, each with its classes. `cells` (N,): cell of each sample, or
    # negative.
    count = len(groups) * classes
    bounds = values.bounds(count, intervals=intervals, cells=cells)
    low, high = bounds.interval(1 - intervals.confidence)
    means = bounds.samples.summary
    columns = {
        "group_index": np.repeat(np.arange(len(groups)), classes),
        "group": np.repeat(groups, classes),
        "n": means.n,
        "value": means.mean,
        "low": low,
        "high": high,
        "interval": bounds.method,
        "confidence": intervals.confidence,
    }
    if balanced is not None:
        chosen = balanced & (cells >= 0)
        balanced_means = class_values(values.low[chosen], cells[chosen], count)
        columns["balanced_n"] = balanced_means.n
        columns["balanced_value"] = balanced_means.mean
    return columns


def group_gaps(scores: pd.DataFrame) -> pd.DataFrame:
    """Differences between the groups of each attribute.

    Parameters
    ----------
    scores : DataFrame
        Rows of `group_scores`.

    Returns
    -------
    DataFrame
        One row per model, measure and attribute that has at least two groups with samples.

        - ``lowest``, ``highest`` name the groups with the smallest and largest value, ``gap`` is the difference of
          these values
        - ``gap_low``, ``gap_high`` bound the true gap, over groups without samples too, with the joint confidence of
          the bounds of the groups
        - ``small`` whether the lowest or the highest group has few samples
        - ``sampled_lowest`` to ``sampled_gap`` are the same over the groups with enough samples alone; NaN where there
          are fewer than two
        - ``sure_lowest`` to ``sure_gap`` are of the two groups with enough samples whose bounds lie farthest apart; NaN
          where the bounds of all of them overlap
    """
    rows = []
    groups_alone = scores[scores["class_index"] == ALL]
    for _, groups in groups_alone.groupby(["threat", "model", "measure", "attribute"], sort=False):
        measured = groups[groups["n"] > 0]
        if len(measured) < 2:
            continue
        low = groups["low"].to_numpy()
        high = groups["high"].to_numpy()
        row = {name: groups[name].iloc[0] for name in ("dataset", "threat", "model", "measure", "attribute")}
        row["groups"] = len(groups)
        row |= _ends(measured)
        sampled = measured[~measured["small"]]
        if len(sampled) > 1:
            row |= _ends(sampled, prefix="sampled_")
            if sampled["low"].max() > sampled["high"].min():
                farthest_apart = sampled.loc[[sampled["high"].idxmin(), sampled["low"].idxmax()]]
                row |= _ends(farthest_apart, prefix="sure_")
        compared = measured[measured["group"].isin([row["lowest"], row["highest"]])]
        row |= {
            "gap_low": largest_gap(low, high),
            "gap_high": largest_gap(high, low),
            "small": bool(compared["small"].any()),
            "confidence": groups["confidence"].iloc[0],
            "value": float(np.average(measured["value"], weights=measured["n"])),
        }
        rows.append(row)
    return pd.DataFrame(rows, columns=GAP_COLUMNS)


def _ends(groups: pd.DataFrame, *, prefix: str = "") -> dict[str, Any]:
    # Groups with the smallest and the largest value, these values, and their difference: the columns ENDS.
    lowest = groups.loc[groups["value"].idxmin()]
    # Another group where all values are equal.
    highest = groups.loc[groups["value"].drop(lowest.name).idxmax()]
    return {
        f"{prefix}lowest": lowest["group"],
        f"{prefix}highest": highest["group"],
        f"{prefix}low_value": lowest["value"],
        f"{prefix}high_value": highest["value"],
        f"{prefix}gap": highest["value"] - lowest["value"],
    }


def widest_attributes(gaps: pd.DataFrame, most: int) -> list[str]:
    """Names of the `most` attributes with the largest differences in any model, in the order of the table."""
    largest = gaps.groupby("attribute", sort=False)["gap"].max()
    widest = set(largest.sort_values(ascending=False, kind="stable").index[:most])
    return [name for name in largest.index if name in widest]
