"""Share of all samples that attacks leave right, against the radius."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def radius_curves(subject: Subject, kind: str, *, by_class: bool) -> pd.DataFrame | None:
    """Share of samples that stay right at each radius, of all samples or of each class, the smallest mean first.

    Takes the subject and the kind of curves, "minimal" or "certified". `weakest` marks the line of the smallest mean,
    of each model where it is `by_class`. Radii beyond which every share is 0 are left out.
    """

    from gfscore.tables.table import ALL

    rows, scores = subject.rows("radius_curves"), subject.rows("class_scores")
    if rows is None or scores is None or rows["kind"].iloc[0] != kind:
        return None
    standing = rows.loc[rows["share"] > 0, "radius"].max()
    following = rows.loc[rows["radius"] > standing, "radius"]
    rows = rows[rows["radius"] <= (following.min() if len(following) else standing)]
    rows = rows[rows["share"].notna()]
    if by_class:
        means = scores.set_index(["label", "class_index"])["value"]
        rows = rows[rows["class_index"] != ALL]
        keys = list(zip(rows["label"], rows["class_index"], strict=True))
    else:
        known = scores[scores["n"] > 0]
        means = known.groupby("label").apply(
            lambda own: float(np.average(own["value"], weights=own["n"])), include_groups=False
        )
        rows = rows[rows["class_index"] == ALL]
        keys = list(rows["label"])
    if rows.empty:
        return None
    rows = rows.assign(mean=means.loc[keys].to_numpy(), model=rows["label"])
    least = rows.groupby("label")["mean"].transform("min") if by_class else rows["mean"].min()
    several = rows["label"].nunique() > 1 or by_class
    rows["weakest"] = (rows["mean"] == least) & several
    columns = ["model", *(["class"] if by_class else []), "radius", "share", "low", "high", "mean", "weakest", "n"]
    order = ["model", "mean", "class", "radius"] if by_class else ["mean", "model", "radius"]
    return rows.sort_values(order, kind="stable")[[*columns, "confidence"]].reset_index(drop=True)


def extremes(frame: pd.DataFrame) -> Finding:
    """Models of the largest and the smallest mean."""
    models = frame.drop_duplicates("model").sort_values("mean", kind="stable")
    worst, best = models.iloc[0], models.iloc[-1]
    if len(models) == 1:
        return Finding("mean_radius", {"model": str(best["model"])}, {"mean": float(best["mean"])})
    names = {"best": str(best["model"]), "worst": str(worst["model"])}
    return Finding("mean_radii", names, {"high": float(best["mean"]), "low": float(worst["mean"])})


def draw(frame: pd.DataFrame, axes: Axes, *, share: str = "share not broken within r") -> None:
    """A line with its band for each model; the one of the smallest mean stands out."""
    drawing.reserve(axes, drawing.LINE_HEIGHT)
    drawing.numbers(axes.xaxis, "radius r ({unit})", frame["radius"], zero=True)
    drawing.numbers(axes.yaxis, f"{share} (higher is better)", frame["share"], end=1.0)
    drawing.curves(axes, frame, x="radius", y="share", line="model", low="low", high="high", bold="weakest")
    drawing.name_lines(axes, frame, x="radius", y="share", line="model", bold="weakest")


CHART = Chart(
    name="survival",
    title="Survival under attack",
    question="How far must an attack go?",
    section="trust",
    tables=("radius_curves", "class_scores"),
    data=partial(radius_curves, kind="minimal", by_class=False),
    draw=draw,
    finding=extremes,
    shows="{measure_title}: share not broken within r, an upper bound on the truth, but for the draw of samples",
    note="Band: up to the upper {confidence} bound at each radius, each line by itself. Attacks that fail prove "
    "nothing, so the truth may lie below any line. Lines end where samples were left without an adversarial example, "
    "and where all are 0.",
    order=3,
)
