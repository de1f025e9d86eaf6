"""Models by their mean with intervals, and the ranks that these allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.forms import Axis, Intervals
from gfscore.show.words.findings import Finding

if TYPE_CHECKING:
    import pandas as pd


def ranked(subject: Subject) -> pd.DataFrame | None:
    """Mean over all samples of each model with its interval, best first, and its worst class (`wcr`)."""
    rows, scores, ranks = (subject.rows(name) for name in ("model_summary", "class_scores", "rank_intervals"))
    if rows is None or scores is None:
        return None
    rows = rows.assign(model=rows["label"], n=rows["label"].map(scores.groupby("label")["n"].sum()), ranks="")
    if ranks is not None:
        own = ranks.set_index("label")
        words = {
            label: f"rank {best}" if best == worst else f"rank {best} to {worst}"
            for label, best, worst in zip(own.index, own["rank_best"], own["rank_worst"], strict=True)
        }
        rows["ranks"] = rows["label"].map(words).fillna("")
    rows = rows.sort_values(["value", "model"], ascending=[False, True], ignore_index=True)
    return rows[["model", "value", "value_low", "value_high", "wcr", "ranks", "n", "confidence"]]


def leader(frame: pd.DataFrame) -> Finding:
    """Which model has the highest mean, and whether its interval lies above all others."""
    first, others = frame.iloc[0], frame.iloc[1:]
    names, numbers = {"model": str(first["model"])}, {"value": float(first["value"]), "models": len(frame)}
    if others.empty:
        return Finding(
            "only_model", names, numbers | {"low": float(first["value_low"]), "high": float(first["value_high"])}
        )
    apart = first["value_low"] > others["value_high"].max()
    numbers["times"] = int((others["value_high"] >= first["value_low"]).sum())
    return Finding("best_model" if apart else "best_model_open", names, numbers, float(first["confidence"]))


CHART = Chart(
    name="model_ranking",
    title="Ranking",
    question="Which model is best?",
    section="which",
    tables=("model_summary", "class_scores", "rank_intervals"),
    data=ranked,
    form=Intervals(
        row="model",
        value=Axis("value", "mean over all samples ({unit}; higher is better)"),
        low="value_low",
        high="value_high",
        aside="ranks",
    ),
    finding=leader,
    sentences={
        "only_model": "{model}: {value} on average ({low:low} to {high:high})",
        "best_model": "{model} has the highest mean, {value}, with an interval above those of all {models:models}",
        "best_model_open": "{model} has the highest mean, {value}; the intervals of {times:models} overlap its own",
    },
    shows="{measure_title} of each model, the best on top",
    note="Line: {confidence} interval of each model, joint over its classes. Beside it: the ranks that paired "
    "comparisons of the models allow.",
    order=1,
    figure=False,
)
