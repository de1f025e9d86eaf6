"""Differences between groups of samples, as numbers and as sentences."""

import numpy as np
import pandas as pd

from gfscore.bounds.intervals import largest_gap
from gfscore.names import enumeration, model_labels, printable
from gfscore.numbers import number, percent
from gfscore.tables.agreement import ALL

MOST_LISTED = 6
"""Attributes that a sentence names."""


def group_gaps(scores):
    """Differences between the groups of each attribute, a data frame with one row per model, measure and attribute.

    Takes group_scores rows. `lowest` and `highest` name the groups with the smallest and largest value, `gap` is the
    difference of these values, and `gap_low`, `gap_high` bound the true one with the joint confidence of the groups'
    own bounds. Groups without samples count in the bounds alone; `small` says that one of the two has few samples.
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
        rows.append(
            {
                "dataset": own["dataset"].iloc[0], "threat": threat, "model": model, "measure": measure,
                "attribute": attribute, "groups": len(own), "lowest": ends[0]["group"], "highest": ends[1]["group"],
                "low_value": ends[0]["value"], "high_value": ends[1]["value"],
                "gap": ends[1]["value"] - ends[0]["value"], "gap_low": largest_gap(low, high),
                "gap_high": largest_gap(high, low), "small": bool(ends[0]["small"] or ends[1]["small"]),
                "confidence": own["confidence"].iloc[0], "value": float(np.average(known["value"], weights=known["n"])),
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def widest_gap(gaps):
    """The largest difference between groups of one measure in words, of groups with few samples only if need be.

    Takes rows of group_gaps, not empty.
    """
    gaps = gaps.assign(label=model_labels(gaps))
    row = max(
        (gaps[~gaps["small"]] if not gaps["small"].all() else gaps).to_dict("records"), key=lambda row: row["gap"]
    )
    if row["gap"] < 1e-9:
        return "No model tells the groups of any attribute apart"
    return (
        f"Groups by {printable(row['attribute'])} differ most: {printable(row['label'])}, "
        f"{number(row['low_value'])} on {printable(row['lowest'])} and {number(row['high_value'])} on "
        f"{printable(row['highest'])}"
    )


def sure_gaps(gaps):
    """In how many models the groups of each attribute surely differ. Takes rows of group_gaps of one measure."""
    found = gaps.assign(sure=gaps["gap_low"] > 0).groupby("attribute", sort=False)["sure"].agg(["sum", "size"])
    sure = found[found["sum"] > 0].sort_values("sum", ascending=False, kind="stable")
    if sure.empty:
        return "No difference between groups is beyond doubt, in any model and by any attribute"
    parts = [
        f"{printable(name)} in {row['sum']:,} of {row['size']:,} models" for name, row in sure[:MOST_LISTED].iterrows()
    ]
    parts += [f"{len(sure) - MOST_LISTED:,} attributes more"] if len(sure) > MOST_LISTED else []
    confidence = percent(gaps["confidence"].iloc[0])
    return f"Groups differ beyond doubt ({confidence} confidence for each model and attribute) by {enumeration(parts)}"


def widest_attributes(gaps, most):
    """Names of the `most` attributes with the largest differences in any model, in the order of the table."""
    largest = gaps.groupby("attribute", sort=False)["gap"].max()
    kept = set(largest.sort_values(ascending=False, kind="stable").index[:most])
    return [name for name in largest.index if name in kept]
