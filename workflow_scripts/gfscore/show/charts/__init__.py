"""Charts: each is data, a drawing and a finding, in a file of its own that is discovered.

The file of a chart holds CHART, a Chart (see gfscore.show.charts.declaration) of the file's name. The figures of an
audit, their names and their place on the page follow from it. Importing them imports nothing heavy, because every run
of Snakemake reads them: numpy and pandas stand inside the functions.
"""

from pkgutil import iter_modules

from gfscore.audit.findings.words import SENTENCES
from gfscore.core.discovery import required_declarations
from gfscore.core.mappings import by_name
from gfscore.show.charts.declaration import Chart

_declared = required_declarations(__name__, iter_modules(__path__), Chart)
_declared.sort(key=lambda chart: chart.place)

CHARTS: dict[str, Chart] = by_name(_declared)
"""Every chart by its name, section after section of the page."""

for _chart in CHARTS.values():
    SENTENCES.update(_chart.sentences)
