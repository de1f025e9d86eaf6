"""Where the errors fall under each kind of corruption: CFPS by corruption and class."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, ties
from gfscore.show.charts.corruption_by_class import by_corruption
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, pd


def shares(subject: Subject) -> pd.DataFrame:
    """CFPS by kind of corruption and class, mean over severities and models, the hardest corruption first."""
    frame = by_corruption(subject, "cfps")
    if frame["cfps"].isna().all():
        raise NothingToDraw
    return frame.drop(columns="recall")


def class_with_most_errors(frame: pd.DataFrame) -> Finding:
    """The class that most errors fall on under most corruptions, and the corruption where its share is the largest."""
    valued = frame[frame["cfps"].notna()]
    largest = valued.groupby("corruption")["cfps"].transform("max")
    times = valued[valued["cfps"] == largest]["class"].value_counts()
    rows_of_class = valued[valued["class"] == times.index[0]]
    most = rows_of_class.loc[rows_of_class["cfps"].idxmax()]
    names = {"cls": str(most["class"]), "corruption": str(most["corruption"])}
    numbers = {
        "times": int(times.iloc[0]),
        "kinds": valued["corruption"].nunique(),
        "share": float(most["cfps"]),
        "tied_classes": ties(times, times.iloc[0]),
        "tied_kinds": ties(rows_of_class["cfps"], most["cfps"]),
    }
    return Finding("errors_drawn_corrupted", names, numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """Shares as colours; corruptions in rows, classes in columns."""
    drawing.heatmap(
        axes,
        frame,
        row="corruption",
        column="class",
        value="cfps",
        limits=drawing.limits_from_zero(frame["cfps"]),
        scale_title="CFPS (share of all errors; equal is fairest)",
    )


CHART = Chart(
    name="cfps_by_corruption",
    title="Share of the errors by class and corruption (CFPS)",
    question="Which class are wrong predictions of under each corruption?",
    section="whom",
    tables=("class_errors",),
    data=shares,
    draw=draw,
    finding=class_with_most_errors,
    sentences={
        "errors_drawn_corrupted": "{cls:class}{tied_classes:ties} draws the largest share of the errors under "
        "{times} of {kinds} corruptions, most under {corruption}{tied_kinds:ties} ({share})",
    },
    shows="Share of all errors that are wrongly called each class (CFPS), mean over severities and models",
    note="Hardest corruption on top, as in recall by corruption. Rows sum to 1.",
    per_class=True,
    order=3.5,
)
