"""How much the prediction of each task depends on each attribute."""

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.forms import Axis, Frame, Heatmap

OF_MAPPER = {"tolerance": "1 \u2212 Tol", "deviation": "Dev"}
OF_GROUPS = {"dp": "DP", "eopp": "EOpp", "eodd": "EOdd"}


def influences(subject: Subject, table: str = "projection_attributes") -> Frame | None:
    """Rows of a table on projections for each of its numbers that is known, all as influence: 0 is none, 1 the most.

    Columns `metric`, `value` and `shown`, the number's name, with that of the mapper where there are several and the
    number depends on it; `influence` is its name alone. Without constant classifiers; None for an audit of one task.
    """
    import pandas as pd

    rows = subject.rows(table, tasks=True)
    if rows is None or rows["dataset"].nunique() == 1:
        return None
    rows = rows[~rows["constant"].astype(bool)].assign(task=rows["dataset"], model=rows["label"])
    several = rows["mapper"].nunique() > 1
    parts = []
    for mapper, own in rows.groupby("mapper", sort=False):
        for metric, name in OF_MAPPER.items():
            value = 1 - own[metric] if metric == "tolerance" else own[metric]
            shown = f"{mapper}: {name}" if several else name
            parts.append(own.assign(metric=metric, value=value, influence=name, shown=shown))
    # The same whatever the mapper.
    keys = [name for name in ("dataset", "threat", "model", "attribute") if name in rows]
    for metric, name in OF_GROUPS.items():
        once = rows[rows[metric].notna()].drop_duplicates(keys)
        parts.append(once.assign(metric=metric, value=once[metric], influence=name, shown=name))
    found = pd.concat(parts, ignore_index=True)
    return found[found["value"].notna()].astype({"value": float})


def by_attribute(subject: Subject) -> Frame | None:
    """Influence of each attribute or dimension on each task, mean over models, whose number may differ by task.

    Source: layout of the paper's Fig. 6.
    """
    frame = influences(subject)
    if frame is None:
        return None
    keys = ["shown", "influence", "metric", "task", "attribute"]
    of_models = {"own": ("own", "max"), "n": ("n", "max"), "models": ("model", "nunique")}
    found = frame.groupby(keys, sort=False).agg(value=("value", "mean"), **of_models).reset_index()
    return found.assign(itself=found["own"].map({True: "sure", False: None}))


def strongest_influence(frame: Frame) -> Finding:
    """The task and the attribute, not the task itself, whose move changes predictions most."""
    moved = frame[(frame["metric"] == "tolerance") & ~frame["own"].astype(bool)]
    most = moved.loc[moved["value"].idxmax()]
    names = {"task": str(most["task"]), "attribute": str(most["attribute"])}
    return Finding("task_depends", names, {"mean": 1 - float(most["value"]), "models": int(most["models"])})


CHART = Chart(
    name="projection_tasks",
    title="Influence of each attribute on each task",
    question="Which task depends on which attribute?",
    section="whom",
    tables=("projection_attributes",),
    about="audit",
    data=by_attribute,
    form=Heatmap(
        panel="shown",
        row="task",
        column="attribute",
        value=Axis("value", "influence (0: none)"),
        limits="data",
        box="itself",
        apart=True,
    ),
    finding=strongest_influence,
    shows="Influence of attributes, or latent dimensions, on the predictions of each task, mean over models",
    note="0, dark: no influence. Framed: the attribute is the task itself, in no mean over attributes. Deviation is "
    "defined for dimensions that move to two sides, not for attributes. DP, EOpp, EOdd: largest difference between "
    "groups, of all samples, not drawn where a cell is empty, as in every task's own groups. Constant classifiers are "
    "left out: a mean may be of fewer models.",
    order=9,
)
