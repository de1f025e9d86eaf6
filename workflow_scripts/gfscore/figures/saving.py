"""Figures as files: SVG, PDF and PNG, atomically, the same bytes on every run."""

import io
import re
from pathlib import Path

from gfscore.figures.style import drawing
from gfscore.files import atomic, write_text

PNG_DPI = 160

METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Creator": None, "Producer": None}}
"""What would name the day or the version of a library, left out."""

# Text stays text in the SVG, laid out for DejaVu Sans; narrower fonts of the reader's system fit in its place.
FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', system-ui, Arial, sans-serif"


def save_figure(figure, path_without_suffix):
    """Write `<path>.svg`, `.pdf` and `.png`. Two runs give identical bytes: no dates, no random identifiers."""
    path = Path(path_without_suffix)
    for kind, metadata in METADATA.items():
        with drawing(), atomic(path.with_name(f"{path.name}.{kind}")) as temporary:
            figure.savefig(temporary, format=kind, dpi=PNG_DPI, metadata=metadata)
    write_text(path.with_name(f"{path.name}.svg"), svg_text(figure))


def svg_text(figure):
    """The figure as SVG, a str that depends on nothing but what is drawn."""
    buffer = io.StringIO()
    with drawing():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue().replace("font-family: 'DejaVu Sans'", f"font-family: {FONTS}")
    # Matplotlib hashes memory addresses into the ids of clip paths; numbers in order of appearance serve as well.
    renamed = {}
    for found in re.findall(r'(?<= id=")[a-z][0-9a-f]{10}(?=")|(?<=url\(#)[^)]+|(?<=href="#)[^"]+', drawn):
        renamed.setdefault(found, f"id{len(renamed)}")
    return re.sub(
        r'(?<= id=")([^"]+)(?=")|(?<=url\(#)([^)]+)|(?<=href="#)([^"]+)',
        lambda match: renamed.get(match[0], match[0]),
        drawn,
    )
