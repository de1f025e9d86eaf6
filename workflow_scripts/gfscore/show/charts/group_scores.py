"""Value of each group of samples with its interval: a panel per attribute, a row per model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_ATTRIBUTES, MOST_MODELS = 8, 40
ATTACKED = "adversarial"
"""Kind of measure whose groups are drawn beside those of the scores; all others stand in the tables."""


def groups(subject: Subject) -> pd.DataFrame | None:
    """Value and interval of each group, joint over the groups of an attribute.

    Of 8 attributes with the largest differences and 40 models with the highest values. Of each attribute and model,
    `gap` is the largest difference of values of groups that have enough samples, `sure_gap` the lower bound of the
    largest difference.
    """
    from gfscore.audit.groups.scores import group_gaps, widest_attributes
    from gfscore.core.names import model_labels
    from gfscore.tables.table import ALL

    rows = subject.rows("group_scores") if subject.scored or subject.kind == ATTACKED else None
    if rows is None or not (rows["n"] > 0).any():
        return None
    gaps = group_gaps(rows)
    if gaps.empty:
        return None
    gaps = gaps.assign(model=model_labels(gaps), sampled_gap=gaps.get("sampled_gap", float("nan")))
    order = (
        gaps.groupby("model", sort=False)["value"]
        .mean()
        .sort_values(ascending=False, kind="stable")
        .index[:MOST_MODELS]
    )
    place = {name: index for index, name in enumerate(order)}
    whole = rows.drop(columns="model").rename(columns={"label": "model"})
    whole = whole[(whole["class_index"] == ALL) & whole["attribute"].isin(widest_attributes(gaps, MOST_ATTRIBUTES))]
    whole = whole[whole["model"].isin(place)].sort_values("model", key=lambda names: names.map(place), kind="stable")
    named = gaps.rename(columns={"sampled_gap": "own_gap", "gap_low": "sure_gap"})
    whole = whole.merge(named[["model", "attribute", "own_gap", "sure_gap"]], on=["model", "attribute"], how="left")
    whole = whole.rename(columns={"own_gap": "gap"})
    columns = ["attribute", "model", "group", "value", "low", "high", "small", "gap", "sure_gap", "n", "confidence"]
    return whole.sort_values("attribute", kind="stable")[columns].reset_index(drop=True)


def widest_gap(frame: pd.DataFrame) -> Finding:
    """The largest difference between groups with enough samples, and in how many models it is beyond its interval."""
    known = frame[frame["gap"].notna() & ~frame["small"].astype(bool)]
    if known.empty:
        return Finding("groups_small")
    widest = known.loc[known["gap"].idxmax()]
    if not widest["gap"] > 0:
        return Finding("groups_alike")
    own = known[(known["attribute"] == widest["attribute"]) & (known["model"] == widest["model"])]
    low, high = own.loc[own["value"].idxmin()], own.loc[own["value"].idxmax()]
    apart = frame[frame["attribute"] == widest["attribute"]].drop_duplicates("model")
    names = {"attribute": str(widest["attribute"]), "model": str(widest["model"])}
    names |= {"lowest": str(low["group"]), "highest": str(high["group"])}
    numbers = {"low": float(low["value"]), "high": float(high["value"]), "models": len(apart)}
    sure = int((apart["sure_gap"] > 0).sum())
    return Finding("groups_differ_most", names, numbers | {"times": sure}, float(frame["confidence"].iloc[0]))


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """A panel for each attribute: models in rows, a mark for each group."""
    for axes, part in drawing.panels(figure, frame, "attribute"):
        drawing.numbers(axes.xaxis, "{short_unit}; higher is better", part[["value", "low", "high"]])
        drawing.intervals(
            axes, part, row="model", value="value", low="low", high="high", colour="group", hollow="small"
        )


CHART = Chart(
    name="group_scores",
    title="Groups of samples",
    question="For which groups of samples does a model do worse?",
    section="whom",
    tables=("group_scores",),
    data=groups,
    draw=draw,
    panels=True,
    finding=widest_gap,
    shows="{measure_title} of each group; further right is better; marks on one spot: groups treated alike",
    note="Thin lines: {confidence} intervals, joint over the groups of an attribute. Hollow: fewer samples than the "
    "audit's smallest cell. The 8 attributes with the largest differences, the 40 models with the highest values.",
    order=1,
)
