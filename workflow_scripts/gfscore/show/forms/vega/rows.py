"""Intervals and bars, one line of text for each row, as layers of Vega-Lite."""

from __future__ import annotations

from typing import Any

from gfscore.show.forms import Bars, Frame, Intervals
from gfscore.show.forms.panels import Words, categories
from gfscore.show.forms.theme import CATEGORIES, SHAPES
from gfscore.show.forms.vega.encodings import LETTER, ONCE, Drawn, category, quantity, themed, tips

STEP = 22
"""Pixels of a row."""


def intervals(form: Intervals, frame: Frame, words: Words) -> Drawn:
    """Intervals with a point at the value, a tick, and a text beside each row."""
    y = {"y": category(form.row)}
    accent: dict[str, Any] = {"value": themed("accent")}
    shape: dict[str, Any] = {"value": "circle"}
    if form.colour:
        kinds = categories(frame, form.colour)
        pairs = [(CATEGORIES[i % len(CATEGORIES)], SHAPES[i % len(SHAPES)][1]) for i in range(len(kinds))]
        scale = {"domain": kinds, "range": [colour for colour, _ in pairs]}
        accent = {"field": form.colour, "type": "nominal", "title": None, "scale": scale}
        shape = accent | {"scale": {"domain": kinds, "range": [shape for _, shape in pairs]}}
        y["yOffset"] = {"field": form.colour, "sort": kinds}
    elif form.bold:
        is_bold = {"test": f"datum['{form.bold}']"}
        accent = {"condition": is_bold | {"value": themed("contrast")}, "value": themed("accent")}
        shape = {"condition": is_bold | {"value": "diamond"}, "value": "circle"}
    x = quantity(form.value, words)
    bounds = {"x": x | {"field": form.low}, "x2": {"field": form.high}, "color": accent, "tooltip": tips(form)}
    solid = {"condition": {"test": f"datum['{form.hollow}']", "value": 0}, "value": 1} if form.hollow else {"value": 1}
    fill = {"fill": accent, "fillOpacity": solid, "shape": shape}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rule", "strokeWidth": 2 if form.colour else 4, "opacity": 0.45}, "encoding": bounds},
        {
            "mark": {"type": "point", "size": 55, "opacity": 1},
            "encoding": {"x": x, "color": accent, "tooltip": tips(form)} | fill,
        },
    ]
    if form.tick:
        tick = {"type": "tick", "thickness": 2.5, "size": 15, "color": themed("contrast")}
        layers.append({"mark": tick, "encoding": {"x": x | {"field": form.tick}}})
    padding = 6.0
    if form.aside:
        padding = 14 + LETTER * max(map(len, frame[form.aside].astype(str)))
        text = {"type": "text", "align": "left", "color": themed("ink"), "fontSize": 11}
        layers.append(
            {"mark": text, "encoding": {"x": {"value": {"expr": "width + 8"}}, "text": {"field": form.aside}}}
        )
        frame = frame.assign(**{f"_{form.aside}": frame[form.aside]})
    for layer in layers:
        layer["encoding"] = y | layer["encoding"]
    if form.rule is not None:
        rule = {"type": "rule", "color": themed("muted")}
        layers.append(ONCE | {"mark": rule, "encoding": {"x": {"datum": form.rule}}})
    height: Any = {"step": STEP}
    if form.colour:
        height = max(STEP, 9 * frame[form.colour].nunique()) * frame[form.row].nunique()
    size: dict[str, Any] = {"height": height, "padding": padding}
    if form.apart:
        size["resolve"] = {"scale": {"x": "independent"}}
    return frame, {"layer": layers}, size


def bars(form: Bars, frame: Frame, words: Words) -> Drawn:
    """Bars at the mean of a row, a point for each of its values."""
    keys = [form.row, *([form.panel] if form.panel else [])]
    mean = frame.groupby(keys, sort=False)[form.value.column].transform("mean")
    frame = frame.assign(_mean=mean.where(~frame.duplicated(keys)))
    x, y = quantity(form.value, words), category(form.row)
    bar = {"type": "bar", "color": themed("accent"), "opacity": 0.45, "height": {"band": 0.6}}
    layers: list[dict[str, Any]] = [{"mark": bar, "encoding": {"x": x | {"field": "_mean"}, "y": y}}]
    if len(frame) > frame["_mean"].notna().sum():
        sure = {"test": f"datum['{form.sure}']"} if form.sure else {"test": "false"}
        colour = {"condition": sure | {"value": themed("contrast")}, "value": themed("ink")}
        filled = {"condition": sure | {"value": 1}, "value": 0}
        look = {"color": colour, "fill": colour, "fillOpacity": filled, "tooltip": tips(form)}
        layers.append({"mark": {"type": "point", "size": 28, "opacity": 1}, "encoding": {"x": x, "y": y} | look})
    if form.rule:
        rule = {"type": "rule", "strokeDash": [5, 4], "color": themed("muted")}
        layers.append(ONCE | {"mark": rule, "encoding": {"x": {"datum": float(frame[form.rule].iloc[0])}}})
    return frame, {"layer": layers}, {"height": {"step": STEP}}
