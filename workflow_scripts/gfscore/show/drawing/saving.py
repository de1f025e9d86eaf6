"""Charts as files and as markup of a page: the same bytes on every run."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from matplotlib.figure import Figure

from gfscore.core.files import atomic, write_text
from gfscore.core.mappings import without
from gfscore.show.drawing.layout import INCH, TIPS, box_of
from gfscore.show.drawing.theme import THEMED, look

PNG_DPI = 2 * INCH
PDF_METADATA = {"CreationDate": None, "Creator": None, "Producer": None}
SVG_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}
PNG_METADATA = {"Software": None}
"""Without what would name the time or the version of a library."""

LAYOUT_TABLES = ("GDEF", "GPOS", "GSUB")
"""Tables of a font by which text is laid out."""

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', system-ui, Arial, sans-serif"
"""Text of an SVG is laid out for DejaVu Sans; narrower fonts of the reader's system fit in its place."""

FONT_FAMILY = re.compile(r" *font-family: [^;]*;?")
UNTURNED = re.compile(r"rotate\(-?0 [^)]*\)")
LONG = re.compile(r"(\d+\.\d{2})\d+")
SEGMENT = re.compile(r"([A-Za-z])([^A-Za-z]*)")
INHERITED = ("fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "font-size", "text-anchor")
"""Properties of `style` that mean the same on a group as on each of its children."""
FONT_SIZE = {"font-size": "12px"}
"""Of most texts; a picture has it, and texts of another size their own."""

REFERENCE = re.compile(r"#([\w-]+)")
COLOUR = re.compile("|".join(THEMED))
SHAPES = (f"{SVG}use", f"{SVG}path")

ElementTree.register_namespace("", SVG[1:-1])
ElementTree.register_namespace("xlink", LINK[1:].partition("}")[0])


def save_figure(figure: Figure, path_without_suffix: Path | str) -> None:
    """Write a figure that has been arranged as `<path>.svg`, `.pdf` and `.png`."""
    path = Path(path_without_suffix)
    svg = file_markup(figure)
    with look():
        pdf_file = io.BytesIO()
        with _fonts_without_layout_tables():
            figure.savefig(pdf_file, format="pdf", metadata=PDF_METADATA)
        png_file = io.BytesIO()
        figure.savefig(png_file, format="png", dpi=PNG_DPI, metadata=PNG_METADATA)
    # Written when all three are made, so that none stands without the others.
    write_text(path.with_name(f"{path.name}.svg"), f"{svg}\n")
    for ending, file in (("pdf", pdf_file), ("png", png_file)):
        with atomic(path.with_name(f"{path.name}.{ending}")) as temporary:
            temporary.write_bytes(file.getvalue())


def file_markup(figure: Figure) -> str:
    """SVG element of a file: with the fonts that its text is laid out for."""
    root = svg_of(figure)
    root.set("font-family", FONTS)
    return ElementTree.tostring(root, encoding="unicode")


@contextmanager
def _fonts_without_layout_tables() -> Iterator[None]:
    # The text of a PDF is laid out already. Cutting these tables to its letters took most of the time of a figure.
    from fontTools.subset import Options

    tables = Options._drop_tables_default
    Options._drop_tables_default = [*tables, *LAYOUT_TABLES]
    try:
        yield
    finally:
        Options._drop_tables_default = tables


def page_markup(figure: Figure, *, label: str, prefix: str, kind: str) -> str:
    """SVG element of a page: in the page's font and colours, without a background.

    Parameters
    ----------
    figure : Figure
        Arranged.
    label : str
        What the picture shows, for readers who do not see it.
    prefix : str
        Begins every id, so that none stands on a page twice.
    kind : str
        Class of the element.
    """
    figure.patch.set_visible(False)
    root = svg_of(figure, prefix=prefix)
    for element in root.iter():
        style = element.get("style")
        if style:
            element.set("style", COLOUR.sub(lambda match: f"var(--{THEMED[match[0]]})", style))
    root.set("data-box", " ".join(f"{edge:.2f}" for edge in box_of(figure)))
    root.set("role", "img")
    root.set("aria-label", label)
    root.set("class", kind)
    return ElementTree.tostring(root, encoding="unicode").replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)


def svg_of(figure: Figure, *, prefix: str = "") -> Element:
    """SVG of a figure with tooltips, short numbers, and sizes in pixels; every id begins with the prefix."""
    file = io.BytesIO()
    with look():
        figure.savefig(file, format="svg", metadata=SVG_METADATA)
    root = ElementTree.fromstring(file.getvalue())
    for metadata in root.findall(f"{SVG}metadata"):
        root.remove(metadata)
    # A style element of a picture would be one of the whole page.
    for definitions in root.findall(f"{SVG}defs"):
        for style in definitions.findall(f"{SVG}style"):
            definitions.remove(style)
    root.set("stroke-linejoin", "round")
    for dimension in ("width", "height"):
        root.set(dimension, root.get(dimension, "").replace("pt", ""))

    tips = TIPS.get(figure, {})
    referenced = set()
    for element in root.iter():
        for value in element.attrib.values():
            referenced.update(REFERENCE.findall(value))
    for element in root.iter():
        _shorten(element)
        name = element.get("id", "")
        if name and name not in referenced:
            del element.attrib["id"]
            _classify(element, name, tips)
    _remove_empty(root)
    _number_ids(root, prefix)
    for element in _outside_definitions(root):
        if "d" in element.attrib:
            element.set("d", _short_path(element.attrib["d"]))
    _hoist(root)
    _set_style(root, FONT_SIZE)
    for child in root:
        _drop_inherited(child, FONT_SIZE)
    return root


