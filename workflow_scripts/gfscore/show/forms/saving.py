"""Charts as files, for papers and for pages without JavaScript: the same bytes on every run."""

import base64
import re
import textwrap
from io import BytesIO
from pathlib import Path
from typing import Any

from gfscore.core.files import atomic, write_text
from gfscore.show.forms.panels import Words
from gfscore.show.forms.theme import PARAMETERS

WIDTH, PANELS, LARGEST_PANEL = 900, 4, 480
"""Pixels of a drawing's width, panels side by side in it, and pixels of a panel's width where there are few."""

SCALE = 2
"""Pixels of a PNG file for each of the drawing."""

MOST_MARKS, COLOURS = 10_000, 48
"""Rows of data beyond which a file holds a picture, as of 60 x 1,000 cells, and colours of such a picture."""

TITLE_SIZE, TITLE_LETTERS = 16, 88
TEXT_SIZE, TEXT_LETTERS = 12, 142
"""Pixels of the letters, and letters of a line, of the finding and of the smaller text under it."""

# Text stays text in the SVG, laid out for DejaVu Sans; narrower fonts of the reader's system fit in its place.
FONTS = "DejaVu Sans, Verdana, Segoe UI, system-ui, Arial, sans-serif"

UNREAD = re.compile(r' (?:aria-label|aria-roledescription|aria-hidden|role)="[^"]*"')
ATTRIBUTE, LONG = re.compile(r'="[^"]*"'), re.compile(r"(\d+\.\d{2})\d+")
NAMED = re.compile(r'(?<= id=")[^"]+(?=")|(?<=url\(#)[^)]+(?=\))|(?<=href="#)[^"]+(?=")')


def save_figure(specification: dict[str, Any], words: Words, path_without_suffix: Path | str) -> None:
    """Write a Vega-Lite specification under its words as `<path>.svg`, `.pdf` and `.png`."""
    import pikepdf
    import vl_convert

    svg, path = svg_text(on_paper(specification, words)), Path(path_without_suffix)
    # The library numbers what it draws from the start of the process.
    names = {name: f"id{place}" for place, name in enumerate(dict.fromkeys(NAMED.findall(svg)))}
    svg = NAMED.sub(lambda found: names[found[0]], svg)
    png = vl_convert.svg_to_png(svg, scale=SCALE)
    if len(specification["data"]["values"]) > MOST_MARKS:
        png, (width, height) = few_colours(png)
        size = f'width="{width / SCALE:g}" height="{height / SCALE:g}"'
        image = f'<image {size} href="data:image/png;base64,{base64.b64encode(png).decode()}"/>'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{image}</svg>\n'
    pdf_file = vl_convert.svg_to_pdf(svg)
    # Written when all three are made, so that none stands without the others.
    write_text(path.with_name(f"{path.name}.svg"), svg)
    with atomic(path.with_name(f"{path.name}.png")) as temporary:
        temporary.write_bytes(png)
    # Its fonts come in any order; written once more, objects stand in the order of their names.
    with (
        atomic(path.with_name(f"{path.name}.pdf")) as temporary,
        pikepdf.open(BytesIO(pdf_file)) as pdf,
    ):
        pdf.save(temporary, deterministic_id=True)


def few_colours(png: bytes, largest: tuple[int, int] | None = None) -> tuple[bytes, tuple[int, int]]:
    """A PNG file of COLOURS colours, at most `largest` wide and high, and its size.

    A third of the bytes, and no difference that an eye sees in a picture of cells.
    """
    from PIL import Image

    picture, kept = Image.open(BytesIO(png)).convert("RGB"), BytesIO()
    if largest:
        picture.thumbnail(largest)
    picture.quantize(COLOURS).save(kept, "PNG", optimize=True)
    return kept.getvalue(), picture.size


def on_paper(specification: dict[str, Any], words: Words) -> dict[str, Any]:
    """A specification of fixed width with its finding as title, and under it what is shown and how to read it."""
    whole = with_width(specification, WIDTH)
    # The only panel of a chart has its name there.
    named = whole.get("title", {}).get("text", "")
    texts = [line for text in (words.subtitle, words.note, named) for line in textwrap.wrap(text, TEXT_LETTERS)]
    title = {
        "text": textwrap.wrap(words.title, TITLE_LETTERS), "subtitle": texts, "anchor": "start", "frame": "bounds",
        "fontSize": TITLE_SIZE, "subtitleFontSize": TEXT_SIZE, "subtitlePadding": 6, "offset": 14,
        "color": PARAMETERS["ink"], "subtitleColor": PARAMETERS["muted"],
    }  # fmt: skip
    look = {"config": whole["config"] | {"font": FONTS}, "background": PARAMETERS["surface"], "padding": 14}
    return whole | look | {"title": title}


def with_width(specification: dict[str, Any], width: int) -> dict[str, Any]:
    """The same chart `width` pixels wide, or with as many panels side by side."""
    fixed = dict(specification)
    if fixed.get("width") == "container":
        fixed["width"] = width
    elif "facet" in fixed:
        panels = fixed.get("usermeta", {}).get("panels", PANELS)
        fixed["columns"] = min(panels, PANELS)
        if "width" in fixed["spec"] and panels < PANELS:
            fixed["spec"] = fixed["spec"] | {"width": min(LARGEST_PANEL, width // panels - 90)}
    return fixed


def svg_text(specification: dict[str, Any]) -> str:
    """A specification as SVG, without what only scripts read, and with short numbers."""
    import vl_convert

    svg = UNREAD.sub("", vl_convert.vegalite_to_svg(specification))
    # Of coordinates, not of the numbers that are written.
    return ATTRIBUTE.sub(lambda found: LONG.sub(r"\1", found[0]), svg)
