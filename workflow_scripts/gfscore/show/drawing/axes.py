"""Axes of categories and of numbers, names beside the plot, and the order of what a frame names."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator
from matplotlib.transforms import ScaledTranslation, Transform
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame, Series

from gfscore.core.names import shortened_all
from gfscore.core.numbers import MINUS
from gfscore.show.drawing.layout import (
    INCH,
    is_narrow,
    pixel_width,
    plot_of,
    plot_width,
    root_of,
    surround,
    widest_of,
    width_of,
    write,
)
from gfscore.show.drawing.theme import CONTRAST, INK, MUTED

ROW_NAME = 28
NARROW_ROW_NAME = 22
COLUMN_NAME = 18
"""Characters of the names of rows, on wide and on narrow figures, and of columns."""

ROW_NAME_SHARE = 0.5
FEWEST_LETTERS = 9
"""Share of the width that names of rows may take, as long as they have more letters than that."""

MOST_NAMED = 24
AT_EACH_END = 8
"""Points that all get names; of more points, only those at each end of the vertical axis do."""

NAME_DISTANCE = 14
"""Pixels between names beside a plot."""

TICK_DISTANCE = 60
"""Pixels between numbers of a horizontal axis."""

PADDING = 0.03
"""Share of a range of numbers that stays free at its ends."""


def categories(frame: DataFrame, column: str) -> list[str]:
    """Values of a column as text, in the order of the rows."""
    return list(dict.fromkeys(frame[column].dropna().astype(str)))


def places_among(names: Sequence[str], values: Series) -> NDArray[np.intp]:
    """Position of each value of a column, as text, in a list of names; -1 where it is none of them."""
    return pd.Index(names).get_indexer(values.astype(str))


def name_rows(axes: Axes, names: Sequence[str], *, row_height: float, title: str = "") -> None:
    """Name the rows of a plot, the first on top; of rows that are lower than letters as many as have room."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.yaxis.set_visible(False)
    if not plot_of(axes).names_rows:
        return
    short = _row_names(axes, names)
    step = max(1, math.ceil(14 / row_height))
    left_of_plot = axes.get_yaxis_transform() + ScaledTranslation(-6 / INCH, 0, axes.figure.dpi_scale_trans)
    # Texts, which are drawn ten times as fast as ticks.
    for index in range(0, len(names), step):
        write(axes, 0, index, short[index], transform=left_of_plot, ha="right", va="center_baseline", color=INK)
    surround(axes, left=8 + widest_of(short))
    if title:
        axes.yaxis.set_visible(True)
        axes.set_yticks([])
        axes.set_ylabel(title)


def name_columns(axes: Axes, names: Sequence[str], *, width: float, title: str) -> None:
    """Name the columns of a plot above it, slanted where the names are wider than the columns.

    Parameters
    ----------
    axes : Axes
    names : sequence of str
        From left to right.
    width : float
        Estimated width of the plot in pixels; where columns are narrower than letters are high, some stay unnamed.
    title : str
        What the columns are.
    """
    short = shortened_all(names, COLUMN_NAME)
    column = width / len(names)
    widest = widest_of(short)
    slanted = widest + 4 > column
    step = max(1, math.ceil(15 / column)) if slanted else 1
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_xticks([])
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(title)

    above = axes.get_xaxis_transform() + ScaledTranslation(0, 6 / INCH, axes.figure.dpi_scale_trans)
    style: dict[str, Any] = {"ha": "center", "va": "bottom"}
    if slanted:
        style = {"ha": "left", "va": "bottom", "rotation": 45, "rotation_mode": "anchor"}
    slope = 0.71
    beyond_last = 0.0
    for index in range(0, len(names), step):
        write(axes, index, 1, short[index], transform=above, color=INK, **style)
        # A long name may reach further to the right than that of the last column.
        beyond_last = max(beyond_last, slope * width_of(short[index]) - column * (len(names) - 1 - index))
    if slanted:
        surround(axes, top=10 + slope * (widest + 12), right=beyond_last - column / 2 + 8)
    else:
        surround(axes, top=22)


