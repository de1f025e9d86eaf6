"""Scores of every model over all sensitive attributes, task by task."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, ties
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.charts.projection_tasks import influences
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import TIE_TOLERANCE


def scores(subject: Subject) -> pd.DataFrame:
    """Influence of all sensitive attributes together on each model of each task. Source: the paper's Tables 1 and 3."""
    frame = influences(subject, "projection_models")
    return frame[["task", "model", "panel", "influence", "metric", "value", "n"]]


def widest_by_task(frame: pd.DataFrame) -> Finding:
    """The number that differs most between tasks, by its mean over models."""
    means = frame.groupby(["panel", "task"], sort=False)["value"].mean().unstack()
    # A number that one task alone has differs between no tasks.
    means = means[means.notna().sum(axis=1) > 1]
    if means.empty:
        return Finding("tasks_not_comparable")
    gaps = means.max(axis=1) - means.min(axis=1)
    largest, smallest = float(gaps.max()), float(gaps.min())
    if largest - smallest <= TIE_TOLERANCE:
        return Finding("tasks_differ_alike", numbers={"mean_gap": largest})
    names = {"metric": str(gaps.idxmax()), "least": str(gaps.idxmin())}
    numbers = {
        "mean_gap": largest,
        "tied_most": ties(gaps, largest),
        "mean_least": smallest,
        "tied_least": ties(gaps, smallest),
    }
    return Finding("tasks_differ", names, numbers)


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each task: models in rows, kinds of influence in columns."""
    models = drawing.categories(frame, "model")
    kinds = drawing.categories(frame, "panel")
    for axes, panel in drawing.panels(figure, frame, "task", one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
            row="model",
            column="panel",
            value="value",
            limits=drawing.limits_from_zero(frame["value"]),
            scale_title="influence (0: none)",
            rows=models,
            columns=kinds,
        )


CHART = Chart(
    name="projection_models",
    title="Scores over all sensitive attributes",
    question="How do tasks and models differ over all attributes?",
    section="whom",
    tables=("projection_models",),
    about="audit",
    data=scores,
    draw=draw,
    rows="model",
    panels=True,
    finding=widest_by_task,
    shows="Influence of all attributes, or all latent dimensions, mean over them",
    note="0, dark: no influence. Without the attribute that is the task itself. Tolerances of different mappers are "
    "about different moves. A constant classifier is left out: it would have 0 everywhere.",
    order=11,
)
