"""Charts of one audit: which there are, their words, and their pictures."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gfscore.audit.findings.finding import Finding
from gfscore.core.names import harmless, printable
from gfscore.core.numbers import count_range, number, percent
from gfscore.show.charts import CHARTS
from gfscore.show.charts.declaration import Chart, NothingToDraw, Subject, some
from gfscore.show.drawing.layout import arrange, fit, labels_of, new_figure, prepare
from gfscore.show.drawing.theme import look

MOST_ROWS = 100
MOST_PAGE_ROWS = 400
"""Rows of a chart in print and on the page."""

FILE_MARGIN = 14
"""Pixels around a figure that is a file."""

STRICT = "GFSCORE_STRICT_CHARTS"
"""Environment variable under which a chart that cannot be drawn is an error."""

WHOLE = "the whole audit"
"""Part of an audit's charts that belongs to no measure."""


@dataclass(frozen=True)
class Words:
    """Texts around a chart: its finding as the title, what is shown, how to read it, and the facts of its titles."""

    title: str
    subtitle: str = ""
    note: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Drawing:
    """A chart of one audit: its tidy frame, with its finding, texts and drawings."""

    chart: Chart
    subject: Subject
    frame: pd.DataFrame

    @property
    def name(self) -> str:
        """Name of its files: <chart>_<measure>, or <chart>."""
        return file_name(self.chart, self.subject.measure)

    @cached_property
    def finding(self) -> Finding:
        """Finding of the chart."""
        finding = self.chart.finding(self.frame)
        if self.chart.as_failures and self.subject.tables.undecided(self.subject.measure):
            return finding.as_failures()
        return finding

    @cached_property
    def words(self) -> Words:
        """Texts around the chart."""
        facts = self._facts()
        subject = [facts[name] for name in ("measure", "dataset") if name in facts]
        notes = [self.chart.note]
        if self.chart.undecided and (self.frame["most"] > self.frame["value"]).any():
            notes.append(self.chart.undecided)
        clauses = [self.chart.shows.format_map(facts), ", ".join(subject), ", ".join(self._counts())]
        return Words(
            title=self.finding.sentence,
            subtitle="; ".join(clause for clause in clauses if clause) + ".",
            note=" ".join(notes).format_map(facts),
            facts=facts,
        )

    def _facts(self):
        facts = self.subject.facts()
        if "confidence" in self.frame and self.frame["confidence"].notna().any():
            facts["confidence"] = percent(float(self.frame["confidence"].max()))
        # Columns of one value are facts of the whole chart.
        constant = self.frame.columns[self.frame.nunique(dropna=False) == 1]
        for name in constant:
            value = self.frame[name].iloc[0]
            facts.setdefault(str(name), number(value) if isinstance(value, int | float) else printable(value))
        return facts

    def _counts(self):
        frame = self.frame
        models = 0
        if "model" in frame:
            models = frame["model"].nunique()
        elif "models" in frame:
            models = frame["models"].max()
        if models > 0:
            yield f"{int(models):,} model{'' if models == 1 else 's'}"

        if "n" not in frame:
            return
        sizes = frame.loc[frame["n"] > 0, "n"]
        if len(sizes):
            per_class = " per class" if self.chart.per_class else ""
            yield f"n = {count_range(sizes.min(), sizes.max())} samples{per_class}"

    @cached_property
    def printed_frame(self) -> pd.DataFrame:
        """Frame that is printed: at most the first MOST_ROWS rows of the chart."""
        return self._first_rows(MOST_ROWS)

    @cached_property
    def page_frame(self) -> pd.DataFrame:
        """Frame that the page shows: at most the first MOST_PAGE_ROWS rows of the chart."""
        return self._first_rows(MOST_PAGE_ROWS)

    def _first_rows(self, most):
        if self.chart.rows is None:
            return self.frame
        rows = self.frame[self.chart.rows].astype(str)
        first = rows.drop_duplicates()[:most]
        return self.frame[rows.isin(first)]

    def note_of(self, frame: pd.DataFrame) -> str:
        """How to read the chart, with the number of rows that a frame leaves out."""
        if self.chart.rows is None or len(frame) == len(self.frame):
            return self.words.note
        drawn = frame[self.chart.rows].nunique()
        rows = self.frame[self.chart.rows].nunique()
        return f"{self.words.note} Here: the first {drawn:,} of {rows:,} rows.".lstrip()

    def figure(self) -> Figure:
        """Figure for a file, under its words."""
        figure = new_figure()
        self.draw_on(figure)
        return figure

    def draw_on(self, figure: Figure) -> None:
        """Draw it in print on an empty figure, under its words."""
        draw_chart(self.chart, self.printed_frame, self.words.facts, figure)
        texts = [self.words.subtitle, self.note_of(self.printed_frame)]
        arrange(figure, title=self.words.title, texts=[harmless(text) for text in texts], margin=FILE_MARGIN)

    def draw_within(self, axes: Axes) -> None:
        """Draw it in print, without its words, on axes of any figure; what it writes keeps to the place of the axes."""
        prepare(axes)
        draw_chart(self.chart, self.printed_frame, self.words.facts, axes)
        fit(axes)

    def picture(self, width: float) -> Figure:
        """Figure of the page, whose words stand around it."""
        figure = new_figure(width)
        draw_chart(self.chart, self.page_frame, self.words.facts, figure)
        arrange(figure)
        return figure