def _number_ids(root, prefix):
    # Short names in place of matplotlib's digests.
    numbers: dict[str, str] = {}
    for element in root.iter():
        name = element.get("id")
        if name:
            numbers[name] = f"{prefix}i{len(numbers)}"
            element.set("id", numbers[name])
    for element in root.iter():
        for key, value in element.attrib.items():
            if "#" in value:
                element.set(key, REFERENCE.sub(lambda match: f"#{numbers.get(match[1], match[1])}", value))


def _outside_definitions(element):
    # Markers, which are a few pixels large, keep their hundredths.
    yield element
    for child in element:
        if child.tag != f"{SVG}defs":
            yield from _outside_definitions(child)


def _short_path(data):
    # Tenths of a pixel; a line along an axis names one coordinate.
    x = y = ""
    parts = []
    for command, text in SEGMENT.findall(data):
        numbers = [f"{float(number):.1f}".removesuffix(".0") for number in text.split()]
        if command == "L" and numbers[1] == y:
            parts.append(f"H{numbers[0]}")
        elif command == "L" and numbers[0] == x:
            parts.append(f"V{numbers[1]}")
        else:
            parts.append(command + " ".join(numbers))
        if numbers:
            x, y = numbers[-2:]
    return "".join(parts)


def _hoist(element):
    # What all children of a group say of themselves is said once, by the group.
    for child in element:
        _hoist(child)
    if element.tag != f"{SVG}g" or len(element) < 2:
        return
    clips = {child.get("clip-path") for child in element}
    if len(clips) == 1 and None not in clips and "clip-path" not in element.attrib:
        element.set("clip-path", clips.pop())
        for child in element:
            del child.attrib["clip-path"]

    styles = [_properties(child.get("style", "")) for child in element]
    common = {}
    for name, value in styles[0].items():
        if name in INHERITED and all(style.get(name) == value for style in styles):
            common[name] = value
    if not common:
        return
    _set_style(element, common | _properties(element.get("style", "")))
    for child, style in zip(element, styles, strict=True):
        _set_style(child, without(style, common))


def _drop_inherited(element, inherited):
    # What an element says of itself as its parents do.
    style = _properties(element.get("style", ""))
    remaining = {}
    inherited_by_children = dict(inherited)
    for name, value in style.items():
        if inherited.get(name) != value:
            remaining[name] = value
        if name in INHERITED:
            inherited_by_children[name] = value
    _set_style(element, remaining)
    for child in element:
        _drop_inherited(child, inherited_by_children)


def _properties(style):
    properties = {}
    for declaration in style.split(";"):
        name, colon, value = declaration.partition(":")
        if colon:
            properties[name.strip()] = value.strip()
    return properties


def _set_style(element, properties):
    if properties:
        element.set("style", ";".join(f"{name}:{value}" for name, value in properties.items()))
    else:
        element.attrib.pop("style", None)


def _remove_empty(element):
    # Groups that hold nothing, and blanks between elements.
    for child in list(element):
        _remove_empty(child)
        child.tail = None
        if child.tag in (f"{SVG}g", f"{SVG}defs") and not len(child):
            element.remove(child)
        elif child.tag == f"{SVG}g" and not child.attrib and len(child) == 1:
            element[list(element).index(child)] = child[0]
    if len(element):
        element.text = None


def _shorten(element):
    for name, value in list(element.attrib.items()):
        if name in ("d", "x", "y", "transform", "width", "height", "points"):
            element.set(name, " ".join(UNTURNED.sub("", LONG.sub(r"\1", value)).split()))
            if not element.get(name):
                del element.attrib[name]
        elif name == "style":
            element.set(name, FONT_FAMILY.sub("", value))


def _classify(element, gid, tips):
    # A group of our own keeps its name as a class, and its marks get their tooltips.
    names = [word for word in gid.split() if not word.startswith("tips-")]
    if names and names[0] in ("cells", "number"):
        element.set("class", " ".join(names))
    for word in gid.split():
        texts = tips.get(word)
        if texts is None:
            continue
        for mark, text in zip(_shapes(element), texts, strict=False):
            title = ElementTree.SubElement(mark, f"{SVG}title")
            title.text = text


def _shapes(element):
    # Below an element, outside of definitions.
    for child in element:
        if child.tag == f"{SVG}defs":
            continue
        if child.tag in SHAPES:
            yield child
        yield from _shapes(child)
