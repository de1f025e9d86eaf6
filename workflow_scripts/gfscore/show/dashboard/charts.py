"""The charts of the page as Vega-Lite specifications; the page fills in data, parameters and words.

A title that begins with "@" is replaced by the page: units and directions depend on the measure that is shown.
"""

from __future__ import annotations

from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode

from gfscore.show.dashboard.theme import DIVERGING, SEQUENTIAL, colour, extent, framed, rows

ROW, CELL = 24, 26
ROOM_OF_MODELS, ROOM_OF_CLASSES = 185, 125
"""Pixels for names beside a chart, enough for the letters of names.shortened that contents.py leaves of them.

Vega-Lite would cut what is longer at its end, where names of models and of classes tell themselves apart.
"""
WRITTEN: dict[str, Any] = {"labelExpr": "names[datum.value] || datum.label"}
"""Axes write the short names of what the data call by its whole name, as explanations and tables do."""

RANGE = (("low", 0), ("high", 1))
MOST = (("most", 1),)


def charts() -> dict[str, dict[str, Any]]:
    """Specifications by name. Altair's validation is left out; tests check each against the schema."""
    with debug_mode(False):
        return _charts()


def _charts():
    return {
        "swaps": swaps(),
        "ranking": ranking(),
        "scatter": scatter(),
        "heatmap": heatmap(label_angle=-45),
        "heatmap_short": heatmap(label_angle=0),
        "strip": strip(),
        "vulnerability": vulnerability(),
        "bars": bars(),
        "profile": profile(),
        "confusion": confusion(label_angle=-45),
        "confusion_short": confusion(label_angle=0),
        "mistakes": mistakes(),
        "differences": differences(),
        "distances": distances(),
        "agreement": agreement(label_angle=-35),
        "agreement_narrow": agreement(label_angle=-90),
        "curve": curve(),
        "sensitivity": sensitivity(alt.Scale(zero=False)),
        "sensitivity_of_factor": sensitivity(alt.Scale(type="log", base=2, nice=False)),
        "costs": costs(),
        "intervals": intervals(),
        "intervals_small": intervals(legend=False),
    }


def swaps() -> dict[str, Any]:
    """Values of lambda at which two models change places, under the slider of lambda."""
    marks = alt.Chart(rows()).encode(
        x=alt.X(
            "lambda:Q",
            title=None,
            scale=extent("0", "most", padding=9),
            axis=alt.Axis(grid=False, tickCount=5, domain=False),
        ),
        tooltip=[alt.Tooltip("words:N", title="swap"), alt.Tooltip("lambda:Q", format=".4f")],
    )
    return framed(marks.mark_rule(color=colour("muted"), strokeWidth=1.5, opacity=0.8), height=16, parameters=MOST)


def ranking() -> dict[str, Any]:
    """Aggregate of each model with its interval, and FP at the chosen lambda."""
    base = alt.Chart(rows()).encode(y=alt.Y("model:N", sort=None, title=None, axis=_names(ROOM_OF_MODELS)))
    value = alt.X("value:Q", title="@value", scale=extent())
    kind = alt.Scale(domain=["class mean", "FP"], range=["circle", "diamond"])
    paint = alt.Scale(domain=["class mean", "FP"], range=[colour("muted"), colour("accent")])
    interval = base.mark_rule(strokeWidth=2.5, opacity=0.55).encode(
        x=alt.X("lower:Q", title="@value", scale=extent()),
        x2="upper:Q",
        yOffset=alt.YOffset("what:N", sort=["class mean", "FP"]),
        color=alt.Color("what:N", scale=paint, title=None),
        tooltip=_tips("model", "what", "text"),
    )
    points = base.mark_point(filled=True, size=75, opacity=1).encode(
        x=value,
        yOffset=alt.YOffset("what:N", sort=["class mean", "FP"]),
        shape=alt.Shape("what:N", scale=kind, title=None),
        color=alt.Color("what:N", scale=paint, title=None),
        tooltip=_tips("model", "what", "text"),
    )
    return framed(interval + points, height=alt.Step(34), parameters=RANGE)


