"""Share of samples that attacks leave correctly classified, against the radius."""

from __future__ import annotations

from functools import partial

from gfscore.audit.findings.finding import Finding, others_equal, ties
from gfscore.core.identity import ALL
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject, some
from gfscore.show.lazy import drawing, np, pd
from gfscore.statistics.tolerances import TIE_TOLERANCE


def radius_curves(subject: Subject, kind: str, *, by_class: bool) -> pd.DataFrame:
    """Share of samples that stay correctly classified at each radius.

    Parameters
    ----------
    subject : Subject
    kind : {"minimal", "certified"}
        By attacks or by proofs.
    by_class : bool
        Whether there is a line for each class of each model, or one for all samples of each model.

    Returns
    -------
    DataFrame
        Points of the lines, which are ordered by their mean distance, the smallest first, within each model if
        `by_class`. `weakest` marks the line of the smallest mean, of each model if `by_class`. Lines end at the first
        radius at which every share is 0.
    """
    rows = subject.rows("radius_curves")
    scores = subject.rows("class_scores")
    if rows["kind"].iloc[0] != kind:
        raise NothingToDraw
    last_radius_above_zero = rows.loc[rows["share"] > 0, "radius"].max()
    later_radii = rows.loc[rows["radius"] > last_radius_above_zero, "radius"]
    end = later_radii.min() if len(later_radii) else last_radius_above_zero
    rows = rows[(rows["radius"] <= end) & rows["share"].notna()]
    rows = rows.assign(model=rows["label"])

    if by_class:
        means = scores.set_index(["label", "class_index"])["value"]
        rows = rows[rows["class_index"] != ALL]
        keys = list(zip(rows["label"], rows["class_index"], strict=True))
        rows = rows.assign(mean=means.loc[keys].to_numpy())
        smallest_of_model = rows.groupby("label")["mean"].transform("min")
        rows = rows.assign(weakest=rows["mean"] == smallest_of_model)
        names = ["model", "class"]
        order = ["model", "mean", "class", "radius"]
    else:
        mean_of_model = {}
        for label, classes in scores[scores["n"] > 0].groupby("label"):
            mean_of_model[label] = float(np.average(classes["value"], weights=classes["n"]))
        rows = rows[rows["class_index"] == ALL]
        rows = rows.assign(mean=rows["label"].map(mean_of_model).astype(float))
        several = rows["label"].nunique() > 1
        rows = rows.assign(weakest=(rows["mean"] == rows["mean"].min()) & several)
        names = ["model"]
        order = ["mean", "model", "radius"]
    columns = [*names, "radius", "share", "low", "high", "mean", "weakest", "n", "confidence"]
    return some(rows).sort_values(order, kind="stable")[columns].reset_index(drop=True)


def extremes(frame: pd.DataFrame) -> Finding:
    """Models of the largest and the smallest mean."""
    models = frame.drop_duplicates("model").sort_values("mean", kind="stable")
    worst, best = models.iloc[0], models.iloc[-1]
    if len(models) == 1:
        return Finding("mean_radius", {"model": str(best["model"])}, {"mean": float(best["mean"])})
    names = {"best": str(best["model"]), "worst": str(worst["model"])}
    numbers = {"high": float(best["mean"]), "low": float(worst["mean"])}
    if best["mean"] - worst["mean"] <= TIE_TOLERANCE:
        return Finding("mean_radii_equal", numbers=numbers)
    numbers["tied_worst"] = ties(models["mean"], worst["mean"])
    return Finding("mean_radii", names, numbers | others_equal(models["mean"], best["mean"]))


def draw(frame: pd.DataFrame, axes: drawing.Axes, *, share: str = "share not broken within r") -> None:
    """A line with its band for each model; the one of the smallest mean stands out."""
    drawing.reserve(axes, drawing.CURVES_HEIGHT)
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
