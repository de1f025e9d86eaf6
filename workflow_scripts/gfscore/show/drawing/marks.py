"""Intervals, bars, curves, points and radars."""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame

from gfscore.core.names import shortened_all
from gfscore.core.numbers import end_of_range, interval, number
from gfscore.show.drawing.axes import categories, name_points, name_rows, outermost, places_among, right_of
from gfscore.show.drawing.cells import grid_of
from gfscore.show.drawing.layout import (
    INCH,
    groups_of,
    named_values,
    pixel_width,
    plot_of,
    plot_width,
    reserve,
    root_of,
    surround,
    tooltips,
    widest_of,
    write,
)
from gfscore.show.drawing.theme import ACCENT, CATEGORIES, CONTRAST, INK, LINE, MARKERS, MUTED, PAPER

ROW = 22
"""Height of a row in pixels."""

CURVES_HEIGHT = 260
"""Height of a plot of curves in pixels."""

PANEL_HEIGHT = 150
"""Height of each of several small plots of curves in pixels."""

POINTS_HEIGHT = 320
"""Height of a plot of points in pixels."""

RADAR = 180
"""Width and height of a radar in pixels, the names around it included."""

RADIUS = 0.31
"""Radius of a radar's outer circle, as a share of RADAR."""

FEW_LINES = 8
"""Lines whose bands are all drawn; of more lines, only those that stand out have one."""

LEGEND_LINE = 17
"""Height of a line of a legend in pixels."""

DASHES = (0, (5, 4))
LOOKS: dict[str, tuple[str, str]] = {"accent": (ACCENT, "o"), "open": (MUTED, "D"), "contrast": (CONTRAST, "^")}
"""Colour and marker of points, by the name of their look."""


def intervals(
    axes: Axes,
    frame: DataFrame,
    *,
    row: str,
    value: str,
    low: str,
    high: str,
    tick: str | None = None,
    colour: str | None = None,
    hollow: str | None = None,
    bold: str | None = None,
    aside: str | None = None,
    rule: float | None = None,
    rows: Sequence[str] | None = None,
) -> None:
    """A point for each row at its value, on a line from the low to the high end of its interval.

    The horizontal axis is that of `numbers`.

    Parameters
    ----------
    axes : Axes
    frame : DataFrame
    row, value, low, high : str
        Columns of the frame; rows stand in the order of the frame. A row without a value says that it is undefined.
    tick : str, optional
        Column of values that get a vertical tick: what chance alone gives.
    colour : str, optional
        Column of categories that share a row, each with a colour and a marker.
    hollow : str, optional
        Column of booleans: points that are hollow because their values are uncertain.
    bold : str, optional
        Column of booleans: rows that stand out.
    aside : str, optional
        Column of texts, written to the right of the plot.
    rule : float, optional
        Where a vertical line crosses all rows.
    rows : sequence of str, optional
        Names of all rows, where the frame lacks some that other panels have.
    """
    rows = list(rows or categories(frame, row))
    kinds = categories(frame, colour) if colour else [""]
    row_height = max(ROW, 9 * len(kinds))
    reserve(axes, row_height * len(rows))
    name_rows(axes, rows, row_height=row_height)
    if rule is not None:
        axes.axvline(rule, color=MUTED, linewidth=1)

    marks = pd.DataFrame(
        {
            "name": frame[row].astype(str).to_numpy(),
            "y": places_among(rows, frame[row]).astype(float),
            "value": frame[value].to_numpy(dtype=float),
            "low": frame[low].to_numpy(dtype=float),
            "high": frame[high].to_numpy(dtype=float),
            "paint": ACCENT,
            "marker": "o",
            "hollow": False,
        }
    )
    if colour:
        # Categories that share a row lie one below the other.
        kind_of_mark = frame[colour].astype(str).to_numpy()
        kind_index = pd.Index(kinds).get_indexer(kind_of_mark)
        marks["y"] += (kind_index - (len(kinds) - 1) / 2) * 0.72 / len(kinds)
        marks["paint"] = np.take(CATEGORIES, kind_index, mode="wrap")
        marks["marker"] = np.take(MARKERS, kind_index, mode="wrap")
        marks["name"] += ", " + kind_of_mark
        entries = []
        for index, kind in enumerate(kinds):
            entries.append((kind, CATEGORIES[index % len(CATEGORIES)], MARKERS[index % len(MARKERS)]))
        _legend(axes, entries)
    if bold:
        marks.loc[frame[bold].to_numpy(dtype=bool), ["paint", "marker"]] = CONTRAST, "D"
    if hollow:
        marks["hollow"] = frame[hollow].to_numpy(dtype=bool)
    for (paint, marker), group in marks.groupby(["paint", "marker"], sort=False):
        _draw_intervals(axes, group, paint=paint, marker=marker, width=2 if colour else 4)
    if tick:
        axes.scatter(frame[tick], marks["y"], marker="|", s=200, linewidths=2.5, color=CONTRAST, zorder=4)
    at_start = axes.get_yaxis_transform() + ScaledTranslation(4 / INCH, 0, axes.figure.dpi_scale_trans)
    for height in marks.loc[marks["value"].isna(), "y"]:
        write(axes, 0, height, "undefined", transform=at_start, size=11, color=MUTED, va="center")

    if aside:
        beside_plot = right_of(axes, 8)
        first = frame.drop_duplicates(row)
        texts = first[aside].astype(str).tolist()
        for name, text in zip(first[row].astype(str), texts, strict=True):
            height = 1 - (rows.index(name) + 0.5) / len(rows)
            write(axes, 1, height, text, transform=beside_plot, size=11, va="center", color=INK)
        surround(axes, right=12 + widest_of(texts, 11))


