"""Differences between the values of groups of samples."""

import numpy as np
import pandas as pd

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.metrics.rdi import largest_gap


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
    return pd.DataFrame(rows)


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