def scatter() -> dict[str, Any]:
    """Disparity against aggregate, one point per model."""
    base = alt.Chart(rows()).encode(tooltip=_tips("model", "x_text", "y_text"))
    x = alt.X("x:Q", title="@value", scale=alt.Scale(zero=False, nice=True))
    y = alt.Y("y:Q", title="@metric", scale=alt.Scale(zero=False, nice=True))
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x, y=y, color=alt.condition("datum.chosen", alt.value(colour("contrast")), alt.value(colour("accent")))
    )
    names = _names_of_points(base.encode(x=x, y=y))
    across, along = _bounds_of_points(base, x, y, ("x", "@value"), ("y", "@metric"))
    return framed(across + along + points + names, height=320)


def heatmap(*, label_angle: float) -> dict[str, Any]:
    """Class values of every model; cells below tau are marked, and the cell under the cursor is framed."""
    x = alt.X("class:N", sort=None, title=None, axis=_columns(label_angle))
    y = alt.Y("model:N", sort=None, title=None, axis=_names(ROOM_OF_MODELS))
    base = alt.Chart(rows()).encode(x=x, y=y, tooltip=_tips("model", "class", "text", "verdict"))
    cells = base.mark_rect(stroke=colour("surface"), strokeWidth=1, invalid="show").encode(
        color=_painted("value", "isValid(datum.value)", title="@legend", scale=extent(scheme=SEQUENTIAL))
    )
    # A glyph says again what tau decides, so that nothing hangs on colour.
    glyphs = base.mark_text(fontSize=11.5, invalid="show").encode(
        text="mark:N", color=alt.condition("datum.value > middle", alt.value("#11151c"), alt.value("#ffffff"))
    )
    cursor = (
        alt.Chart(rows("cursor"))
        .mark_rect(fill=None, stroke=colour("contrast"), strokeWidth=3)
        .encode(x=alt.X("class:N", sort=None), y=alt.Y("model:N", sort=None))
    )
    return framed(cells + glyphs + cursor, height=alt.Step(CELL), parameters=(*RANGE, ("middle", 0.5)))


def strip() -> dict[str, Any]:
    """All classes side by side, narrow; drag across it to choose those that the heatmap shows."""
    brush = alt.selection_interval(name="zoom", encodings=["x"], mark=alt.BrushConfig(fillOpacity=0.15))
    cells = (
        alt.Chart(rows())
        .mark_rect()
        .encode(
            x=alt.X("from:Q", title="@classes", scale=alt.Scale(nice=False), axis=alt.Axis(grid=False, format="d")),
            x2="to:Q",
            y=alt.Y("model:N", sort=None, title=None, axis=_names(ROOM_OF_MODELS)),
            color=alt.Color("value:Q", scale=extent(scheme=SEQUENTIAL), legend=None),
        )
        .add_params(brush)
    )
    window = (
        alt.Chart(rows("window"))
        .mark_rect(fill=None, stroke=colour("contrast"), strokeWidth=2)
        .encode(x="from:Q", x2="to:Q")
    )
    return framed(cells + window, height=alt.Step(16), parameters=RANGE)


def vulnerability() -> dict[str, Any]:
    """How often each class is the weakest, over models."""
    base = alt.Chart(rows()).encode(
        y=alt.Y("class:N", sort=None, title=None, axis=_names(ROOM_OF_CLASSES)), tooltip=_tips("class", "text")
    )
    bars = base.mark_bar(color=colour("accent"), height={"band": 0.6}).encode(
        x=alt.X(
            "times:Q",
            title=["models in which", "the class is the weakest"],
            axis=_counts(),
        )
    )
    return framed(bars, height=alt.Step(20), parameters=MOST)


def bars() -> dict[str, Any]:
    """Class values of one model with intervals, over the band that chance alone would spread equal classes."""
    y = alt.Y("class:N", sort=None, title=None, axis=_names(ROOM_OF_CLASSES))
    base = alt.Chart(rows()).encode(y=y, tooltip=_tips("class", "text", "verdict"))
    floor = (
        alt.Chart(rows("floor"))
        .mark_rect(color=colour("wash"), opacity=0.7)
        .encode(x=alt.X("from:Q", title="@value", scale=extent()), x2="to:Q")
    )
    intervals = base.mark_rule(strokeWidth=5, opacity=0.45).encode(
        x=alt.X("lower:Q", title="@value", scale=extent()), x2="upper:Q", color=_suspect(legend=None)
    )
    points = base.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X("value:Q", title="@value", scale=extent()),
        color=_suspect(title=None),
        shape=alt.Shape("suspect:N", title=None, scale=alt.Scale(domain=SUSPECT, range=["diamond", "circle"])),
    )
    tau = alt.Chart(rows("tau")).mark_rule(strokeDash=[5, 4], color=colour("ink")).encode(x=alt.X("tau:Q"))
    return framed(floor + tau + intervals + points, height=alt.Step(20), parameters=RANGE)


