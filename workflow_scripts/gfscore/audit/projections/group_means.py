"""Differences between groups beside Tolerance and Deviation: one number of each per model, as in the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gfscore.audit.groups.metrics import MACRO
from gfscore.audit.projections.columns import GROUP_METRICS

if TYPE_CHECKING:
    import pandas as pd

UNDISTURBED = "clean"
"""Kind of the measure whose predictions are those of the samples as they are."""


def group_means(
    metrics: pd.DataFrame, *, kinds: Mapping[str, str], moved: Iterable[str] | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Mean DP, EOpp and EOdd of every model over attributes, with what they are means of, by (threat, model).

    Takes rows of group_metrics, the kind of every measure by its name, and the attributes that a mapper moves, None for
    one whose dimensions are none. They are of the first measure of undisturbed samples, of the first of all where there
    is none; of the one positive class, or the mean over classes; and over those of the attributes that have all
    three for every model, so that they are means of the same. Nothing where no attribute has.
    """
    names = list(dict.fromkeys(metrics["measure"]))
    measure = next((name for name in names if kinds[name] == UNDISTURBED), names[0] if names else None)
    rows = metrics[(metrics["measure"] == measure) & metrics["metric"].isin(GROUP_METRICS)]
    one = rows["class_name"].nunique() == 1
    rows = rows[one | (rows["class_name"] == MACRO)]
    if moved is not None:
        rows = rows[rows["attribute"].isin(list(moved))]
    complete = rows.groupby("attribute")["value"].transform(lambda values: values.notna().all()).astype(bool)
    rows = rows[complete]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (threat, model, metric), value in rows.groupby(["threat", "model", "metric"])["value"].mean().items():
        found.setdefault((threat, model), {})[metric] = value
    described = {"group_measure": measure, "group_attributes": rows["attribute"].nunique()}
    return {model: {**values, **described} for model, values in found.items()}
