"""Attributes that each task depends on, by projections and by differences between groups."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.charts.projection_tasks import GROUP_METRICS, MAPPER_METRICS, influences
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import TIE_TOLERANCE


def profiles(subject: Subject) -> pd.DataFrame:
    """Influence of each attribute or dimension on a task, mean and range over models, without the task's own attribute.

    Source: the projection-fairness paper's Figs. 10 and 11; their circles would hide the values.
    """
    frame = influences(subject)
    frame = frame[~frame["own"].astype(bool)]
    if frame["mapper"].nunique() > 1:
        # Dimensions of different mappers may have the same names; attributes of groups mean the same with any mapper.
        attributes_of_groups = frame.loc[frame["metric"].isin(GROUP_METRICS), "attribute"]
        is_dimension = (frame["dimensions"] > 0) & ~frame["attribute"].isin(attributes_of_groups)
        prefix = frame["mapper"].where(is_dimension, "")
        frame = frame.assign(attribute=(prefix + " " + frame["attribute"]).str.strip())
    moves = frame[frame["metric"].isin(MAPPER_METRICS)]
    if (moves.groupby("attribute")["mapper"].nunique() > 1).any():
        # Moves of one attribute by several mappers are of different images: each has an influence of its own.
        frame = frame.assign(influence=frame["panel"])
    groups = frame.groupby(["task", "attribute", "metric", "influence"], sort=False)
    values = groups.agg(value=("value", "mean"), low=("value", "min"), high=("value", "max"), n=("n", "max"))
    return values.reset_index().assign(models=frame["model"].nunique())


def largest_of_task(frame: pd.DataFrame) -> Finding:
    """Number of tasks in which projections and equal opportunity name the same attribute as the most influential.

    Of several mappers that move the same attributes, all must name it.
    """
    tasks_with_same = 0
    tasks = 0
    for _, rows in frame.groupby("task", sort=False):
        by_groups = rows[rows["metric"] == "eopp"]
        names_same = []
        for _, by_projection in rows[rows["metric"] == "tolerance"].groupby("influence", sort=False):
            common = set(by_projection["attribute"]) & set(by_groups["attribute"])
            if len(common) > 1:
                names_same.append(_most_influential(by_projection, common) == _most_influential(by_groups, common))
        if names_same:
            tasks += 1
            tasks_with_same += all(names_same)
    if not tasks:
        return Finding("no_attribute_in_common")
    return Finding("same_attributes", numbers={"times": tasks_with_same, "kinds": tasks})


def _most_influential(rows: pd.DataFrame, attributes: set[str]) -> set[str]:
    rows = rows[rows["attribute"].isin(attributes)]
    return set(rows.loc[rows["value"] >= rows["value"].max() - TIE_TOLERANCE, "attribute"])


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each task: attributes in rows, a mark for each kind of influence."""
    for axes, panel in drawing.panels(figure, frame, "task"):
        drawing.numbers(axes.xaxis, "influence (0: none)", panel[["value", "low", "high"]], zero=True)
        drawing.intervals(axes, panel, row="attribute", value="value", low="low", high="high", colour="influence")


CHART = Chart(
    name="projection_profiles",
    title="What each task depends on",
    question="Do projections and groups name the same attributes?",
    section="whom",
    tables=("projection_attributes",),
    about="audit",
    data=profiles,
    draw=draw,
    rows="attribute",
    panels=True,
    finding=largest_of_task,
    shows="Influence of attributes and latent dimensions on each task, mean over models",
    note="Left, 0: no influence. Lines: from the lowest to the highest model, no interval. The task's own attribute "
    "is left out. Influences of different kinds have different units: compare their order, not their size.",
    order=10,
)
