"""What each task depends on, by projections and by differences between groups side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.charts.projection_tasks import OF_GROUPS, influences
from gfscore.show.lazy import drawing, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def profiles(subject: Subject) -> pd.DataFrame | None:
    """Influence of each attribute or dimension on a task, mean and range over models, without the task's own attribute.

    Source: the projection-fairness paper's Figs. 10 and 11, whose circles would hide the values.
    """
    frame = influences(subject)
    if frame is None:
        return None
    frame = frame[~frame["own"].astype(bool)]
    if frame["mapper"].nunique() > 1:
        compared = frame.loc[frame["metric"].isin(OF_GROUPS), "attribute"]
        owner = frame["mapper"].where((frame["dimensions"] > 0) & ~frame["attribute"].isin(compared), "")
        frame = frame.assign(attribute=(owner + " " + frame["attribute"]).str.strip())
    found = frame.groupby(["task", "attribute", "influence"], sort=False)
    values = found.agg(value=("value", "mean"), low=("value", "min"), high=("value", "max"), n=("n", "max"))
    return values.reset_index().assign(models=frame["model"].nunique())


def largest_of_task(frame: pd.DataFrame) -> Finding:
    """In how many tasks projections and equal opportunity name the same attribute as the most influential."""
    same, tasks = 0, 0
    for _, own in frame.groupby("task", sort=False):
        both = [own[own["influence"] == name] for name in ("1 \u2212 Tol", "EOpp")]
        shared = set(both[0]["attribute"]) & set(both[1]["attribute"])
        first = [part[part["attribute"].isin(shared)] for part in both]
        if len(shared) > 1:
            names = [part.loc[part["value"].idxmax(), "attribute"] for part in first]
            same, tasks = same + (names[0] == names[1]), tasks + 1
    return (
        Finding("same_attributes", numbers={"times": same, "kinds": tasks})
        if tasks
        else Finding("no_attribute_in_common")
    )


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """A panel for each task: attributes in rows, a mark for each kind of influence."""
    for axes, part in drawing.panels(figure, frame, "task"):
        drawing.numbers(axes.xaxis, "influence (0: none)", part[["value", "low", "high"]], zero=True)
        drawing.intervals(axes, part, row="attribute", value="value", low="low", high="high", colour="influence")


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
    note="Left, 0: no influence. Lines: from the lowest to the highest model, no interval. What is the task itself is "
    "left out. Influences of different kinds have different units: compare their order, not their size.",
    order=10,
)