def draw_chart(chart: Chart, frame: pd.DataFrame, facts: Mapping[str, str], target: Figure | Axes) -> None:
    """Let a chart draw a frame on an empty figure, which is arranged afterwards, or on axes, which are fitted.

    Texts of the frame lose control characters, which no SVG takes.
    """
    texts = frame.select_dtypes(exclude=["number", "bool"])
    plain = texts.map(lambda value: harmless(value) if isinstance(value, str) else value)
    frame = frame.assign(**plain).reset_index(drop=True)
    with look():
        # Whether it takes a figure or axes, the chart declares.
        if isinstance(target, Figure) and not chart.panels:
            target = target.subplots()
        draw = cast(Callable[[pd.DataFrame, Any], None], chart.draw)
        draw(frame, target)
        for text in labels_of(target):
            text.set_text(harmless(text.get_text().format_map(facts)))


def file_name(chart: Chart, measure: str | None) -> str:
    """Name of a chart's files, without their ending."""
    return chart.name if measure is None else f"{chart.name}_{measure}"


def parts_of(measures: Iterable[str]) -> list[str]:
    """Parts that an audit's charts come in, which several processes may share: its measures, then WHOLE."""
    return [*measures, WHOLE]


@dataclass(frozen=True)
class UndrawnChart:
    """A chart that an audit should have, whose drawing failed."""

    chart: Chart
    measure: str | None
    reason: str
    """Type and message of the exception, on one line."""

    @property
    def sentence(self) -> str:
        """Which chart is missing and why, on one line."""
        subject = f" of {printable(self.measure)}" if self.measure else ""
        return f"{self.chart.title}{subject}: not drawn, as that failed ({self.reason}); everything else is unaffected"


@contextmanager
def leaving_out_failures(chart: Chart, subject: Subject, undrawn: list[UndrawnChart]) -> Iterator[None]:
    """Turn an exception of drawing a chart into an entry of `undrawn`: no picture is worth the verdict.

    Exceptions of the disk and of memory pass, since they concern every chart. So do all where the environment variable
    STRICT is set, as in tests, where a chart that fails is a defect.
    """
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if os.environ.get(STRICT):
            raise
        undrawn.append(UndrawnChart(chart, subject.measure, printable(f"{type(error).__name__}: {error}")[:300]))


def drawings(subject: Subject, *, undrawn: list[UndrawnChart], parts: Iterable[str] | None = None) -> Iterator[Drawing]:
    """Yield every chart that an audit has data for, part after part, in the order of the page within each.

    Parameters
    ----------
    subject : Subject
        The audit.
    undrawn : list of UndrawnChart
        Charts whose data cannot be made are appended.
    parts : iterable of str, optional
        Some of parts_of; all of them without.
    """
    if parts is None:
        parts = parts_of(subject.measures)
    for part in parts:
        subject_of_part = subject.about(None if part == WHOLE else part)
        for chart in CHARTS.values():
            drawing = None
            with leaving_out_failures(chart, subject_of_part, undrawn):
                drawing = drawing_of(chart, subject_of_part)
            if drawing is not None:
                yield drawing


def drawing_of(chart: Chart, subject: Subject) -> Drawing | None:
    """One chart of an audit, and of the subject's measure where it is about one; None where there are no data."""
    of_audit = chart.about == "audit"
    if of_audit != (subject.measure is None):
        return None
    if chart.about == "score" and not subject.scored:
        return None
    try:
        return Drawing(chart, subject, some(chart.data(subject)))
    except NothingToDraw:
        return None
