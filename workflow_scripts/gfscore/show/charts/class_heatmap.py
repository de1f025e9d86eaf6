"""Class values as colours: models in rows, the best on top, classes in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_IN_ORDER = 60
"""Classes that stand in their own order; more stand by their mean, the weakest left."""


def class_values(subject: Subject) -> pd.DataFrame | None:
    """Value and simultaneous interval of each class (rows: model, class), models by their mean over all samples.

    `weakest` is "sure" where a class is significantly the lowest of its model, "open" where others may be lower;
    `suspects` counts the classes of a model that may be the weakest.
    """

    rows = subject.rows("class_scores")
    if rows is None:
        return None
    rows = rows.rename(columns={"model": "name", "label": "model"}).sort_values("class_index", kind="stable")
    models = rows.groupby("model", sort=False)
    # The classes that may be the worst, as in statistics.classes.worst_class_set, of all models at once.
    suspects = (rows["low"] <= models["high"].transform("min")).groupby(rows["model"]).transform("sum")
    least, most = (models["value"].transform(end) for end in ("min", "max"))
    lowest = (rows["n"] > 0) & (rows["value"] == least) & (most > least)
    sums = rows.assign(weighted=rows["n"] * rows["value"]).groupby("model")[["n", "weighted"]].sum()
    rows = rows.assign(
        total=rows["model"].map(sums["weighted"] / sums["n"]),
        weakest=np.where(suspects == 1, "sure", "open"),
        suspects=suspects,
    )
    rows["weakest"] = rows["weakest"].astype(object).where(lowest, None)
    order = rows["class"].drop_duplicates()
    if len(order) > MOST_IN_ORDER:
        order = rows.groupby("class")["value"].mean().sort_values(kind="stable").index.to_series()
    place = rows["class"].map({name: index for index, name in enumerate(order)})
    rows = rows.assign(best=-rows["total"], place=place).sort_values(["best", "model", "place"], kind="stable")
    columns = ["model", "class", "value", "low", "high", "n", "total", "weakest", "suspects", "confidence"]
    range_low, range_high = subject.meaning.value_range
    return rows[columns].reset_index(drop=True).assign(range_low=range_low, range_high=range_high)


def weakest_class(frame: pd.DataFrame) -> Finding:
    """Which class is the lowest in most models, and in how many of them significantly."""
    models, confidence = frame["model"].nunique(), float(frame["confidence"].iloc[0])
    lowest = frame[frame["weakest"].notna()]
    if lowest.empty:
        return Finding("classes_equal", numbers={"models": models})
    times = lowest["class"].value_counts()
    top = times[times == times.max()].index.tolist()
    first = lowest[lowest["class"] == top[0]]
    sure = int((first["weakest"] == "sure").sum())
    names, numbers = {"cls": top[0]}, {"times": int(times.max()), "models": models, "sure": sure}
    differ = frame.groupby("model")["low"].max() > frame.groupby("model")["high"].min()
    if not differ.any():
        return Finding("classes_alike", names, {"value": float(first["value"].min())}, confidence)
    if len(top) > 1:
        return Finding("weakest_classes", {"cls": tuple(top)}, numbers | {"classes": len(top)})
    if models == 1:
        numbers = {"value": float(first["value"].iloc[0]), "suspects": int(first["suspects"].iloc[0])}
        return Finding(f"weakest_class_of_one{'' if sure else '_open'}", names, numbers, confidence)
    return Finding("weakest_in_models" if sure else "weakest_class_open", names, numbers, confidence)


def draw(frame: pd.DataFrame, axes: Axes) -> None:
    """Class values as colours; models in rows, classes in columns, a frame around the lowest class of a model."""
    drawing.heatmap(
        axes,
        frame,
        row="model",
        column="class",
        value="value",
        limits=drawing.limits_of_measure(frame["value"], measure_range(frame)),
        scale_title="{unit}",
        aside="total",
        box="weakest",
    )


def measure_range(frame: pd.DataFrame) -> tuple[float, float]:
    """Range of the measure that class values are of."""
    first = frame.iloc[0]
    return float(first["range_low"]), float(first["range_high"])


CHART = Chart(
    name="class_heatmap",
    title="Class values",
    question="Which class is weak, and in which models?",
    section="class",
    tables=("class_scores",),
    data=class_values,
    draw=draw,
    rows="model",
    cells=("model", "class", "value"),
    finding=weakest_class,
    shows="{measure_title} of each class; dark is low, bright is high; higher is better",
    note="Box: lowest class of the model, solid where significantly so, dotted where other classes may be lower. "
    "Right column: mean over all samples, by which models are sorted. Beyond 60 classes they stand by their mean, the "
    "weakest left. Empty: no samples. Box from simultaneous {confidence} intervals of a model's classes.",
    per_class=True,
    order=1,
)
