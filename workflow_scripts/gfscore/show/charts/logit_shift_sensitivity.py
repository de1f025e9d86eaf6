"""Aggregate scores against a constant added to every logit, which no decision depends on."""

from __future__ import annotations

from functools import partial
from typing import Literal

from gfscore.audit.findings.finding import Finding
from gfscore.show.charts.declaration import Chart, Subject, some
from gfscore.show.lazy import drawing, np, pd

NEUTRAL = {"shift": 0, "scale": 1}
"""Value of each change that leaves the logits as they are."""

SMALLEST_MOVE = 1e-9
"""Moves up to this one are rounding."""

MOST_MODELS = 30
FEW = 8
"""Lines that are all named."""


def sensitivity_curves(subject: Subject, change: Literal["shift", "scale"]) -> pd.DataFrame:
    """Aggregate score of each model and measure under a change of its logits that alters no decision.

    Parameters
    ----------
    subject : Subject
    change : {"shift", "scale"}
        Column of the change; the other one leaves the logits as they are.

    Returns
    -------
    DataFrame
        `largest_move` is the largest distance of the model's scores from its score on unchanged logits (or at the
        smallest change tabulated); `moves_most` marks the lines with the largest one of a measure. Of more than
        MOST_MODELS models those that move most have a line.
    """
    rows = subject.rows("sensitivity")
    other_change = "scale" if change == "shift" else "shift"
    rows = some(rows[rows[other_change] == NEUTRAL[other_change]])
    rows = rows.assign(model=rows["label"]).sort_values(["measure", "model", change], kind="stable")

    keys = ["measure", "model"]
    distance = rows[change].abs() if change == "shift" else np.log(rows[change]).abs()
    nearest = distance.groupby([rows[key] for key in keys]).transform("idxmin")
    unchanged_value = rows["value"].loc[nearest].to_numpy()
    rows["largest_move"] = (rows["value"] - unchanged_value).abs()
    rows["largest_move"] = rows.groupby(keys)["largest_move"].transform("max")
    largest_of_measure = rows.groupby("measure")["largest_move"].transform("max")
    rows["moves_most"] = (rows["largest_move"] == largest_of_measure) & (rows["largest_move"] > SMALLEST_MOVE)

    curves = rows.drop_duplicates(keys).set_index(keys)
    rank = curves.groupby("measure")["largest_move"].rank("first", ascending=False)
    rows = rows[rank.loc[pd.MultiIndex.from_frame(rows[keys])].to_numpy() <= MOST_MODELS]
    order = list(dict.fromkeys(subject.measures))
    rows = rows.sort_values("measure", key=lambda names: names.map(order.index), kind="stable", ignore_index=True)
    columns = ["measure", "model", change, "value", "largest_move", "moves_most"]
    return rows[columns].rename(columns={change: "change"}).assign(kind_of_change=change)


def largest_change(frame: pd.DataFrame) -> Finding:
    """How far each measure moves at most under changes that alter no prediction."""
    moves = frame.groupby("measure", sort=False)["largest_move"].max()
    moving = moves[moves > SMALLEST_MOVE]
    if moving.empty:
        return Finding("score_unmoved", {"measures": tuple(map(str, moves.index))})
    most_sensitive = moving.idxmax()
    still = tuple(str(name) for name in moves.index if name not in moving)
    numbers = {
        "move": float(moving[most_sensitive]),
        "from_": float(frame["change"].min()),
        "to": float(frame["change"].max()),
    }
    kind = f"{frame['kind_of_change'].iloc[0]}_moves_score"
    if still:
        return Finding(f"{kind}_others_not", {"measure": str(most_sensitive), "still": still}, numbers)
    return Finding(kind, {"measure": str(most_sensitive)}, numbers)


def draw(
    frame: pd.DataFrame, figure: drawing.Figure, *, title: str = "constant added to every logit", log: bool = False
) -> None:
    """A panel for each measure: a line for each model, which stands out where it moves furthest."""
    for axes, panel in drawing.panels(figure, frame, "measure", most_columns=2, least_width=330):
        drawing.reserve(axes, drawing.CURVES_HEIGHT)
        drawing.numbers(axes.xaxis, title, frame["change"], log=log)
        drawing.numbers(axes.yaxis, "aggregate score (higher is better)", panel["value"], zero=True)
        drawing.curves(axes, panel, x="change", y="value", line="model", bold="moves_most", points=True)
        drawing.name_lines(axes, panel, x="change", y="value", line="model", bold="moves_most", most=FEW)


CHART = Chart(
    name="logit_shift_sensitivity",
    title="Sensitivity to a shift of the logits",
    question="Does the score depend on a constant that means nothing?",
    section="trust",
    tables=("sensitivity",),
    about="audit",
    data=partial(sensitivity_curves, change="shift"),
    draw=draw,
    panels=True,
    finding=largest_change,
    shows="Aggregate score when the same constant is added to every logit",
    note="The classifier decides the same at every change. Values on the samples at hand; no intervals, since the "
    "samples are the same throughout. Thick line: the model that moves furthest from its value on the logits "
    "as they are. Of more than 30 models those that move most.",
    order=8,
)
