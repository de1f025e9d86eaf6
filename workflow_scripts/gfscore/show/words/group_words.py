"""Differences between groups of samples, as numbers and as sentences."""

from __future__ import annotations

import numpy as np
import pandas as pd

from gfscore.audit.agreement.columns import ALL
from gfscore.audit.metrics.rdi import largest_gap
from gfscore.core.names import enumeration, model_labels, printable
from gfscore.core.numbers import number, percent
from gfscore.statistics.disparity import TIE_TOLERANCE

MOST_LISTED = 6
"""Attributes that a sentence names."""


def group_gaps(scores: pd.DataFrame) -> pd.DataFrame:
    """Differences between the groups of each attribute, a data frame with one row per model, measure and attribute.

    Takes group_scores rows. `lowest` and `highest` name the groups with the smallest and largest value, `gap` is the
    difference of these values, and `gap_low`, `gap_high` bound the true one with the joint confidence of the groups'
    own bounds. Groups without samples count in the bounds alone; `small` says that one of the two has few samples;
    `sampled_gap` and the like are of the groups that have enough, NaN for fewer than two.
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


def widest_gap(gaps: pd.DataFrame) -> str:
    """The largest difference between groups of one measure in words, of groups with enough samples if there is one.

    A larger one, between groups of which one has few samples, is named beside it. Takes rows of group_gaps, not empty.
    """
    gaps = gaps.assign(label=model_labels(gaps))
    widest = gaps.loc[gaps["gap"].idxmax()]
    if widest["gap"] < TIE_TOLERANCE:
        return "No model tells the groups of any attribute apart"
    known = gaps[gaps["sampled_gap"].notna()] if "sampled_gap" in gaps else gaps[:0]
    if known.empty:
        return f"{_gap_words(widest)}; one of the two has few samples"
    sampled = known.loc[known["sampled_gap"].idxmax()]
    words = "No model tells groups with enough samples apart"
    if sampled["sampled_gap"] >= TIE_TOLERANCE:
        words = _gap_words(sampled, prefix="sampled_")
    if sampled["sampled_gap"] >= widest["gap"] - TIE_TOLERANCE:
        return words
    small = f"{number(widest['gap'])} ({printable(widest['label'])}, by {printable(widest['attribute'])})"
    return f"{words}; where one of two groups has few samples, the difference reaches {small}"


def _gap_words(row, prefix=""):
    return (
        f"Groups by {printable(row['attribute'])} differ most: {printable(row['label'])}, "
        f"{number(row[f'{prefix}low_value'])} on {printable(row[f'{prefix}lowest'])} and "
        f"{number(row[f'{prefix}high_value'])} on {printable(row[f'{prefix}highest'])}"
    )


def sure_gaps(gaps: pd.DataFrame) -> str:
    """In how many models the groups of each attribute surely differ. Takes rows of group_gaps of one measure."""
    found = gaps.assign(sure=gaps["gap_low"] > 0).groupby("attribute", sort=False)["sure"].agg(["sum", "size"])
    sure = found[found["sum"] > 0].sort_values("sum", ascending=False, kind="stable")
    if sure.empty:
        return "No difference between groups is beyond its interval, in any model and by any attribute"
    parts = [
        f"{printable(name)} in {row['sum']:,} of {row['size']:,} models" for name, row in sure[:MOST_LISTED].iterrows()
    ]
    parts += [f"{len(sure) - MOST_LISTED:,} attributes more"] if len(sure) > MOST_LISTED else []
    held = f"{percent(gaps['confidence'].iloc[0])} confidence for each model and attribute"
    return f"Groups differ beyond their intervals ({held}) by {enumeration(parts)}"


def widest_attributes(gaps: pd.DataFrame, most: int) -> list[str]:
    """Names of the `most` attributes with the largest differences in any model, in the order of the table."""
    largest = gaps.groupby("attribute", sort=False)["gap"].max()
    kept = set(largest.sort_values(ascending=False, kind="stable").index[:most])
    return [name for name in largest.index if name in kept]
