"""Intervals, bars, curves and points as layers of Vega-Lite, with names behind the axes."""

from typing import Any

import numpy as np

from gfscore.show.forms import Bars, Curves, Frame, Intervals, Scatter
from gfscore.show.forms.panels import (
    MOST_LABELLED,
    Words,
    categories,
    ends_of,
    outermost,
    runs_of,
    short_names,
    spread_out,
)
from gfscore.show.forms.theme import CATEGORIES, SHAPES
from gfscore.show.forms.vega.encodings import LETTER, ONCE, Drawn, category, on_scale, quantity, themed, tips

STEP = 22
"""Pixels of a row."""


def intervals(form: Intervals, frame: Frame, words: Words) -> Drawn:
    """Intervals with a point at the value, a tick, and a text beside each row."""
    y = {"y": category(form.row)}
    accent: dict[str, Any] = {"value": themed("accent")}
    shape: dict[str, Any] = {"value": "circle"}
    if form.colour:
        kinds = categories(frame, form.colour)
        pairs = [(CATEGORIES[i % len(CATEGORIES)], SHAPES[i % len(SHAPES)]) for i in range(len(kinds))]
        scale = {"domain": kinds, "range": [colour for colour, _ in pairs]}
        accent = {"field": form.colour, "type": "nominal", "title": None, "scale": scale}
        shape = accent | {"scale": {"domain": kinds, "range": [shape for _, shape in pairs]}}
        y["yOffset"] = {"field": form.colour, "sort": kinds}
    elif form.bold:
        is_bold = {"test": f"datum['{form.bold}']"}
        accent = {"condition": is_bold | {"value": themed("contrast")}, "value": themed("accent")}
        shape = {"condition": is_bold | {"value": "diamond"}, "value": "circle"}
    x = quantity(form.value, words, frame)
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
    if frame[form.value.column].isna().any():
        missing = {"type": "text", "align": "left", "color": themed("muted"), "fontSize": 11, "text": "undefined"}
        without = [{"filter": f"!isValid(datum['{form.value.column}'])"}]
        layers.append({"transform": without, "mark": missing, "encoding": {"x": {"value": 4}}})
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
    x, y = quantity(form.value, words, frame), category(form.row)
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


