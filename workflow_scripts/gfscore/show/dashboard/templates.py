"""Files of the folder page/, and the environment in which its templates are filled; every name is escaped."""

from pathlib import Path

from gfscore.show.report.environment import environment_of

PAGE = Path(__file__).parent / "page"


def environment():
    """Jinja environment of the pages."""
    result = environment_of(PAGE)
    result.filters["glyph"] = GLYPHS.get
    return result


GLYPHS = {"PASS": "✓", "FAIL": "×", "INCONCLUSIVE": "?"}
"""Verdict -> the sign that repeats what its colour says."""


def text_of(name):
    """Text of a file of the folder."""
    return (PAGE / name).read_text(encoding="utf-8")
