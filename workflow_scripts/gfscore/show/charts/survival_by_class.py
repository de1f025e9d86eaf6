"""Survival under attack of each class, one panel per model of at most 20."""

from __future__ import annotations

from functools import partial

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.charts.survival import radius_curves
from gfscore.show.lazy import drawing, pd

MOST_MODELS = 20


def class_curves(subject: Subject, kind: str) -> pd.DataFrame:
    """Curves of each class, "minimal" or "certified", of at most MOST_MODELS models."""
    frame = radius_curves(subject, kind, by_class=True)
    if frame["model"].nunique() > MOST_MODELS:
        raise NothingToDraw
    return frame


def weakest_of_models(frame: pd.DataFrame) -> Finding:
    """Class of the smallest mean in most models."""
    weakest = frame[frame["weakest"]].drop_duplicates(["model", "class"])
    times = weakest["class"].value_counts()
    numbers = {
        "times": int(times.iloc[0]),
        "models": frame["model"].nunique(),
        **others_equal(times, times.iloc[0]),
    }
    return Finding("smallest_radius", {"cls": str(times.index[0])}, numbers)


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each model: a line for each class, which stands out where its mean is the smallest."""
    for axes, panel in drawing.panels(figure, frame, "model"):
        drawing.reserve(axes, drawing.PANEL_HEIGHT)
        drawing.numbers(axes.xaxis, "radius r ({short_unit})", frame["radius"], zero=True)
        drawing.numbers(axes.yaxis, "share (higher is better)", frame["share"], end=1.0)
        drawing.curves(axes, panel, x="radius", y="share", line="class", low="low", high="high", bold="weakest")


CHART = Chart(
    name="survival_by_class",
    title="Survival under attack by class",
    question="Which class breaks first?",
    section="trust",
    tables=("radius_curves", "class_scores"),
    data=partial(class_curves, kind="minimal"),
    draw=draw,
    panels=True,
    finding=weakest_of_models,
    shows="{measure_title} by class: share not broken within r, an upper bound on the truth, but for the draw of "
    "samples",
    note="Thin lines: classes. Thick: the class of the smallest mean, with its {confidence} bound (all classes of a "
    "model together). Attacks that fail prove nothing, so the truth may lie below any line.",
    per_class=True,
    order=4,
)