def curves(form: Curves, frame: Frame, words: Words) -> Drawn:
    """Lines with bands, marked points, shaded stretches and names at their ends."""
    stands = {"test": f"datum['{form.bold}']" if form.bold else "false"}
    if form.bold:
        # Lines are drawn in the order of the rows: those that stand out lie over all others.
        frame = frame.sort_values(form.bold, kind="stable", ignore_index=True)
    x, y = quantity(form.x, words, frame), quantity(form.y, words, frame)
    detail = {"detail": {"field": form.line}}
    colour = {"condition": stands | {"value": themed("contrast")}, "value": themed("accent")}
    look = {
        "color": colour, "strokeWidth": {"condition": stands | {"value": 2.6}, "value": 1.4},
        "opacity": {"condition": stands | {"value": 1}, "value": 0.6 if form.bold else 1}, "tooltip": tips(form),
    }  # fmt: skip
    mark = {"type": "line", "point": {"size": 18, "filled": True} if form.points else False, "clip": False}
    layers: list[dict[str, Any]] = []
    if form.shade:
        frame = frame.assign(**_stretches(frame, form))
        band = {"type": "rect", "color": themed("contrast"), "opacity": 0.25, "stroke": themed("contrast")}
        over = {"x": x | {"field": "_from"}, "x2": {"field": "_to"}}
        layers.append({"transform": [{"filter": "isValid(datum._from)"}], "mark": band, "encoding": over})
    few = frame[form.line].nunique() <= 8
    for name in (form.low, form.high):
        if name and frame[name].notna().any():
            kept = f"isValid(datum['{name}'])" + ("" if few or not form.bold else f" && datum['{form.bold}']")
            area = {"x": x, "y": y, "y2": {"field": name}, "color": colour} | detail
            layers.append(
                {"transform": [{"filter": kept}], "mark": {"type": "area", "opacity": 0.13}, "encoding": area}
            )
    layers.append({"mark": mark, "encoding": {"x": x, "y": y} | detail | look})
    if form.dot:
        point = {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": themed("contrast")}
        layers.append({"transform": [{"filter": f"datum['{form.dot}']"}], "mark": point, "encoding": {"x": x, "y": y}})
    if form.rule is not None:
        rule = {"type": "rule", "strokeDash": [5, 4], "color": themed("muted")}
        layers.append(ONCE | {"mark": rule, "encoding": {"x": {"datum": form.rule}}})
    size: dict[str, Any] = {"height": 260 if form.panel is None else 150}
    if form.names and form.panel is None:
        ends = ends_of(frame, form)
        if len(ends) > MOST_LABELLED:
            ends = ends[ends[form.bold].astype(bool)] if form.bold else ends.head(0)
        drawn = () if form.y.log else (form.low, form.high)
        frame = _named(frame, ends, form, (layers, size), scale=y["scale"], bounds=drawn)
    if form.apart:
        size["resolve"] = {"scale": {"x": "independent", "y": "independent"}}
    return frame, {"layer": layers}, size


def _stretches(frame, form):
    starts, stops = np.full(len(frame), np.nan), np.full(len(frame), np.nan)
    keys = [form.line, *([form.panel] if form.panel else [])]
    for places in frame.groupby(keys, sort=False).indices.values():
        for first, last in runs_of(frame[form.shade].to_numpy(dtype=bool)[places]):
            starts[places[first]], stops[places[first]] = frame[form.x.column].to_numpy()[places[[first, last]]]
    return {"_from": starts, "_to": stops}


def scatter(form: Scatter, frame: Frame, words: Words) -> Drawn:
    """Points with their intervals, a diagonal, and names behind the axes."""
    x, y = quantity(form.x, words, frame), quantity(form.y, words, frame)
    layers: list[dict[str, Any]] = []
    if form.diagonal:
        end = 1.05 * float(np.nanmax(frame[[form.x.column, form.y.column]].to_numpy(dtype=float)))
        x["scale"], y["scale"] = ({"domain": [0, end], "nice": False} for _ in range(2))
        line = {"type": "rule", "strokeDash": [5, 4], "color": themed("muted")}
        ends = {"x": {"datum": 0}, "x2": {"datum": end}, "y": {"datum": 0}, "y2": {"datum": end}}
        layers.append(ONCE | {"mark": line, "encoding": ends})
        corner: dict[str, Any] = {"type": "text", "align": "left", "baseline": "top", "fontWeight": "bold"}
        corner |= {"color": themed("contrast"), "text": form.corner}
        layers.append(ONCE | {"mark": corner, "encoding": {"x": {"value": 6}, "y": {"value": 6}}})
    faint = {"type": "rule", "strokeWidth": 1.2, "opacity": 0.35, "color": themed("accent"), "clip": True}
    if form.x_low:
        layers.append(
            {"mark": faint, "encoding": {"x": x | {"field": form.x_low}, "x2": {"field": form.x_high}, "y": y}}
        )
    if form.y_low:
        layers.append(
            {"mark": faint, "encoding": {"x": x, "y": y | {"field": form.y_low}, "y2": {"field": form.y_high}}}
        )
    looks = {"accent": ("accent", "circle"), "open": ("muted", "diamond"), "contrast": ("contrast", "triangle-up")}
    points: dict[str, Any] = {"color": {"value": themed("accent")}}
    if form.sides:
        domain = [state for state, _ in form.sides]
        colours, shapes = ([looks[look][which] for _, look in form.sides] for which in (0, 1))
        state = {"field": form.state, "title": None, "legend": {"columns": 1}}
        points = {
            "color": state | {"scale": {"domain": domain, "range": [themed(colour) for colour in colours]}},
            "shape": state | {"scale": {"domain": domain, "range": shapes}},
        }
    mark = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    layers.append({"mark": mark, "encoding": {"x": x, "y": y, "tooltip": tips(form)} | points})
    size: dict[str, Any] = {"height": 320}
    if form.panel is None:
        named = outermost(frame, form)
        bounds = (form.y_low, form.y_high)
        frame = _named(frame, named, form, (layers, size), scale=y["scale"], bounds=bounds)
    return frame, {"layer": layers}, size


def _named(frame, points, form, unit, *, scale, bounds):
    # Names stand in a column behind the axes, in the order of their points; `unit` are layers and their size.
    column, (layers, size) = form.name if isinstance(form, Scatter) else form.line, unit
    if points.empty:
        return frame
    values = points[form.y.column].to_numpy(dtype=float)
    drawn = [form.y.column, *(name for name in bounds if name)]
    every = frame[drawn].to_numpy(dtype=float)
    low, high = float(np.nanmin(every)), float(np.nanmax(every))
    low, high = (min(0.0, low) if form.y.zero else low), form.y.end or high
    low, high = scale.get("domain", (low, high))
    reach, height = (high - low) or 1.0, size["height"]
    scale |= {"domain": [low, low + reach], "nice": False}
    start, end = on_scale(low, scale), on_scale(low + reach, scale)
    values, low, reach = on_scale(values, scale), start, end - start
    up = 1 - (values - low) / reach if not form.y.reverse else (values - low) / reach
    # Of equal places the first name is the lowest, as on paper.
    places = spread_out((up * height)[::-1], 14, low=5, high=height - 5)[::-1]
    frame = frame.assign(_name=None, _at=np.nan)
    frame["_name"] = frame["_name"].astype(object)
    frame.loc[points.index, "_name"] = list(short_names(points[column].astype(str).tolist(), 24).values())
    frame.loc[points.index, "_at"] = places
    shown = [{"filter": "isValid(datum._name)"}]
    at = {"field": "_at", "type": "quantitative", "scale": None}
    leader = {"type": "rule", "strokeWidth": 0.6, "color": themed("muted")}
    x, y = ({"field": axis.column, "type": "quantitative"} for axis in (form.x, form.y))
    layers.append({
        "transform": shown, "mark": leader,
        "encoding": {"x": x, "y": y, "x2": {"value": {"expr": "width + 8"}}, "y2": {"value": {"expr": "datum._at"}}},
    })  # fmt: skip
    stands = getattr(form, "bold", None)
    bold = {"condition": {"test": f"datum['{stands}']", "value": themed("contrast")}, "value": themed("ink")}
    text = {"type": "text", "align": "left", "fontSize": 11}
    layers.append({
        "transform": shown, "mark": text,
        "encoding": {"x": {"value": {"expr": "width + 11"}}, "y": at, "text": {"field": "_name"}}
        | {"color": bold if stands else {"value": themed("ink")}},
    })  # fmt: skip
    size["padding"] = 20 + LETTER * max(map(len, frame["_name"].dropna()))
    return frame
