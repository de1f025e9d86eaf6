"""Encodings that the layers of several forms share."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def quantity(axis: Axis, words: Words, frame: Frame, **settings: Any) -> dict[str, Any]:
    """Encoding of the numbers of an axis, with its title, and the scale that fits its values in the frame."""
    scale: dict[str, Any] = {"zero": axis.zero, "nice": True}
    drawn: dict[str, Any] = {"format": "d", "tickMinStep": 1} if axis.whole else {}
    if axis.log:
        scale = log_scale(frame[axis.column].to_numpy(dtype=float))
        if scale["type"] == "symlog":
            drawn["values"] = _decades(scale["constant"], float(np.nanmax(frame[axis.column])))
    scale |= {"domainMax": axis.end, "domainMin": 0} if axis.end is not None else {}
    scale |= {"reverse": True} if axis.reverse else {}
    return {
        "field": axis.column, "type": "quantitative", "title": words.of(axis.title), "scale": scale, "axis": drawn
    } | settings  # fmt: skip


def log_scale(values: NDArray[np.float64]) -> dict[str, Any]:
    """Scale of values >= 0: logarithmic, or linear up to the smallest positive one where there are zeros.

    A zero has no place on a logarithmic scale.
    """
    positive = values[values > 0]
    if not (values == 0).any():
        return {"type": "log", "nice": False}
    return {"type": "symlog", "constant": float(positive.min()) if len(positive) else 1.0, "nice": False}


def on_scale(values: Any, scale: dict[str, Any]) -> Any:
    """Values as lengths along an axis, up to a factor and an offset."""
    if scale.get("type") == "log":
        return np.log(values)
    if scale.get("type") == "symlog":
        return np.log1p(np.asarray(values) / scale["constant"])
    return values


def _decades(smallest: float, largest: float) -> list[float]:
    # Where numbers stand on an axis that begins at 0: Vega would crowd them at its end.
    if largest <= 0:
        return [0.0]
    exponents = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
    return [0.0, *(10.0**exponent for exponent in exponents)]


def tips(form: Form) -> list[dict[str, str]]:
    """Columns of the tooltip: all of the form but pictures."""
    return [{"field": column} for column in form.columns if column not in (getattr(form, "picture", None),)]
