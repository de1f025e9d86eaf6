"""Cells of rows by columns: values as colours, and small pictures."""

from collections.abc import Sequence
from itertools import product
from typing import Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike, NDArray
from pandas import DataFrame

from gfscore.core.numbers import MINUS, number, span
from gfscore.show.drawing.axes import (
    categories,
    name_columns,
    name_rows,
    panel_width,
    places_among,
    right_of,
    ticks_within,
)
from gfscore.show.drawing.images import decoded
from gfscore.show.drawing.layout import (
    INCH,
    SCALES,
    Scale,
    is_narrow,
    named_values,
    reserve,
    root_of,
    surround,
    tooltips,
    widest_of,
    write,
)
from gfscore.show.drawing.theme import CONTRAST, INK, MUTED, ON_BRIGHT, ON_DARK, PAPER, VALUES, colours_of_differences

CELL = 26
LOW_CELL = 8
CELL_TEXT = 10
CELL_MARGIN = 2
"""Pixels of the height of a cell, and of one too low for letters; of its letters, and beside them."""
WIDEST_SQUARE = 66
"""Pixels of the width of a matrix's cell."""
MOST_LETTERED = 60
"""Rows that are high enough for letters."""
MOST_NUMBERED = 16
NARROWEST_NUMBERED = 36
NARROWEST_HALF = 30
"""Columns of numbered cells, and pixels of the narrowest one, and of the narrowest half."""
MOST_SHAPES = 1500
"""Cells that are shapes with a tooltip each; more are one image, a pixel for each cell."""
LEAST_SPAN = 0.05
"""Smallest share of a measure's range that colours span."""

Limits = tuple[float, float]


def limits_from_zero(values: ArrayLike) -> Limits:
    """Limits of colours that hold the values and 0."""
    finite = _finite(values)
    low = min(0.0, float(finite.min())) if len(finite) else 0.0
    high = max(0.0, float(finite.max())) if len(finite) else 1.0
    return low, high if high > low else 1.0


def limits_around_zero(values: ArrayLike) -> Limits:
    """Limits of colours of differences, equally far on both sides of 0."""
    finite = _finite(values)
    reach = float(np.abs(finite).max()) if len(finite) else 1.0
    reach = reach or 1.0
    return -reach, reach


def limits_of_measure(values: ArrayLike, value_range: Limits) -> Limits:
    """Limits of colours that hold the values and at least half of the measure's range below the highest of them.

    Small differences then look small, and a value close to the best of all is never dark.
    """
    finite = _finite(values)
    if not len(finite):
        return value_range
    if not np.isfinite(value_range).all():
        return limits_from_zero(finite)
    lowest, highest = value_range
    low, high = float(finite.min()), float(finite.max())
    start = min(low, max(lowest, high - (highest - lowest) / 2))
    return start, max(high, start + LEAST_SPAN * (highest - lowest))


def _finite(values):
    array = np.asarray(values, dtype=np.float64).ravel()
    return array[np.isfinite(array)]


def heatmap(
    axes: Axes,
    frame: DataFrame,
    *,
    row: str,
    column: str,
    value: str,
    limits: Limits,
    scale_title: str,
    colours: Literal["values", "differences"] = "values",
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    most: str | None = None,
    aside: str | None = None,
    aside_most: str | None = None,
    dot: str | None = None,
    box: str | None = None,
    diagonal: str | None = None,
    row_title: str = "",
    column_title: str = "",
    square: bool = False,
) -> None:
    """Values of rows by columns as colours, numbered where there is room. A cell without a value stays empty.

    Parameters
    ----------
    axes : Axes
    frame : DataFrame
        One row for each cell.
    row, column, value : str
        Columns of the frame; rows and columns stand in the order of the frame.
    limits : (float, float)
        What the colours span (limits_of_measure, limits_from_zero, limits_around_zero).
    scale_title : str
        Title of the scale of colours, which a figure has once for each title and limits.
    colours : {"values", "differences"}
        Dark low and bright high, or two hues around 0.
    rows, columns : sequence of str, optional
        All names, where other panels have more of them.
    most : str, optional
        The most that a value may be. Where that is above the value of any cell, the left half of a cell has the colour
        of the value, and the right half the colour of the most.
    aside, aside_most : str, optional
        Number of a whole row, written behind it, and the most that it may be.
    dot : str, optional
        Whether a cell rests on little, which puts a dot over its number.
    box : str, optional
        "sure" for a solid frame around a cell, "open" for a dotted one.
    diagonal : str, optional
        Values that are written without a colour.
    row_title, column_title : str
        What rows and columns are.
    square : bool
        Whether cells are hardly wider than high.
    """
    rows = list(rows or categories(frame, row))
    columns = list(columns or categories(frame, column))
    grid = grid_of(frame, row, column, value, rows, columns)
    highest = grid_of(frame, row, column, most, rows, columns) if most else grid
    undecided = bool((highest > grid).any())
    asides = {}
    right = 10.0
    if aside:
        asides = _numbers_of_rows(frame, row, aside, aside_most if undecided else None)
        right = max(48.0, 18 + widest_of(asides.values(), 11, "bold"))

    width = panel_width(axes, rows, right=right, one_row_axis=True)
    cell_height = CELL if len(rows) <= MOST_LETTERED else LOW_CELL
    widest = WIDEST_SQUARE * len(columns) if square and not is_narrow(axes) else np.inf
    reserve(axes, cell_height * len(rows), widest=widest)
    width = min(width, widest)

    palette = colours_of_differences() if colours == "differences" else colormaps[VALUES]
    norm = Normalize(*limits)
    names = [", ".join(cell) for cell in product(rows, columns)]
    painted = grid
    if undecided:
        painted = np.stack([grid, highest], axis=-1).reshape(len(rows), -1)
        names = [", ".join(half) for half in product(names, ("at least", "at most"))]
    _paint(axes, painted, palette, norm, names, columns=len(columns))
    name_rows(axes, rows, row_height=cell_height, title=row_title)
    name_columns(axes, columns, width=width, title=column_title)
    axes.spines[:].set_visible(False)
    _colour_scale(axes, palette, limits, scale_title)

    lettered = len(rows) <= MOST_LETTERED and len(columns) <= MOST_NUMBERED
    narrowest = 2 * NARROWEST_HALF if undecided else NARROWEST_NUMBERED
    room = width / len(columns) - CELL_MARGIN
    if lettered and width / len(columns) >= narrowest:
        _write_numbers(axes, grid, limits, room, differences=colours == "differences", most=highest)
        if diagonal:
            plain = grid_of(frame, row, column, diagonal, rows, columns)
            _write_numbers(axes, plain, None, room, differences=False)
    if dot:
        few = grid_of(frame, row, column, dot, rows, columns) == 1
        _mark_cells(axes, few & np.isfinite(grid), grid, limits, differences=colours == "differences")
    if box:
        _frame_cells(axes, frame, (row, column, box), rows, columns)
    if aside:
        _write_behind(axes, [asides.get(name, "") for name in rows], every=1 if cell_height == CELL else 2)
        surround(axes, right=right + 2)