def numbers(
    axis: Axis,
    title: str,
    values: DataFrame | ArrayLike,
    *,
    log: bool = False,
    zero: bool = False,
    whole: bool = False,
    end: float | None = None,
    reverse: bool = False,
) -> None:
    """Scale, limits, ticks and title of an axis of numbers.

    Parameters
    ----------
    axis : Axis
    title : str
        Names quantity, unit and direction; a format of gfscore.show.charts.declaration.Subject.facts.
    values : array_like
        All that is drawn along the axis, also on other panels of the same scale.
    log : bool
        Whether the scale is logarithmic. Zeros, which have no place on it, make it linear up to the smallest other
        value.
    zero : bool
        Whether it begins at 0 where no value is below.
    whole : bool
        Whether values are counts or places, which have no decimals.
    end : float, optional
        Where it ends, beginning at 0; at the data without.
    reverse : bool
        Whether it runs from the largest value to the smallest.
    """
    numeric = np.asarray(values, dtype=np.float64).ravel()
    numeric = numeric[np.isfinite(numeric)]
    low, high = (float(numeric.min()), float(numeric.max())) if len(numeric) else (0.0, 1.0)
    axis.set_label_text(title)
    axis.grid(visible=True)
    if log:
        _logarithmic(axis, numeric, low, high, whole=whole)
        return

    padding = PADDING * (high - low) or 0.05 * abs(high) or 0.05
    start, stop = low - padding, high + padding
    if zero and low >= 0:
        start = 0.0
    if end is not None:
        start, stop = 0.0, end
    if whole and reverse:
        # Places: half of one on both sides.
        start, stop = low - 0.5, high + 0.5
    _set_limits(axis, (stop, start) if reverse else (start, stop))
    ticks = ticks_within(start, stop, most=_most_ticks(axis), whole=whole)
    _set_ticks(axis, ticks, decimal_texts(ticks))


def ticks_within(low: float, high: float, *, most: int, whole: bool = False) -> NDArray[np.float64]:
    """Round numbers within a range, about as many as `most`."""
    steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
    ticks = np.asarray(MaxNLocator(nbins=most, steps=steps, integer=whole).tick_values(low, high))
    slack = 1e-6 * (high - low)
    return ticks[(ticks >= low - slack) & (ticks <= high + slack)]


def decimal_texts(ticks: NDArray[np.float64]) -> list[str]:
    """Numbers of an axis with as many decimals as tell them apart."""
    step = float(np.diff(ticks).min()) if len(ticks) > 1 else 1.0
    decimals = 0
    while decimals < 6 and abs(round(step, decimals) - step) > 1e-9 * abs(step):
        decimals += 1
    return [f"{tick:,.{decimals}f}".replace("-", MINUS) for tick in ticks]


def _most_ticks(axis):
    if axis.axis_name == "x":
        return max(2, min(8, int(plot_width(axis.axes, left=80) / TICK_DISTANCE)))
    return max(2, min(9, int(plot_of(axis.axes).height / 32)))


def _set_ticks(axis, ticks, texts):
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter(texts))
    axis.set_minor_locator(NullLocator())
    if axis.axis_name == "x":
        half = width_of(texts[-1]) / 2 if texts else 0
        surround(axis.axes, bottom=22, left=8, right=half)
    else:
        surround(axis.axes, left=8 + widest_of(texts), top=7)


def _set_limits(axis, limits):
    set_limits = axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim
    set_limits(*limits)


def _set_scale(axis, scale, **settings):
    set_scale = axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale
    set_scale(scale, **settings)


def _logarithmic(axis, values, low, high, *, whole):
    positive = values[values > 0]
    if not len(positive):
        _set_limits(axis, (-0.05, 1.0))
        _set_ticks(axis, np.array([0.0]), ["0"])
        return
    smallest = float(positive.min())
    if low <= 0:
        _set_scale(axis, "symlog", linthresh=smallest)
        ticks = [0.0]
        for exponent in range(math.floor(math.log10(smallest)), math.ceil(math.log10(high)) + 1):
            ticks.append(10.0**exponent)
        _set_limits(axis, (0.0, high * 1.05))
    else:
        _set_scale(axis, "log")
        ticks = _ticks_between(low, high, most=_most_ticks(axis))
        room = (high / low) ** PADDING if high > low else 1.1
        _set_limits(axis, (low / room, high * room))
    _set_ticks(axis, ticks, [f"{tick:,.0f}" if whole else f"{tick:g}" for tick in ticks])


def _ticks_between(low, high, *, most):
    decades = math.log10(high / low)
    factors: tuple[int, ...] = (1,)
    if decades < 1.2:
        factors = (1, 2, 3, 4, 6, 8)
    elif decades < 2.5:
        factors = (1, 2, 5)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = []
    for exponent in exponents:
        for factor in factors:
            tick = factor * 10.0**exponent
            if low * 0.999 <= tick <= high * 1.001:
                ticks.append(tick)
    if not ticks:
        # No round number lies in a narrow range.
        return sorted({float(f"{low:.3g}"), float(f"{high:.3g}")})
    return ticks[:: math.ceil(len(ticks) / most)]


# ---- names beside a plot ----


def right_of(axes: Axes, distance: float) -> Transform:
    """Coordinates of axes, from 0 to 1, moved to the right by a number of pixels."""
    return axes.transAxes + ScaledTranslation(distance / INCH, 0, axes.figure.dpi_scale_trans)


