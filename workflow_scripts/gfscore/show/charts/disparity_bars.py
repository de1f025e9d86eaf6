"""Disparity of each model by several metrics, with intervals and what chance alone gives."""

from __future__ import annotations

import math

from gfscore.audit.findings.finding import Finding, ties
from gfscore.audit.metrics import FIRST
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import SIGNIFICANT


def disparities(subject: Subject) -> pd.DataFrame:
    """Each model by each metric of disparity.

    Returns
    -------
    DataFrame
        One row for each model and metric: value, interval, and mean under shuffled classes (`chance`); models by their
        mean. `p`, of RDI alone, is the permutation p, adjusted by Holm over the models; NaN where chance is unknown.
    """
    from gfscore.statistics.multiple_tests import holm

    rows = subject.rows("model_summary")
    scores = subject.rows("class_scores")

    names = []
    for row in rows.itertuples():
        guessing = f"{row.threat}/{row.model}" in subject.guessing
        names.append(f"{row.label} [may be guessing]" if guessing else row.label)
    # Chance is not known of a model of which samples are missing.
    tested = rows["rdi_p"].notna()
    adjusted = rows["rdi_p"].astype(float)
    adjusted[tested] = holm(rows.loc[tested, "rdi_p"], family=len(rows) + subject.left_out)
    samples = scores.groupby("label")["n"].sum()
    rows = rows.assign(n=rows["label"].map(samples), p=adjusted, model=names)
    rows = rows.sort_values(["value", "label"], ascending=[False, True])

    frames = []
    for metric in FIRST:
        if metric.kind == "level":
            continue
        unit = "no unit" if metric.unitless else subject.meaning.unit.split(",")[0]
        values_of_metric = rows[["model", "n", "confidence"]].assign(
            metric=metric.name,
            panel=f"{metric.title} ({unit}; {metric.better})",
            value=rows.get(metric.name, math.nan),
            low=rows.get(f"{metric.name}_low", math.nan),
            high=rows.get(f"{metric.name}_high", math.nan),
            chance=rows.get(f"{metric.name}_permuted", math.nan),
            p=rows["p"] if metric.name == "rdi" else math.nan,
        )
        frames.append(values_of_metric)
    return pd.concat(frames, ignore_index=True)


def disparity(frame: pd.DataFrame) -> Finding:
    """Range of RDI over models, and in how many of them it is above chance.

    Above chance: permutation p at most 5% after Holm's adjustment, and an interval above 0. The p alone says that
    values are not distributed alike in all classes, which classes of one mean and different spread also bring about.
    """
    rdi = frame[frame["metric"] == "rdi"]
    best = rdi.loc[rdi["value"].idxmin()]
    worst = rdi.loc[rdi["value"].idxmax()]
    unlike = rdi["p"] <= SIGNIFICANT
    above = int((unlike & (rdi["low"] > 0)).sum())

    kind = "disparity_chance"
    if above:
        kind = "disparity_above"
    elif unlike.any():
        kind = "disparity_unlike"
    elif rdi["p"].isna().all():
        kind = "disparity_unknown"
    known = int(rdi["p"].notna().sum())
    if len(rdi) == 1:
        kind += "_of_one"
    elif kind == "disparity_chance" and known < len(rdi):
        kind += "_of_known"
    names = {"best": str(best["model"]), "worst": str(worst["model"])}
    numbers = {"low": float(best["value"]), "high": float(worst["value"]), "models": len(rdi), "times": above}
    numbers["models_known"] = known
    numbers |= {"tied_best": ties(rdi["value"], best["value"]), "tied_worst": ties(rdi["value"], worst["value"])}
    return Finding(kind, names, numbers, 1 - SIGNIFICANT)


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each metric: values with their intervals, and what chance alone gives."""
    models = drawing.categories(frame, "model")
    for axes, panel in drawing.panels(figure, frame, "panel", most_columns=4, least_width=200, one_row_axis=True):
        drawing.numbers(axes.xaxis, "", panel[["value", "low", "high", "chance"]], zero=True)
        drawing.intervals(axes, panel, row="model", value="value", low="low", high="high", tick="chance", rows=models)


CHART = Chart(
    name="disparity_bars",
    title="Disparity",
    question="How unequally do models treat classes, and could that be chance?",
    section="sure",
    tables=("model_summary", "class_scores"),
    about="score",
    data=disparities,
    draw=draw,
    rows="model",
    panels=True,
    finding=disparity,
    as_failures=True,
    shows="Disparity by {measure_title}, highest mean on top",
    note="Thin line: {confidence} interval, joint over the model's classes. Upright tick: what chance alone gives, "
    "the mean when class membership is shuffled; a disparity near it is no evidence of unequal classes. Above chance: "
    "interval of RDI above 0 and permutation p at most 0.05 after Holm's adjustment for the number of models. FP = "
    "class mean \u2212 {fp_lambda} \u00d7 RDI.",
    order=1,
)
