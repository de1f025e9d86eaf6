"""Value of each group of samples with its interval: a panel per attribute, a row per model."""

from __future__ import annotations

from collections.abc import Iterable

from gfscore.audit.findings.finding import Finding
from gfscore.core.identity import ALL
from gfscore.core.mappings import positions
from gfscore.core.names import model_labels
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject, some
from gfscore.show.lazy import drawing, np, pd
from gfscore.statistics.tolerances import TIE_TOLERANCE

MOST_ATTRIBUTES = 8
MOST_MODELS = 40
ATTACKED = "adversarial"
"""Kind of measure whose groups are drawn beside the scores' groups; all others stand in the tables."""


def scores_and_gaps(subject: Subject) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of group_scores of a score or an accuracy under attack, and the differences between their groups."""
    from gfscore.audit.groups.scores import group_gaps

    if not subject.scored and subject.kind != ATTACKED:
        raise NothingToDraw
    rows = subject.rows("group_scores")
    return rows, some(group_gaps(rows))


def groups(subject: Subject) -> pd.DataFrame:
    """Value and interval of each group, joint over the groups of an attribute.

    Of 8 attributes with the largest differences and 40 models with the highest values. Of each attribute and model,
    `gap` is the largest difference of values of groups that have enough samples, `sure_gap` the difference of the two
    whose intervals lie farthest apart, NaN where all intervals overlap; `any_sure` whether some attribute and model,
    drawn or not, has intervals that do not.
    """
    from gfscore.audit.groups.scores import widest_attributes

    rows, gaps = scores_and_gaps(subject)
    gaps = gaps.assign(model=model_labels(gaps), gap=gaps["sampled_gap"])
    means = gaps.groupby("model", sort=False)["value"].mean()
    best = means.sort_values(ascending=False, kind="stable").index[:MOST_MODELS]
    rank_of_model = positions(best)
    frame = rows.drop(columns="model").rename(columns={"label": "model"})
    attributes = widest_attributes(gaps, MOST_ATTRIBUTES)
    drawn = frame["attribute"].isin(attributes) & frame["model"].isin(rank_of_model)
    frame = frame[drawn & (frame["class_index"] == ALL)]
    frame = frame.sort_values("model", key=lambda names: names.map(rank_of_model), kind="stable")

    keys = ["model", "attribute"]
    frame = frame.merge(gaps[[*keys, "gap", "sure_gap"]], on=keys, how="left")
    columns = ["attribute", "model", "group", "value", "low", "high", "small", "gap", "sure_gap", "n", "confidence"]
    frame = frame.sort_values("attribute", kind="stable")[columns].reset_index(drop=True)
    return frame.assign(any_sure=gaps["sure_gap"].notna().any())


def widest_gap(frame: pd.DataFrame) -> Finding:
    """The largest difference between groups with enough samples, and in how many models it is beyond its interval."""
    enough = frame[frame["gap"].notna() & ~frame["small"].astype(bool)]
    if enough.empty:
        return Finding("groups_small")
    widest = enough.loc[enough["gap"].idxmax()]
    if not widest["gap"] > 0:
        return Finding("groups_alike")

    of_attribute = enough["attribute"] == widest["attribute"]
    groups_of_model = enough[of_attribute & (enough["model"] == widest["model"])]
    lowest = groups_of_model.loc[groups_of_model["value"].idxmin()]
    highest = groups_of_model.loc[groups_of_model["value"].idxmax()]
    models = frame[frame["attribute"] == widest["attribute"]].drop_duplicates("model")
    names = {
        "attribute": str(widest["attribute"]),
        "model": str(widest["model"]),
        "lowest": str(lowest["group"]),
        "highest": str(highest["group"]),
    }
    numbers = {
        "low": float(lowest["value"]),
        "high": float(highest["value"]),
        "tied_pairs": pairs_as_far(enough.groupby(["attribute", "model"])["value"], widest["gap"]) - 1,
        "models": len(models),
        "times": int(models["sure_gap"].notna().sum()),
    }
    kind = "groups_differ_most" if frame["any_sure"].any() else "groups_overlap"
    return Finding(kind, names, numbers, float(frame["confidence"].iloc[0]))


def pairs_as_far(groups: Iterable[tuple[object, pd.Series]], gap: float) -> int:
    """Pairs of values of one group that differ by the largest difference of all groups."""
    pairs = 0
    for _, values in groups:
        pairs += int((np.subtract.outer(values.to_numpy(), values.to_numpy()) >= gap - TIE_TOLERANCE).sum())
    return pairs


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each attribute: models in rows, a mark for each group."""
    for axes, panel in drawing.panels(figure, frame, "attribute"):
        drawing.numbers(axes.xaxis, "{short_unit}; higher is better", panel[["value", "low", "high"]])
        drawing.intervals(
            axes, panel, row="model", value="value", low="low", high="high", colour="group", hollow="small"
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
    as_failures=True,
    shows="{measure_title} of each group; further right is better; marks on one spot: groups treated alike",
    note="Thin lines: {confidence} intervals, joint over the groups of an attribute. Hollow: fewer samples than the "
    "audit's smallest cell. The 8 attributes with the largest differences, the 40 models with the highest values.",
    order=1,
)
