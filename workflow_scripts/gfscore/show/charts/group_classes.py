"""Values by group and class, attribute after attribute."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.core.identity import ALL
from gfscore.show.charts.class_heatmap import measure_range
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.charts.group_scores import pairs_as_far, scores_and_gaps
from gfscore.show.lazy import drawing, pd

MOST_ROWS = 40


def groups_by_class(subject: Subject) -> pd.DataFrame:
    """Value of each class within each group, mean over models.

    Of attributes that have more than MOST_ROWS groups together, those that differ most within a class. `small` where
    some model has few samples in a cell.
    """
    rows, _ = scores_and_gaps(subject)
    cells = rows[rows["class_index"] != ALL]
    cells = cells.assign(row=cells["attribute"] + ": " + cells["group"])
    keys = ["attribute", "group", "row", "class"]
    frame = cells.groupby(keys, sort=False).agg(value=("value", "mean"), small=("small", "max"), n=("n", "max"))
    frame = frame.reset_index()

    sizes = frame.groupby("attribute", sort=False)["group"].nunique()
    largest = differences_within_classes(frame).groupby("attribute").max().reindex(sizes.index)
    widest_first = largest.sort_values(ascending=False, kind="stable").index
    fitting = int((sizes[widest_first].cumsum() <= MOST_ROWS).sum())
    frame = frame[frame["attribute"].isin(widest_first[: max(1, fitting)])]
    range_low, range_high = subject.meaning.value_range
    models = cells["label"].nunique()
    return frame.assign(models=models, range_low=range_low, range_high=range_high)


def differences_within_classes(frame: pd.DataFrame) -> pd.Series:
    """Largest minus smallest value over the groups with enough samples, by attribute and class."""
    valued = frame[frame["value"].notna() & ~frame["small"].astype(bool)]
    ranges = valued.groupby(["attribute", "class"], sort=False)["value"].agg(["min", "max", "size"])
    ranges = ranges[ranges["size"] > 1]
    return ranges["max"] - ranges["min"]


def widest_within_class(frame: pd.DataFrame) -> Finding:
    """The largest difference between two groups of one attribute within a class, of cells with enough samples."""
    differences = differences_within_classes(frame)
    if differences.empty:
        return Finding("groups_small")
    attribute, name = differences.idxmax()
    valued = frame[frame["value"].notna() & ~frame["small"].astype(bool)]
    cells = valued[(valued["attribute"] == attribute) & (valued["class"] == name)]
    lowest = cells.loc[cells["value"].idxmin()]
    highest = cells.loc[cells["value"].idxmax()]
    if lowest["value"] == highest["value"]:
        return Finding("groups_alike")
    names = {
        "attribute": attribute,
        "cls": name,
        "lowest": str(lowest["group"]),
        "highest": str(highest["group"]),
    }
    numbers = {"low": float(lowest["value"]), "high": float(highest["value"])}
    pairs = pairs_as_far(valued.groupby(["attribute", "class"])["value"], differences.max())
    if pairs > 1:
        numbers["tied"] = pairs - 1
    return Finding("groups_differ_within_class", names, numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """Values as colours; groups in rows, attribute after attribute, classes in columns."""
    drawing.heatmap(
        axes,
        frame,
        row="row",
        column="class",
        value="value",
        limits=drawing.limits_of_measure(frame["value"], measure_range(frame)),
        scale_title="{unit}",
        dot="small",
    )


CHART = Chart(
    name="group_classes",
    title="Groups by class",
    question="Within which class are groups treated differently?",
    section="whom",
    tables=("group_scores",),
    data=groups_by_class,
    draw=draw,
    finding=widest_within_class,
    as_failures=True,
    shows="{measure_title} by group and class, mean over models; dark is low, bright is high; higher is better",
    note="Compare the rows of one attribute within a column: equal colours, the class is treated alike. Dot: fewer "
    "samples than the audit's smallest cell, a value that says little and is left out of the title. Empty: no samples. "
    "Of more than 40 groups those of the attributes that differ most within a class.",
    order=2,
)