SUSPECT = ["may be the weakest", "not the weakest"]


def _suspect(**settings):
    return alt.Color(
        "suspect:N", scale=alt.Scale(domain=SUSPECT, range=[colour("contrast"), colour("accent")]), **settings
    )


def profile() -> dict[str, Any]:
    """All class values of one model in ascending order, with their intervals as a band."""
    base = alt.Chart(rows()).encode(x=alt.X("place:Q", title="classes, weakest first", scale=alt.Scale(nice=False)))
    band = base.mark_area(color=colour("wash"), opacity=0.8).encode(
        y=alt.Y("lower:Q", title="@value", scale=extent()), y2="upper:Q"
    )
    line = base.mark_line(color=colour("accent"), strokeWidth=2).encode(y=alt.Y("value:Q", scale=extent()))
    tau = alt.Chart(rows("tau")).mark_rule(strokeDash=[5, 4], color=colour("ink")).encode(y=alt.Y("tau:Q"))
    return framed(band + line + tau, height=220, parameters=RANGE)


def confusion(*, label_angle: float) -> dict[str, Any]:
    """Shares of each true class by predicted class, for one model."""
    base = alt.Chart(rows()).encode(
        x=alt.X("predicted:N", sort=None, title="predicted", axis=_columns(label_angle)),
        y=alt.Y("true:N", sort=None, title="true", axis=_names(ROOM_OF_CLASSES)),
        tooltip=_tips("true", "predicted", "text"),
    )
    cells = base.mark_rect(stroke=colour("line"), strokeWidth=0.5).encode(
        color=_painted(
            "share",
            "datum.share > 0",
            title="share of the true class",
            scale=alt.Scale(scheme=SEQUENTIAL, domainMin=0),
            format="~p",
            tickCount=3,
        )
    )
    text = base.mark_text(fontSize=11).encode(
        text="count:N", color=alt.condition("datum.share > middle", alt.value("#11151c"), alt.value("#ffffff"))
    )
    return framed(cells + text, height=alt.Step(CELL), parameters=(("middle", 0.5),))


def mistakes() -> dict[str, Any]:
    """The commonest mistakes of one model, as pairs of classes."""
    base = alt.Chart(rows()).encode(
        y=alt.Y("pair:N", sort=None, title=None, axis=_names(260)), tooltip=_tips("pair", "text")
    )
    return framed(
        base.mark_bar(color=colour("accent"), height={"band": 0.6}).encode(
            x=alt.X("count:Q", title="samples", axis=_counts())
        ),
        height=alt.Step(20),
        parameters=MOST,
    )


def differences() -> dict[str, Any]:
    """Differences of two models on each class with joint bounds; significant ones are filled."""
    y = alt.Y("class:N", sort=None, title=None, axis=_names(ROOM_OF_CLASSES))
    base = alt.Chart(rows()).encode(y=y, tooltip=_tips("class", "text"))
    shade = alt.Color("difference:Q", scale=alt.Scale(scheme=DIVERGING, domainMid=0), legend=None)
    zero = alt.Chart(rows("zero")).mark_rule(color=colour("muted")).encode(x=alt.X("at:Q", title="@difference"))
    interval = base.mark_rule(strokeWidth=2, color=colour("muted")).encode(
        x=alt.X("lower:Q", title="@difference"), x2="upper:Q"
    )
    points = base.mark_point(filled=True, size=95, opacity=1, stroke=colour("ink"), strokeWidth=1).encode(
        x=alt.X("difference:Q", title="@difference"),
        color=shade,
        shape=alt.Shape(
            "sure:N",
            title=None,
            scale=alt.Scale(domain=["significant", "not significant"], range=["diamond", "circle"]),
        ),
        size=alt.condition("datum.sure === 'significant'", alt.value(130), alt.value(45)),
    )
    return framed(zero + interval + points, height=alt.Step(20))


