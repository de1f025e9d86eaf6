"""What a run of Snakemake shows of an audit: labels of its figures, and the lines that end it in the terminal.

Imports nothing heavy, since every run reads it.
"""

from collections.abc import Iterable
from textwrap import wrap

from gfscore.audit.verdicts.verdict import Verdict
from gfscore.core.names import harmless, printable
from gfscore.show.charts import CHARTS

SEVERAL = "all measures together"


def parts_of(name: str, measures: Iterable[str]) -> tuple[str, str | None]:
    """Chart of a figure and its measure, from the name of its file: None for a figure of several measures."""
    for measure in sorted(measures, key=len, reverse=True):
        if name.endswith(f"_{measure}"):
            return name.removesuffix(f"_{measure}"), measure
    return name, None


def labels_of(name: str, measures: Iterable[str]) -> dict[str, str]:
    """Labels of a figure in a report: what it is called and the question that it answers."""
    chart = CHARTS[parts_of(name, measures)[0]]
    return {"figure": chart.title, "question": chart.question}


def measure_of_figure(name: str, measures: Iterable[str]) -> str:
    """The measure that a figure shows, or words that say it shows several."""
    return parts_of(name, measures)[1] or SEVERAL


MOST_LINES, WIDTH = 12, 110


def last_words(audit: str, verdict: Verdict, *, page: str | None = None) -> list[str]:
    """At most MOST_LINES lines on an audit: the verdict's sentence, findings by rank, the path of its page."""
    end = [f"Open {page}"] if page else []
    lines = wrap(f"{audit}: {harmless(verdict.sentence)}", WIDTH)[: MOST_LINES - len(end)]
    for finding in verdict.findings:
        sentence = printable(finding.sentence)
        more = wrap(f"{sentence}.", WIDTH, initial_indent="- ", subsequent_indent="  ")
        if sentence not in verdict.sentence and len(lines) + len(more) + len(end) <= MOST_LINES:
            lines += more
    return lines + end
