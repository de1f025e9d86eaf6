"""How much the prediction of each task depends on each attribute."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, pd

MAPPER_METRICS = {"tolerance": "1 \u2212 Tol", "deviation": "Dev"}
GROUP_METRICS = {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}
"""Columns of tables on projections and their names as influences: from a mapper's moves, and between groups."""


def influences(subject: Subject, table: str = "projection_attributes") -> pd.DataFrame:
    """Influences by task in long form, one row per model, task, attribute (of this table) and metric.

    Larger is more influence, 0 none. Constant classifiers and undefined numbers are left out; NothingToDraw for an
    audit of one task. Beside the columns of the table:

    - `metric`: source column.
    - `value`: its influence, which is 1 - tolerance for the Tolerance and the number itself for others.
    - `influence`: short name of the influence.
    - `panel`: that name, preceded by the mapper where there are several and the number depends on it.
    """
    rows = subject.rows(table, tasks=True)
    if rows["dataset"].nunique() == 1:
        raise NothingToDraw
    rows = rows[~rows["constant"].astype(bool)]
    rows = rows.assign(task=rows["dataset"], model=rows["label"])
    several = rows["mapper"].nunique() > 1
    frames = []
    for mapper, rows_of_mapper in rows.groupby("mapper", sort=False):
        for metric, name in MAPPER_METRICS.items():
            numbers = rows_of_mapper[metric]
            value = 1 - numbers if metric == "tolerance" else numbers
            panel = f"{mapper}: {name}" if several else name
            frames.append(rows_of_mapper.assign(metric=metric, value=value, influence=name, panel=panel))

    # Differences between groups are the same whatever the mapper, but not their means over the attributes it moves.
    keys = [name for name in ("dataset", "threat", "model", "attribute") if name in rows]
    for metric, name in GROUP_METRICS.items():
        rows_of_metric = rows[rows[metric].notna()]
        panel = name
        if (rows_of_metric.groupby(keys)[metric].nunique() > 1).any():
            panel = rows_of_metric["mapper"] + f": {name}"
        else:
            rows_of_metric = rows_of_metric.drop_duplicates(keys)
        frames.append(rows_of_metric.assign(metric=metric, value=rows_of_metric[metric], influence=name, panel=panel))
    frame = pd.concat(frames, ignore_index=True)
    return frame[frame["value"].notna()].astype({"value": float})


def by_attribute(subject: Subject) -> pd.DataFrame:
    """Influence of each attribute or dimension on each task, mean over models, whose number may differ by task.

    Source: layout of the paper's Fig. 6.
    """
    frame = influences(subject)
    groups = frame.groupby(["panel", "influence", "metric", "task", "attribute"], sort=False)
    means = groups.agg(
        value=("value", "mean"),
        own=("own", "max"),
        n=("n", "max"),
        models=("model", "nunique"),
        mapper=("mapper", "first"),
    )
    means = means.reset_index()
    # The heatmap draws a solid frame around cells marked "sure".
    return means.assign(frame=means["own"].map({True: "sure", False: None}))


def strongest_influence(frame: pd.DataFrame) -> Finding:
    """The task and the attribute, not the task itself, whose move changes predictions most."""
    tolerances = frame[(frame["metric"] == "tolerance") & ~frame["own"].astype(bool)]
    if tolerances.empty:
        return Finding("no_tolerance")
    if not tolerances["value"].max():
        return Finding("tasks_tolerate_all")
    strongest = tolerances.loc[tolerances["value"].idxmax()]
    attribute = str(strongest["attribute"])
    if tolerances.loc[tolerances["attribute"] == attribute, "mapper"].nunique() > 1:
        attribute = f"{strongest['mapper']} {attribute}"
    names = {"task": str(strongest["task"]), "attribute": attribute}
    numbers = {"mean": 1 - float(strongest["value"]), "models": int(strongest["models"])}
    return Finding("task_depends", names, numbers | others_equal(tolerances["value"], strongest["value"]))


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each kind of influence: tasks in rows, attributes or dimensions in columns."""
    tasks = drawing.categories(frame, "task")
    for axes, panel in drawing.panels(figure, frame, "panel", most_columns=4, least_width=200, one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
            row="task",
            column="attribute",
            value="value",
            limits=drawing.limits_from_zero(frame["value"]),
            scale_title="influence (0: none)",
            rows=tasks,
            box="frame",
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
