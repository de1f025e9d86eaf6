"""How the templates of pages are filled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.core import numbers
from gfscore.core.names import enumeration, printable

if TYPE_CHECKING:
    from pathlib import Path

    from jinja2 import Environment

FORMS = (
    "number", "signed", "count", "setting", "percent", "p_value", "temperature", "end_of_range", "lower_bound",
    "upper_bound",
)  # fmt: skip
"""Functions of gfscore.core.numbers that templates write numbers with."""


def environment_of(folder: Path) -> Environment:
    """Jinja environment of the templates in a folder; every name is escaped."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    result = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.filters |= {name: getattr(numbers, name) for name in FORMS} | {
        "printable": printable,
        "enumeration": enumeration,
    }
    result.globals["interval"] = numbers.interval
    return result
