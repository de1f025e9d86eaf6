"""How much predictions depend on each attribute, class by class, by the metrics of group fairness."""

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.forms import Axis, Frame, Heatmap

MOST_CLASSES = 40
METRICS = {"dp": "Demographic parity", "eopp": "Equal opportunity", "eodd": "Equalized odds", "aodd": "Average odds"}


def fairness(subject: Subject) -> Frame | None:
    """Each metric by class (the positive one against the rest) and attribute, mean over models.

    Beyond 40 classes those with the largest equal opportunity differences remain, in their own order. Source: layout of
    the projection-fairness paper's Fig. 6, with classes in place of task attributes.
    """
    from gfscore.tables.table import ALL

    rows = subject.rows("group_metrics")
    rows = None if rows is None else rows[(rows["class_index"] != ALL) & rows["metric"].isin(METRICS)]
    if rows is None or rows.empty:
        return None
    models = rows["label"].nunique()
    keys = ["metric", "class_index", "class", "attribute"]
    frame = (
        rows.groupby(keys, sort=False)
        .agg(value=("value", "mean"), small=("small", "max"), n=("n", "max"))
        .reset_index()
    )
    opportunity = frame[frame["metric"] == "eopp"].groupby("class_index")["value"].max()
    largest = opportunity.sort_values(ascending=False, kind="stable").index[:MOST_CLASSES]
    frame = frame[frame["class_index"].isin(largest)].sort_values("class_index", kind="stable")
    return frame.assign(panel=frame["metric"].map(METRICS), models=models).sort_values(
        "metric", key=lambda names: names.map(list(METRICS).index), kind="stable", ignore_index=True
    )


def largest_difference(frame: Frame) -> Finding:
    """The largest difference of recall between groups (equal opportunity), of cells with enough samples."""
    known = frame[(frame["metric"] == "eopp") & frame["value"].notna() & ~frame["small"].astype(bool)]
    if known.empty:
        return Finding("groups_small")
    most = known.loc[known["value"].idxmax()]
    return Finding(
        "recall_differs",
        {"cls": str(most["class"]), "attribute": str(most["attribute"])},
        {"gap": float(most["value"])},
    )


CHART = Chart(
    name="group_metrics",
    title="Fairness metrics by class and attribute",
    question="Do predictions depend on an attribute?",
    section="whom",
    tables=("group_metrics",),
    data=fairness,
    form=Heatmap(
        panel="panel",
        row="class",
        column="attribute",
        value=Axis("value", "difference (no unit; lower is better)"),
        limits="share",
        dot="small",
    ),
    finding=largest_difference,
    shows="Largest difference between groups; each class against the rest, mean over models; 0, dark: groups treated "
    "alike",
    note="Approximate numbers: largest differences are biased upwards by noise, most where groups are small. "
    "Demographic parity also differs where groups contain different classes. Dot: fewer samples than the audit's "
    "smallest cell, left out of the title. Empty: a group without samples.",
    order=4,
)
