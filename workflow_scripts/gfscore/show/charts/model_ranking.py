"""Models by their mean with intervals, and the ranks that these allow."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding, others_equal
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, pd

SENTENCES = {
    "only_model": "{model}: {value} on average ({low:low} to {high:high})",
    "best_model": "{model} has the highest mean, {value}, significantly above every other model",
    "best_model_open": "{model} has the highest mean, {value}, but not significantly above {times:models}",
    "best_model_apart": "{model} has the highest mean, {value}, with an interval above those of all others",
    "best_model_overlaps": "{model} has the highest mean, {value}; the intervals of {times:models} overlap its own",
}


def ranked(subject: Subject) -> pd.DataFrame:
    """Mean over all samples of each model with its interval, best first, and its worst class (`wcr`).

    `rank_best` and `rank_worst` are the ranks that paired comparisons allow, missing where there are none.
    """
    rows = subject.rows("model_summary")
    scores = subject.rows("class_scores")
    ranks = subject.tables.of_measure("rank_intervals", str(subject.measure))
    samples = scores.groupby("label")["n"].sum()
    rows = rows.assign(name=rows["model"], model=rows["label"], n=rows["label"].map(samples))
    allowed = ranks[["threat", "model", "rank_best", "rank_worst"]].rename(columns={"model": "name"})
    rows = rows.merge(allowed, on=["threat", "name"], how="left").astype({"rank_best": "Int64", "rank_worst": "Int64"})

    texts = []
    for best, worst in rows[["rank_best", "rank_worst"]].itertuples(index=False):
        if pd.isna(best):
            texts.append("")
        elif best == worst:
            texts.append(f"rank {best}")
        else:
            texts.append(f"rank {best} to {worst}")
    rows = rows.assign(ranks=texts)
    rows = rows.sort_values(["value", "model"], ascending=[False, True], ignore_index=True)
    columns = ["model", "value", "value_low", "value_high", "wcr", "ranks", "rank_best", "rank_worst"]
    return rows[[*columns, "n", "confidence"]]


def leader(frame: pd.DataFrame) -> Finding:
    """Which model has the highest mean, and whether it is above all others by paired comparisons, or else intervals."""
    first = frame.iloc[0]
    rivals = frame.iloc[1:]
    confidence = float(first["confidence"])
    names = {"model": str(first["model"])}
    numbers = {"value": float(first["value"]), "models": len(frame)}
    if rivals.empty:
        numbers |= {"low": float(first["value_low"]), "high": float(first["value_high"])}
        return Finding("only_model", names, numbers)

    numbers |= others_equal(frame["value"], first["value"])
    if frame["rank_worst"].notna().all():
        numbers["times"] = int(first["rank_worst"]) - 1
        return Finding("best_model_open" if numbers["times"] else "best_model", names, numbers, confidence)
    disjoint = first["value_low"] > rivals["value_high"].max()
    numbers["times"] = int((rivals["value_high"] >= first["value_low"]).sum())
    return Finding("best_model_apart" if disjoint else "best_model_overlaps", names, numbers, confidence)


def draw(frame: pd.DataFrame, axes: drawing.Axes) -> None:
    """The mean of each model with its interval, and the ranks that it may have."""
    ends = frame[["value", "value_low", "value_high"]]
    drawing.numbers(axes.xaxis, "mean over all samples ({unit}; higher is better)", ends)
    drawing.intervals(axes, frame, row="model", value="value", low="value_low", high="value_high", aside="ranks")


CHART = Chart(
    name="model_ranking",
    title="Ranking",
    question="Which model is best?",
    section="which",
    tables=("model_summary", "class_scores", "rank_intervals"),
    data=ranked,
    draw=draw,
    rows="model",
    finding=leader,
    sentences=SENTENCES,
    as_failures=True,
    shows="{measure_title} of each model, the best on top",
    note="Line: {confidence} interval of each model, joint over its classes. Beside it: the ranks that paired "
    "comparisons of the models on the same samples allow.",
    order=1,
    figure=False,
)
