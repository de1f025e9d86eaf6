"""How much predictions depend on each attribute, class by class, by the metrics of group fairness."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.core.identity import ALL
from gfscore.show.charts.declaration import Chart, Subject, some
from gfscore.show.lazy import drawing, pd

MOST_CLASSES = 40
METRICS = {"dp": "Demographic parity", "eopp": "Equal opportunity", "eodd": "Equalized odds", "aodd": "Average odds"}


def fairness(subject: Subject) -> pd.DataFrame:
    """Each metric by class (the positive one against the rest) and attribute, mean over models.

    Beyond 40 classes those with the largest equal opportunity differences remain, in their own order; those without
    enough samples come last. Source: layout of the projection-fairness paper's Fig. 6, with classes in place of task
    attributes.
    """

    rows = subject.rows("group_metrics")
    rows = some(rows[(rows["class_index"] != ALL) & rows["metric"].isin(METRICS)])
    keys = ["metric", "class_index", "class", "attribute"]
    groups = rows.groupby(keys, sort=False)
    frame = groups.agg(value=("value", "mean"), small=("small", "max"), n=("n", "max")).reset_index()

    enough = (frame["metric"] == "eopp") & ~frame["small"].astype(bool)
    opportunity = frame["value"].where(enough).groupby(frame["class_index"]).max()
    largest = opportunity.sort_values(ascending=False, kind="stable").index[:MOST_CLASSES]
    frame = frame[frame["class_index"].isin(largest)].sort_values("class_index", kind="stable")
    frame = frame.assign(panel=frame["metric"].map(METRICS), models=rows["label"].nunique())
    order = list(METRICS)
    return frame.sort_values("metric", key=lambda names: names.map(order.index), kind="stable", ignore_index=True)


def largest_difference(frame: pd.DataFrame) -> Finding:
    """The largest difference of recall between groups (equal opportunity), of cells with enough samples."""
    of_recall = frame["metric"] == "eopp"
    valued = frame[of_recall & frame["value"].notna() & ~frame["small"].astype(bool)]
    if valued.empty:
        return Finding("groups_small")
    most = valued.loc[valued["value"].idxmax()]
    names = {"cls": str(most["class"]), "attribute": str(most["attribute"])}
    numbers = {"gap": float(most["value"]), "models": int(most["models"])}
    kind = "recall_differs" if numbers["models"] > 1 else "recall_differs_of_one"
    return Finding(kind, names, numbers | others_equal(valued["value"], most["value"]))


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each metric: differences as colours, classes in rows, attributes in columns."""
    classes = drawing.categories(frame, "class")
    attributes = drawing.categories(frame, "attribute")
    for axes, panel in drawing.panels(figure, frame, "panel", most_columns=4, least_width=200, one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
            row="class",
            column="attribute",
            value="value",
            limits=(0.0, 1.0),
            scale_title="difference (no unit; lower is better)",
            rows=classes,
            columns=attributes,
            dot="small",
        )


CHART = Chart(
    name="group_metrics",
    title="Fairness metrics by class and attribute",
    question="Do predictions depend on an attribute?",
    section="whom",
    tables=("group_metrics",),
    data=fairness,
    draw=draw,
    panels=True,
    finding=largest_difference,
    shows="Largest difference between groups; each class against the rest, mean over models; 0, dark: groups treated "
    "alike",
    note="Approximate numbers: largest differences are biased upwards by noise, most where groups are small. "
    "Demographic parity also differs where groups contain different classes. Dot: fewer samples than the audit's "
    "smallest cell, left out of the title. Empty: a group without samples.",
    order=4,
)
