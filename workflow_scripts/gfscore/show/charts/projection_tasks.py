"""How much the prediction of each task depends on each attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


OF_MAPPER = {"tolerance": "1 \u2212 Tol", "deviation": "Dev"}
OF_GROUPS = {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}


def influences(subject: Subject, table: str = "projection_attributes") -> pd.DataFrame | None:
    """Rows of a table on projections for each of its numbers that is known, all as influence: 0 is none, 1 the most.

    Columns `metric`, `value` and `shown`, the number's name, with that of the mapper where there are several and the
    number depends on it; `influence` is its name alone. Without constant classifiers; None for an audit of one task.
    """
    rows = subject.rows(table, tasks=True)
    if rows is None or rows["dataset"].nunique() == 1:
        return None
    rows = rows[~rows["constant"].astype(bool)].assign(task=rows["dataset"], model=rows["label"])
    several = rows["mapper"].nunique() > 1
    frames = []
    for mapper, of_mapper in rows.groupby("mapper", sort=False):
        for metric, name in OF_MAPPER.items():
            value = 1 - of_mapper[metric] if metric == "tolerance" else of_mapper[metric]
            panel_title = f"{mapper}: {name}" if several else name
            frames.append(of_mapper.assign(metric=metric, value=value, influence=name, shown=panel_title))

    # Differences between groups are the same whatever the mapper.
    keys = [name for name in ("dataset", "threat", "model", "attribute") if name in rows]
    for metric, name in OF_GROUPS.items():
        rows_of_metric = rows[rows[metric].notna()].drop_duplicates(keys)
        frames.append(rows_of_metric.assign(metric=metric, value=rows_of_metric[metric], influence=name, shown=name))
    frame = pd.concat(frames, ignore_index=True)
    return frame[frame["value"].notna()].astype({"value": float})


def by_attribute(subject: Subject) -> pd.DataFrame | None:
    """Influence of each attribute or dimension on each task, mean over models, whose number may differ by task.

    Source: layout of the paper's Fig. 6.
    """
    frame = influences(subject)
    if frame is None:
        return None
    groups = frame.groupby(["shown", "influence", "metric", "task", "attribute"], sort=False)
    means = groups.agg(value=("value", "mean"), own=("own", "max"), n=("n", "max"), models=("model", "nunique"))
    means = means.reset_index()
    return means.assign(itself=means["own"].map({True: "sure", False: None}))


def strongest_influence(frame: pd.DataFrame) -> Finding:
    """The task and the attribute, not the task itself, whose move changes predictions most."""
    moved = frame[(frame["metric"] == "tolerance") & ~frame["own"].astype(bool)]
    most = moved.loc[moved["value"].idxmax()]
    names = {"task": str(most["task"]), "attribute": str(most["attribute"])}
    return Finding("task_depends", names, {"mean": 1 - float(most["value"]), "models": int(most["models"])})


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """A panel for each kind of influence: tasks in rows, attributes or dimensions in columns."""
    tasks = drawing.categories(frame, "task")
    for axes, panel in drawing.panels(figure, frame, "shown", most=4, least=200, one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
            row="task",
            column="attribute",
            value="value",
            limits=drawing.limits_from_zero(frame["value"]),
            scale_title="influence (0: none)",
            rows=tasks,
            box="itself",
        )


CHART = Chart(
    name="projection_tasks",
    title="Influence of each attribute on each task",
    question="Which task depends on which attribute?",
    section="whom",
    tables=("projection_attributes",),
    about="audit",
    data=by_attribute,
    draw=draw,
    panels=True,
    finding=strongest_influence,
    shows="Influence of attributes, or latent dimensions, on the predictions of each task, mean over models",
    note="0, dark: no influence. Framed: the attribute is the task itself, in no mean over attributes. Deviation is "
    "defined for dimensions that move to two sides, not for attributes. DP, EOpp, EOdd: largest difference between "
    "groups, of all samples, not drawn where a cell is empty, as in every task's own groups. Constant classifiers are "
    "left out: a mean may be of fewer models.",
    order=9,
)
