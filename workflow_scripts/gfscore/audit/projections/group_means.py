"""Differences between groups of each model, for comparison with Tolerance and Deviation as in the paper."""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from gfscore.audit.groups.metrics import MACRO
from gfscore.audit.projections.columns import GROUP_METRICS

UNPERTURBED = "clean"
"""Kind of the measure with predictions on unperturbed samples."""


def differences_between_groups(metrics: pd.DataFrame, *, kinds: Mapping[str, str]) -> pd.DataFrame:
    """DP, EOpp and EOdd of every model by attribute, a column each; with threat, model, attribute and group_measure.

    Takes rows of group_metrics and the kind of every measure by name. Uses the first measure of kind clean, or else the
    first measure, and the positive class, or the mean over classes.
    """
    names = list(dict.fromkeys(metrics["measure"]))
    measure = next((name for name in names if kinds[name] == UNPERTURBED), names[0] if names else None)
    rows = metrics[(metrics["measure"] == measure) & metrics["metric"].isin(GROUP_METRICS)]
    one = rows["class_name"].nunique() == 1
    rows = rows[one | (rows["class_name"] == MACRO)]
    keys = ["threat", "model", "attribute", "metric"]
    wide = rows.set_index(keys)["value"].unstack("metric", sort=False)
    return wide.reindex(columns=list(GROUP_METRICS)).reset_index().assign(group_measure=measure)


def group_means(
    differences: pd.DataFrame, *, moved: Iterable[str] | None = None, own: str | None = None
) -> dict[tuple[str, str], dict[str, Any]]:
    """Mean DP, EOpp and EOdd of every model over attributes, with measure and number of attributes, by (threat, model).

    Takes `differences_between_groups`, the attributes that a mapper moves (None if its dimensions are no attributes)
    and the one that is the task itself. Uses the other attributes for which all three are defined for every model.
    Empty if there are no such attributes.
    """
    rows = differences[differences["attribute"] != own]
    if moved is not None:
        rows = rows[rows["attribute"].isin(list(moved))]
    defined = rows[list(GROUP_METRICS)].notna().all(axis=1)
    rows = rows[defined.groupby(rows["attribute"]).transform("all").astype(bool)]
    means = rows.groupby(["threat", "model"])[list(GROUP_METRICS)].mean()
    return {
        (str(threat), str(model)): {
            **dict(zip(GROUP_METRICS, values, strict=True)),
            "group_measure": rows["group_measure"].iloc[0],
            "group_attributes": rows["attribute"].nunique(),
        }
        for (threat, model), values in zip(means.index, means.to_numpy().tolist(), strict=True)
    }
