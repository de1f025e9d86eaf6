"""Charts of an audit on its page: a static picture of each, and the specification that scripts draw from."""

import base64
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gfscore.show.charts.declaration import Subject
from gfscore.show.drawing import Drawing, UndrawnChart, drawings, leaving_out_failures
from gfscore.show.forms.saving import WIDTH, few_colours, svg_text, with_width
from gfscore.show.forms.theme import PARAMETERS

MOST_MARKS, LARGEST_SVG = 1500, 120_000
"""Rows of data, and letters of an SVG, beyond which the static picture is a PNG instead, as of 5 x 1,000 cells."""

LARGEST_PICTURE = (1400, 3000)
"""Pixels of such a PNG."""

THEMED = {value: f"var(--{name})" for name, value in PARAMETERS.items() if name in ("ink", "muted", "line", "accent")}


@dataclass(frozen=True)
class DrawnChart(Drawing):
    """A chart as the page writes it."""

    id: str

    @cached_property
    def specification(self) -> dict[str, Any]:
        """Specification that the page's script draws."""
        return self.vega_lite()

    @cached_property
    def still(self) -> str:
        """Static picture for pages without JavaScript and in print, of the rows that are printed."""
        whole = len(self.printed[0]) == len(self.frame)
        return static_picture(self.specification if whole else self.vega_lite(printed=True), label=self.words.title)

    def draw(self) -> tuple[dict[str, Any], str]:
        """Specification and static picture, made now: the library numbers what it draws in this order."""
        return self.specification, self.still


def drawn_charts(subject: Subject) -> tuple[list[DrawnChart], list[UndrawnChart]]:
    """Every chart that an audit has data for, in the order of the page, and those whose drawing failed."""
    charts: list[DrawnChart] = []
    undrawn: list[UndrawnChart] = []
    for place, drawing in enumerate(drawings(subject, undrawn=undrawn)):
        chart = DrawnChart(drawing.chart, drawing.subject, drawing.frame, id=f"chart-{place}")
        with leaving_out_failures(drawing.chart, drawing.subject, undrawn):
            chart.draw()
            charts.append(chart)
    return charts, undrawn


def static_picture(specification: dict[str, Any], *, label: str) -> str:
    """Markup of a specification drawn without a browser: SVG whose colours follow the page's theme, or an image."""
    import vl_convert
    from markupsafe import escape

    fixed = with_width(specification, WIDTH)
    if len(specification["data"]["values"]) <= MOST_MARKS:
        svg = in_page_colours(svg_text(fixed))
        if len(svg) <= LARGEST_SVG:
            return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
    png = vl_convert.vegalite_to_png(fixed | {"background": PARAMETERS["surface"]})
    picture = base64.b64encode(few_colours(png, LARGEST_PICTURE)[0]).decode()
    return f'<img alt="{escape(label)}" src="data:image/png;base64,{picture}">'


def in_page_colours(svg: str) -> str:
    """SVG with the colours and the font of the page."""
    svg = re.sub(r' font-family="[^"]*"', "", svg)
    for value, name in THEMED.items():
        svg = svg.replace(f'"{value}"', f'"{name}"')
    return svg
