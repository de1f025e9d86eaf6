"""What the sections of a page are made from: the audit, and its charts for wide and for narrow screens."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from gfscore.audit.step_params import TrainedModel
from gfscore.audit.tables import AuditTables
from gfscore.audit.verdicts.verdict import Verdict
from gfscore.measures import NamedMeasure
from gfscore.show.audit_charts import Drawing, UndrawnChart, drawings, leaving_out_failures
from gfscore.show.charts.declaration import Subject, labelled
from gfscore.show.drawing.axes import categories
from gfscore.show.drawing.cells import grid_of
from gfscore.show.drawing.layout import PHONE, WIDTH
from gfscore.show.drawing.saving import page_markup
from gfscore.show.drawing.theme import look
from gfscore.show.page.elements import AS_FAILURES, MOST_ROWS, Column, Detail, packed, table_of


@dataclass(frozen=True)
class DrawnChart(Drawing):
    """A chart of the page, as markup."""

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
    def cells(self) -> dict[str, object] | None:
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
        for position, drawing in enumerate(drawings(subject, undrawn=undrawn)):
            chart = DrawnChart(drawing.chart, drawing.subject, drawing.frame, id=f"chart-{position}")
            with leaving_out_failures(drawing.chart, drawing.subject, undrawn):
                # Drawn here and kept, so that a failure leaves out this chart and not the page.
                _ = chart.pictures
                charts.append(chart)
    return charts, undrawn


@dataclass(frozen=True, kw_only=True)
class Contents:
    """An audit and its charts, from which sections are made.

    Parameters
    ----------
    tables : AuditTables
    verdict : Verdict
        With its findings.
    measures : mapping of str to NamedMeasure
        Of the audit, in its order.
    measure : str
        The measure that the page is about.
    models : sequence of TrainedModel
    charts : sequence of DrawnChart
        In the order of the page.
    fp_lambda : float
        Weight lambda of RDI in FP.
    provenance : mapping
        Names and values by heading.
    costs : DataFrame or None
        Time and passes of each step.
    published_samples : str or None
        On which samples published accuracies were measured, in words.
    screen_sentences : sequence of str
        Sentences of the first screen, which no section repeats.
    paired : bool
        Whether pairs of models are compared.
    undrawn : sequence of UndrawnChart
        Charts whose drawing failed.
    """

    tables: AuditTables
    verdict: Verdict
    measures: Mapping[str, NamedMeasure]
    measure: str
    models: Sequence[TrainedModel]
    charts: Sequence[DrawnChart]
    fp_lambda: float
    provenance: Mapping[str, Mapping[str, str]]
    costs: pd.DataFrame | None
    published_samples: str | None
    screen_sentences: Sequence[str]
    paired: bool = False
    undrawn: Sequence[UndrawnChart] = ()

    def rows(self, name: str) -> pd.DataFrame:
        """Rows of a table at T = 1.

        The column `label` names models, `class` classes (see labelled).
        """
        return labelled(self.tables.uncalibrated(name))

    def rows_of_measure(self, name: str) -> pd.DataFrame:
        """Rows of a table of the measure that the page is about."""
        frame = self.rows(name)
        return frame[frame["measure"] == self.measure]

    def table_details(
        self,
        summary: str,
        frame: pd.DataFrame,
        name: str,
        title: str,
        columns: Iterable[Column],
        *,
        text: Sequence[str] = (),
        caption: str = "",
        as_failures: bool = False,
        most: int = MOST_ROWS,
    ) -> Detail | None:
        """Rows of a table in details that are closed at first; None for a table without rows.

        Parameters
        ----------
        summary : str
            The line that is seen while the details are closed.
        frame : DataFrame
            Rows that are shown.
        name, title : str
            Name of the table and of its file, and its title for screen readers.
        columns : iterable of Column
        text : sequence of str
            Paragraphs above the table.
        caption : str
            Note above the table.
        as_failures : bool
            Whether numbers are made of the smallest values that undecided samples of the page's measure allow, which
            the caption says where there are any.
        most : int
            Largest number of rows that are shown.
        """
        if frame.empty:
            return None
        if as_failures and self.tables.undecided(self.measure):
            caption = f"{caption} {AS_FAILURES}".lstrip()
        table = table_of(frame, title, name, columns, caption=caption, most=most)
        return Detail(summary, list(text), table=table)
