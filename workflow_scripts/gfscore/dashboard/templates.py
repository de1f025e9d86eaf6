"""Files of the folder page/, and the environment in which its templates are filled; every name is escaped."""

from pathlib import Path

from gfscore import numbers
from gfscore.names import printable

PAGE = Path(__file__).parent / "page"


def environment():
    """Jinja environment of the pages, with the numbers' filters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    result = Environment(
        loader=FileSystemLoader(PAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    result.filters |= {name: getattr(numbers, name) for name in ("count", "setting", "percent")}
    result.filters |= {"printable": printable, "glyph": GLYPHS.get}
    result.globals["interval"] = numbers.interval
    return result


GLYPHS = {"PASS": "✓", "FAIL": "×", "INCONCLUSIVE": "?"}
"""Verdict -> the sign that repeats what its colour says."""


def text_of(name):
    """Text of a file of the folder."""
    return (PAGE / name).read_text(encoding="utf-8")
