"""What both renderers need of a frame: its panels and categories, short names, limits of colours, numbers as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gfscore.core.names import shortened_all
from gfscore.core.numbers import number, signed
from gfscore.show.forms import Heatmap

if TYPE_CHECKING:
    import pandas as pd

LEAST_SPAN = 0.05
MOST_NUMBERED, MOST_NUMBERED_ROWS, MOST_NAMED = 16, 60, 60
"""Columns and rows of cells that hold numbers, and columns that are all named."""


@dataclass(frozen=True)
class Words:
    """What is written around a chart: the finding, what is shown, how to read it, and the facts of axis titles."""

    title: str
    subtitle: str = ""
    note: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    value_range: tuple[float, float] | None = None

    def of(self, title: str) -> str:
        """Title of an axis, a format of the facts."""
        return title.format_map(self.facts)


def categories(frame: pd.DataFrame, column: str) -> list[str]:
    """Values of a column as text, in the order of the rows."""
    return list(dict.fromkeys(frame[column].dropna().astype(str)))


def panels_of(frame: pd.DataFrame, column: str | None) -> list[tuple[str, pd.DataFrame]]:
    """Name and rows of each panel; one without a name for a chart without panels."""
    if column is None:
        return [("", frame)]
    return [(str(name), own) for name, own in frame.groupby(column, sort=False, observed=True)]


def short_names(names: list[str], limit: int) -> dict[str, str]:
    """Short names by whole ones, all different; without beginnings and ends that all of them share."""
    return dict(zip(names, shortened_all(names, limit), strict=True))


def colour_limits(values: Any, form: Heatmap, value_range: tuple[float, float] | None) -> tuple[float, float]:
    """Ends of the scale of colours, as the form's `limits` say; differences span the same length on both sides of 0.

    With at least half of the measure's range below the highest value, small differences look small, and a value close
    to the best of all is never dark.
    """
    known = np.asarray(values, dtype=np.float64)
    known = known[np.isfinite(known)]
    if form.scale == "differences":
        reach = float(np.abs(known).max()) if len(known) else 1.0
        return -(reach or 1.0), reach or 1.0
    if not len(known):
        return value_range or (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if form.limits == "share":
        return 0.0, 1.0
    if form.limits == "data" or value_range is None:
        return min(low, 0.0), high if high > min(low, 0.0) else 1.0
    lowest, highest = value_range
    start = min(low, max(lowest, high - (highest - lowest) / 2))
    return start, max(high, start + LEAST_SPAN * (highest - lowest))


def cell_text(value: float, form: Heatmap) -> str:
    """Number of a cell: three significant digits, of differences with their sign."""
    if np.isnan(value):
        return ""
    if form.scale == "differences":
        return signed(round(value, 2) + 0.0) if abs(value) < 10 else signed(value)
    return "0" if value == 0 else number(value) if value >= 0.0005 or value < 0 else "<.001"
