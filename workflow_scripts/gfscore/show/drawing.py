"""Charts of one audit: which there are, their words, and their specifications."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gfscore.audit.findings.finding import Finding
from gfscore.core.names import printable
from gfscore.core.numbers import number, percent
from gfscore.show.charts import CHARTS
from gfscore.show.charts.declaration import Chart, Subject
from gfscore.show.forms import Bars, Frame, Heatmap, Intervals, Matrix
from gfscore.show.forms.panels import Words, categories
from gfscore.show.forms.saving import WIDTH
from gfscore.show.forms.vega import specification

MOST_ROWS = 100
"""Rows of a chart in print; the page has them all."""

STRICT = "GFSCORE_STRICT_CHARTS"
"""Environment variable under which a chart that cannot be drawn is an error."""

WHOLE = "the whole audit"
"""Part of an audit's charts that belongs to no measure."""


@dataclass(frozen=True)
class Drawing:
    """A chart of one audit: its tidy frame, and all that is made of it."""

    chart: Chart
    subject: Subject
    frame: Frame

    @property
    def name(self) -> str:
        """Name of its files: <chart>_<measure>, or <chart>."""
        return file_name(self.chart, self.subject.measure)

    @cached_property
    def finding(self) -> Finding:
        """What the data say."""
        return self.chart.finding(self.frame)

    @cached_property
    def words(self) -> Words:
        """What is written around it."""
        facts = self.subject.facts()
        if "confidence" in self.frame and self.frame["confidence"].notna().any():
            facts["confidence"] = percent(float(self.frame["confidence"].max()))
        # Columns of one value are facts of the whole chart.
        for name in self.frame.columns[self.frame.nunique(dropna=False) == 1]:
            value = self.frame[name].iloc[0]
            facts.setdefault(str(name), number(value) if isinstance(value, int | float) else printable(value))
        about = [facts[name] for name in ("measure", "dataset") if name in facts]
        parts = [self.chart.shows.format_map(facts), ", ".join(about), ", ".join(self._counted())]
        return Words(
            title=self.finding.sentence,
            subtitle="; ".join(part for part in parts if part) + ".",
            note=self.chart.note.format_map(facts),
            facts=facts,
            value_range=self.subject.meaning.value_range if self.subject.measure else None,
        )

    def _counted(self):
        frame = self.frame
        models = frame["model"].nunique() if "model" in frame else frame["models"].max() if "models" in frame else 0
        if models > 0:
            yield f"{int(models):,} model{'' if models == 1 else 's'}"
        n = frame["n"][frame["n"] > 0] if "n" in frame else None
        if n is not None and len(n):
            low, high = (f"{int(end):,}" for end in (n.min(), n.max()))
            of = " per class" if self.chart.per_class else ""
            yield f"n = {low if low == high else f'{low} to {high}'} samples{of}"

    @cached_property
    def printed(self) -> tuple[Frame, Words]:
        """Its frame and words in print, where more than MOST_ROWS rows are cut to the first, which the note says."""
        form = self.chart.form
        if not isinstance(form, Heatmap | Intervals | Bars) or isinstance(form, Matrix):
            return self.frame, self.words
        rows = categories(self.frame, form.row)
        if len(rows) <= MOST_ROWS:
            return self.frame, self.words
        note = f"{self.words.note} Here: the first {MOST_ROWS} of {len(rows):,} rows.".lstrip()
        first = self.frame[form.row].astype(str).isin(rows[:MOST_ROWS])
        return self.frame[first], replace(self.words, note=note)

    def vega_lite(self, *, printed: bool = False) -> dict[str, Any]:
        """The Vega-Lite specification, with its data; with those of print where it is `printed`."""
        if printed:
            return specification(self.chart.form, *self.printed, width=WIDTH)
        return specification(self.chart.form, self.frame, self.words)


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
        about = f" of {printable(self.measure)}" if self.measure else ""
        return f"{self.chart.title}{about}: not drawn, as that failed ({self.reason}); everything else is unaffected"


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

    Charts whose data cannot be made are appended to `undrawn`.
    """
    for part in parts_of(subject.measures) if parts is None else parts:
        about = subject.about(None if part == WHOLE else part)
        for chart in CHARTS.values():
            drawing = None
            with leaving_out_failures(chart, about, undrawn):
                drawing = drawing_of(chart, about)
            if drawing is not None:
                yield drawing


def drawing_of(chart: Chart, subject: Subject) -> Drawing | None:
    """One chart of an audit, and of the subject's measure where it is about one; None where there are no data."""
    fitting = subject.measure is None if chart.about == "audit" else subject.measure is not None
    if not fitting or (chart.about == "score" and not subject.scored):
        return None
    frame = chart.data(subject)
    return None if frame is None or frame.empty else Drawing(chart, subject, frame)
