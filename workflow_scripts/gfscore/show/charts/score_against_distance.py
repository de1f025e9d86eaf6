"""Attack-free score against attack distance, model by model: what lies above the line is refuted, or open."""

from __future__ import annotations

from gfscore.audit.findings.finding import Finding
from gfscore.core.identity import ALL
from gfscore.core.numbers import number
from gfscore.show.charts.declaration import Chart, Subject, some
from gfscore.show.lazy import drawing, pd


def claims(subject: Subject) -> pd.DataFrame:
    """Mean score and mean distance found of each model, with the share of samples whose score attacks refute.

    The score claims that no adversarial example is nearer than itself. One panel per measure of distances.
    """
    from gfscore.audit.agreement.falsification import mean_scores_against_distances

    rows = subject.rows("falsification")
    rows = some(rows[rows["class_index"] == ALL])
    frames = []
    for _, models in rows.groupby("distances", sort=False):
        frames.append(models.assign(state=mean_scores_against_distances(models, left_out=subject.left_out)))
    frame = pd.concat(frames, ignore_index=True)
    frame["name"] = frame["label"] + "  " + frame["rate"].map(number)
    frame["model"] = frame["label"]
    columns = ["distances", "model", "name", "mean_score", "mean_distance", "rate", "low", "high", "state", "censored"]
    return frame[[*columns, "n", "confidence"]]


def refuted(frame: pd.DataFrame) -> Finding:
    """In how many models attacks refute the mean score, and the range of falsification rates."""
    rates = frame["rate"].dropna()
    if rates.empty:
        return Finding("nothing_to_refute")
    models = frame["model"].nunique()
    if not rates.max():
        return Finding("score_stands", numbers={"models": models})

    times = frame.loc[frame["state"] == "refuted", "model"].nunique()
    unsettled = frame.loc[frame["state"] == "not settled", "model"].nunique()
    kind = "score_violated"
    if times:
        kind = "mean_score_refuted"
    elif unsettled:
        kind = "score_open"
    numbers = {
        "models": models,
        "times": times,
        "open": unsettled,
        "low": float(rates.min()),
        "high": float(rates.max()),
    }
    if models == 1 and numbers["low"] == numbers["high"]:
        kind += "_of_one"
    return Finding(kind, numbers=numbers, confidence=float(frame["confidence"].iloc[0]))


def draw(frame: pd.DataFrame, figure: drawing.Figure) -> None:
    """A panel for each measure of distances: a point for each model, and the line of equal values."""
    looks = {"refuted": "contrast", "not settled": "open", "not refuted": "accent"}
    distance_title = "mean distance of the nearest adversarial example found (higher is better)"
    for axes, panel in drawing.panels(figure, frame, "distances", most_columns=2, least_width=340):
        drawing.reserve(axes, drawing.POINTS_HEIGHT)
        end = 1.05 * float(panel[["mean_distance", "mean_score"]].max(axis=None))
        drawing.numbers(axes.xaxis, distance_title, panel["mean_distance"], end=end)
        drawing.numbers(
            axes.yaxis, "mean score (same unit, as claimed; higher is better)", panel["mean_score"], end=end
        )
        drawing.equal_line(axes, end, "score above distance")
        drawing.scatter(axes, panel, x="mean_distance", y="mean_score", name="name", state="state", looks=looks)


CHART = Chart(
    name="score_against_distance",
    title="Score against attack distance",
    question="Do attacks refute the attack-free score?",
    section="trust",
    tables=("falsification",),
    data=claims,
    draw=draw,
    panels=True,
    finding=refuted,
    shows="{measure} at T = 1 against the distance that attacks found",
    note="Above the line the mean score exceeds the mean distance found. Beside each name: falsification rate, the "
    "share of correctly classified samples with an adversarial example nearer than their score (lower is better), a "
    "lower bound on the violations. Refuted: surely above the line, by betting, with {confidence} confidence for all "
    "models (Holm); with samples that no attack broke, no mean score is refuted.",
    order=1,
)
