"""What each figure of an audit is called by people. Imports nothing heavy, because every run of Snakemake reads it."""

from collections.abc import Iterable

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