def distances() -> dict[str, Any]:
    """Attack-free score against the attack distance, per model; above the line the score exceeds what was found."""
    base = alt.Chart(rows()).encode(tooltip=_tips("model", "text"))
    x = alt.X("distance:Q", title="@distance", scale=alt.Scale(domainMin=0, domainMax=alt.ExprRef(expr="most")))
    y = alt.Y("score:Q", title="@score", scale=alt.Scale(domainMin=0, domainMax=alt.ExprRef(expr="most")))
    line = (
        alt.Chart(rows("line"))
        .mark_line(color=colour("muted"), strokeDash=[5, 4])
        .encode(x=alt.X("at:Q", title="@distance"), y=alt.Y("at:Q", title="@score"))
    )
    side = alt.Scale(
        domain=["above the line: refuted on average", "above the line: not settled", "on or below"],
        range=[colour("contrast"), colour("muted"), colour("accent")],
    )
    points = base.mark_point(filled=True, size=90, opacity=1).encode(
        x=x,
        y=y,
        color=alt.Color("side:N", title=None, scale=side, legend=alt.Legend(columns=1)),
        shape=alt.Shape(
            "side:N",
            title=None,
            legend=alt.Legend(columns=1),
            scale=alt.Scale(domain=side.domain, range=["triangle-up", "diamond", "circle"]),
        ),
    )
    names = _names_of_points(base.encode(x=x, y=y))
    across, along = _bounds_of_points(base, x, y, ("distance", "@distance"), ("score", "@score"))
    return framed(line + across + along + points + names, height=320, parameters=MOST)


def agreement(*, label_angle: float) -> dict[str, Any]:
    """Rank correlation of the measures over the classes of one model."""
    base = alt.Chart(rows()).encode(
        x=alt.X(
            "first:N",
            sort=None,
            title=None,
            axis=alt.Axis(orient="top", labelAngle=label_angle, labelLimit=120, labelOverlap=False),
        ),
        y=alt.Y("second:N", sort=None, title=None, axis=_names(130)),
        tooltip=_tips("first", "second", "text"),
    )
    cells = base.mark_rect(stroke=colour("surface")).encode(
        color=alt.Color(
            "rho:Q", title="Spearman over classes", scale=alt.Scale(scheme=DIVERGING, domain=[-1, 1], domainMid=0)
        )
    )
    text = base.mark_text(fontSize=12).encode(
        text="short:N", color=alt.condition("abs(datum.rho) > 0.6", alt.value("#ffffff"), alt.value("#11151c"))
    )
    return framed(cells + text, height=alt.Step(34))


def curve() -> dict[str, Any]:
    """A searched objective over temperature, with its optimal stretches, T = 1 and the accuracy baseline."""
    x = alt.X("temperature:Q", title="temperature T (logarithmic)", scale=alt.Scale(type="log", nice=False))
    band = (
        alt.Chart(rows("stretches"))
        .mark_rect(color=colour("wash"))
        .encode(
            x=alt.X("from:Q", scale=alt.Scale(type="log", nice=False), title="temperature T (logarithmic)"), x2="to:Q"
        )
    )
    line = (
        alt.Chart(rows())
        .mark_line(color=colour("accent"), strokeWidth=1.8)
        .encode(x=x, y=alt.Y("value:Q", title="@objective", scale=alt.Scale(zero=False)))
    )
    level = alt.Chart(rows("levels")).mark_rule(strokeDash=[2, 3], strokeWidth=1.5, color=colour("contrast"))
    level = level.encode(y=alt.Y("value:Q", title="@objective"))
    marks = alt.Chart(rows("marks")).encode(x=alt.X("temperature:Q"))
    rules = marks.mark_rule(color=colour("ink"), strokeDash=[5, 4])
    names = marks.mark_text(
        align=alt.ExprRef(expr="datum.side"),
        dx=alt.ExprRef(expr="datum.side === 'left' ? 4 : -4"),
        fontSize=11,
        color=colour("ink"),
    ).encode(y=alt.value(alt.ExprRef(expr="datum.raised ? height - 24 : height - 8")), text="words:N")
    return framed(band + line + level + rules + names, height=200)


def sensitivity(scale: alt.Scale) -> dict[str, Any]:
    """Scores of all models under a change of the logits that alters no prediction; the chosen model stands out."""
    lines = (
        alt.Chart(rows())
        .mark_line(point=alt.OverlayMarkDef(size=22, filled=True))
        .encode(
            x=alt.X("change:Q", title="@change", scale=scale),
            y=alt.Y("value:Q", title="@value", scale=extent()),
            detail="model:N",
            color=alt.condition("datum.chosen", alt.value(colour("contrast")), alt.value(colour("muted"))),
            opacity=alt.condition("datum.chosen", alt.value(1), alt.value(0.45)),
            strokeWidth=alt.condition("datum.chosen", alt.value(2.5), alt.value(1.2)),
            tooltip=_tips("model", "text"),
        )
    )
    return framed(lines, height=230, parameters=RANGE)


