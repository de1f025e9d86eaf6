"""Encodings that the layers of several forms share."""

from typing import Any

from gfscore.show.forms import Axis, Form, Frame
from gfscore.show.forms.panels import Words

Drawn = tuple[Frame, dict[str, Any], dict[str, Any]]
"""What a form is drawn by: its frame with what the marks need, the unit, and its size."""

PANEL, LETTER = 200, 6.5
"""Pixels: width of a small panel, width of a letter."""
ONCE: dict[str, Any] = {"data": {"values": [{}]}}
"""Data of a mark that stands once in each panel, whatever the rows."""
WRITTEN = {"labelExpr": "names[datum.value] || datum.label", "ticks": False, "domain": False}


def themed(name: str) -> dict[str, str]:
    """Colour of the theme, which the page sets."""
    return {"expr": name}


def category(field: str, **settings: Any) -> dict[str, Any]:
    """Encoding of names in the order of the rows, each short one with its whole name in the tooltip."""
    axis = {**WRITTEN, "labelPadding": 6} | settings.pop("axis", {})
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": axis} | settings


def quantity(axis: Axis, words: Words, **settings: Any) -> dict[str, Any]:
    """Encoding of the numbers of an axis, with its title and scale."""
    scale: dict[str, Any] = {"type": "log", "nice": False} if axis.log else {"zero": axis.zero, "nice": True}
    scale |= {"domainMax": axis.end, "domainMin": 0} if axis.end is not None else {}
    scale |= {"reverse": True} if axis.reverse else {}
    drawn = {"format": "d", "tickMinStep": 1} if axis.whole else {}
    return {
        "field": axis.column, "type": "quantitative", "title": words.of(axis.title), "scale": scale, "axis": drawn
    } | settings  # fmt: skip


def tips(form: Form) -> list[dict[str, str]]:
    """Columns of the tooltip: all of the form but pictures."""
    return [{"field": column} for column in form.columns if column not in (getattr(form, "picture", None),)]