def grid_of(  # noqa: PLR0917
    frame: DataFrame, row: str, column: str, value: str, rows: Sequence[str], columns: Sequence[str]
) -> NDArray[np.float64]:
    """Values of a frame (rows, columns), NaN where it has none."""
    grid = np.full((len(rows), len(columns)), np.nan)
    row_places = places_among(rows, frame[row])
    column_places = places_among(columns, frame[column])
    inside = (row_places >= 0) & (column_places >= 0)
    values = frame[value].astype(float).to_numpy(dtype=np.float64, na_value=np.nan)
    grid[row_places[inside], column_places[inside]] = values[inside]
    return grid


def _numbers_of_rows(frame, row, value, most):
    # Text by row, of its first cell: one number, or two where the value is not known.
    texts = {}
    for cell in frame.drop_duplicates(row).to_dict("records"):
        texts[str(cell[row])] = span(cell[value], cell[most or value])
    return texts


def _write_behind(axes, texts, *, every):
    # One text per row on the right, of every row or of every second one where rows are low.
    behind = right_of(axes, 7)
    for index in range(0, len(texts), every):
        height = 1 - (index + 0.5) / len(texts)
        write(axes, 1, height, texts[index], transform=behind, size=11, weight="bold", va="center", color=INK)


def _paint(axes, grid, palette, norm, names, *, columns):
    # A grid of as many columns, or of two to each of them.
    rows, parts = grid.shape
    masked = np.ma.masked_invalid(grid)
    if grid.size > MOST_SHAPES:
        extent = (-0.5, columns - 0.5, rows - 0.5, -0.5)
        image = axes.imshow(
            masked, cmap=palette, norm=norm, aspect="auto", interpolation="none", extent=extent, origin="upper"
        )
        image.set_gid("cells")
        return
    # Only cells with a value are shapes.
    written = named_values(names, grid.ravel())
    gap = 1 if columns <= 100 else 0
    whole = parts == columns
    mesh = axes.pcolormesh(
        np.linspace(-0.5, columns - 0.5, parts + 1),
        np.arange(rows + 1) - 0.5,
        masked,
        cmap=palette,
        norm=norm,
        edgecolors=PAPER if whole else "none",
        linewidth=gap if whole else 0,
    )
    mesh.set_gid(f"cells {tooltips(axes, written)}")
    if gap and not whole:
        # Halves touch, cells do not.
        style = {"color": PAPER, "linewidth": 2 * gap}
        axes.vlines(np.arange(columns + 1) - 0.5, -0.5, rows - 0.5, **style)
        axes.hlines(np.arange(rows + 1) - 0.5, -0.5, columns - 0.5, **style)


def _colour_on(value, limits, *, differences):
    # Colour of what is written or drawn on a cell of this value.
    low, high = limits
    bright = abs(value) < 0.6 * high if differences else value > low + 0.55 * (high - low)
    return ON_BRIGHT if bright else ON_DARK


