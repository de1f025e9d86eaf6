"""Recall of each class under each kind of corruption."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal, ties
from gfscore.show.charts.class_heatmap import BY_MEAN, IN_ORDER, MOST_IN_ORDER
from gfscore.show.charts.declaration import Chart, Subject, some
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import TIE_TOLERANCE


def by_corruption(subject: Subject, column: str) -> pd.DataFrame:
    """A column of class_errors by kind of corruption and class, mean over severities and models.

    The corruption that costs most recall comes first, and so does, of more than MOST_IN_ORDER classes, the class of
    least recall.
    """
    rows = subject.rows("class_errors")
    rows = some(rows[rows["corruption"].notna()]).sort_values("class_index", kind="stable")
    rows = rows.assign(corruption=rows["corruption"].str.replace("_", " "))
    recall_under = rows.groupby("corruption")["recall"].mean()
    recall_of = rows.groupby("class")["recall"].mean()

    means = {"recall": ("recall", "mean"), column: (column, "mean"), "n": ("n", "min")}
    frame = rows.groupby(["corruption", "class"], sort=False).agg(**means).reset_index()
    class_order = IN_ORDER
    if frame["class"].nunique() > MOST_IN_ORDER:
        class_order = BY_MEAN
        frame = frame.sort_values("class", key=lambda names: names.map(recall_of), kind="stable")
    frame = frame.sort_values("corruption", key=lambda names: names.map(recall_under), kind="stable")
    return frame.reset_index(drop=True).assign(models=rows["label"].nunique(), class_order=class_order)


def recalls(subject: Subject) -> pd.DataFrame:
    """Recall by kind of corruption and class, mean over severities and models, the hardest corruption first."""
    frame = by_corruption(subject, "recall")
    return frame.assign(mean=frame.groupby("corruption")["recall"].transform("mean"))


def hardest_corruption(frame: pd.DataFrame) -> Finding:
    """Which corruption costs most recall, and which class is the lowest under most corruptions."""
    valued = frame[frame["recall"].notna()]
    if valued.empty:
        return Finding("nothing_corrupted")
    means = valued["mean"]
    if valued["corruption"].nunique() > 1 and means.max() - means.min() <= TIE_TOLERANCE:
        numbers = {"recall": float(means.iloc[0]), "lowest": float(valued["recall"].min())}
        return Finding("corruptions_equal", numbers=numbers)
    least = valued.groupby("corruption")["recall"].transform("min")
    times = valued[valued["recall"] == least]["class"].value_counts()
    hardest = valued.iloc[0]
    names = {"corruption": str(hardest["corruption"]), "cls": str(times.index[0])}
    numbers = {
        "recall": float(hardest["mean"]),
        "tied_kinds": ties(valued.drop_duplicates("corruption")["mean"], hardest["mean"]),
        "times": int(times.iloc[0]),
        "kinds": valued["corruption"].nunique(),
        **others_equal(times, times.iloc[0]),
        "lowest": float(valued.loc[valued["corruption"] == hardest["corruption"], "recall"].min()),
    }
    return Finding("hardest_corruption", names, numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """Recall as colours; corruptions in rows, the hardest on top, classes in columns."""
    drawing.heatmap(
        axes,
        frame,
        row="corruption",
        column="class",
        value="recall",
        limits=(0.0, 1.0),
        scale_title="recall (share of the class)",
        aside="mean",
    )


CHART = Chart(
    name="corruption_by_class",
    title="Corruptions by class",
    question="Which corruption costs which class most?",
    section="whom",
    tables=("class_errors",),
    data=recalls,
    draw=draw,
    finding=hardest_corruption,
    shows="Recall of each class, mean over severities and models; dark is low, bright is high; higher is better",
    note="Hardest corruption on top. Right column: mean over classes. Classes stand {class_order}.",
    per_class=True,
    order=3,
)
