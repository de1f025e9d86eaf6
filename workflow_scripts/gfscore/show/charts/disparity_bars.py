"""Disparity of each model by several metrics, with intervals and what chance alone gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def disparities(subject: Subject) -> pd.DataFrame | None:
    """One row per model and metric: value, interval, and mean under shuffled classes; models by their mean.

    `p` (of RDI alone) is the permutation p, adjusted by Holm over the models; NaN where chance is not known.
    """

    from gfscore.audit.metrics import FIRST
    from gfscore.statistics.multiple_tests import holm

    rows, scores = subject.rows("model_summary"), subject.rows("class_scores")
    if rows is None or scores is None:
        return None
    guessing = [f"{row.threat}/{row.model}" in subject.guessing for row in rows.itertuples()]
    names = [
        f"{name} [may be guessing]" if marked else name for name, marked in zip(rows["label"], guessing, strict=True)
    ]
    # Chance is not known of a model of which samples are missing.
    known = rows["rdi_p"].notna()
    adjusted = rows["rdi_p"].astype(float)
    adjusted[known] = holm(rows.loc[known, "rdi_p"], family=len(rows))
    rows = rows.assign(n=rows["label"].map(scores.groupby("label")["n"].sum()), p=adjusted, model=names).sort_values(
        ["value", "label"], ascending=[False, True]
    )
    parts = []
    for metric in FIRST:
        if metric.kind == "level":
            continue
        unit = "no unit" if metric.unitless else subject.meaning.unit.split(",")[0]
        part = rows[["model", "n", "confidence"]].assign(metric=metric.name)
        part["panel"] = f"{metric.title} ({unit}; {metric.better})"
        for name, column in (("value", ""), ("low", "_low"), ("high", "_high"), ("chance", "_permuted")):
            part[name] = rows[f"{metric.name}{column}"] if f"{metric.name}{column}" in rows else float("nan")
        parts.append(part.assign(p=rows["p"] if metric.name == "rdi" else float("nan")))
    return pd.concat(parts, ignore_index=True)


def disparity(frame: pd.DataFrame) -> Finding:
    """Range of RDI over models, and in how many of them it is above chance.

    Above chance: permutation p at most 5% after Holm's adjustment, and an interval above 0. The p alone says that
    values are not distributed alike in all classes, which classes of one mean and different spread also bring about.
    """
    from gfscore.statistics.multiple_tests import SIGNIFICANT

    rdi = frame[frame["metric"] == "rdi"]
    best, worst = rdi.loc[rdi["value"].idxmin()], rdi.loc[rdi["value"].idxmax()]
    unlike = rdi["p"] <= SIGNIFICANT
    above = int((unlike & (rdi["low"] > 0)).sum())
    names = {"best": str(best["model"]), "worst": str(worst["model"])}
    numbers = {"low": float(best["value"]), "high": float(worst["value"]), "models": len(rdi), "times": above}
    kind = "above" if above else "unlike" if unlike.any() else "unknown" if rdi["p"].isna().all() else "chance"
    return Finding(f"disparity_{kind}{'_of_one' if len(rdi) == 1 else ''}", names, numbers, 1 - SIGNIFICANT)


def draw(frame: pd.DataFrame, figure: Figure) -> None:
    """A panel for each metric: values with their intervals, and what chance alone gives."""
    models = drawing.categories(frame, "model")
    for axes, part in drawing.panels(figure, frame, "panel", most=4, least=200, one_row_axis=True):
        drawing.numbers(axes.xaxis, "", part[["value", "low", "high", "chance"]], zero=True)
        drawing.intervals(axes, part, row="model", value="value", low="low", high="high", tick="chance", rows=models)


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
    shows="Disparity by {measure_title}, highest mean on top",
    note="Thin line: {confidence} interval, joint over the model's classes. Upright tick: what chance alone gives, "
    "the mean when class membership is shuffled; a disparity near it is no evidence of unequal classes. Above chance: "
    "interval of RDI above 0 and permutation p at most 0.05 after Holm's adjustment for the number of models. FP = "
    "class mean \u2212 {fp_lambda} \u00d7 RDI.",
    order=1,
)
