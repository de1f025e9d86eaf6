"""What charts are drawn by: helpers that draw a frame on matplotlib's axes, their look, layout and files.

A chart's `draw` calls one of heatmap, intervals, bars, curves, scatter, radars and pictures, and `numbers` for its axes
of numbers; `panels` makes the axes of small panels. Heavy: declarations of charts take it from gfscore.show.lazy.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gfscore.show.drawing.axes import categories, name_lines, numbers
from gfscore.show.drawing.cells import (
    heatmap,
    limits_around_zero,
    limits_from_zero,
    limits_of_measure,
    pictures,
)
from gfscore.show.drawing.images import encoded
from gfscore.show.drawing.layout import panels, reserve
from gfscore.show.drawing.marks import (
    CURVES_HEIGHT,
    PANEL_HEIGHT,
    POINTS_HEIGHT,
    ROW,
    bars,
    curves,
    equal_line,
    intervals,
    outer_circle,
    radars,
    scatter,
)

__all__ = [
    "CURVES_HEIGHT",
    "PANEL_HEIGHT",
    "POINTS_HEIGHT",
    "ROW",
    "Axes",
    "Figure",
    "bars",
    "categories",
    "curves",
    "encoded",
    "equal_line",
    "heatmap",
    "intervals",
    "limits_around_zero",
    "limits_from_zero",
    "limits_of_measure",
    "name_lines",
    "numbers",
    "outer_circle",
    "panels",
    "pictures",
    "radars",
    "reserve",
    "scatter",
]
