"""What a run of Snakemake shows of an audit: labels of its figures, and the lines that end it in the terminal.

Imports nothing heavy, since every run reads it.
"""

from collections.abc import Iterable
from textwrap import wrap

from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core.names import harmless, printable
from gfscore.show.charts import CHARTS

SEVERAL = "all measures together"
"""Instead of the measure of a figure of several measures."""

MOST_LINES = 12
WIDTH = 110
"""Lines and letters of a line in the terminal."""


# ---- figures ----


def chart_and_measure(name: str, measures: Iterable[str]) -> tuple[str, str | None]:
    """Name of the chart of a figure and its measure, from the name of its file; no measure where it shows several."""
    for measure in sorted(measures, key=len, reverse=True):
        if name.endswith(f"_{measure}"):
            return name.removesuffix(f"_{measure}"), measure
    return name, None


def labels_of(name: str, measures: Iterable[str]) -> dict[str, str]:
    """Labels of a figure in a report: what it is called and the question that it answers."""
    chart_name, _ = chart_and_measure(name, measures)
    chart = CHARTS[chart_name]
    return {"figure": chart.title, "question": chart.question}


def measure_of_figure(name: str, measures: Iterable[str]) -> str:
    """The measure that a figure shows, or SEVERAL."""
    _, measure = chart_and_measure(name, measures)
    return measure or SEVERAL


# ---- the end of a run ----


def last_words(audit: str, verdict: Verdict, *, page: str | None = None) -> list[str]:
    """Lines on an audit, at most MOST_LINES.

    Parameters
    ----------
    audit : str
        Name of the audit.
    verdict : Verdict
        Its sentence stands first, then its findings by rank as far as there is room.
    page : str, optional
        Path of its page, which stands last.
    """
    end = [f"Open {page}"] if page else []
    room = MOST_LINES - len(end)
    lines = wrap(f"{audit}: {harmless(verdict.sentence)}", WIDTH)[:room]
    for finding in verdict.findings:
        sentence = printable(finding.sentence)
        # Behind "But" it may begin with a small letter there.
        if sentence[1:] in verdict.sentence:
            continue
        item = wrap(f"{sentence}.", WIDTH, initial_indent="- ", subsequent_indent="  ")
        if len(lines) + len(item) <= room:
            lines += item
    return lines + end
