"""Class values as colours: models in rows, the best on top, classes in columns."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.core.mappings import positions
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

MOST_IN_ORDER = 60
"""Classes that stand in their own order; more stand by their mean, the weakest left."""

IN_ORDER = "in their own order"
BY_MEAN = "by their mean, the weakest left"
"""How the classes stand, as the notes of charts say it."""


def class_values(subject: Subject) -> pd.DataFrame:
    """Value and simultaneous interval of each class of each model.

    Returns
    -------
    DataFrame
        One row for each model and class; models by their mean over all samples (`total`), the best first. `most` and
        `total_most` are values and means with undecided samples at the most that they may be worth. `weakest` is
        "sure" where a class is significantly the lowest of its model, "open" where others may be lower; `suspects`
        counts the classes of a model that may be the weakest. `class_order` says how the classes stand: of many the
        weakest on average comes first.
    """
    rows = subject.rows("class_scores")
    rows = rows.rename(columns={"model": "name", "label": "model"})
    rows = rows.sort_values("class_index", kind="stable")
    models = rows.groupby("model", sort=False)

    # The classes that may be the worst, as in statistics.disparity.worst_class_set, of all models at once.
    may_be_worst = rows["low"] <= models["high"].transform("min")
    suspects = may_be_worst.groupby(rows["model"]).transform("sum")
    least = models["value"].transform("min")
    most = models["value"].transform("max")
    lowest = (rows["n"] > 0) & (rows["value"] == least) & (most > least)
    certainty = pd.Series(np.where(suspects == 1, "sure", "open"), index=rows.index, dtype=object)

    weighted = rows.assign(weighted=rows["n"] * rows["value"], weighted_most=rows["n"] * rows["value_most"])
    sums = weighted.groupby("model")[["n", "weighted", "weighted_most"]].sum()
    range_low, range_high = subject.meaning.value_range
    rows = rows.assign(
        most=rows["value_most"],
        total=rows["model"].map(sums["weighted"] / sums["n"]),
        total_most=rows["model"].map(sums["weighted_most"] / sums["n"]),
        weakest=certainty.where(lowest, None),
        suspects=suspects,
        range_low=range_low,
        range_high=range_high,
    )

    order = rows["class"].drop_duplicates()
    class_order = IN_ORDER
    if len(order) > MOST_IN_ORDER:
        class_order = BY_MEAN
        order = rows.groupby("class")["value"].mean().sort_values(kind="stable").index.to_series()
    position_of_class = positions(order)
    rows = rows.assign(
        negative_total=-rows["total"],
        negative_total_most=-rows["total_most"],
        place=rows["class"].map(position_of_class),
    )
    rows = rows.sort_values(["negative_total", "negative_total_most", "model", "place"], kind="stable")
    columns = ["model", "class", "value", "most", "low", "high", "n", "total", "total_most", "weakest", "suspects"]
    rows = rows[[*columns, "confidence", "range_low", "range_high"]].reset_index(drop=True)
    return rows.assign(class_order=class_order)


def weakest_class(frame: pd.DataFrame) -> Finding:
    """Which class is the lowest in most models, and in how many of them significantly."""
    models = frame["model"].nunique()
    confidence = float(frame["confidence"].iloc[0])
    lowest = frame[frame["weakest"].notna()]
    if lowest.empty:
        return Finding("classes_equal", numbers={"models": models})

    times = lowest["class"].value_counts()
    weakest = times[times == times.max()].index.tolist()
    rows = lowest[lowest["class"] == weakest[0]]
    sure = int((rows["weakest"] == "sure").sum())
    names = {"cls": weakest[0]}
    numbers = {"times": int(times.max()), "models": models, "sure": sure}

    highest_low = frame.groupby("model")["low"].max()
    lowest_high = frame.groupby("model")["high"].min()
    if not (highest_low > lowest_high).any():
        tied = {"tied": len(weakest) - 1} if len(weakest) > 1 else {}
        if models == 1:
            return Finding("classes_alike_of_one", names, {"value": float(rows["value"].iloc[0]), **tied}, confidence)
        return Finding("classes_alike", names, {"times": int(times.max()), "models": models, **tied}, confidence)
    if len(weakest) > 1:
        return Finding("weakest_classes", {"cls": tuple(weakest)}, numbers | {"classes": len(weakest)})
    if models == 1:
        kind = "weakest_class_of_one" if sure else "weakest_class_of_one_open"
        numbers = {"value": float(rows["value"].iloc[0]), "suspects": int(rows["suspects"].iloc[0])}
        return Finding(kind, names, numbers, confidence)
    return Finding("weakest_in_models" if sure else "weakest_class_open", names, numbers, confidence)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """Class values as colours; models in rows, classes in columns, a frame around the lowest class of a model."""
    drawing.heatmap(
        axes,
        frame,
        row="model",
        column="class",
        value="value",
        most="most",
        limits=drawing.limits_of_measure(pd.concat([frame["value"], frame["most"]]), measure_range(frame)),
        scale_title="{unit}",
        aside="total",
        aside_most="total_most",
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
    "Right column: mean over all samples, by which models are sorted. Classes stand {class_order}. Empty: no samples. "
    "Box from simultaneous {confidence} intervals of a model's classes, each model by itself.",
    as_failures=True,
    undecided="Two halves of a cell, and two numbers on the right: undecided samples count as failures, then as "
    "successes; of robust accuracy what is proven, then what attacks leave.",
    per_class=True,
    order=1,
)
