"""Figures written by save_figure as parts of a page: no clashing ids, colours that follow the theme, text as text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from xml.etree import ElementTree

from gfscore.show.forms.theme import ABSENT, ACCENT, CONTRAST, GRID, INK, MUTED, PAPER, RULE, WARNING

THEMED = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--grid)",
    RULE: "var(--rule)",
    PAPER: "var(--paper)",
    ACCENT: "var(--accent)",
    CONTRAST: "var(--contrast)",
    WARNING: "var(--warning)",
    ABSENT: "var(--grid)",
}
LEFT_OUT = {"metadata", "style", "title"}
# Space around the drawing where its header and note have been cut off, in points.
BELOW_HEADER, ABOVE_NOTE = 4, 12


@dataclass(frozen=True)
class InlineFigure:
    """A figure for a page: the sentence it shows, what is shown, how to read it, and its SVG markup without them."""

    takeaway: str
    subtitle: str
    note: str
    markup: str


def inline_figure(svg: str, *, prefix: str) -> InlineFigure:
    """InlineFigure from the text of an SVG file; `prefix` is put before every id, so it must differ between figures.

    Header and note leave the drawing, because the page sets them in its own type, where they wrap on a phone.
    """
    root = ElementTree.fromstring(svg)
    texts: dict[str, list[str]] = {"takeaway": [], "subtitle": [], "note": []}
    heights: dict[str, list[float]] = {name: [] for name in texts}
    for parent in root.iter():
        for group in list(parent):
            name = group.get("id", "").rpartition("-")[0]
            if name in texts:
                line = next(child for child in group if _local(child.tag) == "text")
                texts[name].append(line.text or "")
                heights[name].append(float(line.attrib["y"]))
                parent.remove(group)
    joined = {name: " ".join(lines) for name, lines in texts.items()}
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    top = max(heights["takeaway"] + heights["subtitle"], default=0)
    bottom = min(heights["note"], default=height + ABOVE_NOTE)
    top, bottom = top + (BELOW_HEADER if top else 0), bottom - ABOVE_NOTE
    body = "".join(_markup(child, prefix) for child in root)
    label = escape(joined["takeaway"], quote=True)
    view = f"0 {top:.2f} {width:.2f} {bottom - top:.2f}"
    return InlineFigure(**joined, markup=f'<svg viewBox="{view}" role="img" aria-label="{label}">{body}</svg>')


def _markup(element, prefix):
    name = _local(element.tag)
    if name in LEFT_OUT:
        return ""
    attributes = "".join(
        f' {_local(key)}="{escape(_attribute(_local(key), value, prefix), quote=True)}"'
        for key, value in element.attrib.items()
    )
    inner = escape((element.text or "").strip()) + "".join(_markup(child, prefix) for child in element)
    return f"<{name}{attributes}>{inner}</{name}>"


def _attribute(name, value, prefix):
    if name == "id":
        return prefix + value
    if name == "href":
        return f"#{prefix}{value[1:]}" if value.startswith("#") else re.sub(r"\s+", "", value)
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", value)
    if name == "style":
        value = re.sub(r"font-family: [^;]+;? ?", "", value)
        value = re.sub(r"#[0-9a-f]{6}\b", lambda match: THEMED.get(match[0], match[0]), value)
    return re.sub(r"\s+", " ", value)


def _local(name):
    return name.rpartition("}")[2]
