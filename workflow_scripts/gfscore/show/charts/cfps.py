"""Where the errors fall: CFPS, the share of all errors that fall on each class."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, ties
from gfscore.core.mappings import positions
from gfscore.show.charts.confusion import with_images
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject
from gfscore.show.lazy import drawing, np, pd
from gfscore.statistics.tolerances import SIGNIFICANT

MOST = 30


def shares(subject: Subject) -> pd.DataFrame:
    """CFPS by class and model, highest mean first; `above` where it is surely above 1/K, by an exact binomial test.

    Models whose errors fall on no class are left out. Copies of one image are no independent samples: no test is made.
    Of more than 30 classes those are kept that are above in most models, then those of the highest mean. As many
    classes as `tied`, kept or not, are above in as many models as any, and have the mean of the first of these.
    """
    from gfscore.statistics.proportions import lower_shares

    rows = subject.rows("class_errors")
    independent = rows["corruption"].isna().all()
    rows = with_images(rows).sort_values("class_index", kind="stable")
    models = rows["label"].nunique() + subject.left_out
    classes = rows["class_index"].nunique()

    frames = []
    for label, errors in rows.groupby("label", sort=False):
        if not (errors["cfps"] > 0).any():
            continue
        wrong = errors["false_positives"].to_numpy()
        total = round(float(wrong.sum() / errors["cfps"].sum()))
        low = lower_shares(wrong, np.full(classes, total), alpha=SIGNIFICANT / (classes * models))
        shares_of_model = errors[["class", "cfps"]].assign(
            n=errors["images"], model=label, above=(low > 1 / classes) & independent
        )
        frames.append(shares_of_model.assign(equal=1 / classes, tested=independent))
    if not frames:
        raise NothingToDraw

    frame = pd.concat(frames, ignore_index=True)
    frame["mean"] = frame.groupby("class")["cfps"].transform("mean")
    classes_first = frame.groupby("class", sort=False).agg(mean=("mean", "first"), times=("above", "sum"))
    classes_first = classes_first.sort_values(["times", "mean"], ascending=False, kind="stable")
    candidates = classes_first.loc[classes_first["times"] == classes_first["times"].max(), "mean"]
    frame["tied"] = ties(candidates, candidates.iloc[0])
    listed = classes_first[:MOST].sort_values("mean", ascending=False, kind="stable")
    rank_of_class = positions(listed.index)
    frame = frame[frame["class"].isin(rank_of_class)]
    return frame.sort_values("class", key=lambda names: names.map(rank_of_class), kind="stable", ignore_index=True)


def where_errors_fall(frame: pd.DataFrame) -> Finding:
    """Which class draws more than an equal share of the errors, and in how many models significantly."""

    classes = frame.groupby("class", sort=False).agg(mean=("mean", "first"), times=("above", "sum"))
    most = classes[classes["times"] == classes["times"].max()].iloc[0]
    tested = bool(frame["tested"].all())
    numbers = {
        "share": float(most["mean"]),
        "models": frame["model"].nunique(),
        "times": int(most["times"]),
    }
    if frame["tied"].any():
        numbers["tied"] = int(frame["tied"].iloc[0])
    kind = "errors_even" if tested else "errors_drawn_untested"
    if most["times"]:
        kind = "errors_drawn"
    return Finding(kind, {"cls": str(most.name)}, numbers, 1 - SIGNIFICANT if tested else None)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """A bar for each class at the mean over models, a dot for each model."""
    drawing.numbers(
        axes.xaxis, "CFPS (share of the model's errors; equal shares are fairest)", frame["cfps"], zero=True
    )
    drawing.bars(axes, frame, row="class", value="cfps", filled="above", rule=float(frame["equal"].iloc[0]))


CHART = Chart(
    name="cfps",
    title="Share of the errors by class (CFPS)",
    question="Which class draws the wrong predictions?",
    section="class",
    tables=("class_errors",),
    data=shares,
    draw=draw,
    finding=where_errors_fall,
    shows="Share of all errors that are wrongly called each class (CFPS): {measure_title}",
    note="Bar: mean over models. Dot: one model, filled where above 1/K by an exact binomial test of its errors, 95% "
    "for all classes and models together (copies of one image are not tested). Dashed line: 1/K, as if errors fell on "
    "all classes alike. At most 30 classes: first those above 1/K, then the highest.",
    per_class=True,
    order=4,
)
