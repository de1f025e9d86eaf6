"""Files of the folder page/, and the environment in which its templates are filled; every name is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gfscore.show.report.environment import environment_of

if TYPE_CHECKING:
    from jinja2 import Environment

PAGE = Path(__file__).parent / "page"


def environment() -> Environment:
    """Jinja environment of the pages."""
    result = environment_of(PAGE)
    result.filters["glyph"] = GLYPHS.get
    return result


GLYPHS = {"PASS": "✓", "FAIL": "×", "INCONCLUSIVE": "?"}
"""Verdict -> the sign that repeats what its colour says."""


def text_of(name: str) -> str:
    """Text of a file of the folder."""
    return (PAGE / name).read_text(encoding="utf-8")
