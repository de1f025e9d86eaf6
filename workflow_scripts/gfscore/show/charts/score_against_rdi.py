"""Mean against disparity: one point per model."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd
from gfscore.statistics.tolerances import FEW_MODELS


def means_and_disparities(subject: Subject) -> pd.DataFrame:
    """Mean over all samples and RDI of each model, with intervals joint over its classes, and NRGC."""
    rows = subject.rows("model_summary")
    scores = subject.rows("class_scores")
    samples_of_models = scores.groupby("label")["n"].sum()
    rows = rows.assign(model=rows["label"], n=rows["label"].map(samples_of_models))
    return rows[["model", "value", "value_low", "value_high", "rdi", "rdi_low", "rdi_high", "nrgc", "n", "confidence"]]


def relation(frame: pd.DataFrame) -> Finding:
    """Whether models with a higher mean are less equal, by RDI, and by NRGC, which has no unit."""
    from gfscore.audit.agreement.rank_correlations import correlation_over_models

    models = len(frame)
    if models < FEW_MODELS:
        return Finding("mean_rdi_few", numbers={"models": models})
    rho_rdi, clear_rdi = correlation_over_models(frame["value"], frame["rdi"])
    rho_nrgc, clear_nrgc = correlation_over_models(frame["value"], frame["nrgc"])
    numbers = {"models": models, "rho": rho_rdi, "rho_nrgc": rho_nrgc}
    if not clear_rdi:
        return Finding("mean_rdi_none", numbers=numbers)
    kind = "mean_rdi_less" if rho_rdi > 0 else "mean_rdi_more"
    if clear_nrgc and rho_rdi * rho_nrgc < 0:
        kind += "_against_nrgc"
    return Finding(kind, numbers=numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """A point for each model with its intervals along both axes."""
    drawing.reserve(axes, drawing.POINTS_HEIGHT)
    means = frame[["value", "value_low", "value_high"]]
    drawing.numbers(axes.xaxis, "mean over all samples ({unit}; higher is better)", means)
    disparities = frame[["rdi", "rdi_low", "rdi_high"]]
    drawing.numbers(axes.yaxis, "RDI, best minus worst class ({short_unit}; lower is more equal)", disparities)
    drawing.scatter(
        axes,
        frame,
        x="value",
        y="rdi",
        name="model",
        x_low="value_low",
        x_high="value_high",
        y_low="rdi_low",
        y_high="rdi_high",
    )


CHART = Chart(
    name="score_against_rdi",
    title="Mean against disparity",
    question="Do better models treat classes less equally?",
    section="which",
    tables=("model_summary", "class_scores"),
    about="score",
    data=means_and_disparities,
    draw=draw,
    finding=relation,
    as_failures=True,
    shows="{measure_title}: best is right (higher mean) and low (classes more equal)",
    note="Lines: {confidence} intervals of each model, joint over its classes. RDI grows with the scale of the "
    "measure.",
    order=2,
)
