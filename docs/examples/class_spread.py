"""How far the models lie apart on each class: bars at the mean over models, a dot for each model."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, pd


def spread(subject: Subject) -> pd.DataFrame:
    """Value of each class in each model, one row for each, the class of the lowest mean first; `span` is its range."""
    rows = subject.rows("class_scores")  # of this measure at T = 1; `label` names models, `class` is readable
    if rows["label"].nunique() < 2:
        raise NothingToDraw
    frame = rows[["class", "value", "n"]].assign(model=rows["label"])
    by_class = frame.groupby("class")["value"]
    frame = frame.assign(mean=by_class.transform("mean"), span=by_class.transform("max") - by_class.transform("min"))
    return frame.sort_values("mean", kind="stable", ignore_index=True)


def widest(frame: pd.DataFrame) -> Finding:
    """The class on which models differ most."""
    most = frame.loc[frame["span"].idxmax()]
    return Finding("class_spread", {"cls": str(most["class"])}, {"span": float(most["span"])})


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """A bar for each class at the mean over models, a dot for each model."""
    drawing.numbers(axes.xaxis, "{unit}; higher is better", frame["value"], zero=True)
    drawing.bars(axes, frame, row="class", value="value")


CHART = Chart(
    name="class_spread",
    title="Spread of the models by class",
    question="On which class does the choice of a model matter most?",
    section="which",
    tables=("class_scores",),
    data=spread,
    draw=draw,
    finding=widest,
    sentences={"class_spread": "Models differ most on {cls:class}, by {span}"},
    shows="{measure_title} of each class, lowest mean on top",
    note="Bar: mean over models. Dot: one model.",
    per_class=True,
)