def costs() -> dict[str, Any]:
    """Seconds on the clock by step and measure, over all models."""
    bars = (
        alt.Chart(rows())
        .mark_bar(color=colour("accent"), height={"band": 0.6})
        .encode(
            x=alt.X("seconds:Q", title=["seconds", "(clock)"]),
            y=alt.Y("what:N", sort=None, title=None, axis=_names(260)),
            tooltip=_tips("what", "text"),
        )
    )
    return framed(bars, height=alt.Step(ROW))


def intervals(*, legend: bool = True) -> dict[str, Any]:
    """Values with their intervals below each other; with a legend those of few samples have a shape of their own."""
    base = alt.Chart(rows()).encode(
        y=alt.Y("label:N", sort=None, title=None, axis=_names(alt.ExprRef(expr="room"))), tooltip=_tips("label", "text")
    )
    bounds = base.mark_rule(strokeWidth=4, opacity=0.45, color=colour("accent")).encode(
        x=alt.X("lower:Q", title="@value", scale=extent()), x2="upper:Q"
    )
    points = base.mark_point(filled=True, size=70, opacity=1, color=colour("accent")).encode(
        x=alt.X("value:Q", title="@value", scale=extent())
    )
    if legend:
        few = alt.Scale(domain=["enough samples", "few samples"], range=["circle", "triangle-up"])
        points = points.encode(shape=alt.Shape("size:N", title=None, scale=few, legend=alt.Legend(columns=1)))
    return framed(bounds + points, height=alt.Step(22), parameters=(*RANGE, ("room", 260)))


def _columns(label_angle):
    # Vega looks at the boxes around slanted names; the names themselves overlap in columns narrower than a line only.
    overlap = alt.ExprRef(expr="bandwidth('x') < 20 ? 'parity' : false") if label_angle else True
    room: dict[str, Any] = {"labelLimit": ROOM_OF_CLASSES, "labelOverlap": overlap}
    return alt.Axis(orient="top", labelAngle=label_angle, ticks=False, domain=False, **room, **WRITTEN)


def _painted(field, test, *, title, scale, **legend):
    # Cells without a value have the colour of the page.
    shown = alt.Legend(gradientLength=alt.ExprRef(expr="min(200, width)"), **legend)
    colours = alt.Color(f"{field}:Q", title=title, scale=scale, legend=shown)
    return alt.condition(test, colours, alt.value(colour("surface")))


def _counts():
    # No more ticks than the largest count, so that each is a whole number; tickMinStep does not keep Vega from halves.
    return alt.Axis(format="d", tickCount=alt.ExprRef(expr="min(most, max(3, floor(width / 130)))"))


def _names(limit):
    return alt.Axis(labelLimit=limit, ticks=False, domain=False, labelPadding=6, **WRITTEN)


def _bounds_of_points(base, x, y, across, along):
    # Thin lines through each point, between the bounds of the two values that it shows.
    faint = base.mark_rule(strokeWidth=1, opacity=0.35, color=colour("muted"))
    (of_x, title_x), (of_y, title_y) = across, along
    return (
        faint.encode(x=alt.X(f"{of_x}_low:Q", title=title_x), x2=f"{of_x}_high:Q", y=y),
        faint.encode(x=x, y=alt.Y(f"{of_y}_low:Q", title=title_y), y2=f"{of_y}_high:Q"),
    )


def _names_of_points(base):
    # Beside each point, on the side that the page chose.
    side = {"align": alt.ExprRef(expr="datum.left ? 'right' : 'left'"), "dx": alt.ExprRef(expr="datum.left ? -8 : 8")}
    return base.mark_text(dy=-7, fontSize=11, color=colour("ink"), limit=ROOM_OF_MODELS, **side).encode(text="name:N")


TITLES = {"x_text": "mean", "y_text": "disparity", "text": "value"}


def _tips(*fields):
    return [alt.Tooltip(f"{field}:N", title=TITLES.get(field, field)) for field in fields]
