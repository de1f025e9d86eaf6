"""Differences between models on the same samples, with joint bounds."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, ties
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

MOST = 30


def differences(subject: Subject) -> pd.DataFrame:
    """Mean difference of each pair of models, the larger minus the smaller: the sure ones first, the largest of each.

    `sure`: the joint bound excludes 0. `pairs` and `decided` count all pairs and those that are sure, `tied` those that
    differ as much as the first and are as sure. At most 30.
    """
    rows = subject.rows("model_comparisons")
    first = rows["first_model"]
    second = rows["second_model"]
    threats = rows[["first_threat", "second_threat"]].stack().nunique()
    if threats > 1:
        first = rows["first_threat"] + "/" + first
        second = rows["second_threat"] + "/" + second

    turned = rows["difference"] < 0
    frame = rows[["n", "confidence"]].assign(
        better=first.where(~turned, second),
        worse=second.where(~turned, first),
        difference=rows["difference"].abs(),
        low=rows["low"].where(~turned, -rows["high"]),
        high=rows["high"].where(~turned, -rows["low"]),
    )
    frame["sure"] = frame["low"] > 0
    frame["pair"] = frame["better"] + " over " + frame["worse"]
    models = frame[["better", "worse"]].stack().nunique()
    alike = frame.loc[frame["sure"] == frame["sure"].any(), "difference"]
    tied = ties(alike, alike.max())
    frame = frame.assign(pairs=len(frame), decided=int(frame["sure"].sum()), models=models, tied=tied)
    return frame.sort_values(["sure", "difference"], ascending=False, kind="stable", ignore_index=True).head(MOST)


def decided(frame: pd.DataFrame) -> Finding:
    """How many pairs of models differ beyond their joint bounds."""
    first = frame.iloc[0]
    times = int(first["decided"])
    names = {"better": str(first["better"]), "worse": str(first["worse"])}
    numbers = {"times": times, "pairs": int(first["pairs"]), "low": float(first["low"]), "high": float(first["high"])}
    confidence = float(first["confidence"])
    if not times:
        return Finding("models_alike", names, numbers, confidence)
    if first["tied"]:
        numbers["tied"] = int(first["tied"])
    return Finding("models_differ", names, numbers, confidence)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """The difference of each pair with its bounds; a diamond where they exclude 0."""
    ends = frame[["difference", "low", "high"]]
    drawing.numbers(axes.xaxis, "difference ({short_unit}; higher: more apart)", ends)
    drawing.intervals(axes, frame, row="pair", value="difference", low="low", high="high", bold="sure", rule=0.0)


CHART = Chart(
    name="model_differences",
    title="Differences between models",
    question="Which models differ beyond noise?",
    section="sure",
    tables=("model_comparisons",),
    data=differences,
    draw=draw,
    finding=decided,
    as_failures=True,
    sentences={
        "models_differ": "{times} of {pairs:pairs} of models differ significantly, most {better} from {worse}, by "
        "{low:low} to {high:high}",
        "models_alike": "No difference between models can be shown: of {pairs:pairs} none is beyond its bounds",
    },
    shows="Mean difference of {measure_title} between two models",
    note="Line: {confidence} bounds, joint over the pairs. Diamond: they exclude 0; these first, 30 pairs at most. "
    "Samples of unknown value count at their smallest in a point, at every value of theirs in a line.",
    order=3,
    figure=False,
)
