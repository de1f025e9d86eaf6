"""The most frequent confusions, where there are too many classes for a matrix."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, ties
from gfscore.show.charts.confusion import MOST, rows_of_errors
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject, some
from gfscore.show.lazy import drawing, pd

LISTED = 25


def pairs(subject: Subject) -> pd.DataFrame:
    """Share of the true class that each model takes for the other, the 25 pairs of highest mean, beyond 40 classes.

    Models that never make a confusion count as 0. As many pairs as `tied`, drawn or not, have the mean of the first.
    """
    confusions, errors = rows_of_errors(subject)
    if errors["class_index"].nunique() <= MOST:
        raise NothingToDraw
    wrong = some(confusions[confusions["true_index"] != confusions["predicted_index"]])

    samples = errors.set_index(["label", "class_index"])["n"]
    keys = list(zip(wrong["label"], wrong["true_index"], strict=True))
    share = wrong["count"].to_numpy() / samples.loc[keys].to_numpy()
    table = wrong.assign(share=share).pivot_table(
        index=["true_index", "predicted_index"], columns="label", values="share", fill_value=0.0
    )
    table = table.reindex(columns=errors["label"].drop_duplicates(), fill_value=0.0)
    means = table.mean(axis=1).sort_values(ascending=False, kind="stable")
    rows = table.loc[means.index[:LISTED]].stack().rename("share").reset_index()

    names = errors.drop_duplicates("class_index").set_index("class_index")["class"]
    true = rows["true_index"].map(names)
    predicted = rows["predicted_index"].map(names)
    fewest = errors.groupby("class_index")["images"].min()
    rows = rows.assign(
        pair=true + " \u2192 " + predicted,
        true=true,
        predicted=predicted,
        mean=rows.groupby(["true_index", "predicted_index"])["share"].transform("mean"),
        n=rows["true_index"].map(fewest),
        tied=ties(means, means.iloc[0]),
    )
    return rows.rename(columns={"label": "model"})[["pair", "true", "predicted", "model", "share", "mean", "n", "tied"]]


def most_confused_pair(frame: pd.DataFrame) -> Finding:
    """The pair of classes that is most often confused, over models."""
    first = frame.iloc[0]
    names = {"true": str(first["true"]), "predicted": str(first["predicted"])}
    numbers = {"share": float(first["mean"]), "models": frame["model"].nunique()}
    if first["tied"]:
        numbers["tied"] = int(first["tied"])
    return Finding("most_confused", names, numbers)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """A bar for each pair of classes at the mean over models, a dot for each model."""
    title = "share of the true class that is taken for the other (lower is better)"
    drawing.numbers(axes.xaxis, title, frame["share"], zero=True)
    drawing.bars(axes, frame, row="pair", value="share")


CHART = Chart(
    name="confused_pairs",
    title="Most confused pairs of classes",
    question="Which class is taken for which?",
    section="class",
    tables=("confusions", "class_errors"),
    data=pairs,
    draw=draw,
    finding=most_confused_pair,
    shows="The most frequent confusions: {measure_title}",
    note="Bar: mean over models. Dot: one model.",
    per_class=True,
    order=5,
)
