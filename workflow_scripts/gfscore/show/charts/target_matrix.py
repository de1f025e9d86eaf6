"""Which class a targeted attack turns into which."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal, ties
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, pd

MOST_CLASSES = 40
EVERY = "all others"


def successes(subject: Subject) -> pd.DataFrame:
    """Success of targeted attacks by true class and target, mean over models, and on all other classes together.

    Of at most 40 classes. `n` of a row of EVERY are the samples of all other classes.
    """
    cells = subject.rows("target_matrix")
    targets = subject.rows("target_success")
    if targets["class_index"].nunique() > MOST_CLASSES:
        raise NothingToDraw
    classes = targets.drop_duplicates("class_index").sort_values("class_index").set_index("class_index")["class"]
    mean = cells.groupby(["source_index", "target_index"])["success"].mean()
    success_by_target = targets.groupby("class_index").agg(success=("success", "mean"), n=("n", "min"))

    rows = []
    for source, true in classes.items():
        for index, target in classes.items():
            success = mean.get((source, index)) if source != index else None
            rows.append({"true": true, "target": target, "success": success, "n": None})
    for index, target in classes.items():
        rows.append({"true": EVERY, "target": target, **success_by_target.loc[index].to_dict()})
    frame = pd.DataFrame(rows).astype({"success": float, "n": float})
    return frame.assign(models=targets["label"].nunique())


def easiest_target(frame: pd.DataFrame) -> Finding:
    """Which class is the easiest target, and which turns into which most often."""
    pairs = frame[frame["true"] != EVERY]
    all_others = frame[frame["true"] == EVERY]
    if not pairs["success"].max() > 0:
        return Finding("no_target_reached")
    easiest = all_others.loc[all_others["success"].idxmax()]
    most = pairs.loc[pairs["success"].idxmax()]
    names = {"easiest": str(easiest["target"]), "true": str(most["true"]), "target": str(most["target"])}
    numbers = {
        "share": float(easiest["success"]),
        "most": float(most["success"]),
        "tied_pairs": ties(pairs["success"], most["success"]),
        **others_equal(all_others["success"].dropna(), easiest["success"]),
    }
    return Finding("easiest_target", names, numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """True classes in rows, the targets of the attack in columns; the last row is of all other classes."""
    drawing.heatmap(
        axes,
        frame,
        row="true",
        column="target",
        value="success",
        limits=drawing.limits_from_zero(frame["success"]),
        scale_title="share of the samples (lower is better)",
        row_title="true class",
        column_title="target of the attack",
        square=True,
    )


CHART = Chart(
    name="target_matrix",
    title="Targeted attacks",
    question="Into which class can an attack turn others?",
    section="class",
    tables=("target_matrix", "target_success"),
    data=successes,
    draw=draw,
    finding=easiest_target,
    shows="Share of the true class that the attack turns into the target, mean over models: {measure_title}; lower is "
    "better",
    note="Last row: all samples of the other classes. Empty: the class itself, or no samples. Samples that are taken "
    "for the target without any attack count; a stronger attack may succeed more often.",
    order=7,
)
