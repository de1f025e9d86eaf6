"""Heatmaps, matrices and small pictures, drawn by matplotlib."""

from __future__ import annotations

import base64
import io
from types import SimpleNamespace
from typing import Any

import numpy as np

from gfscore.core.numbers import number
from gfscore.show.forms import Matrix
from gfscore.show.forms.layout import extent_of
from gfscore.show.forms.panels import (
    MOST_NAMED,
    MOST_NUMBERED,
    MOST_NUMBERED_ROWS,
    categories,
    cell_text,
    colour_limits,
    short_names,
)
from gfscore.show.forms.theme import ABSENT, DIVERGING, INK, MUTED, ON_BRIGHT, ON_DARK, PAPER, SEQUENTIAL

NAMES = 8.5
MIDDLE_LUMINANCE = 0.179  # black and white text have equal contrast here
ROW_NAME, COLUMN_NAME = 34, 18


def height_of_heatmap(form, frame, width, panels):
    """Inches of a panel: its rows, and room for slanted names of columns."""
    rows, columns = len(categories(frame, form.row)), len(categories(frame, form.column))
    names = 0.75 if columns <= MOST_NAMED else 0.55
    if isinstance(form, Matrix) and panels > 1 and rows == columns:
        return max(1.7, 0.92 * width)
    if isinstance(form, Matrix):
        return names + min(5.6, max(1.2, 0.42 * rows))
    row = 0.3 if rows <= MOST_NUMBERED_ROWS else 0.14
    return min(28, names + 0.35 + max(row * rows, 0.5))


def heatmap(axes, form, own, frame, words, edge, width):
    """Draw one panel; returns what finish_heatmap needs: its image and cells."""
    import matplotlib as mpl

    rows, columns = categories(frame, form.row), categories(own, form.column)
    values, (low, high) = _table(own, form, form.value.column, rows, columns), _limits(form, frame, words)
    colours = mpl.colormaps[DIVERGING["paper"] if form.scale == "differences" else SEQUENTIAL].with_extremes(bad=ABSENT)
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="nearest", aspect="auto")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _name_rows(axes, form, rows, words, edge, width)
    pad = _name_columns(axes, form, columns, words, edge, width - (2.2 if edge.left else 0.2))
    if len(columns) <= MOST_NAMED:
        for position in range(1, len(columns)):
            axes.axvline(position - 0.5, color=PAPER, linewidth=1.5 if len(columns) < 30 else 0.5)
    if len(rows) <= MOST_NAMED:
        for position in range(1, len(rows)):
            axes.axhline(position - 0.5, color=PAPER, linewidth=1.5 if len(rows) < 30 else 0.5)
    room = (width - 1.6) / len(columns)
    if room > 0.38 and len(columns) <= MOST_NUMBERED and len(rows) <= MOST_NUMBERED_ROWS:
        _number(axes, form, own, values, image, rows, columns)
    if form.dot and len(columns) <= MOST_NAMED:
        marked = _table(own, form, form.dot, rows, columns) == 1
        at_rows, at_columns = np.nonzero(marked & ~np.isnan(values))
        axes.plot(at_columns + 0.38, at_rows - 0.32, ".", color=INK, markeredgecolor=PAPER, markersize=6,
                  markeredgewidth=0.6)  # fmt: skip
    if form.box and len(columns) <= MOST_NAMED:
        _frame(axes, form, own, image, rows, columns)
    return SimpleNamespace(image=image, pad=pad)


