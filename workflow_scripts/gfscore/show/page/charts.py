"""Charts of an audit on its page: pictures that stand still, for wide and for narrow screens."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gfscore.show.audit_charts import Drawing, UndrawnChart, drawings, leaving_out_failures
from gfscore.show.charts.declaration import Subject
from gfscore.show.drawing.axes import categories
from gfscore.show.drawing.cells import grid_of
from gfscore.show.drawing.layout import PHONE, WIDTH
from gfscore.show.drawing.saving import page_markup
from gfscore.show.drawing.theme import look
from gfscore.show.page.packing import packed


@dataclass(frozen=True)
class DrawnChart(Drawing):
    """A chart as the page writes it."""

    id: str

    @cached_property
    def pictures(self) -> str:
        """Markup of the chart for wide and for narrow screens; the style shows one of them."""
        markup = []
        for kind, width in (("wide", WIDTH), ("phone", PHONE)):
            figure = self.picture(width)
            markup.append(page_markup(figure, label=self.words.title, prefix=f"{self.id}-{kind}-", kind=kind))
        return "\n".join(markup)

    @cached_property
    def cells(self) -> dict[str, Any] | None:
        """Names of columns and the packed grid of a heatmap that answers controls of the page; None of other charts."""
        if self.chart.cells is None:
            return None
        row, column, value = self.chart.cells
        rows = categories(self.page_frame, row)
        columns = categories(self.page_frame, column)
        grid = grid_of(self.page_frame, row, column, value, rows, columns)
        return {"columns": columns, "values": packed(grid)}


def drawn_charts(subject: Subject) -> tuple[list[DrawnChart], list[UndrawnChart]]:
    """Every chart that an audit has data for, in the order of the page, and those whose drawing failed."""
    charts: list[DrawnChart] = []
    undrawn: list[UndrawnChart] = []
    with look():
        for place, drawing in enumerate(drawings(subject, undrawn=undrawn)):
            chart = DrawnChart(drawing.chart, drawing.subject, drawing.frame, id=f"chart-{place}")
            with leaving_out_failures(drawing.chart, drawing.subject, undrawn):
                _ = chart.pictures
                charts.append(chart)
    return charts, undrawn
