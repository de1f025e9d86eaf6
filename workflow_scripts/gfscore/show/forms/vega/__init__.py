"""Charts as Vega-Lite specifications, plain dictionaries with their data, for pages.

Colours are parameters (theme.PARAMETERS) that a page sets to its own. A chart with panels has no width of its own: the
page sets `spec.width` and `columns`, by usermeta, to what fits.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from gfscore.core.names import harmless
from gfscore.show.forms import Bars, Curves, Form, Frame, Heatmap, Intervals, Matrix, Pictures, Radar, Scatter
from gfscore.show.forms.panels import Words, broken, categories, panels_of, short_names
from gfscore.show.forms.theme import PARAMETERS
from gfscore.show.forms.vega.cells import heatmap, pictures
from gfscore.show.forms.vega.encodings import PANEL, Drawn, themed
from gfscore.show.forms.vega.marks import bars, curves, intervals, scatter
from gfscore.show.forms.vega.radars import radar

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
BESIDE = re.compile(r'\{"expr": "width \+ (\d+)"\}')
"""Place right of a panel."""
AXIS = 90
"""Pixels that an axis with its numbers and title takes beside a panel."""
DIGITS = 6
"""Significant digits of the numbers in a specification."""


def specification(form: Form, frame: Frame, words: Words, *, width: int | None = None) -> dict[str, Any]:
    """Vega-Lite specification of a tidy frame in a form, with its data and its theme's parameters.

    The texts of its data have no control characters, which neither SVG nor the library that draws it takes.
    One panel fills the page's width; several are a facet, or a concatenation where each has a legend of its own, or
    names beside it: in files, `width` pixels wide, whose reader has no tooltips.
    """
    texts = frame.select_dtypes(exclude=["number", "bool"])
    frame = frame.assign(**texts.map(lambda value: harmless(value) if isinstance(value, str) else value))
    frame = frame.reset_index(drop=True)
    panels = [name for name, _ in panels_of(frame, form.panel)]
    single = len(panels) == 1
    if single:
        form = replace(form, panel=None)
    named = isinstance(form, Scatter) or (isinstance(form, Curves) and form.names)
    if form.panel and (getattr(form, "colour", None) or (width and named)):
        return _side_by_side(form, frame, words, panels, width if named else None)
    frame, inner, more = DRAWN[type(form)](form, frame, words)
    padding, resolve = more.pop("padding", 6), more.pop("resolve", None)
    whole = _whole(form, frame, padding)
    if single:
        title = {"title": {"text": panels[0], "anchor": "start", "fontSize": 12, "color": themed("ink")}}
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
    given: dict[str, Any] = {**PARAMETERS, "names": names}
    live: dict[str, Any] = {}
    if getattr(form, "live", False):
        live = {"transform": [{"filter": f"!find || indexof(lower(datum['{form.column}']), find) >= 0"}]}
        given |= {"tau": None, "find": ""}
    return live | {
        "$schema": SCHEMA,
        "data": {"name": "rows", "values": _records(frame, form)},
        "params": [{"name": name, "value": value} for name, value in given.items()],
        "config": CONFIG,
        "padding": {"left": 2, "right": padding, "top": 4, "bottom": 2},
    }


def _side_by_side(form, frame, words, panels, width):
    import pandas as pd

    parts, frames, columns = [], [], min(3, len(panels))
    for name in panels:
        own = frame[frame[form.panel].astype(str) == name]
        own, inner, more = DRAWN[type(form)](replace(form, panel=None), own, words)
        frames.append(own)
        beside = more.pop("padding", 0)
        room = max(PANEL, width // columns - beside - AXIS) if width else PANEL
        inner = _beside(inner, room)
        chosen = [{"filter": {"field": form.panel, "equal": name}}]
        title = {"text": name, "anchor": "start", "fontSize": 12, "color": themed("ink")}
        parts.append({"transform": chosen, "title": title, "width": room} | inner | more)
    apart = {"scale": dict.fromkeys(("color", "shape", "fill"), "independent")}
    whole = _whole(form, pd.concat(frames), 6) | {"concat": parts, "columns": columns, "resolve": apart}
    return whole | {"usermeta": {"panels": len(panels)}}


def _beside(inner, width):
    # Vega-Lite knows no `width` of one of several parts.
    return json.loads(BESIDE.sub(lambda found: str(width + int(found[1])), json.dumps(inner)))


def _records(frame, form):
    helpers = [column for column in frame if str(column).startswith("_")]
    columns = [column for column in form.columns if column in frame] + helpers
    rows = zip(*(map(_scalar, frame[name].tolist()) for name in columns), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _scalar(value):
    # A value of a type that JSON has.
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return str(value)


DRAWN: dict[type[Form], Callable[..., Drawn]] = {
    Heatmap: heatmap,
    Matrix: heatmap,
    Pictures: pictures,
    Intervals: intervals,
    Bars: bars,
    Curves: curves,
    Scatter: scatter,
    Radar: radar,
}
"""Function from (form, frame, words) to the frame with what the marks need, the unit, and its size."""
