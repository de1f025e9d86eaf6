"""Cells and pictures as layers of Vega-Lite."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.numbers import number
from gfscore.show.forms import Frame, Heatmap, Matrix, Pictures
from gfscore.show.forms.panels import MOST_NUMBERED, MOST_NUMBERED_ROWS, Words, categories, cell_text, colour_limits
from gfscore.show.forms.theme import DIVERGING, ON_BRIGHT, ON_DARK, SEQUENTIAL
from gfscore.show.forms.vega.encodings import Drawn, category, themed, tips

CELL, LOW_CELL, MOST_SLANTED = 26, 8, 40
"""Pixels of a cell's height, and of one too low for letters; slanted names of columns that may all be written."""
FADED = 0.15
"""Opacity of cells that reach the page's threshold."""


def heatmap(form: Heatmap | Matrix, frame: Frame, words: Words) -> Drawn:
    """Cells coloured by their value, with numbers where they are few, boxes, dots, and a number beside each row."""
    values = frame[form.value.column].astype(float)
    low, high = colour_limits(values, form, words.value_range)
    rows, columns = categories(frame, form.row), categories(frame, form.column)
    differences = form.scale == "differences"
    numbered = len(columns) <= (MOST_NUMBERED if form.panel is None else 5) and len(rows) <= MOST_NUMBERED_ROWS
    narrow = len(columns) > 12 or max(map(len, columns)) > 4
    bright = "abs(datum.V) < R" if differences else "datum.V > R"
    middle = low + 0.55 * (high - low) if not differences else 0.6 * high
    bright = bright.replace("V", form.value.column).replace("R", f"{middle:.4g}")
    above = {"orient": "top", "labelAngle": -45 if narrow else 0, "labelLimit": 120}
    above["labelOverlap"] = not narrow or len(columns) > MOST_SLANTED
    x = category(form.column, title=form.column_title, axis=above)
    y = category(form.row, title=form.row_title)
    scheme = {"scheme": DIVERGING if differences else SEQUENTIAL, "domain": [low, high]}
    paint = {"field": form.value.column, "type": "quantitative", "title": words.of(form.value.title), "scale": scheme,
             "legend": {"gradientLength": 180, "tickCount": 3}}  # fmt: skip
    filled = {"condition": {"test": f"isValid(datum['{form.value.column}'])", **paint}, "value": themed("surface")}
    stroke = {"stroke": themed("surface"), "strokeWidth": 1 if len(columns) <= 100 else 0}
    reaches = f"isValid(tau) && datum['{form.value.column}'] >= tau" if form.live else "false"
    cell = {"color": filled, "opacity": {"condition": {"test": reaches, "value": FADED}, "value": 1}}
    layers: list[dict[str, Any]] = [
        {"mark": {"type": "rect", "invalid": "show", **stroke}, "encoding": cell | {"tooltip": tips(form)}}
    ]
    frame = frame.copy()
    pale = {"test": f"!isValid(datum['{form.value.column}']) || {reaches}", "value": themed("ink")}
    written = {"condition": [pale, {"test": bright, "value": ON_BRIGHT}], "value": ON_DARK}
    if numbered:
        frame["_text"] = [cell_text(value, form) for value in values]
        if diagonal := getattr(form, "diagonal", None):
            own = frame[diagonal].astype(float)
            frame["_text"] = [text or cell_text(value, form) for text, value in zip(frame["_text"], own, strict=True)]
        layers.append(
            {
                "mark": {"type": "text", "fontSize": 10, "invalid": None},
                "encoding": {"text": {"field": "_text"}, "color": written},
            }
        )
    layers += _signs(form, written)
    if form.aside:
        frame["_aside"] = _beside(frame, form, rows)
        beside = {"type": "text", "align": "left", "fontWeight": "bold", "color": themed("ink")}
        layers.append({
            "transform": [{"filter": "isValid(datum._aside)"}], "mark": beside,
            "encoding": {"x": {"value": {"expr": "width + 6"}}, "text": {"field": "_aside"}},
        })  # fmt: skip
    height = {"step": CELL if len(rows) <= MOST_NUMBERED_ROWS else LOW_CELL}
    size: dict[str, Any] = {"height": height, "padding": 52 if form.aside else 6}
    if form.apart:
        size["resolve"] = {"scale": {"x": "independent"}, "axis": {"x": "independent"}}
    for layer in layers:
        layer.setdefault("encoding", {}).setdefault("x", x)
    return frame, {"encoding": {"y": y}, "layer": layers}, size


def _signs(form, written):
    # Layers of the frames and dots of single cells.
    if form.box:
        framed = {"type": "rect", "fill": None, "strokeWidth": 2, "stroke": themed("contrast")}
        for state, dash in (("sure", [1, 0]), ("open", [2, 3])):
            chosen = [{"filter": f"datum['{form.box}'] === '{state}'"}]
            yield {"transform": chosen, "mark": framed | {"strokeDash": dash}}
    if form.dot:
        dot = {"type": "point", "filled": True, "size": 14, "opacity": 1, "yOffset": -8}
        few = [{"filter": f"datum['{form.dot}'] && isValid(datum['{form.value.column}'])"}]
        yield {"transform": few, "mark": dot, "encoding": {"color": written}}


def _beside(frame, form, rows):
    # Number beside each row, once in each panel; None where there is none.
    first = ~frame.duplicated([form.row, *([form.panel] if form.panel else [])])
    if len(rows) > MOST_NUMBERED_ROWS:
        # Rows are lower than letters.
        first &= frame[form.row].isin(rows[::2])
    return [number(value) if shown else None for value, shown in zip(frame[form.aside], first, strict=True)]


def pictures(form: Pictures, frame: Frame, words: Words) -> Drawn:
    """Images in rows and columns."""
    columns = categories(frame, form.column)
    side = min(40, 600 // max(1, len(columns)))
    encoding = {
        "x": category(form.column, title=form.column_title, axis={"labelAngle": 0}),
        "y": category(form.row),
        "url": {"field": form.picture},
    }  # fmt: skip
    mark = {"type": "image", "width": side - 3, "height": side - 3, "aspect": True}
    size = {"height": {"step": side}, "width": side * len(columns)}
    return frame, {"mark": mark, "encoding": encoding}, size | ({} if form.panel else {"autosize": "pad"})


def encoded(picture: NDArray[np.uint8]) -> str:
    """A picture (channels, H, W) uint8 of one or three channels as a PNG file in a data: address."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(np.moveaxis(picture, 0, -1).squeeze())).save(file, "PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
