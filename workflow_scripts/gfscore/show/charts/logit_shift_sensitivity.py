"""Aggregate scores against a constant added to every logit, which no decision depends on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.lazy import drawing, np, pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure


UNCHANGED = 1e-9
MOST_MODELS = 30
FEW = 8
"""Lines that are all named."""


def changed(subject: Subject, change: str, unchanged: tuple[str, float]) -> pd.DataFrame | None:
    """Aggregate score of each model and measure under a change of its logits that alters no decision.

    Parameters
    ----------
    subject : Subject
    change : str
        Column of the change.
    unchanged : (str, float)
        Another column, with the value that leaves the logits as they are.

    Returns
    -------
    DataFrame or None
        `moves` is the largest distance of the model's values from that nearest to no change; `most` marks the line of
        the largest one of a measure. Of more than MOST_MODELS models those that move most have a line.
    """
    rows = subject.rows("sensitivity")
    if rows is None:
        return None
    column, neutral = unchanged
    rows = rows[rows[column] == neutral]
    if rows.empty:
        return None
    rows = rows.assign(model=rows["label"]).sort_values(["measure", "model", change], kind="stable")

    keys = ["measure", "model"]
    distance = rows[change].abs() if change == "shift" else np.log(rows[change]).abs()
    nearest = distance.groupby([rows[key] for key in keys]).idxmin()
    start = rows.loc[nearest].set_index(keys)["value"]
    lines = list(zip(rows["measure"], rows["model"], strict=True))
    rows["moves"] = (rows["value"] - start.loc[lines].to_numpy()).abs()
    rows["moves"] = rows.groupby(keys)["moves"].transform("max")
    largest = rows.groupby("measure")["moves"].transform("max")
    rows["most"] = (rows["moves"] == largest) & (rows["moves"] > UNCHANGED)

    moves = rows.drop_duplicates(keys).set_index(keys)["moves"]
    rank = moves.groupby("measure").rank("first", ascending=False)
    rows = rows[rank.loc[lines].to_numpy() <= MOST_MODELS]
    order = list(dict.fromkeys(subject.measures))
    rows = rows.sort_values("measure", key=lambda names: names.map(order.index), kind="stable", ignore_index=True)
    rows = rows[["measure", "model", change, "value", "moves", "most"]].rename(columns={change: "change"})
    return rows.assign(changed=change)


def largest_change(frame: pd.DataFrame) -> Finding:
    """How far each measure moves at most under changes that alter no prediction."""
    moves = frame.groupby("measure", sort=False)["moves"].max()
    moving = moves[moves > UNCHANGED]
    if moving.empty:
        return Finding("score_unmoved", {"measures": tuple(map(str, moves.index))})
    most = moving.idxmax()
    still = tuple(str(name) for name in moves.index if name not in moving)
    numbers = {"move": float(moving[most]), "from_": float(frame["change"].min()), "to": float(frame["change"].max())}
    kind = f"{frame['changed'].iloc[0]}_moves_score"
    if still:
        return Finding(f"{kind}_others_not", {"measure": str(most), "still": still}, numbers)
    return Finding(kind, {"measure": str(most)}, numbers)


def draw(
    frame: pd.DataFrame, figure: Figure, *, title: str = "constant added to every logit", log: bool = False
) -> None:
    """A panel for each measure: a line for each model, which stands out where it moves furthest."""
    for axes, panel in drawing.panels(figure, frame, "measure", most=2, least=330):
        drawing.reserve(axes, drawing.LINE_HEIGHT)
        drawing.numbers(axes.xaxis, title, frame["change"], log=log)
        drawing.numbers(axes.yaxis, "aggregate score (higher is better)", panel["value"], zero=True)
        drawing.curves(axes, panel, x="change", y="value", line="model", bold="most", points=True)
        drawing.name_lines(axes, panel, x="change", y="value", line="model", bold="most", most=FEW)


CHART = Chart(
    name="logit_shift_sensitivity",
    title="Sensitivity to a shift of the logits",
    question="Does the score depend on a constant that means nothing?",
    section="trust",
    tables=("sensitivity",),
    about="audit",
    data=partial(changed, change="shift", unchanged=("scale", 1)),
    draw=draw,
    panels=True,
    finding=largest_change,
    shows="Aggregate score when the same constant is added to every logit",
    note="The classifier decides the same at every change. Values on the samples at hand; no intervals, since the "
    "samples are the same throughout. Thick line: the model that moves furthest from its value on the logits "
    "as they are. Of more than 30 models those that move most.",
    order=8,
)
