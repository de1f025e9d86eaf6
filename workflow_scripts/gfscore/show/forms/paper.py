"""Charts as matplotlib figures, for papers and for pages without JavaScript."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gfscore.show.forms import (
    Bars,
    Curves,
    Figure,
    Form,
    Frame,
    Heatmap,
    Intervals,
    Matrix,
    Pictures,
    Radar,
    Scatter,
    cells,
    marks,
    radars,
)
from gfscore.show.forms.layout import WIDTH, drawing, framed_figure, laid_out
from gfscore.show.forms.panels import Panel, Words, broken, categories, panels_of

ROOM = 2.1
"""Inches that a small panel takes at least."""
ROW_NAMES = 3.0
"""Inches that names of rows and a bar of colours take."""


@dataclass(frozen=True)
class Renderer:
    """How a form is drawn: by a function of a Panel, which returns the room in points that it takes above the axes."""

    draw: Callable[[Panel], float | None]
    height: Callable[..., float]
    """Inches of a panel, from form, frame, width in inches and number of panels."""
    beside: Callable[..., None] | None = None
    """What all panels have in common, drawn before the layout; a function of the figure, its axes and panels."""
    name: Callable[[Panel], None] | None = None
    """Names that need the final layout."""
    projection: str | None = None
    most: int = 5
    """Panels side by side."""


def _height_of_rows(form, frame, width, panels):
    return 0.26 * len(categories(frame, form.row)) + 1.0


RENDERERS: dict[type[Form], Renderer] = {
    Heatmap: Renderer(cells.heatmap, cells.height_of_heatmap, beside=cells.bar_of_colours),
    Matrix: Renderer(cells.heatmap, cells.height_of_heatmap, beside=cells.bar_of_colours),
    Pictures: Renderer(cells.pictures, cells.height_of_pictures, most=3),
    Intervals: Renderer(marks.intervals, _height_of_rows, most=4),
    Bars: Renderer(marks.bars, _height_of_rows),
    Curves: Renderer(marks.curves, marks.height_of_curves, name=marks.name_curves, most=3),
    Scatter: Renderer(marks.scatter, lambda *_: 5.0, name=marks.name_points, most=2),
    Radar: Renderer(radars.radar, lambda form, frame, width, panels: 0.82 * min(width, 3.4) + 0.75, projection="polar"),
}


def figure_of(form: Form, frame: Frame, words: Words, *, width: float = WIDTH) -> Figure:
    """Figure of a tidy frame in a form, `width` inches wide, with its finding as title."""
    renderer, panels = RENDERERS[type(form)], panels_of(frame, form.panel)
    columns = _columns(len(panels), renderer.most, width)
    lines = -(-len(panels) // columns)
    apart = getattr(form, "apart", False)
    height = lines * renderer.height(form, frame, width / columns, len(panels))
    with drawing():
        figure = framed_figure(height, title=words.title, subtitle=words.subtitle, note=words.note, width=width)
        share: dict[str, Any] = {"sharex": not apart, "sharey": not (apart and isinstance(form, Curves))}
        grid = figure.subplots(lines, columns, squeeze=False, subplot_kw={"projection": renderer.projection}, **share)
        drawn = []
        for index, (axes, (name, own)) in enumerate(zip(grid.flat, panels, strict=False)):
            panel = Panel(
                axes=axes, form=form, own=own, frame=frame, words=words, left=index % columns == 0,
                bottom=index + columns >= len(panels), width=width / columns, inner=(width - ROW_NAMES) / columns,
            )  # fmt: skip
            above = renderer.draw(panel)
            if name:
                axes.set_title(broken(name, int(9.5 * width / columns)), size=8.5, pad=above)
            drawn.append(panel)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        if renderer.beside:
            renderer.beside(figure, grid, drawn)
        laid_out(figure)
        if renderer.name:
            for panel in drawn:
                renderer.name(panel)
        return figure


def _columns(panels, most, width):
    # Whichever leaves fewer places empty; small figures have fewer side by side.
    fitting = max(1, min(most, panels, int(width // ROOM)))
    if panels <= fitting or fitting <= 3:
        return min(panels, fitting)
    return min((fitting, fitting - 1), key=lambda columns: -panels % columns)
