"""Heatmaps, matrices and small pictures, drawn by matplotlib."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from gfscore.core.numbers import number
from gfscore.show.forms import Figure, Frame, Heatmap, Matrix, Pictures
from gfscore.show.forms.layout import extent_of
from gfscore.show.forms.panels import (
    MOST_NAMED,
    MOST_NUMBERED,
    MOST_NUMBERED_ROWS,
    Panel,
    categories,
    cell_text,
    colour_limits,
    short_names,
)
from gfscore.show.forms.theme import ABSENT, DIVERGING_STOPS, INK, MUTED, ON_BRIGHT, ON_DARK, PAPER, SEQUENTIAL

NAMES = 8.5
MIDDLE_LUMINANCE = 0.179  # black and white text have equal contrast here
ROW_NAME, COLUMN_NAME = 34, 20
MOST_GAPS = 30
"""Rows or columns between which there is a wide gap."""
LEAST_ROOM = 0.38
"""Inches of a cell that holds a number."""
PICTURE_GAP = 0.08


def height_of_heatmap(form: Heatmap, frame: Frame, width: float, panels: int) -> float:
    """Inches of a panel: its rows, and room for slanted names of columns."""
    rows, columns = len(categories(frame, form.row)), len(categories(frame, form.column))
    names = 0.75 if columns <= MOST_NAMED else 0.55
    if isinstance(form, Matrix) and panels > 1 and rows == columns:
        return max(1.7, 0.92 * width)
    if isinstance(form, Matrix):
        return names + min(5.6, max(1.2, 0.42 * rows))
    return min(28, names + 0.35 + max((0.3 if rows <= MOST_NUMBERED_ROWS else 0.14) * rows, 0.5))


def heatmap(panel: Panel) -> None:
    """Draw one panel of coloured cells."""
    import matplotlib as mpl

    axes, form, own = panel.axes, panel.form, panel.own
    rows, columns = categories(panel.frame, form.row), categories(own, form.column)
    values = _table(own, form, form.value.column, (rows, columns))
    low, high = colour_limits(panel.frame[form.value.column], form, panel.words.value_range)
    colours = mpl.colormaps[SEQUENTIAL]
    if form.scale == "differences":
        colours = mpl.colors.LinearSegmentedColormap.from_list("differences", DIVERGING_STOPS)
    colours = colours.with_extremes(bad=ABSENT)
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="nearest", aspect="auto")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _name_rows(panel, rows)
    _name_columns(panel, columns)
    for draw, names in ((axes.axvline, columns), (axes.axhline, rows)):
        for position in range(1, len(names) if len(names) <= MOST_NAMED else 0):
            draw(position - 0.5, color=PAPER, linewidth=1.5 if len(names) < MOST_GAPS else 0.5)
    if panel.inner / len(columns) > LEAST_ROOM and len(columns) <= MOST_NUMBERED and len(rows) <= MOST_NUMBERED_ROWS:
        _number(panel, values, image, (rows, columns))
    if form.dot and len(columns) <= MOST_NAMED:
        few = _table(own, form, form.dot, (rows, columns)) == 1
        at_rows, at_columns = np.nonzero(few & ~np.isnan(values))
        dot = {"color": INK, "markeredgecolor": PAPER, "markersize": 6, "markeredgewidth": 0.6}
        axes.plot(at_columns + 0.38, at_rows - 0.32, ".", **dot)
    if form.box and len(columns) <= MOST_NAMED:
        _frame(panel, image, (rows, columns))


def bar_of_colours(figure: Figure, grid: Any, panels: Sequence[Panel]) -> None:
    """The bar of colours beside all panels, and the values of whole rows."""
    last = panels[-1]
    form, frame, axes = last.form, last.frame, last.axes
    if form.aside and len(categories(frame, form.row)) <= 3 * MOST_NUMBERED_ROWS:
        whole = frame.drop_duplicates(form.row).set_index(form.row)[form.aside]
        beside: dict[str, Any] = {"textcoords": "offset points", "size": NAMES}
        for row, value in enumerate(whole):
            place = {"xy": (1, row), "xycoords": ("axes fraction", "data"), "xytext": (8, 0)}
            axes.annotate(number(value), va="center_baseline", color=INK, weight="bold", **place, **beside)
        axes.annotate("all", (1, 1), xycoords="axes fraction", xytext=(8, 6), color=MUTED, **beside)
    bar = figure.colorbar(axes.images[0], ax=grid, fraction=0.03, pad=0.065 if form.aside else 0.02, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.set_label(last.words.of(form.value.title))


def _table(own, form, column, names):
    # (R, C) float64, NaN where there is no row.
    values = np.full(tuple(map(len, names)), np.nan)
    places = [{name: place for place, name in enumerate(of)} for of in names]
    rows, columns = (own[key].astype(str).map(at) for key, at in zip((form.row, form.column), places, strict=True))
    values[rows.to_numpy(), columns.to_numpy()] = own[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _name_rows(panel, rows):
    if not panel.left:
        panel.axes.tick_params(labelleft=False)
        return
    limit = ROW_NAME if panel.width > 4 else 14 if panel.width < 3 else 22
    size = NAMES if len(rows) <= 40 else 7 if len(rows) <= MOST_NAMED else 4.5
    panel.axes.set_yticks(range(len(rows)), short_names(rows, limit).values(), size=size if panel.width > 3 else 7)
    if panel.form.row_title:
        panel.axes.set_ylabel(panel.form.row_title, size=8)


def _name_columns(panel, columns):
    axes, names = panel.axes, list(short_names(columns, COLUMN_NAME).values())
    axes.xaxis.set_label_position("bottom")
    if panel.form.column_title and panel.bottom:
        axes.set_xlabel(panel.form.column_title, size=8)
    if len(columns) > MOST_NAMED:
        places = np.unique(np.linspace(0, len(names) - 1, 5).round().astype(int))
        axes.set_xticks(places, [f"{place + 1}\n{names[place]}" for place in places])
        axes.get_xticklabels()[0].set_horizontalalignment("left")
        axes.get_xticklabels()[-1].set_horizontalalignment("right")
        axes.set_xlabel(f"{len(names):,} columns, in the order of their mean")
        return
    axes.xaxis.set_ticks_position("top")
    each = panel.inner / len(names)
    axes.set_xticks(range(len(names)), names, size=NAMES if each > 0.14 else 6)
    if max(extent_of(name, NAMES)[0] for name in names) + 0.08 > each:
        slanted: dict[str, Any] = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"}
        for label in axes.get_xticklabels():
            label.set(**(slanted if each > 0.24 else {"rotation": 90, "ha": "center"}))


def _number(panel, values, image, names):
    form, shown = panel.form, None
    if isinstance(form, Matrix) and form.diagonal:
        shown = _table(panel.own, form, form.diagonal, names)
    texts = {place: cell_text(value, form) for place, value in np.ndenumerate(values)}
    room = 0.95 * panel.inner / len(names[1])
    size = 8 * min(1.0, room / max(extent_of(text, 8)[0] for text in (*texts.values(), "0")))
    for (row, column), value in np.ndenumerate(values):
        text, look = texts[row, column], {"color": legible(image, value), "weight": "normal"}
        if shown is not None and np.isnan(value) and not np.isnan(shown[row, column]):
            text, look = cell_text(shown[row, column], form), {"color": INK, "weight": "bold"}
        if text:
            written = panel.axes.text(column, row, text, ha="center", va="center_baseline", size=size, **look)
            written.set_in_layout(False)


def legible(image: Any, value: float) -> str:
    """Black or white text for a cell, by its relative luminance (Web Content Accessibility Guidelines)."""
    if np.isnan(value):
        return INK
    channels = np.array(image.cmap(image.norm(value))[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return ON_BRIGHT if linear @ [0.2126, 0.7152, 0.0722] > MIDDLE_LUMINANCE else ON_DARK


def _frame(panel, image, names):
    from matplotlib.patches import Rectangle

    form, (rows, columns) = panel.form, names
    for _, cell in panel.own[panel.own[form.box].notna()].iterrows():
        corner = columns.index(str(cell[form.column])) - 0.44, rows.index(str(cell[form.row])) - 0.42
        line: dict[str, Any] = {"linestyle": "-" if cell[form.box] == "sure" else (0, (1.2, 1.4)), "linewidth": 1.6}
        line["edgecolor"] = legible(image, cell[form.value.column])
        panel.axes.add_patch(Rectangle(corner, 0.88, 0.84, fill=False, **line))


def height_of_pictures(form: Pictures, frame: Frame, width: float, panels: int) -> float:
    """Inches of a panel of square pictures as wide as there is room, at most 0.8 each."""
    columns = len(categories(frame, form.column))
    return min(0.8, (width - 1.4) / columns) * len(categories(frame, form.row)) + 0.8


def pictures(panel: Panel) -> None:
    """Draw one panel of small pictures."""
    axes, form = panel.axes, panel.form
    rows, columns = categories(panel.frame, form.row), categories(panel.frame, form.column)
    half = 0.5 - PICTURE_GAP / 2
    for _, cell in panel.own.iterrows():
        x, y = columns.index(str(cell[form.column])), rows.index(str(cell[form.row]))
        place = (x - half, x + half, y + half, y - half)
        axes.imshow(decoded(cell[form.picture]), extent=place, interpolation="nearest")
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5), aspect="equal")
    shown: Sequence[int] = range(len(columns))
    if max(extent_of(name, NAMES)[0] for name in columns) + 0.08 > panel.inner / len(columns):
        shown = sorted({0, len(columns) // 2, len(columns) - 1})
    axes.set_xticks(shown, [columns[place] for place in shown], size=NAMES)
    axes.set_yticks(range(len(rows)), short_names(rows, 24).values())
    axes.tick_params(length=0, labelleft=panel.left)
    axes.spines[:].set_visible(False)
    if form.column_title:
        axes.set_xlabel(form.column_title)


def encoded(picture: Any) -> str:
    """A picture (channels, H, W) uint8 of one or three channels as a PNG file in a data: address."""
    from matplotlib.image import imsave

    file, pixels = io.BytesIO(), np.moveaxis(np.asarray(picture), 0, -1)
    pixels = np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels
    unnamed: dict[str, Any] = {"Software": None}
    imsave(file, np.ascontiguousarray(pixels), format="png", metadata=unnamed)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def decoded(address: str) -> Any:
    """Pixels (H, W, 3) in 0..1 of what `encoded` returns."""
    from matplotlib.image import imread

    return imread(io.BytesIO(base64.b64decode(address.partition(",")[2])), format="png")[..., :3]