def finish_heatmap(figure, grid, form, frame, words, drawn):
    """The bar of colours beside all panels, and the values of whole rows."""
    shown = [axes for axes in grid.flat if axes.get_visible()]
    last = drawn[-1].image
    if form.aside and len(categories(frame, form.row)) <= 3 * MOST_NUMBERED_ROWS:
        whole = frame.drop_duplicates(form.row).set_index(frame.drop_duplicates(form.row)[form.row].astype(str))
        for row, name in enumerate(categories(frame, form.row)):
            shown[-1].annotate(
                number(whole[form.aside][name]), (1, row), xycoords=("axes fraction", "data"), xytext=(8, 0),
                textcoords="offset points", va="center_baseline", color=INK, weight="bold", size=8.5,
            )  # fmt: skip
        shown[-1].annotate("all", (1, 1), xycoords="axes fraction", xytext=(8, 6), textcoords="offset points",
                           color=MUTED, size=8.5)  # fmt: skip
    bar = figure.colorbar(last, ax=grid, fraction=0.03, pad=0.065 if form.aside else 0.02, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.set_label(words.of(form.value.title))


def _limits(form, frame, words):
    values = frame[form.value.column]
    return colour_limits(values, form, words.value_range)


def _table(own, form, column, rows, columns):
    # (R, C) float64, NaN where there is no row.
    values = np.full((len(rows), len(columns)), np.nan)
    row_of, column_of = ({name: place for place, name in enumerate(names)} for names in (rows, columns))
    at = own[form.row].astype(str).map(row_of), own[form.column].astype(str).map(column_of)
    values[at[0].to_numpy(), at[1].to_numpy()] = own[column].to_numpy(dtype=np.float64, na_value=np.nan)
    return values


def _name_rows(axes, form, rows, words, edge, width):
    if not edge.left:
        axes.tick_params(labelleft=False)
        return
    limit = ROW_NAME if width > 4 else 14 if width < 3 else 22
    size = NAMES if len(rows) <= 40 else 7 if len(rows) <= MOST_NAMED else 4.5
    axes.set_yticks(range(len(rows)), short_names(rows, limit).values(), size=size if width > 3 else 7)
    if form.row_title:
        axes.set_ylabel(form.row_title, size=8)


def _name_columns(axes, form, columns, words, edge, width):
    axes.xaxis.set_ticks_position("top")
    axes.xaxis.set_label_position("bottom")
    names = list(short_names(columns, COLUMN_NAME).values())
    if form.column_title and edge.bottom:
        axes.set_xlabel(form.column_title, size=8)
    if len(columns) > MOST_NAMED:
        places = np.unique(np.linspace(0, len(names) - 1, 5).round().astype(int))
        axes.xaxis.set_ticks_position("bottom")
        axes.set_xticks(places, [f"{place + 1}\n{names[place]}" for place in places])
        labels = axes.get_xticklabels()
        labels[0].set_horizontalalignment("left")
        labels[-1].set_horizontalalignment("right")
        axes.set_xlabel(f"{len(names):,} columns, in the order of their mean")
        return
    each, widest = width / len(names), max(extent_of(name, NAMES)[0] for name in names)
    size = NAMES if each > 0.14 else 6
    axes.set_xticks(range(len(names)), names, size=size)
    if widest + 0.08 <= each:
        return
    slanted = each > 0.24
    for label in axes.get_xticklabels():
        label.set(
            rotation=40 if slanted else 90,
            ha="left" if slanted else "center",
            rotation_mode="anchor" if slanted else "default",
        )
    return


def _number(axes, form, own, values, image, rows, columns):
    shown = _table(own, form, form.diagonal, rows, columns) if getattr(form, "diagonal", None) else None
    for (row, column), value in np.ndenumerate(values):
        text, colour, weight = cell_text(value, form), legible(image, value), "normal"
        if shown is not None and np.isnan(value) and not np.isnan(shown[row, column]):
            text, colour, weight = cell_text(shown[row, column], form), INK, "bold"
        if text:
            axes.text(
                column, row, text, ha="center", va="center_baseline", size=8, color=colour, weight=weight
            ).set_in_layout(False)


def legible(image: Any, value: float) -> str:
    """Black or white text for a cell, by its relative luminance (Web Content Accessibility Guidelines)."""
    if np.isnan(value):
        return INK
    channels = np.array(image.cmap(image.norm(value))[:3])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return ON_BRIGHT if linear @ [0.2126, 0.7152, 0.0722] > MIDDLE_LUMINANCE else ON_DARK


def _frame(axes, form, own, image, rows, columns):
    from matplotlib.patches import Rectangle

    for _, cell in own[own[form.box].notna()].iterrows():
        row, column = rows.index(str(cell[form.row])), columns.index(str(cell[form.column]))
        axes.add_patch(
            Rectangle(
                (column - 0.44, row - 0.42), 0.88, 0.84, fill=False, linewidth=1.6,
                edgecolor=legible(image, cell[form.value.column]),
                linestyle="-" if cell[form.box] == "sure" else (0, (1.2, 1.4)),
            )
        )  # fmt: skip


PICTURE_GAP = 0.08


def height_of_pictures(form, frame, width, panels):
    """Inches of a panel of square pictures as wide as there is room, at most 0.8 each."""
    columns = len(categories(frame, form.column))
    return min(0.8, (width - 1.4) / columns) * len(categories(frame, form.row)) + 0.8


def pictures(axes, form, own, frame, words, edge, width):
    """Draw one panel of small pictures."""
    rows, columns = categories(frame, form.row), categories(frame, form.column)
    for _, cell in own.iterrows():
        pixels = decoded(cell[form.picture])
        x, y = columns.index(str(cell[form.column])), rows.index(str(cell[form.row]))
        half = 0.5 - PICTURE_GAP / 2
        axes.imshow(pixels, extent=(x - half, x + half, y + half, y - half), interpolation="nearest")
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_aspect("equal")
    ends = sorted({0, len(columns) // 2, len(columns) - 1})
    axes.set_xticks(ends, [columns[end] for end in ends])
    axes.set_yticks(range(len(rows)), short_names(rows, 24).values())
    axes.tick_params(length=0, labelleft=edge.left)
    axes.spines[:].set_visible(False)
    if form.column_title:
        axes.set_xlabel(form.column_title)


def encoded(picture: Any) -> str:
    """A picture (channels, H, W) uint8 of one or three channels as a PNG file in a data: address."""
    from matplotlib.image import imsave

    file = io.BytesIO()
    pixels = np.moveaxis(np.asarray(picture), 0, -1)
    imsave(
        file,
        np.repeat(pixels, 3, axis=-1) if pixels.shape[-1] == 1 else pixels,
        format="png",
        metadata={"Software": None},
    )
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def decoded(address: str) -> Any:
    """Pixels (H, W, 3) in 0..1 of what `encoded` returns."""
    from matplotlib.image import imread

    return imread(io.BytesIO(base64.b64decode(address.partition(",")[2])), format="png")[..., :3]