def name_points(
    axes: Axes, x: ArrayLike, y: ArrayLike, names: Sequence[str], *, bold: Sequence[bool] | None = None
) -> None:
    """Write names right of a plot, in the order of their points and apart from each other, with a line to each point.

    Parameters
    ----------
    axes : Axes
        With its scales and limits set.
    x, y : array_like, shape (P,)
        Points, in the units of the axes.
    names : sequence of str
        Name of each point.
    bold : sequence of bool, optional
        Whether a name stands out.
    """
    if not len(names):
        return
    points = np.column_stack([np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)])
    inside = (axes.transScale + axes.transLimits).transform(points)
    height = plot_of(axes).height
    text_heights = spread_out(inside[:, 1] * height, NAME_DISTANCE, low=5, high=height - 5) / height
    short = shortened_all(names, 16 if is_narrow(axes) else 24)

    leaders = [[tuple(point), (1.0, text_height)] for point, text_height in zip(inside, text_heights, strict=True)]
    lines = LineCollection(leaders, colors=MUTED, linewidths=0.6, transform=axes.transAxes, zorder=1.5)
    axes.add_collection(lines, autolim=False)
    beside_plot = right_of(axes, 5)
    for index, name in enumerate(short):
        colour = CONTRAST if bold is not None and bool(bold[index]) else INK
        write(axes, 1, text_heights[index], name, transform=beside_plot, size=11, va="center", color=colour)
    surround(axes, right=10 + widest_of(short, 11))


def name_lines(axes: Axes, frame: DataFrame, *, x: str, y: str, line: str, bold: str, most: int = MOST_NAMED) -> None:
    """Name each line right of the plot, or of more than `most` the ones that stand out; for columns see `curves`."""
    drawn = frame[frame[y].notna()]
    table = drawn.pivot_table(index=x, columns=line, values=y)
    middle = (drawn[x].min() + drawn[x].max()) / 2
    right_half = table[table.index >= middle].dropna()
    straight = axes.get_yscale() == "linear" and not axes.yaxis_inverted()
    if straight and len(right_half):
        # A name leads to where lines lie furthest apart.
        widest = (right_half.max(axis=1) - right_half.min(axis=1)).idxmax()
        ends = drawn[drawn[x] == widest].drop_duplicates(line, keep="last")
    else:
        ends = drawn.groupby(line, sort=False).tail(1)
    if len(ends) > most:
        ends = ends[ends[bold].astype(bool)]
    name_points(axes, ends[x], ends[y], ends[line].astype(str).tolist(), bold=ends[bold].tolist())


def outermost(frame: DataFrame, y: str) -> DataFrame:
    """The points that have names: all where they are few, else those at both ends of the vertical axis."""
    if len(frame) <= MOST_NAMED:
        return frame
    ordered = frame.sort_values(y, kind="stable")
    return ordered.iloc[[*range(AT_EACH_END), *range(-AT_EACH_END, 0)]]


def spread_out(
    values: Sequence[float] | NDArray[np.floating], distance: float, *, low: float, high: float
) -> NDArray[np.float64]:
    """Places near values, in their order, at least a distance apart.

    Parameters
    ----------
    values : array_like, shape (L,)
    distance : float
        Smallest difference of two places. Where there is too little room, the places are evenly spaced over all of it.
    low, high : float
        Limits of the places.

    Returns
    -------
    ndarray, shape (L,), float64
        The nearest such places by least squares.
    """
    order = np.argsort(values, kind="stable")
    distance = min(distance, (high - low) / max(1, len(values) - 1))
    steps = distance * np.arange(len(values))
    free = np.clip(np.asarray(values, dtype=np.float64)[order] - steps, low, high - steps[-1])
    places = np.empty(len(values))
    # Without the steps the places need only ascend.
    places[order] = _pool_adjacent_violators(free) + steps
    return places


def _pool_adjacent_violators(values):
    # The nearest ascending values by least squares: each run that does not ascend is replaced by its mean.
    means: list[float] = []
    sizes: list[int] = []
    for value in values:
        mean, size = value, 1
        while means and means[-1] > mean:
            earlier, earlier_size = means.pop(), sizes.pop()
            total = earlier_size + size
            mean, size = (earlier * earlier_size + mean * size) / total, total
        means.append(mean)
        sizes.append(size)
    return np.repeat(means, sizes)


def _row_names(axes, names):
    # Shortened by their letters, and further where those are so wide that the plot would have no room.
    limit = NARROW_ROW_NAME if is_narrow(axes) else ROW_NAME
    room = ROW_NAME_SHARE * (plot_of(axes).room or pixel_width(root_of(axes)))
    short = shortened_all(names, limit)
    while widest_of(short) > room and limit > FEWEST_LETTERS:
        limit -= 1
        short = shortened_all(names, limit)
    return short


def panel_width(axes: Axes, names: Sequence[str], *, right: float = 10.0, one_row_axis: bool = False) -> float:
    """Estimated width of a plot whose rows have these names."""
    short = _row_names(axes, names)
    return plot_width(axes, left=8 + widest_of(short), right=right, one_row_axis=one_row_axis)
