"""Confusion matrices of single models, on one scale of colours."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.show.charts.confusion import cells_of, matrices_of
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, pd

MOST_MODELS = 20


def shares_by_model(subject: Subject) -> pd.DataFrame:
    """Share of each true class that each model takes for another; of 2 to 20 models and at most 40 classes."""
    matrices = matrices_of(subject)
    if not 1 < len(matrices.shares) <= MOST_MODELS:
        raise NothingToDraw
    frames = []
    for model, shares in matrices.shares.items():
        frames.append(cells_of(shares, matrices).assign(model=model))
    return pd.concat(frames)


def most_confused_of_any(frame: pd.DataFrame) -> Finding:
    """The most frequent confusion of any model."""
    if not frame["share"].max() > 0:
        return Finding("nothing_confused")
    most = frame.sort_values("share", ascending=False, kind="stable").iloc[0]
    names = {"model": str(most["model"]), "true": str(most["true"]), "predicted": str(most["predicted"])}
    share = float(most["share"])
    return Finding("most_confused_of_any", names, {"share": share, **others_equal(frame["share"], share)})


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A matrix for each model, on one scale of colours."""
    limits = drawing.limits_from_zero(frame["share"])
    for axes, panel in drawing.panels(figure, frame, "model", one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
            row="true",
            column="predicted",
            value="share",
            limits=limits,
            scale_title="share of the true class (lower is better)",
            diagonal="recall",
            row_title="true class",
            column_title="predicted class",
            square=True,
        )


CHART = Chart(
    name="confusion_models",
    title="Confusion matrices of single models",
    question="Do models confuse the same classes?",
    section="class",
    tables=("confusions", "class_errors"),
    data=shares_by_model,
    draw=draw,
    panels=True,
    finding=most_confused_of_any,
    shows="Confusion matrix of each model: {measure_title}",
    note="One scale of colours for all. Empty diagonal: recognised. Rows sum to 1 but for abstentions.",
    per_class=True,
    order=6,
)
