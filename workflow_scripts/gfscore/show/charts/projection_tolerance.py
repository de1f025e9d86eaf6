"""Tolerance and Deviation of every model along every latent dimension."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.core.identity import ALL
from gfscore.core.mappings import positions
from gfscore.core.names import enumeration
from gfscore.core.numbers import percent
from gfscore.show.charts.declaration import Chart, Subject, some
from gfscore.show.lazy import drawing, pd

MOST_ROWS = 60
BETTER = {"tolerance": "Tolerance (higher is better)", "deviation": "Deviation (lower is better)"}


def tolerances(subject: Subject) -> pd.DataFrame:
    """Mean Tolerance and Deviation by mapper, model and latent dimension, all first; the 60 most tolerant models.

    Constant classifiers come last, marked. `mean` is the Tolerance of a dimension over all `models` that are not
    constant, drawn or not. Attributes have no Deviation.
    """
    rows = subject.rows("projection_scores")
    rows = some(rows[rows["class_index"] == ALL])

    whole = rows[rows["dimension_index"] == ALL]
    summary = whole.sort_values(["constant", "tolerance"], ascending=[True, False])
    summary = summary.drop_duplicates("label").head(MOST_ROWS)
    rank_of_model = positions(summary["label"])
    names = {}
    for label, of_model in whole.groupby("label"):
        # Mappers may have other samples, and a mapper that ignores the image makes every model constant.
        accuracies = of_model["accuracy"].round(3).drop_duplicates().sort_values()
        constant_on = of_model.loc[of_model["constant"].astype(bool), "mapper"]
        remark = ""
        if len(constant_on) == len(of_model):
            remark = ", constant"
        elif len(constant_on):
            remark = f", constant on {enumeration(constant_on)}"
        names[label] = f"{label}  ({enumeration(map(percent, accuracies))}{remark})"
    moved = rows[~rows["constant"].astype(bool) & (rows["dimension_index"] != ALL)]
    keys = ["mapper", "dimension"]
    means = moved.groupby(keys).agg(mean=("tolerance", "mean"), models=("label", "nunique"))

    rows = rows[rows["label"].isin(rank_of_model)].sort_values("dimension_index", kind="stable")
    rows = rows.sort_values("label", key=lambda labels: labels.map(rank_of_model), kind="stable")
    rows = rows.assign(model=rows["label"].map(names)).join(means, on=keys)
    several = rows["mapper"].nunique() > 1
    frames = []
    for mapper, rows_of_mapper in rows.groupby("mapper", sort=False):
        for metric, title in BETTER.items():
            if rows_of_mapper[metric].isna().all():
                continue
            panel = f"{mapper}: {title}" if several else title
            frames.append(rows_of_mapper.assign(value=rows_of_mapper[metric].astype(float), metric=metric, panel=panel))
    columns = ["panel", "metric", "model", "dimension", "value", "mean", "accuracy", "censored", "constant", "n"]
    return pd.concat(frames, ignore_index=True)[[*columns, "mapper", "models"]]


def least_tolerated(frame: pd.DataFrame) -> Finding:
    """The latent dimension that predictions depend on most."""
    valued = frame[frame["mean"].notna()]
    if valued.empty:
        return Finding("all_constant")
    least = valued.loc[valued["mean"].idxmin()]
    if least["mean"] == 1:
        return Finding("all_tolerated")
    dimension = str(least["dimension"])
    if frame.loc[frame["dimension"] == dimension, "mapper"].nunique() > 1:
        dimension = f"{least['mapper']} {dimension}"
    names = {"dimension": dimension}
    numbers = {"mean": float(least["mean"]), "models": int(least["models"])}
    means = valued.drop_duplicates(["mapper", "dimension"])["mean"]
    return Finding("least_tolerated", names, numbers | others_equal(means, least["mean"]))


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for Tolerance and one for Deviation: models in rows, latent dimensions in columns."""
    models = drawing.categories(frame, "model")
    for axes, panel in drawing.panels(figure, frame, "panel", most_columns=2, least_width=340, one_row_axis=True):
        drawing.heatmap(
            axes,
            panel,
            row="model",
            column="dimension",
            value="value",
            limits=drawing.limits_from_zero(frame["value"]),
            scale_title="Tolerance, Deviation",
            rows=models,
        )


CHART = Chart(
    name="projection_tolerance",
    title="Tolerance and Deviation by latent dimension",
    question="Which latent dimension do predictions depend on?",
    section="whom",
    tables=("projection_scores",),
    about="audit",
    data=tolerances,
    draw=draw,
    panels=True,
    finding=least_tolerated,
    shows="Mean over samples of moves along each latent dimension",
    note="In brackets: clean accuracy of these samples. A constant classifier has Tolerance 1, which says nothing "
    "without the accuracy: it is marked, and left out of the title. Deviation is at most 1 \u2212 Tolerance. Of more "
    "than 60 models those with the largest Tolerance; the title is about all.",
    order=5,
)
