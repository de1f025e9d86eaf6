"""Figures as files: SVG, PDF and PNG, atomically, the same bytes on every run."""

import io
import re
from contextlib import contextmanager
from pathlib import Path

from gfscore.core.files import atomic, write_text
from gfscore.show.forms import Figure
from gfscore.show.forms.layout import drawing

PNG_DPI = 160

# What would name the day or the version of a library is left out.
PNG_METADATA = {"Software": None}
PDF_METADATA = {"CreationDate": None, "Creator": None, "Producer": None}
SVG_METADATA = {"Date": None, "Creator": None}

# Text stays text in the SVG, laid out for DejaVu Sans; narrower fonts of the reader's system fit in its place.
FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', system-ui, Arial, sans-serif"


@contextmanager
def _without_layout_tables():
    # Of fonts in PDF: text is laid out when it is drawn, and to cut these tables to size is most of the work.
    from fontTools.subset import Options

    before = Options._drop_tables_default
    Options._drop_tables_default = [*before, "GDEF", "GPOS", "GSUB"]
    try:
        yield
    finally:
        Options._drop_tables_default = before


def save_figure(figure: Figure, path_without_suffix: Path | str) -> None:
    """Write `<path>.svg`, `.pdf` and `.png`. Two runs give identical bytes: no dates, no random identifiers."""
    # Figure.savefig would draw everything twice, the first time for a layout that is there already (laid_out).
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    path = Path(path_without_suffix)
    with _canvas(FigureCanvasAgg, figure, PNG_DPI) as canvas, atomic(path.with_name(f"{path.name}.png")) as temporary:
        canvas.print_png(temporary, metadata=PNG_METADATA)
    with (
        _canvas(FigureCanvasPdf, figure, PNG_DPI) as canvas,
        atomic(path.with_name(f"{path.name}.pdf")) as temporary,
        _without_layout_tables(),
    ):
        canvas.print_pdf(temporary, metadata=PDF_METADATA)
    write_text(path.with_name(f"{path.name}.svg"), svg_text(figure))


def svg_text(figure: Figure) -> str:
    """The figure as SVG, a str that depends on nothing but what is drawn."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    buffer = io.StringIO()
    with _canvas(FigureCanvasSVG, figure, figure.dpi) as canvas:
        canvas.print_svg(buffer, metadata=SVG_METADATA)
    drawn = buffer.getvalue().replace("font-family: 'DejaVu Sans'", f"font-family: {FONTS}")
    # Matplotlib hashes memory addresses into the ids of clip paths; numbers in order of appearance serve as well.
    renamed: dict[str, str] = {}
    for found in re.findall(r'(?<= id=")[a-z][0-9a-f]{10}(?=")|(?<=url\(#)[^)]+|(?<=href="#)[^"]+', drawn):
        renamed.setdefault(found, f"id{len(renamed)}")
    return re.sub(
        r'(?<= id=")([^"]+)(?=")|(?<=url\(#)([^)]+)|(?<=href="#)([^"]+)',
        lambda match: renamed.get(match[0], match[0]),
        drawn,
    )


@contextmanager
def _canvas(kind, figure, dpi):
    # Printing leaves the figure at the resolution of its format.
    before = figure.dpi
    figure.set_dpi(dpi)
    try:
        with drawing():
            yield kind(figure)
    finally:
        figure.set_dpi(before)