def _draw_intervals(axes: Axes, marks: DataFrame, *, paint: str, marker: str, width: float) -> None:
    # Draws the rows of one colour and marker; for columns see `intervals`.
    ordered = marks[marks["low"] <= marks["high"]]
    axes.hlines(ordered["y"], ordered["low"], ordered["high"], colors=paint, linewidths=width, alpha=0.45, zorder=2)

    valued = marks[marks["value"].notna()]
    fill = np.where(valued["hollow"], PAPER, paint).tolist()
    style: dict[str, Any] = {"facecolors": fill, "edgecolors": paint, "linewidths": 1.2}
    if marker == "_":
        # The marker is a line, which has no face.
        style = {"color": paint}
    points = axes.scatter(valued["value"], valued["y"], s=48, marker=marker, zorder=3, clip_on=False, **style)
    texts = []
    for mark in valued.itertuples():
        texts.append(f"{mark.name}: {number(mark.value)} ({interval(mark.low, mark.high)})")
    points.set_gid(tooltips(axes, texts))


def _legend(axes: Axes, looks: Sequence[tuple[str, str, str]], *, columns: int | None = None) -> None:
    # Names with their colours and markers, above the plot and under its title.
    names = shortened_all([name for name, _, _ in looks], 24)
    column_width = widest_of(names) + 28
    if columns is None:
        columns = max(1, min(len(names), int(plot_width(axes, left=plot_of(axes).left) // column_width)))
    lines = math.ceil(len(names) / columns)
    surround(axes, top=LEGEND_LINE * lines + 8)
    for index, (name, (_, colour, marker)) in enumerate(zip(names, looks, strict=True)):
        # Pixels from the upper left corner of the plot.
        x = column_width * (index % columns)
        y = LEGEND_LINE * (lines - 1 - index // columns) + 12
        at_marker = ScaledTranslation((x + 5) / INCH, y / INCH, axes.figure.dpi_scale_trans)
        at_name = ScaledTranslation((x + 14) / INCH, y / INCH, axes.figure.dpi_scale_trans)
        sign = axes.scatter(
            0, 1, s=44, marker=marker, color=colour, transform=axes.transAxes + at_marker, clip_on=False
        )
        sign.set_in_layout(False)
        write(axes, 0, 1, name, transform=axes.transAxes + at_name, va="center_baseline", color=INK)


def bars(
    axes: Axes, frame: DataFrame, *, row: str, value: str, filled: str | None = None, rule: float | None = None
) -> None:
    """A bar for each category at the mean of its values, and a dot for each value.

    Without dots where each category has one value only. The horizontal axis is that of `numbers`.

    Parameters
    ----------
    axes : Axes
    frame : DataFrame
        One row for each value. Tooltips of dots say its `model` where there is such a column, else its category.
    row, value : str
        Columns of categories and of values; bars stand in the order of the frame.
    filled : str, optional
        Column of booleans: dots that are filled; all others are rings.
    rule : float, optional
        Where a vertical dashed line crosses all bars.
    """
    rows = categories(frame, row)
    reserve(axes, ROW * len(rows))
    name_rows(axes, rows, row_height=ROW)
    places = places_among(rows, frame[row])
    means = frame[value].groupby(places).mean()
    drawn_bars = axes.barh(means.index, means, height=0.6, color=ACCENT, alpha=0.45, linewidth=0)
    for bar, name, mean in zip(drawn_bars, rows, means, strict=True):
        bar.set_gid(tooltips(axes, [f"{name}: {number(mean)} on average"]))
    if rule is not None:
        axes.axvline(rule, color=MUTED, linewidth=1, linestyle=DASHES)
    if len(frame) == len(rows):
        return

    is_filled = frame[filled].to_numpy(dtype=bool) if filled else np.zeros(len(frame), dtype=bool)
    is_valued = frame[value].notna().to_numpy()
    for selected, edge, face in ((~is_filled, INK, "none"), (is_filled, CONTRAST, CONTRAST)):
        dots = frame[selected & is_valued]
        if dots.empty:
            continue
        drawn_dots = axes.scatter(
            dots[value], places_among(rows, dots[row]), s=24, linewidths=1.4, edgecolors=edge, facecolors=face, zorder=3
        )
        names = dots["model"] if "model" in dots else dots[row]
        drawn_dots.set_gid(tooltips(axes, named_values(names, dots[value])))
        drawn_dots.set_clip_on(False)


def curves(
    axes: Axes,
    frame: DataFrame,
    *,
    x: str,
    y: str,
    line: str,
    low: str | None = None,
    high: str | None = None,
    bold: str | None = None,
    dot: str | None = None,
    shade: str | None = None,
    rule: float | None = None,
    points: bool = False,
) -> None:
    """Lines over a common axis; `numbers` must have made both axes.

    Parameters
    ----------
    axes : Axes
    frame : DataFrame
        One row for each point of a line, from left to right.
    x, y, line : str
        Columns of coordinates and of the lines' names.
    low, high : str, optional
        Columns of the ends of a band around the line.
    bold : str, optional
        Column of booleans, equal along a line: lines that stand out.
    dot : str, optional
        Column of booleans: points that are marked.
    shade : str, optional
        Column of booleans: the plot is shaded over each run of points where it is true.
    rule : float, optional
        Where a vertical dashed line stands.
    points : bool
        Whether every point of a line has a marker.
    """
    lines = groups_of(frame, line)
    if bold:
        # Drawn last, so that they lie over all others.
        lines.sort(key=lambda item: bool(item[1][bold].iloc[0]))
    if shade:
        for _, rows in lines:
            places = rows[x].to_numpy()
            for first, last in runs_of(rows[shade].to_numpy(dtype=bool)):
                axes.axvspan(
                    places[first], places[last], facecolor=CONTRAST, edgecolor=CONTRAST, alpha=0.25, linewidth=1
                )
    if rule is not None:
        axes.axvline(rule, color=MUTED, linewidth=1, linestyle=DASHES)

    for name, rows in lines:
        stands_out = bool(rows[bold].iloc[0]) if bold else False
        paint = CONTRAST if stands_out else ACCENT
        for bound in (low, high):
            banded = stands_out or not bold or len(lines) <= FEW_LINES
            if bound and banded and rows[bound].notna().any():
                axes.fill_between(rows[x], rows[y], rows[bound], color=paint, alpha=0.13, linewidth=0)
        (drawn,) = axes.plot(
            rows[x], rows[y], color=paint, linewidth=2.6 if stands_out else 1.4, clip_on=False,
            alpha=0.6 if bold and not stands_out else 1.0, marker="o" if points else None, markersize=4,
        )  # fmt: skip
        drawn.set_gid(tooltips(axes, [name]))
    if dot:
        marked = frame[frame[dot].astype(bool)]
        axes.scatter(marked[x], marked[y], s=60, color=CONTRAST, zorder=4, clip_on=False)


def runs_of(flags: ArrayLike) -> list[tuple[int, int]]:
    """Indices of the first and the last of each run of true values."""
    steps = np.diff(np.concatenate([[0], np.asarray(flags, dtype=int), [0]]))
    edges = np.flatnonzero(steps)
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2] - 1, strict=True)]


def scatter(
    axes: Axes,
    frame: DataFrame,
    *,
    x: str,
    y: str,
    name: str,
    x_low: str | None = None,
    x_high: str | None = None,
    y_low: str | None = None,
    y_high: str | None = None,
    state: str | None = None,
    looks: Mapping[str, str] | None = None,
) -> None:
    """One named point for each row, with its intervals along both axes; `numbers` must have made the axes.

    Parameters
    ----------
    axes : Axes
    frame : DataFrame
    x, y, name : str
        Columns of the frame.
    x_low, x_high, y_low, y_high : str, optional
        Columns of the ends of the intervals.
    state : str, optional
        Column of states, which are keys of `looks`.
    looks : mapping, optional
        How the points of each state look: "accent" (circles), "open" (grey diamonds), "contrast" (triangles).
    """
    if x_low and x_high:
        axes.hlines(frame[y], frame[x_low], frame[x_high], color=ACCENT, linewidth=1.2, alpha=0.35)
    if y_low and y_high:
        axes.vlines(frame[x], frame[y_low], frame[y_high], color=ACCENT, linewidth=1.2, alpha=0.35)
    looks = looks or {"": "accent"}
    for key, look in looks.items():
        points = frame[frame[state] == key] if state else frame
        points = points[points[[x, y]].notna().all(axis=1)]
        if points.empty:
            continue
        colour, marker = LOOKS[look]
        drawn = axes.scatter(
            points[x], points[y], s=62, marker=marker, color=colour, linewidths=0, zorder=3, clip_on=False
        )
        tips = []
        for point, across, up in points[[name, x, y]].itertuples(index=False):
            tips.append(f"{point}: {number(across)}, {number(up)}")
        drawn.set_gid(tooltips(axes, tips))
    if state:
        _legend(axes, [(key, *LOOKS[look]) for key, look in looks.items()], columns=1)
    labelled = outermost(frame[frame[[x, y]].notna().all(axis=1)], y)
    name_points(axes, labelled[x], labelled[y], labelled[name].astype(str).tolist())


def equal_line(axes: Axes, end: float, text: str) -> None:
    """The line of equal values of two axes that both end at `end`, and what lies above it."""
    axes.plot([0, end], [0, end], color=MUTED, linewidth=1, linestyle=DASHES)
    inside = axes.transAxes + ScaledTranslation(6 / INCH, -6 / INCH, axes.figure.dpi_scale_trans)
    write(axes, 0, 1, text, transform=inside, size=11, weight="bold", color=CONTRAST, va="top")


def radars(
    axes: Axes,
    frame: DataFrame,
    *,
    panel: str,
    spoke: str,
    value: str,
    low: str,
    high: str,
    top: float,
    most: str | None = None,
    reference: str | None = None,
) -> None:
    """A radar for each panel: values with their intervals as polygons around a centre of 0.

    A triangle marks the lowest value of each radar. All radars lie on the same axes, since axes are slow to make.

    Parameters
    ----------
    axes : Axes
        Alone on their figure.
    frame : DataFrame
        One row for each spoke of a panel.
    panel, spoke, value, low, high : str
        Columns of the frame; panels and spokes stand in the order of the frame, the first spoke up, clockwise.
    top : float
        Value at the outer circle (outer_circle), positive.
    most : str, optional
        Column of values with undecided samples at the most that they may be worth; the band between `value` and `most`
        is shaded.
    reference : str, optional
        Column of values that a dashed line shows, where there are several panels.
    """
    panels = categories(frame, panel)
    spokes = categories(frame, spoke)
    centres, directions = _radar_grid(axes, panels, spokes, top)

    def lengths_of(column: str) -> NDArray[np.float64]:
        # (panels, spokes), 1 at the outer circle.
        return grid_of(frame, panel, spoke, column, panels, spokes) / top

    def points_of(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        # (panels, spokes, 2)
        return centres[:, None, :] + RADIUS * lengths[:, :, None] * directions

    def polygons_of(lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        # (panels, spokes + 1, 2), the last corner being the first.
        corners = points_of(lengths)
        return np.concatenate([corners, corners[:, :1]], axis=1)

    values = lengths_of(value)
    highest = lengths_of(most) if most else values
    if (highest > values).any():
        bands = []
        for inner, outer in zip(polygons_of(values), polygons_of(highest), strict=True):
            bands.append(np.concatenate([inner, outer[::-1]]))
        axes.add_collection(PolyCollection(bands, facecolors=ACCENT, alpha=0.3, linewidths=0))
    for bound in (low, high):
        polygons = list(polygons_of(lengths_of(bound)))
        axes.add_collection(LineCollection(polygons, colors=ACCENT, linewidths=0.8, alpha=0.5))
    if reference and len(panels) > 1:
        polygons = list(polygons_of(lengths_of(reference)))
        axes.add_collection(LineCollection(polygons, colors=MUTED, linewidths=1.4, linestyles=[(0, (4, 3))]))
    axes.add_collection(LineCollection(list(polygons_of(values)), colors=ACCENT, linewidths=2))

    points = points_of(values)
    valued = np.isfinite(values)
    x, y = points[valued].T
    marks = axes.scatter(x, y, s=18, color=ACCENT, linewidths=0, zorder=3)
    names = np.array([", ".join(mark) for mark in product(panels, spokes)])
    marks.set_gid(tooltips(axes, named_values(names[valued.ravel()], top * values[valued])))
    lowest = valued & (values == np.nanmin(values, axis=1, keepdims=True))
    x, y = points[lowest].T
    axes.scatter(x, y, s=60, marker="v", color=CONTRAST, linewidths=0, zorder=4)


def _radar_grid(
    axes: Axes, panels: Sequence[str], spokes: Sequence[str], top: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Makes room for the radars, and draws their circles and names. Returns their centres (panels, 2), and unit vectors
    # along the spokes (spokes, 2), in units of the axes, of which one is RADAR pixels; y points down.
    short_spokes = shortened_all(spokes, 11)
    pitch = max(1.0, 2.3 * RADIUS + 2 * widest_of(short_spokes, 10) / RADAR)
    columns = max(1, min(len(panels), int(pixel_width(root_of(axes)) // (RADAR * pitch))))
    lines = math.ceil(len(panels) / columns)
    reserve(axes, RADAR * lines, widest=RADAR * pitch * columns)
    axes.set_axis_off()
    axes.set_xlim(0, pitch * columns)
    axes.set_ylim(lines, 0)

    indices = np.arange(len(panels))
    centres = np.column_stack([pitch * (indices % columns + 0.5), indices // columns + 0.55])
    angles = 2 * np.pi * np.arange(len(spokes)) / len(spokes)
    directions = np.column_stack([np.sin(angles), -np.cos(angles)])

    turn = np.linspace(0, 2 * np.pi, 61)
    circle = RADIUS * np.column_stack([np.sin(turn), np.cos(turn)])
    circles = []
    for centre in centres:
        circles += [centre + 0.5 * circle, centre + circle]
    axes.add_collection(LineCollection(circles, colors=LINE, linewidths=1))
    for centre, name in zip(centres, shortened_all(panels, 24), strict=True):
        _name_radar(axes, centre, name, short_spokes, directions, top)
    return centres, directions


def _name_radar(  # noqa: PLR0917
    axes: Axes,
    centre: NDArray[np.float64],
    name: str,
    spokes: Sequence[str],
    directions: NDArray[np.float64],
    top: float,
) -> None:
    # The name of the radar above it, the names of its spokes around it, and the value at its outer circle.
    write(axes, centre[0], centre[1] - 0.49, name, weight="bold", ha="center", va="center", color=INK)
    for spoke, (across, down) in zip(spokes, directions, strict=True):
        alignment = "center"
        if abs(across) > 0.3:
            alignment = "left" if across > 0 else "right"
        x = centre[0] + 1.12 * RADIUS * across
        y = centre[1] + 1.2 * RADIUS * down
        write(axes, x, y, spoke, size=10, ha=alignment, va="center", color=INK)
    # Between the first spoke and the second.
    angle = np.pi / len(spokes)
    x = centre[0] + RADIUS * np.sin(angle)
    y = centre[1] - RADIUS * np.cos(angle)
    write(axes, x, y, end_of_range(top), size=8, color=MUTED, ha="center", va="center")


def outer_circle(highest: float, value_range: tuple[float, float]) -> float:
    """Value at the outer circle of radars, positive.

    Parameters
    ----------
    highest : float
        Highest value that is drawn; NaN where there is none.
    value_range : tuple of float
        Lowest and highest value of the measure, which may be infinite.

    Returns
    -------
    float
        The upper end of the range where `highest` is above half of it, or not above 0; else, and where the range has no
        end, the next round number at or above `highest`. 1 where there is neither an end nor a value above 0.
    """
    end = value_range[1]
    bounded = 0 < end < math.inf
    if not highest > 0:
        return float(end) if bounded else 1.0
    if bounded and highest > end / 2:
        return float(end)
    power = 10.0 ** np.floor(np.log10(max(highest, 1e-9)))
    rounds = [step * power for step in (1, 2, 4, 6, 8, 10)]
    return float(next(step for step in rounds if step >= highest * (1 - 1e-9)))
