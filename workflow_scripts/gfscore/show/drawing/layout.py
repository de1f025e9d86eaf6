"""Sizes and places of what a figure holds, in pixels, of which 72 are an inch.

Each helper that draws on axes says how high their plot is to be (`reserve`) and how much room it writes around it
(`surround`); `arrange` sets the figure's height and the place of everything. So one chart fits a paper, a page and a
phone, without matplotlib's layout engines, which take several times as long as the drawing.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Bbox, Transform
from numpy.typing import NDArray
from pandas import DataFrame

from gfscore.core.names import shortened
from gfscore.core.numbers import number
from gfscore.show.drawing.theme import INK, LINE, MUTED, look

INCH = 72
WIDTH = 900
"""Width of a figure."""
PHONE = 370
"""Width of the same chart on a narrow screen."""
NARROW = 500
"""Width below which a figure is drawn as for a phone."""

LETTER_BOLD = 8.4
"""Width of a bold letter of 12 pixels."""
MOST_TITLE_LINES = 4
"""Most lines of the title of a panel."""
PANEL_GAP = 22
"""Space between panels."""
SCALE_WIDTH = 180
"""Width of a scale of colours."""
SCALE_BAR = 10
"""Height of the bar of a scale of colours."""
SCALE_HEIGHT = 56
"""Height of a scale of colours: its bar, title and numbers."""

TITLE_SIZE = 16
"""Font size of the title of a figure."""
TITLE_LINE = 21
"""Height of a line of the title."""
TEXT_SIZE = 12
"""Font size of all other text."""
TEXT_LINE = 16
"""Height of a line of other text."""


@dataclass
class Plot:
    """Size that a plot asks for, and the room that is written around it."""

    height: float = 150
    widest: float = math.inf
    left: float = 2
    right: float = 2
    top: float = 2
    bottom: float = 2
    names_rows: bool = True
    """Whether its rows of marks have labels; of panels side by side only the leftmost may have them."""
    room: float | None = None
    """Width of the axes' place in a user's figure, labels included; None in a figure that `arrange` lays out."""


@dataclass
class Scale:
    """A scale of colours: its axes, and what it shows."""

    axes: Axes
    title: Text
    name: str
    limits: tuple[float, float]


PLOTS: WeakKeyDictionary[Axes, Plot] = WeakKeyDictionary()
SCALES: WeakKeyDictionary[Figure, list[Scale]] = WeakKeyDictionary()
TIPS: WeakKeyDictionary[Figure, dict[str, list[str]]] = WeakKeyDictionary()
"""Tooltips by the gid of the artist whose marks they belong to, in the order of the marks."""


def new_figure(width: float = WIDTH) -> Figure:
    """Empty figure of that width; `arrange` gives it its height."""
    return Figure(figsize=(width / INCH, width / INCH / 2), dpi=INCH)


def pixel_width(figure: Figure) -> float:
    """Width of a figure in pixels."""
    return float(figure.get_figwidth()) * INCH


def is_narrow(axes: Axes) -> bool:
    """Whether axes stand in a figure for a phone, or in as narrow a place."""
    return (plot_of(axes).room or pixel_width(root_of(axes))) < NARROW


def root_of(axes: Axes) -> Figure:
    """The figure that axes stand in."""
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def plot_width(axes: Axes, *, left: float = 0.0, right: float = 0.0, one_row_axis: bool = False) -> float:
    """Estimate of the width that a plot will have, before all that surrounds it is known.

    Parameters
    ----------
    left, right : float
        Room for labels on its sides.
    one_row_axis : bool
        Whether only the first of the panels side by side has labels on the left.
    """
    room = plot_of(axes).room
    if room is not None:
        return max(40.0, room - left - right - 10)
    cell = axes.get_subplotspec()
    columns = cell.get_gridspec().ncols if cell is not None else 1
    labels = left / columns if one_row_axis else left
    return max(40.0, (pixel_width(root_of(axes)) - PANEL_GAP * (columns - 1)) / columns - labels - right - 10)


def plot_of(axes: Axes) -> Plot:
    """Sizes that have been asked for the plot of these axes."""
    return PLOTS.setdefault(axes, Plot())


def reserve(axes: Axes, height: float, *, widest: float = math.inf) -> None:
    """Ask for a plot of that height, and of no more than that width."""
    plot = plot_of(axes)
    plot.height = height
    plot.widest = widest


def surround(axes: Axes, *, left: float = 0, right: float = 0, top: float = 0, bottom: float = 0) -> None:
    """Ask for at least so much room around a plot."""
    plot = plot_of(axes)
    plot.left = max(plot.left, left)
    plot.right = max(plot.right, right)
    plot.top = max(plot.top, top)
    plot.bottom = max(plot.bottom, bottom)


def tooltips(axes: Axes, texts: Sequence[str]) -> str:
    """The gid that an artist needs for its marks to have these tooltips."""
    tips = TIPS.setdefault(root_of(axes), {})
    gid = f"tips-{len(tips)}"
    tips[gid] = list(texts)
    return gid


def named_values(names: Iterable[str], values: Iterable[float]) -> list[str]:
    """Tooltips of marks: the name of each, and its value."""
    return [f"{name}: {number(value)}" for name, value in zip(names, values, strict=True)]


def groups_of(frame: DataFrame, column: str) -> list[tuple[str, DataFrame]]:
    """Values of a column as text, each with its rows, in the order of the rows."""
    return [(str(value), rows) for value, rows in frame.groupby(column, sort=False, observed=True)]


def panels(
    figure: Figure,
    frame: DataFrame,
    column: str,
    *,
    most_columns: int = 3,
    least_width: float = 230,
    one_row_axis: bool = False,
) -> list[tuple[Axes, DataFrame]]:
    """Axes and rows of a small panel for each value of a column, in the order of the rows, with the value as title.

    Parameters
    ----------
    figure : Figure
        Empty.
    frame : DataFrame
        Rows of all panels.
    column : str
        Names the panels.
    most_columns : int
        Largest number of panels side by side.
    least_width : float
        Smallest width of a panel with its labels, in pixels.
    one_row_axis : bool
        Whether all panels have the same rows of marks, which only the leftmost panels name.
    """
    groups = groups_of(frame, column)
    columns = max(1, min(most_columns, len(groups), int(pixel_width(figure) // least_width)))
    lines = math.ceil(len(groups) / columns)
    grid = figure.add_gridspec(lines, columns)

    result = []
    for index, (name, rows) in enumerate(groups):
        axes = figure.add_subplot(grid[index // columns, index % columns])
        axes.set_title(name, y=1)
        plot_of(axes).names_rows = not (one_row_axis and index % columns)
        result.append((axes, rows))
    return result


def write(axes: Axes, x: float, y: float, text: str, *, transform: Transform | None = None, **style: Any) -> Text:
    """Write a text at a place of axes, in the units of the data or of a transform.

    It belongs to the figure, since axes would give each text a clip path of its own.
    """
    return root_of(axes).text(x, y, text, transform=transform or axes.transData, **style)


def labels_of(target: Figure | Axes) -> list[Text]:
    """Labels of both axes, of all plots of a figure or of one, and titles of scales of colours not yet fitted."""
    figure, plots = (target, target.axes) if isinstance(target, Figure) else (root_of(target), [target])
    labels = []
    for axes in plots:
        labels += [axes.xaxis.label, axes.yaxis.label]
    for scale in SCALES.get(figure, []):
        labels.append(scale.title)
    return labels


# ---- what is written above the plots ----


@cache
def _advance(letter: str, weight: str) -> float:
    # Width of a letter in the font of the figures at a size of 1 pixel.
    font = FontProperties(family="DejaVu Sans", weight=weight, size=100)
    return text_to_path.get_text_width_height_descent(letter, font, ismath=False)[0] / 100


def width_of(text: str, size: float = TEXT_SIZE, weight: str = "normal") -> float:
    """Width of a line in pixels."""
    return size * sum(_advance(letter, weight) for letter in text)


def widest_of(texts: Iterable[str], size: float = TEXT_SIZE, weight: str = "normal") -> float:
    """Width of the widest of several lines in pixels, 0 of none."""
    return max((width_of(text, size, weight) for text in texts), default=0.0)


def wrapped(text: str, width: float, *, size: float = TEXT_SIZE, weight: str = "normal") -> list[str]:
    """Lines of a text no wider than `width` pixels; a single word too long stays whole."""
    lines: list[str] = []
    room = 0.0
    blank = width_of(" ", size, weight)
    for word in text.split():
        extent = width_of(word, size, weight)
        if lines and extent + blank <= room:
            lines[-1] += f" {word}"
            room -= extent + blank
        else:
            lines.append(word)
            room = width - extent
    return lines


def write_header(
    figure: Figure, title: str, texts: Sequence[str], *, margin: float
) -> tuple[list[tuple[float, Text]], float]:
    """Write a title and smaller texts under it.

    Returns
    -------
    lines : list of (float, Text)
        Each line with its distance from the top of the figure.
    end : float
        Distance at which the plots may begin.
    """
    # A little less than there is: fonts differ.
    width = 0.975 * (pixel_width(figure) - 2 * margin)
    lines: list[tuple[float, Text]] = []
    below = margin
    left_edge = margin / pixel_width(figure)
    for line in wrapped(title, width, size=TITLE_SIZE, weight="bold"):
        artist = figure.text(left_edge, 1, line, size=TITLE_SIZE, weight="bold", color=INK, va="top", ha="left")
        lines.append((below, artist))
        below += TITLE_LINE
    below += 3
    for text in texts:
        for line in wrapped(text, width):
            artist = figure.text(left_edge, 1, line, size=TEXT_SIZE, color=MUTED, va="top", ha="left")
            lines.append((below, artist))
            below += TEXT_LINE
    return lines, below + 10


# ---- places ----


def arrange(figure: Figure, *, title: str = "", texts: Sequence[str] = (), margin: float = 2.0) -> None:
    """Set the height of a figure and the place of its plots, under a title and smaller texts where there are any.

    Parameters
    ----------
    figure : Figure
        With what the functions of gfscore.show.drawing have drawn on it.
    title, texts : str
        Wrapped to the figure's width.
    margin : float
        Room around everything, in pixels.
    """
    with look():
        header, top = write_header(figure, title, texts, margin=margin) if title else ([], margin)
        scales = SCALES.get(figure, [])
        if scales:
            top += SCALE_HEIGHT
        plots = [axes for axes in figure.axes if axes in PLOTS]
        height = _place(figure, plots, top=top, margin=margin)
        for below, line in header:
            line.set_y(1 - below / height)
        if scales:
            left = plots[0].get_position().x0 * pixel_width(figure)
            _place_scales(scales, left, height - (top - SCALE_HEIGHT), figure_size=(pixel_width(figure), height))


def prepare(axes: Axes) -> None:
    """Give axes of any figure the look of charts, which are then drawn for the width that they have; see `fit`."""
    plot_of(axes).room = axes.get_position().width * axes.figure.bbox.width / axes.figure.dpi * INCH
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.spines["bottom"].set_color(LINE)
    axes.tick_params(length=0, labelsize=TEXT_SIZE, labelcolor=INK, grid_color=LINE)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(size=TEXT_SIZE, color=MUTED)


def fit(axes: Axes) -> None:
    """Shrink axes of any figure, so that what is written around their plot stands in the place that they had.

    Parameters
    ----------
    axes : Axes
        Prepared, and drawn on by functions of gfscore.show.drawing.
    """
    figure = axes.figure
    figure_width = figure.bbox.width / figure.dpi * INCH
    figure_height = figure.bbox.height / figure.dpi * INCH
    place = axes.get_position()
    plot = plot_of(axes)
    scales = SCALES.pop(root_of(axes), [])
    free_height = place.height * figure_height - (SCALE_HEIGHT if scales else 0)

    # Before titles are added: they stand outside the labels.
    labels_left = plot.left
    # The level title takes two lines at most, as a rule.
    plot.height = free_height - plot.top - plot.bottom - 2 * TEXT_LINE
    _reserve_vertical_title(axes, plot)
    width_of_plot = max(30.0, place.width * figure_width - plot.left - plot.right)
    axes.yaxis.set_label_coords(-(labels_left + 4) / width_of_plot, 0.5)

    # A first pass on a copy finds how many lines the titles take, the second places them for the height that is left.
    with_titles = replace(plot)
    _reserve_titles(axes, with_titles, width_of_plot)
    plot.height = max(30.0, free_height - with_titles.top - with_titles.bottom)
    _reserve_titles(axes, plot, width_of_plot)

    left = place.x0 * figure_width + plot.left
    bottom = place.y0 * figure_height + plot.bottom
    _set_place(axes, (left, bottom, width_of_plot, plot.height), figure_width, figure_height)
    _place_scales(scales, left, place.y1 * figure_height, figure_size=(figure_width, figure_height))


def _place(figure: Figure, plots: Sequence[Axes], *, top: float, margin: float) -> float:
    # Columns of panels are equally wide and start at one place; returns the figure's height.
    # Before titles are added: they stand outside the labels.
    labels_left = [plot_of(axes).left for axes in plots]
    for axes in plots:
        _reserve_vertical_title(axes, plot_of(axes))

    sides = _sizes(plots).groupby("column")[["left", "right"]].max()
    left = sides["left"].to_numpy()
    right = sides["right"].to_numpy()
    free = pixel_width(figure) - 2 * margin - left.sum() - right.sum() - PANEL_GAP * (len(left) - 1)
    width = max(30.0, min(free / len(left), *(plot_of(axes).widest for axes in plots)))
    for axes, distance in zip(plots, labels_left, strict=True):
        axes.yaxis.set_label_coords(-(distance + 4) / width, 0.5)
        _reserve_titles(axes, plot_of(axes), width)

    sizes = _sizes(plots)
    lines = sizes.groupby("line")[["top", "bottom", "height"]].max()
    above = lines["top"].to_numpy()
    below = lines["bottom"].to_numpy()
    heights = lines["height"].to_numpy()
    height = top + above.sum() + heights.sum() + below.sum() + PANEL_GAP * (len(heights) - 1) + margin
    height = math.ceil(height)
    figure.set_size_inches(pixel_width(figure) / INCH, height / INCH)

    x = margin + _starts(left + width + right + PANEL_GAP) + left
    y = top + _starts(above + heights + below + PANEL_GAP) + above
    for axes, place in zip(plots, sizes.itertuples(), strict=True):
        bounds = (x[place.column], height - y[place.line] - place.height, width, place.height)
        _set_place(axes, bounds, pixel_width(figure), height)
    return height


def _sizes(plots: Sequence[Axes]) -> pd.DataFrame:
    # What each plot asks for, with its line and column among the panels.
    rows = []
    for axes in plots:
        cell = axes.get_subplotspec()
        assert cell is not None  # plots of a figure that is arranged stand in a grid
        rows.append({**vars(plot_of(axes)), "line": cell.rowspan.start, "column": cell.colspan.start})
    return pd.DataFrame(rows)


def _starts(extents: NDArray[np.float64]) -> NDArray[np.float64]:
    # Beginnings of lengths that are laid end to end.
    return np.concatenate([[0.0], np.cumsum(extents)[:-1]])


def _set_place(axes: Axes, bounds: tuple[float, float, float, float], width: float, height: float) -> None:
    # `bounds` in pixels from the lower left corner of a figure of that width and height: left, bottom, width, height.
    relative = np.array(bounds) / [width, height, width, height]
    axes.set_position(Bbox.from_bounds(*(round(float(edge), 6) for edge in relative)))


def _reserve_vertical_title(axes: Axes, plot: Plot) -> None:
    # Wraps the title of the vertical axis. Adds the room it takes to `plot`.
    lines = wrapped(axes.yaxis.label.get_text(), max(plot.height + 10, 90))
    axes.yaxis.label.set_text("\n".join(lines))
    if lines:
        plot.left += TEXT_LINE * len(lines) + 4


def _reserve_titles(axes: Axes, plot: Plot, width: float) -> None:
    # Wraps and places the title of the horizontal axis, and above everything the title of the panel. Adds the room they
    # take to `plot`.
    label = axes.xaxis.label
    lines = wrapped(label.get_text(), max(width + 24, 90))
    label.set_text("\n".join(lines))
    room = TEXT_LINE * len(lines) + 4 if lines else 0
    if axes.xaxis.get_label_position() == "top":
        axes.xaxis.set_label_coords(0.5, 1 + (plot.top + 2) / plot.height)
        plot.top += room
    else:
        axes.xaxis.set_label_coords(0.5, -(plot.bottom + 2) / plot.height)
        plot.bottom += room

    # Fonts of a page are wider than those measured by up to a twentieth. Words too long for a line lose their middle.
    widest_line = 0.95 * width
    title_lines = wrapped(axes.get_title(loc="left"), widest_line, weight="bold")
    if len(title_lines) > MOST_TITLE_LINES:
        title_lines[MOST_TITLE_LINES - 1 :] = [" ".join(title_lines[MOST_TITLE_LINES - 1 :])]
    for index, line in enumerate(title_lines):
        if width_of(line, weight="bold") > widest_line:
            title_lines[index] = shortened(line, int(widest_line / LETTER_BOLD))
    if title_lines:
        axes.set_title("\n".join(title_lines), loc="left", y=1, pad=plot.top + 5)
        plot.top += TEXT_LINE * len(title_lines) + 5


def box_of(figure: Figure) -> tuple[float, float, float, float]:
    """Left and upper edge, width and height of the first plot of an arranged figure, as in an SVG."""
    width, height = pixel_width(figure), float(figure.get_figheight()) * INCH
    bounds = next(axes for axes in figure.axes if axes in PLOTS).get_position().bounds
    return bounds[0] * width, (1 - bounds[1] - bounds[3]) * height, bounds[2] * width, bounds[3] * height


def _place_scales(scales: Sequence[Scale], left: float, top: float, *, figure_size: tuple[float, float]) -> None:
    # Side by side from a left edge, with their titles under `top`, in pixels from the lower edge of the figure.
    for index, scale in enumerate(scales):
        start = left + index * (SCALE_WIDTH + 2 * PANEL_GAP)
        bounds = (start, top - 20 - SCALE_BAR, SCALE_WIDTH, SCALE_BAR)
        _set_place(scale.axes, bounds, *figure_size)
