"""Charts as Vega-Lite specifications, plain dictionaries with their data, for pages.

Colours are parameters (theme.PARAMETERS) that a page sets to its own. A chart with panels has no width of its own: the
page sets `spec.width` and `columns`, by usermeta, to what fits.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.numbers import end_of_range, number
from gfscore.show.forms import Bars, Curves, Form, Heatmap, Intervals, Matrix, Pictures, Radar, Scatter
from gfscore.show.forms.layout import spread_out
from gfscore.show.forms.panels import (
    MOST_LABELLED,
    MOST_NUMBERED,
    MOST_NUMBERED_ROWS,
    Words,
    broken,
    categories,
    cell_text,
    colour_limits,
    ends_of,
    outermost,
    panels_of,
    runs_of,
    short_names,
)
from gfscore.show.forms.theme import CATEGORIES, DIVERGING, ON_BRIGHT, ON_DARK, PARAMETERS, SEQUENTIAL, SHAPES

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
CONFIG: dict[str, Any] = {
    "font": "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif",
    "background": "transparent",
    "view": {"stroke": None},
    "scale": {"invalid": {"color": {"value": "transparent"}}},
    "axis": {
        "labelColor": {"expr": "ink"}, "gridColor": {"expr": "line"}, "domainColor": {"expr": "line"},
        "tickColor": {"expr": "line"}, "titleColor": {"expr": "muted"}, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 190, "labelOverlap": True, "titlePadding": 8,
    },
    "axisXQuantitative": {"tickCount": {"expr": "max(3, floor(width / 130))"}},
    "legend": {
        "labelColor": {"expr": "ink"}, "titleColor": {"expr": "muted"}, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 220, "titleLimit": 640, "orient": "top",
    },
    "header": {"labelColor": {"expr": "ink"}, "labelFontSize": 12, "labelFontWeight": "bold"},
}  # fmt: skip
PANEL, STEP, CELL, LETTER = 200, 22, 26, 6.5
"""Pixels: width of a small panel, height of a row, of a cell, width of a letter."""
MOST_SLANTED = 40
DIGITS = 6
ONCE: dict[str, Any] = {"data": {"values": [{}]}}
"""Data of a mark that stands once in each panel, whatever the rows."""
WRITTEN = {"labelExpr": "names[datum.value] || datum.label", "ticks": False, "domain": False}


def specification(form: Form, frame: pd.DataFrame, words: Words) -> dict[str, Any]:
    """Vega-Lite specification of a tidy frame in a form, with its data and its theme's parameters.

    One panel fills the page's width; several are a facet, or a concatenation where each has a legend of its own.
    """
    frame = frame.reset_index(drop=True)
    panels = [name for name, _ in panels_of(frame, form.panel)]
    single = len(panels) == 1
    if single:
        form = replace(form, panel=None)
    if form.panel and getattr(form, "colour", None):
        return _side_by_side(form, frame, words, panels)
    frame, inner, more = DRAWN[type(form)](form, frame, words)
    padding, resolve = more.pop("padding", 6), more.pop("resolve", None)
    whole = _whole(form, frame, padding)
    if single:
        title = {"title": {"text": panels[0], "anchor": "start", "fontSize": 12, "color": _colour("ink")}}
        fit = {"autosize": {"type": "fit-x", "contains": "padding"}, "width": "container"}
        return whole | (title if panels[0] else {}) | fit | inner | more
    lines = {name: broken(name, 34).split("\n") for name in panels}
    whole["params"].append({"name": "panels", "value": lines})
    header = {"labelExpr": "panels[datum.value]", "labelLimit": 2 * PANEL}
    facet = {"field": form.panel, "type": "nominal", "sort": panels, "title": None, "header": header}
    return whole | {
        "facet": facet,
        "columns": min(3, len(panels)),
        "spacing": {"column": max(20, padding + 10), "row": 24},
        "spec": {"width": PANEL} | inner | more,
        "usermeta": {"panels": len(panels)},
    } | ({"resolve": resolve} if resolve else {})  # fmt: skip


def _whole(form, frame, padding):
    names: dict[str, str] = {}
    for role in ("row", "column", "name", "line", "spoke"):
        if column := getattr(form, role, None):
            names |= short_names(categories(frame, column), 18 if role in ("column", "spoke") else 28)
    return {
        "$schema": SCHEMA,
        "data": {"name": "rows", "values": _records(frame, form)},
        "params": [{"name": name, "value": value} for name, value in (*PARAMETERS.items(), ("names", names))],
        "config": CONFIG,
        "padding": {"left": 2, "right": padding, "top": 4, "bottom": 2},
    }


def _side_by_side(form, frame, words, panels):
    parts = []
    for name in panels:
        own = frame[frame[form.panel].astype(str) == name]
        _, inner, more = DRAWN[type(form)](replace(form, panel=None), own, words)
        more.pop("padding", None)
        chosen = [{"filter": {"field": form.panel, "equal": name}}]
        title = {"text": name, "anchor": "start", "fontSize": 12, "color": _colour("ink")}
        parts.append({"transform": chosen, "title": title, "width": PANEL} | inner | more)
    apart = {"scale": dict.fromkeys(("color", "shape", "fill"), "independent")}
    whole = _whole(form, frame, 6) | {"concat": parts, "columns": min(3, len(panels)), "resolve": apart}
    return whole | {"usermeta": {"panels": len(panels)}}


def _records(frame, form):
    helpers = [column for column in frame if str(column).startswith("_")]
    columns = [column for column in form.columns if column in frame] + helpers
    return [
        dict(zip(columns, map(_plain, row), strict=True)) for row in frame[columns].itertuples(index=False, name=None)
    ]


def _plain(value):
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return str(value)


def _colour(name):
    return {"expr": name}


def _name(field, **settings):
    axis = {**WRITTEN, "labelPadding": 6} | settings.pop("axis", {})
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis} | settings


def _number(axis, words, **settings):
    scale: dict[str, Any] = {"type": "log", "nice": False} if axis.log else {"zero": axis.zero, "nice": True}
    scale |= {"domainMax": axis.end, "domainMin": 0} if axis.end is not None else {}
    scale |= {"reverse": True} if axis.reverse else {}
    drawn = {"format": "d", "tickMinStep": 1} if axis.whole else {}
    return {
        "field": axis.column, "type": "quantitative", "title": words.of(axis.title), "scale": scale, "axis": drawn
    } | settings  # fmt: skip


def _tips(form):
    return [{"field": column} for column in form.columns if column not in (getattr(form, "picture", None),)]


# ---- cells ----


def _heatmap(form, frame, words):
    values = frame[form.value.column].astype(float)
    low, high = colour_limits(values, form, words.value_range)
    rows, columns = categories(frame, form.row), categories(frame, form.column)
    differences = form.scale == "differences"
    numbered = len(columns) <= (MOST_NUMBERED if form.panel is None else 6) and len(rows) <= MOST_NUMBERED_ROWS
    narrow = len(columns) > 12 or max(map(len, columns)) > 4
    bright = "abs(datum.V) < R" if differences else "datum.V > R"
    middle = low + 0.55 * (high - low) if not differences else 0.6 * high
    bright = bright.replace("V", form.value.column).replace("R", f"{middle:.4g}")
    above = {"orient": "top", "labelAngle": -45 if narrow else 0, "labelLimit": 120}
    above["labelOverlap"] = not narrow or len(columns) > MOST_SLANTED
    x = _name(form.column, title=form.column_title, axis=above)
    y = _name(form.row, title=form.row_title)
    scheme = {"scheme": DIVERGING if differences else SEQUENTIAL, "domain": [low, high]}
    paint = {"field": form.value.column, "type": "quantitative", "title": words.of(form.value.title), "scale": scheme,
             "legend": {"gradientLength": 180, "tickCount": 3}}  # fmt: skip
    filled = {"condition": {"test": f"isValid(datum['{form.value.column}'])", **paint}, "value": _colour("surface")}
    stroke = {"stroke": _colour("surface"), "strokeWidth": 1 if len(columns) <= 100 else 0}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rect", "invalid": "show", **stroke}, "encoding": {"color": filled, "tooltip": _tips(form)}}
    ]
    frame = frame.copy()
    empty = {"test": f"!isValid(datum['{form.value.column}'])", "value": _colour("ink")}
    written = {"condition": [empty, {"test": bright, "value": ON_BRIGHT}], "value": ON_DARK}
    if numbered:
        frame["_text"] = [cell_text(value, form) for value in values]
        if getattr(form, "diagonal", None):
            own = frame[form.diagonal].astype(float)
            frame["_text"] = [text or cell_text(value, form) for text, value in zip(frame["_text"], own, strict=True)]
        layers.append(
            {
                "mark": {"type": "text", "fontSize": 10, "invalid": None},
                "encoding": {"text": {"field": "_text"}, "color": written},
            }
        )
    if form.box:
        framed = {"type": "rect", "fill": None, "strokeWidth": 2, "stroke": _colour("contrast")}
        for state, dash in (("sure", [1, 0]), ("open", [2, 3])):
            chosen = [{"filter": f"datum['{form.box}'] === '{state}'"}]
            layers.append({"transform": chosen, "mark": framed | {"strokeDash": dash}})
    if form.dot:
        dot = {"type": "point", "filled": True, "size": 14, "opacity": 1, "yOffset": -8}
        few = [{"filter": f"datum['{form.dot}'] && isValid(datum['{form.value.column}'])"}]
        layers.append({"transform": few, "mark": dot, "encoding": {"color": written}})
    padding = 6
    if form.aside:
        first = ~frame.duplicated([form.row, *([form.panel] if form.panel else [])])
        if len(rows) > MOST_NUMBERED_ROWS:
            # Rows are lower than letters.
            first &= frame[form.row].isin(rows[::2])
        frame["_aside"] = [
            number(value) if shown else None for value, shown in zip(frame[form.aside], first, strict=True)
        ]
        beside = {"type": "text", "align": "left", "fontWeight": "bold", "color": _colour("ink")}
        layers.append({
            "transform": [{"filter": "isValid(datum._aside)"}], "mark": beside,
            "encoding": {"x": {"value": {"expr": "width + 6"}}, "text": {"field": "_aside"}},
        })  # fmt: skip
        padding = 52
    size = {"height": {"step": CELL if len(rows) <= MOST_NUMBERED_ROWS else 8}, "padding": padding}
    for layer in layers:
        layer.setdefault("encoding", {}).setdefault("x", x)
    return frame, {"encoding": {"y": y}, "layer": layers}, size


def _pictures(form, frame, words):
    columns = categories(frame, form.column)
    side = min(40, 600 // max(1, len(columns)))
    encoding = {
        "x": _name(form.column, title=form.column_title, axis={"labelAngle": 0}),
        "y": _name(form.row),
        "url": {"field": form.picture},
    }  # fmt: skip
    mark = {"type": "image", "width": side - 3, "height": side - 3, "aspect": True}
    size = {"height": {"step": side}, "width": side * len(columns)}
    return frame, {"mark": mark, "encoding": encoding}, size | ({} if form.panel else {"autosize": "pad"})


# ---- rows ----


def _intervals(form, frame, words):
    y = {"y": _name(form.row)}
    accent: dict[str, Any] = {"value": _colour("accent")}
    shape: dict[str, Any] = {"value": "circle"}
    if form.colour:
        kinds = categories(frame, form.colour)
        pairs = [(CATEGORIES[i % len(CATEGORIES)], SHAPES[i % len(SHAPES)][1]) for i in range(len(kinds))]
        scale = {"domain": kinds, "range": [colour for colour, _ in pairs]}
        accent = {"field": form.colour, "type": "nominal", "title": None, "scale": scale}
        shape = accent | {"scale": {"domain": kinds, "range": [shape for _, shape in pairs]}}
        y["yOffset"] = {"field": form.colour, "sort": kinds}
    elif form.bold:
        stands = {"test": f"datum['{form.bold}']"}
        accent = {"condition": stands | {"value": _colour("contrast")}, "value": _colour("accent")}
        shape = {"condition": stands | {"value": "diamond"}, "value": "circle"}
    x = _number(form.value, words)
    bounds = {"x": x | {"field": form.low}, "x2": {"field": form.high}, "color": accent, "tooltip": _tips(form)}
    solid = {"condition": {"test": f"datum['{form.hollow}']", "value": 0}, "value": 1} if form.hollow else {"value": 1}
    fill = {"fill": accent, "fillOpacity": solid, "shape": shape}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rule", "strokeWidth": 2 if form.colour else 4, "opacity": 0.45}, "encoding": bounds},
        {
            "mark": {"type": "point", "size": 55, "opacity": 1},
            "encoding": {"x": x, "color": accent, "tooltip": _tips(form)} | fill,
        },
    ]
    if form.tick:
        tick = {"type": "tick", "thickness": 2.5, "size": 15, "color": _colour("contrast")}
        layers.append({"mark": tick, "encoding": {"x": x | {"field": form.tick}}})
    padding = 6.0
    if form.aside:
        padding = 14 + LETTER * max(map(len, frame[form.aside].astype(str)))
        text = {"type": "text", "align": "left", "color": _colour("ink"), "fontSize": 11}
        layers.append(
            {"mark": text, "encoding": {"x": {"value": {"expr": "width + 8"}}, "text": {"field": form.aside}}}
        )
        frame = frame.assign(**{f"_{form.aside}": frame[form.aside]})
    for layer in layers:
        layer["encoding"] = y | layer["encoding"]
    if form.rule is not None:
        rule = {"type": "rule", "color": _colour("muted")}
        layers.append(ONCE | {"mark": rule, "encoding": {"x": {"datum": form.rule}}})
    height: Any = {"step": STEP}
    if form.colour:
        height = max(STEP, 9 * frame[form.colour].nunique()) * frame[form.row].nunique()
    size: dict[str, Any] = {"height": height, "padding": padding}
    if form.apart:
        size["resolve"] = {"scale": {"x": "independent"}}
    return frame, {"layer": layers}, size


def _bars(form, frame, words):
    keys = [form.row, *([form.panel] if form.panel else [])]
    mean = frame.groupby(keys, sort=False)[form.value.column].transform("mean")
    frame = frame.assign(_mean=mean.where(~frame.duplicated(keys)))
    x, y = _number(form.value, words), _name(form.row)
    bar = {"type": "bar", "color": _colour("accent"), "opacity": 0.45, "height": {"band": 0.6}}
    layers: list[dict[str, Any]] = [{"mark": bar, "encoding": {"x": x | {"field": "_mean"}, "y": y}}]
    if len(frame) > frame["_mean"].notna().sum():
        sure = {"test": f"datum['{form.sure}']"} if form.sure else {"test": "false"}
        colour = {"condition": sure | {"value": _colour("contrast")}, "value": _colour("ink")}
        filled = {"condition": sure | {"value": 1}, "value": 0}
        look = {"color": colour, "fill": colour, "fillOpacity": filled, "tooltip": _tips(form)}
        layers.append({"mark": {"type": "point", "size": 28, "opacity": 1}, "encoding": {"x": x, "y": y} | look})
    if form.rule:
        rule = {"type": "rule", "strokeDash": [5, 4], "color": _colour("muted")}
        layers.append(ONCE | {"mark": rule, "encoding": {"x": {"datum": float(frame[form.rule].iloc[0])}}})
    return frame, {"layer": layers}, {"height": {"step": STEP}}


# ---- curves and points ----


def _curves(form, frame, words):
    stands = {"test": f"datum['{form.bold}']" if form.bold else "false"}
    if form.bold:
        # Lines are drawn in the order of the rows: those that stand out lie over all others.
        frame = frame.sort_values(form.bold, kind="stable", ignore_index=True)
    x, y = _number(form.x, words), _number(form.y, words)
    detail = {"detail": {"field": form.line}}
    colour = {"condition": stands | {"value": _colour("contrast")}, "value": _colour("accent")}
    look = {
        "color": colour, "strokeWidth": {"condition": stands | {"value": 2.6}, "value": 1.4},
        "opacity": {"condition": stands | {"value": 1}, "value": 0.6 if form.bold else 1}, "tooltip": _tips(form),
    }  # fmt: skip
    mark = {"type": "line", "point": {"size": 18, "filled": True} if form.points else False, "clip": False}
    layers: list[dict[str, Any]] = []
    if form.shade:
        frame = frame.assign(**_stretches(frame, form))
        band = {"type": "rect", "color": _colour("contrast"), "opacity": 0.25, "stroke": _colour("contrast")}
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
        point = {"type": "point", "filled": True, "size": 60, "opacity": 1, "color": _colour("contrast")}
        layers.append({"transform": [{"filter": f"datum['{form.dot}']"}], "mark": point, "encoding": {"x": x, "y": y}})
    if form.rule is not None:
        rule = {"type": "rule", "strokeDash": [5, 4], "color": _colour("muted")}
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
    if form.y.log:
        values, low, reach = np.log(values), np.log(low), np.log((low + reach) / low)
    up = 1 - (values - low) / reach if not form.y.reverse else (values - low) / reach
    # Of equal places the first name is the lowest, as on paper.
    places = spread_out((up * height)[::-1], 14, low=5, high=height - 5)[::-1]
    frame = frame.assign(_name=None, _at=np.nan)
    frame["_name"] = frame["_name"].astype(object)
    frame.loc[points.index, "_name"] = list(short_names(points[column].astype(str).tolist(), 24).values())
    frame.loc[points.index, "_at"] = places
    shown = [{"filter": "isValid(datum._name)"}]
    at = {"field": "_at", "type": "quantitative", "scale": None}
    leader = {"type": "rule", "strokeWidth": 0.6, "color": _colour("muted")}
    x, y = ({"field": axis.column, "type": "quantitative"} for axis in (form.x, form.y))
    layers.append({
        "transform": shown, "mark": leader,
        "encoding": {"x": x, "y": y, "x2": {"value": {"expr": "width + 8"}}, "y2": {"value": {"expr": "datum._at"}}},
    })  # fmt: skip
    stands = getattr(form, "bold", None)
    bold = {"condition": {"test": f"datum['{stands}']", "value": _colour("contrast")}, "value": _colour("ink")}
    text = {"type": "text", "align": "left", "fontSize": 11}
    layers.append({
        "transform": shown, "mark": text,
        "encoding": {"x": {"value": {"expr": "width + 11"}}, "y": at, "text": {"field": "_name"}}
        | {"color": bold if stands else {"value": _colour("ink")}},
    })  # fmt: skip
    size["padding"] = 20 + LETTER * max(map(len, frame["_name"].dropna()))
    return frame


def _scatter(form, frame, words):
    x, y = _number(form.x, words), _number(form.y, words)
    layers: list[dict[str, Any]] = []
    if form.diagonal:
        end = 1.05 * float(np.nanmax(frame[[form.x.column, form.y.column]].to_numpy(dtype=float)))
        x["scale"], y["scale"] = ({"domain": [0, end], "nice": False} for _ in range(2))
        line = {"type": "rule", "strokeDash": [5, 4], "color": _colour("muted")}
        ends = {"x": {"datum": 0}, "x2": {"datum": end}, "y": {"datum": 0}, "y2": {"datum": end}}
        layers.append(ONCE | {"mark": line, "encoding": ends})
        corner = {
            "type": "text",
            "align": "left",
            "baseline": "top",
            "fontWeight": "bold",
            "color": _colour("contrast"),
        }
        layers.append(
            ONCE | {"mark": corner | {"text": form.corner}, "encoding": {"x": {"value": 6}, "y": {"value": 6}}}
        )
    faint = {"type": "rule", "strokeWidth": 1.2, "opacity": 0.35, "color": _colour("accent"), "clip": True}
    if form.x_low:
        layers.append(
            {"mark": faint, "encoding": {"x": x | {"field": form.x_low}, "x2": {"field": form.x_high}, "y": y}}
        )
    if form.y_low:
        layers.append(
            {"mark": faint, "encoding": {"x": x, "y": y | {"field": form.y_low}, "y2": {"field": form.y_high}}}
        )
    looks = {"accent": ("accent", "circle"), "open": ("muted", "diamond"), "contrast": ("contrast", "triangle-up")}
    points: dict[str, Any] = {"color": {"value": _colour("accent")}}
    if form.sides:
        domain = [state for state, _ in form.sides]
        colours, shapes = ([looks[look][which] for _, look in form.sides] for which in (0, 1))
        state = {"field": form.state, "title": None, "legend": {"columns": 1}}
        points = {
            "color": state | {"scale": {"domain": domain, "range": [_colour(colour) for colour in colours]}},
            "shape": state | {"scale": {"domain": domain, "range": shapes}},
        }
    mark = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    layers.append({"mark": mark, "encoding": {"x": x, "y": y, "tooltip": _tips(form)} | points})
    size: dict[str, Any] = {"height": 320}
    if form.panel is None:
        named = outermost(frame, form)
        bounds = (form.y_low, form.y_high)
        frame = _named(frame, named, form, (layers, size), scale=y["scale"], bounds=bounds)
    return frame, {"layer": layers}, size


def _radar(form, frame, words):
    import pandas as pd

    spokes = categories(frame, form.spoke)
    top = float(np.nanmax(frame[[form.value.column, form.high]].to_numpy(dtype=float))) or 1.0
    angle = 2 * np.pi * np.arange(len(spokes)) / len(spokes)
    around = dict(zip(spokes, angle, strict=True))
    parts = []
    for _, own in panels_of(frame, form.panel):
        # Each line closes: its first point comes once more.
        parts.append(pd.concat([own, own.head(1)]).assign(_order=range(len(own) + 1)))
    frame = pd.concat(parts, ignore_index=True)
    at = frame[form.spoke].astype(str).map(around).to_numpy(dtype=float)
    for name in (form.value.column, form.low, form.high, *([form.reference] if form.reference else [])):
        length = frame[name].to_numpy(dtype=float) / top
        frame[f"_x_{name}"], frame[f"_y_{name}"] = length * np.sin(at), length * np.cos(at)
    reach = {"domain": [-1.45, 1.45], "nice": False}

    def place(name: str) -> dict[str, Any]:
        return {
            side: {"field": f"_{side}_{name}", "type": "quantitative", "axis": None, "scale": reach} for side in "xy"
        } | {"order": {"field": "_order"}}

    turn = list(enumerate(np.linspace(0, 2 * np.pi, 61)))
    rings = [{"ring": r, "o": i, "_x": r * np.sin(a), "_y": r * np.cos(a)} for r in (0.5, 1) for i, a in turn]
    labels = [
        {"name": name, "_x": 1.22 * np.sin(a), "_y": 1.15 * np.cos(a)}
        for name, a in zip(short_names(spokes, 11).values(), angle, strict=True)
    ]
    fixed = {side: {"field": f"_{side}", "type": "quantitative", "axis": None, "scale": reach} for side in "xy"}
    layers = [
        {"data": {"values": rings}, "mark": {"type": "line", "color": _colour("line"), "strokeWidth": 1},
         "encoding": fixed | {"detail": {"field": "ring"}, "order": {"field": "o"}}},
        {"data": {"values": labels}, "mark": {"type": "text", "fontSize": 10, "color": _colour("ink")},
         "encoding": fixed | {"text": {"field": "name"}}},
        *({"mark": {"type": "line", "color": _colour("accent"), "strokeWidth": 0.8, "opacity": 0.5},
           "encoding": place(name)} for name in (form.low, form.high)),
        *({"mark": {"type": "line", "color": _colour("muted"), "strokeDash": [4, 3]}, "encoding": place(name)}
          for name in (form.reference,) if name),
        {"mark": {"type": "line", "color": _colour("accent"), "strokeWidth": 2}, "encoding": place(form.value.column)},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "color": _colour("accent"), "size": 24},
         "encoding": place(form.value.column) | {"tooltip": _tips(form)}},
    ]  # fmt: skip
    note = {"text": f"outer circle: {end_of_range(top)}", "fontSize": 10, "color": _colour("muted"), "orient": "bottom"}
    return frame, {"layer": layers, **({} if form.panel else {"title": note})}, {"height": PANEL, "width": PANEL}


DRAWN = {
    Heatmap: _heatmap,
    Matrix: _heatmap,
    Pictures: _pictures,
    Intervals: _intervals,
    Bars: _bars,
    Curves: _curves,
    Scatter: _scatter,
    Radar: _radar,
}
"""Function from (form, frame, words) to the frame with what the marks need, the unit, and its size."""
