"""Charts: each is data, a form and a finding. One file per chart, found by itself.

A file of this folder holds CHART, a Chart (see gfscore.show.charts.declaration) of the file's name. The figures of an
audit, their names and their place on the page follow from it. Importing them imports nothing heavy, because every run
of Snakemake reads them: numpy and pandas stand inside the functions.
"""

from importlib import import_module
from pkgutil import iter_modules

from gfscore.core.errors import InputError
from gfscore.show.charts.declaration import Chart
from gfscore.show.words.findings import SENTENCES

DECLARATION = "declaration"
"""The one module of this folder that is no chart."""


def _chart_of(name: str) -> Chart:
    module = import_module(f"{__name__}.{name}")
    chart = getattr(module, "CHART", None)
    if not isinstance(chart, Chart) or chart.name != name:
        raise InputError(f"{module.__file__}: holds no chart of its name; declare CHART = Chart(name={name!r}, ...)")
    return chart


CHARTS: dict[str, Chart] = {
    chart.name: chart
    for chart in sorted(
        (_chart_of(module.name) for module in iter_modules(__path__) if module.name != DECLARATION),
        key=lambda chart: chart.place,
    )
}
"""Every chart by its name, section after section of the page."""

for _chart in CHARTS.values():
    SENTENCES.update(_chart.sentences)
