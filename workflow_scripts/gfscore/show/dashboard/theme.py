"""One look for all charts: colours that follow the page's theme, type, and the frame of every specification."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import altair as alt

SEQUENTIAL: Final = "viridis"
"""Perceptually uniform and readable without colour vision: dark is low, bright is high."""

DIVERGING: Final = "blueorange"
"""For differences; blue against orange, which every kind of colour vision tells apart."""

COLOURS = ("ink", "muted", "line", "surface", "accent", "contrast", "wash")
"""Colours that page/dashboard.css defines as --<name>; charts read them as parameters, so that a theme can change."""

LIGHT = ("#1d2330", "#5c6675", "#dfe4ea", "#fdfdfd", "#0072b2", "#b04a00", "#cfe3f1")


def colour(name: str) -> alt.ExprRef:
    """Expression of a theme colour."""
    return alt.ExprRef(expr=name)


FIT = {"type": "fit-x", "contains": "padding"}

_MUTED_TITLE = {"titleColor": {"expr": "muted"}, "titleFontSize": 12, "titleFontWeight": "normal"}

CONFIG = {
    "font": "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif",
    "background": "transparent",
    "padding": {"left": 2, "right": 6, "top": 4, "bottom": 2},
    "view": {"stroke": None},
    # A cell without a value shows the page, not the colour of the lowest value.
    "scale": {"invalid": {"color": {"value": "transparent"}}},
    "axis": {
        "labelColor": {"expr": "ink"},
        **{part: {"expr": "line"} for part in ("gridColor", "domainColor", "tickColor")},
        "labelFontSize": 12,
        "labelLimit": 170,
        "labelOverlap": True,
        "titlePadding": 8,
        **_MUTED_TITLE,
    },
    # So few ticks that a reader sees values, not a ruler.
    "axisXQuantitative": {"tickCount": {"expr": "max(3, floor(width / 130))"}},
    "legend": {
        "labelColor": {"expr": "ink"},
        "labelFontSize": 12,
        "labelLimit": 220,
        "titleLimit": 640,
        "orient": "top",
        **_MUTED_TITLE,
    },
}
"""Vega-Lite configuration of every chart; the expressions name the parameters of COLOURS."""


def framed(
    chart: alt.TopLevelMixin, *, height: float | alt.Step, parameters: Iterable[tuple[str, Any]] = ()
) -> dict[str, Any]:
    """Specification of a chart as a dictionary, with the theme's parameters, size and configuration.

    `height` in pixels, or alt.Step; `parameters` are pairs of name and value that the page sets, beside `names`, short
    ones by whole ones. Parameters and configuration join the finished specification, which is not validated: Altair
    would copy the chart for each.
    """
    specification = chart.properties(width="container", height=height).to_dict(validate=False)
    values = (*zip(COLOURS, LIGHT, strict=True), *parameters)
    own = [{"name": name, "value": value} for name, value in (*values, ("names", {}))]
    return specification | {"params": [*specification.get("params", []), *own], "autosize": FIT, "config": CONFIG}


def rows(name: str = "rows") -> alt.NamedData:
    """Data that the page gives to a chart."""
    return alt.NamedData(name=name)


def extent(low: str = "low", high: str = "high", **settings: Any) -> alt.Scale:
    """Scale between two parameters."""
    return alt.Scale(domainMin=alt.ExprRef(expr=low), domainMax=alt.ExprRef(expr=high), nice=False, **settings)