def _write_numbers(axes, grid, limits, room, *, differences, most=None):
    # Without limits the cells have no colour; where the most is above the value each has its half of the cell. `room`
    # is the width for the number of a whole cell.
    for (row, column), value in np.ndenumerate(grid):
        if np.isnan(value):
            continue
        places = [(column, value)]
        if most is not None and most[row, column] > value:
            places = [(column - 0.25, value), (column + 0.25, most[row, column])]
        for x, written in places:
            colour = INK if limits is None else _colour_on(written, limits, differences=differences)
            words = cell_text(written, room / len(places), differences=differences)
            text = write(axes, x, row, words, size=CELL_TEXT, color=colour, ha="center", va="center_baseline")
            text.set_in_layout(False)
            text.set_gid(f"number {row} {column}")


def cell_text(value: float, room: float, *, differences: bool = False) -> str:
    """Number of a cell: three significant digits, or decimals where more would reach into the next cell.

    Parameters
    ----------
    value : float
    room : float
        Width for the number, in pixels.
    differences : bool
        Whether it is a difference, which has a sign.
    """
    if differences:
        return f"{value:+.2f}".replace("-", MINUS) if abs(value) >= 0.005 else "0"
    if value == 0:
        return "0"
    if 0 < value < 0.0005:
        return "<.001"
    text = number(value)
    if 0 < value < 1 and widest_of([text], CELL_TEXT) > room:
        return f"{value:.3f}"
    return text


def _mark_cells(axes, marked, grid, limits, *, differences):
    rows, columns = np.nonzero(marked)
    if not len(rows):
        return
    colours = []
    for value in grid[marked]:
        colours.append(_colour_on(value, limits, differences=differences))
    raised = axes.transData + ScaledTranslation(0, 8 / INCH, axes.figure.dpi_scale_trans)
    axes.scatter(columns, rows, s=12, c=colours, linewidths=0, transform=raised)


def _frame_cells(axes, frame, names, rows, columns):
    row, column, box = names
    framed = frame[frame[box].isin(["sure", "open"])]
    x = places_among(columns, framed[column])
    y = places_among(rows, framed[row])
    for left, top, box_of_cell in zip(x - 0.5, y - 0.5, framed[box], strict=True):
        style = (0, (2, 3)) if box_of_cell == "open" else "-"
        frame_of_cell = Rectangle((left, top), 1, 1, fill=False, edgecolor=CONTRAST, linewidth=2, linestyle=style)
        # Over the gaps between cells.
        frame_of_cell.set_zorder(3)
        frame_of_cell.set_clip_on(False)
        axes.add_patch(frame_of_cell)


def _colour_scale(axes: Axes, palette: Colormap, limits: Limits, title: str) -> None:
    # The scale of colours of a figure, once for each title and limits; `arrange` gives it its place.
    scales = SCALES.setdefault(root_of(axes), [])
    if any((scale.name, scale.limits) == (title, limits) for scale in scales):
        return
    position = axes.get_position()
    bar = root_of(axes).add_axes((position.x0, position.y1 + 0.05, 0.2, 0.02))
    low, high = limits
    image = AxesImage(bar, cmap=palette, norm=Normalize(low, high), extent=(low, high, 0, 1), interpolation="none")
    image.set_data(np.linspace(low, high, 128)[None, :])
    bar.add_image(image)
    bar.set_xlim(low, high)
    bar.set_ylim(0, 1)
    bar.set_yticks([])
    ticks = ticks_within(low, high, most=3)
    bar.set_xticks(ticks, [f"{tick:g}".replace("-", MINUS) for tick in ticks])
    bar.tick_params(axis="x", pad=3)
    bar.spines[:].set_visible(False)
    heading = bar.set_title(title, weight="normal", color=MUTED, pad=5, y=1)
    scales.append(Scale(bar, heading, title, limits))


def pictures(axes: Axes, frame: DataFrame, *, row: str, column: str, picture: str, column_title: str = "") -> None:
    """Small images in rows and columns.

    Parameters
    ----------
    axes : Axes
    frame : DataFrame
        One row for each image.
    row, column : str
        Columns of the frame; both stand in the order of the frame.
    picture : str
        PNG files as data: addresses.
    column_title : str
        What the columns are.
    """
    rows = categories(frame, row)
    columns = categories(frame, column)
    width = panel_width(axes, rows)
    size = min(40.0, width / len(columns))
    reserve(axes, size * len(rows), widest=size * len(columns))
    column_places = places_among(columns, frame[column])
    row_places = places_among(rows, frame[row])
    half = 0.5 - 1.5 / size
    for x, y, encoded in zip(column_places, row_places, frame[picture], strict=True):
        pixels = decoded(encoded)
        extent = (x - half, x + half, y + half, y - half)
        axes.imshow(pixels, extent=extent, aspect="auto", interpolation="none", cmap="gray", vmin=0, vmax=255)
    name_rows(axes, rows, row_height=size)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    step = max(1, int(np.ceil((widest_of(columns) + 4) / size)))
    axes.set_xticks(range(0, len(columns), step), columns[::step])
    surround(axes, bottom=22)
    axes.set_xlabel(column_title)
    axes.spines[:].set_visible(False)
