"""Heatmap of class values, models by classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.numbers import end_of_range, number, percent, upper_bound
from gfscore.show.figures.cells import (
    bare,
    colour_bar,
    colours,
    legible,
    name_columns,
    name_some_columns,
    number_cells,
    number_rows,
    separate_cells,
)
from gfscore.show.figures.grid import class_grid, identity
from gfscore.show.figures.style import drawing, framed_figure, laid_out, sample_range
from gfscore.show.words import takeaways
from gfscore.statistics.disparity import worst_class_set

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from gfscore.measures import Measure

MOST_NUMBERED_CLASSES, MOST_NUMBERED_MODELS = 16, 60
MOST_NAMED_CLASSES = 60
LEAST_SPAN = 0.05


def class_heatmap(scores: pd.DataFrame, measure: Measure) -> Figure:
    """Class values as colours: models in rows, best aggregate first, classes in columns.

    Takes class_scores rows of one measure and calibration, and that measure (measures.Measure). Up to 16 classes get
    numbers in their cells; beyond 60 the classes are sorted by mean and only a few are named.
    """
    grid = class_grid(scores)
    many = len(grid.classes) > MOST_NAMED_CLASSES
    if many:
        grid = grid.sorted_by_class_mean()
    m, k = grid.value.shape
    numbered = k <= MOST_NUMBERED_CLASSES and m <= MOST_NUMBERED_MODELS
    row = 0.34 if m <= MOST_NUMBERED_MODELS else 0.16
    with drawing():
        figure = framed_figure(
            min(30, max(0.9 + (1.0 if many else 0.5), row * m + 1.1)),
            title=takeaways.weakest_class(scores),
            subtitle=f"{measure.title} of each class, {identity(scores)}; {sample_range(grid.n)}. "
            "Dark is low, bright is high; higher is better.",
            note=_how_to_read_heatmap(scores, grid, measure, many=many),
        )
        axes = figure.subplots()
        image = axes.imshow(
            grid.value, aspect="auto", cmap=colours(), interpolation="nearest", **colour_limits(grid.value, measure)
        )
        axes.set_yticks(range(m), grid.models)
        if many:
            name_some_columns(axes, grid.classes, label=f"rank of {k:,} classes by mean value")
        else:
            name_columns(axes, grid.classes, room=62)
        bare(axes)
        number_rows(axes, grid.total)
        _hatch_absent(axes, grid)
        if numbered:
            number_cells(axes, grid.value, image, number)
        if not many:
            separate_cells(axes, m, k)
            _mark_weakest(axes, grid, image)
        colour_bar(figure, image, axes, measure.unit, pad=0.065, aspect=max(16, 2.2 * m))
        return laid_out(figure)


def _how_to_read_heatmap(scores, grid, measure, *, many):
    known = grid.n > 0
    reach = np.maximum(grid.high - grid.value, grid.value - grid.low)[known].max()
    intervals = (
        f"Simultaneous {percent(scores['confidence'].iloc[0])} intervals of a model's classes reach at most "
        f"{upper_bound(reach)} from the value."
    )
    if many:
        order = "Classes are sorted by their mean over models, weakest left."
    else:
        order = "Box: lowest class of the model, solid where significantly so, dotted where other classes may be lower."
    absent = " Hatched: no samples." if not known.all() else ""
    limits, (lowest, highest) = colour_limits(grid.value, measure), measure.value_range
    colours = (
        f"Colours run from {number(limits['vmin'])} to {number(limits['vmax'])}; "
        f"the measure from {end_of_range(lowest)} to {end_of_range(highest)}."
    )
    return f"{order} Right column: mean over all samples, by which models are sorted. {colours} {intervals}{absent}"


def colour_limits(values: NDArray[np.float64], measure: Measure) -> dict[str, Any]:
    """Ends of the colour scale, vmin and vmax: the data, and at least half of the measure's range below the highest.

    Small differences look small, and a class close to the best of all is never dark.
    """
    lowest, highest = measure.value_range
    low, high = np.nanmin(values), np.nanmax(values)
    start = min(low, max(lowest, high - (highest - lowest) / 2))
    return {"vmin": start, "vmax": max(high, start + LEAST_SPAN * (highest - lowest))}


def _hatch_absent(axes, grid):
    from matplotlib.patches import Rectangle

    for row, column in np.argwhere(np.isnan(grid.value)):
        corner = (column - 0.5, row - 0.5)
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor="#9aa3b0", linewidth=0))


def _mark_weakest(axes, grid, image):
    from matplotlib.patches import Rectangle

    for row, values in enumerate(grid.value):
        known = np.flatnonzero(~np.isnan(values))
        if np.ptp(values[known]) == 0:
            continue
        suspects = worst_class_set(grid.low[row], grid.high[row])
        edge: dict[str, Any] = {"edgecolor": legible(image, values[known].min()), "linewidth": 1.6}
        edge["linestyle"] = "-" if len(suspects) == 1 else (0, (1.2, 1.4))
        for column in known[values[known] == values[known].min()]:
            corner = (column - 0.44, row - 0.42)
            axes.add_patch(Rectangle(corner, 0.88, 0.84, fill=False, **edge))
