"""Radars as layers of Vega-Lite, which has no polar axes."""

from typing import Any

import numpy as np

from gfscore.core.numbers import end_of_range
from gfscore.show.forms import Frame, Radar
from gfscore.show.forms.panels import Words, categories, panels_of, short_names
from gfscore.show.forms.vega.encodings import PANEL, Drawn, themed, tips


def radar(form: Radar, frame: Frame, words: Words) -> Drawn:
    """Values around a circle with their intervals and a reference, and a triangle at the lowest."""
    import pandas as pd

    spokes = categories(frame, form.spoke)
    top = outer_circle(float(np.nanmax(frame[form.high])), words.value_range)
    angle = 2 * np.pi * np.arange(len(spokes)) / len(spokes)
    around = dict(zip(spokes, angle, strict=True))
    parts = []
    for _, own in panels_of(frame, form.panel):
        # Each line closes: its first point comes once more.
        closed = pd.concat([own, own.head(1)]).assign(_order=range(len(own) + 1))
        parts.append(closed.assign(_lowest=closed[form.value.column] == closed[form.value.column].min()))
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
    # Between the first two spokes.
    turned = np.pi / len(spokes)
    ends = [{"name": end_of_range(top), "_x": np.sin(turned), "_y": np.cos(turned)}]
    fixed = {side: {"field": f"_{side}", "type": "quantitative", "axis": None, "scale": reach} for side in "xy"}
    layers = [
        {"data": {"values": rings}, "mark": {"type": "line", "color": themed("line"), "strokeWidth": 1},
         "encoding": fixed | {"detail": {"field": "ring"}, "order": {"field": "o"}}},
        {"data": {"values": labels}, "mark": {"type": "text", "fontSize": 10, "color": themed("ink")},
         "encoding": fixed | {"text": {"field": "name"}}},
        {"data": {"values": ends}, "mark": {"type": "text", "fontSize": 8, "color": themed("muted")},
         "encoding": fixed | {"text": {"field": "name"}}},
        *({"mark": {"type": "line", "color": themed("accent"), "strokeWidth": 0.8, "opacity": 0.5},
           "encoding": place(name)} for name in (form.low, form.high)),
        *({"mark": {"type": "line", "color": themed("muted"), "strokeDash": [4, 3]}, "encoding": place(name)}
          for name in (form.reference,) if name and len(parts) > 1),
        {"mark": {"type": "line", "color": themed("accent"), "strokeWidth": 2}, "encoding": place(form.value.column)},
        {"mark": {"type": "point", "filled": True, "opacity": 1, "color": themed("accent"), "size": 24},
         "encoding": place(form.value.column) | {"tooltip": tips(form)}},
        {"transform": [{"filter": "datum._lowest"}], "encoding": place(form.value.column),
         "mark": {"type": "point", "filled": True, "opacity": 1, "shape": "triangle-down", "size": 60,
                  "color": themed("contrast")}},
    ]  # fmt: skip
    return frame, {"layer": layers}, {"height": PANEL, "width": PANEL}


def outer_circle(highest: float, value_range: tuple[float, float] | None) -> float:
    """The end of the measure's range where the values come near it, else a round number above them."""
    end = value_range[1] if value_range else np.inf
    if np.isfinite(end) and highest > end / 2:
        return float(end)
    power = 10.0 ** np.floor(np.log10(max(highest, 1e-9)))
    return float(next(step * power for step in (1, 2, 4, 6, 8, 10) if step * power >= highest * (1 - 1e-9)))
