"""Charts as matplotlib figures, for papers and for pages without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gfscore.show.forms import Bars, Curves, Form, Heatmap, Intervals, Matrix, Pictures, Radar, Scatter, cells, marks
from gfscore.show.forms.layout import WIDTH, drawing, framed_figure, laid_out
from gfscore.show.forms.panels import Words, panels_of, short_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROOM = 2.1
"""Inches that a small panel takes at least."""


@dataclass(frozen=True)
class Renderer:
    """How a form is drawn into axes, and how high these are: functions of (form, frame, width in inches)."""

    draw: Callable[..., Any]
    height: Callable[..., float]
    finish: Callable[..., None] | None = None
    """What is drawn once the layout is final."""
    projection: str | None = None
    shared: bool = True
    most: int = 5
    """Panels side by side."""


RENDERERS: dict[type[Form], Renderer] = {
    Heatmap: Renderer(cells.heatmap, cells.height_of_heatmap, finish=cells.finish_heatmap),
    Matrix: Renderer(cells.heatmap, cells.height_of_heatmap, finish=cells.finish_heatmap),
    Pictures: Renderer(cells.pictures, cells.height_of_pictures, most=3),
    Intervals: Renderer(marks.intervals, marks.height_of_rows, most=4),
    Bars: Renderer(marks.bars, marks.height_of_rows),
    Curves: Renderer(marks.curves, marks.height_of_curves, finish=marks.name_curves, most=3),
    Scatter: Renderer(marks.scatter, marks.height_of_scatter, finish=marks.name_points, most=2),
    Radar: Renderer(marks.radar, marks.height_of_radar, projection="polar"),
}


def figure_of(form: Form, frame: pd.DataFrame, words: Words, *, width: float = WIDTH) -> Figure:
    """Figure of a tidy frame in a form, `width` inches wide, with its finding as title."""
    renderer = RENDERERS[type(form)]
    panels = panels_of(frame, form.panel)
    columns = _columns(len(panels), renderer.most, width)
    lines = -(-len(panels) // columns)
    apart = getattr(form, "apart", False)
    with drawing():
        figure = framed_figure(
            lines * renderer.height(form, frame, width / columns, len(panels)),
            title=words.title, subtitle=words.subtitle, note=words.note, width=width,
        )  # fmt: skip
        grid = figure.subplots(
            lines, columns, squeeze=False, sharey=not apart or not isinstance(form, Curves), sharex=not apart,
            subplot_kw={"projection": renderer.projection},
        )  # fmt: skip
        short = short_names([name for name, _ in panels], max(12, int(12.5 * width / columns)))
        drawn = []
        for index, (axes, (name, own)) in enumerate(zip(grid.flat, panels, strict=False)):
            edge = Edge(left=index % columns == 0, bottom=index + columns >= len(panels))
            drawn.append(renderer.draw(axes, form, own, frame, words, edge, width / columns))
            if name:
                axes.set_title(short[name], size=8.5, pad=None if drawn[-1] is None else drawn[-1].pad)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        if renderer.finish and isinstance(form, Heatmap):
            renderer.finish(figure, grid, form, frame, words, drawn)
        laid_out(figure)
        if renderer.finish and not isinstance(form, Heatmap):
            for axes, (_, own) in zip(grid.flat, panels, strict=False):
                renderer.finish(axes, form, own)
        return figure


@dataclass(frozen=True)
class Edge:
    """Whether a panel stands at the left or lower end of the figure, where axes have their titles."""

    left: bool
    bottom: bool


def _columns(panels, most, width):
    # Whichever leaves fewer places empty; small figures have fewer side by side.
    fitting = max(1, min(most, panels, int(width // ROOM)))
    if panels <= fitting:
        return panels
    return min((fitting, max(1, fitting - 1)), key=lambda columns: -panels % columns)
