"""Mean differences between groups of each model, for comparison with Tolerance and Deviation as in the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gfscore.audit.groups.metrics import MACRO
from gfscore.audit.projections.columns import GROUP_METRICS

if TYPE_CHECKING:
    import pandas as pd

UNPERTURBED = "clean"
"""Kind of the measure with predictions on unperturbed samples."""


def group_means(
    metrics: pd.DataFrame, *, kinds: Mapping[str, str], moved: Iterable[str] | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Mean DP, EOpp and EOdd of every model over attributes, with measure and number of attributes, by (threat, model).

    Takes rows of group_metrics, the kind of every measure by name, and the attributes that a mapper moves (None if its
    dimensions are no attributes). Uses the first measure of kind clean, or else the first measure; the positive class,
    or the mean over classes; and the attributes for which all three are defined for every model. Empty if there are no
    such attributes.
    """
    names = list(dict.fromkeys(metrics["measure"]))
    measure = next((name for name in names if kinds[name] == UNPERTURBED), names[0] if names else None)
    rows = metrics[(metrics["measure"] == measure) & metrics["metric"].isin(GROUP_METRICS)]
    one = rows["class_name"].nunique() == 1
    rows = rows[one | (rows["class_name"] == MACRO)]
    if moved is not None:
        rows = rows[rows["attribute"].isin(list(moved))]
    complete = rows.groupby("attribute")["value"].transform(lambda values: values.notna().all()).astype(bool)
    rows = rows[complete]
    means: dict[tuple[str, str], dict[str, Any]] = {}
    for (threat, model, metric), value in rows.groupby(["threat", "model", "metric"])["value"].mean().items():
        means.setdefault((threat, model), {})[metric] = value
    described = {"group_measure": measure, "group_attributes": rows["attribute"].nunique()}
    return {model: {**values, **described} for model, values in means.items()}
