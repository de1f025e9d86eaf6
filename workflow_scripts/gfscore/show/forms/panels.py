"""What is needed of a frame to draw it: its panels and categories, short names, limits of colours, numbers as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.names import shortened, shortened_all
from gfscore.core.numbers import MINUS, number
from gfscore.show.forms import Frame, Heatmap

LEAST_SPAN = 0.05
MOST_NUMBERED, MOST_NUMBERED_ROWS = 16, 60
"""Columns and rows of cells that hold numbers."""
MOST_LABELLED, EXTREME = 24, 8
"""Names beside lines or points; of more, so many at each end."""


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


def categories(frame: Frame, column: str) -> list[str]:
    """Values of a column as text, in the order of the rows."""
    return list(dict.fromkeys(frame[column].dropna().astype(str)))


def panels_of(frame: Frame, column: str | None) -> list[tuple[str, Frame]]:
    """Name and rows of each panel; one without a name for a chart without panels."""
    if column is None:
        return [("", frame)]
    return [(str(name), own) for name, own in frame.groupby(column, sort=False, observed=True)]


def broken(name: str, room: int) -> str:
    """Name of a panel on one or two lines of `room` characters; one too long for two loses its middle."""
    if len(name) <= room:
        return name
    places = [place for place, character in enumerate(name[:room]) if character in " _"]
    place = places[-1] + 1 if places and places[-1] > room // 3 else room
    return f"{name[:place].rstrip()}\n{shortened(name[place:], room)}"


def ends_of(frame: Frame, form: Any) -> Frame:
    """The point of each line that its name leads to: where lines lie furthest apart in the right half of the axis."""
    known = frame[frame[form.y.column].notna()]
    x = known[form.x.column]
    table = known.pivot_table(index=form.x.column, columns=form.line, values=form.y.column)
    right = table[table.index >= (x.min() + x.max()) / 2].dropna()
    if len(right) and not form.y.reverse and not form.y.log:
        at = (right.max(axis=1) - right.min(axis=1)).idxmax()
        return known[x == at].drop_duplicates(form.line, keep="last")
    return known.groupby(form.line, sort=False).tail(1)


def outermost(frame: Frame, form: Any) -> Frame:
    """The points that have names: all where they are few, else those at both ends of the upright axis."""
    if len(frame) <= MOST_LABELLED:
        return frame
    ordered = frame.sort_values(form.y.column, kind="stable")
    return ordered.iloc[[*range(EXTREME), *range(-EXTREME, 0)]]


def runs_of(flags: Any) -> list[tuple[int, int]]:
    """Places of the first and the last value of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.asarray(flags, dtype=int), [0]])))
    return [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2] - 1, strict=True)]


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
        return f"{value:+.2f}".replace("-", MINUS) if abs(value) >= 0.005 else "0"
    return "0" if value == 0 else number(value) if value >= 0.0005 or value < 0 else "<.001"


def spread_out(
    values: Sequence[float] | NDArray[np.floating], distance: float, *, low: float, high: float
) -> NDArray[np.float64]:
    """Places (L,) near `values` (L,), in their order, at least `distance` apart and within [low, high].

    Where there is too little room within the limits, the places are evenly spaced over all of it.
    """
    order = np.argsort(values, kind="stable")
    distance = min(distance, (high - low) / max(1, len(values) - 1))
    steps = distance * np.arange(len(values))
    free = np.clip(np.asarray(values, dtype=np.float64)[order] - steps, low, high - steps[-1])
    # Without the steps the places need only ascend: each run that does not is replaced by its mean.
    places = np.empty(len(values))
    places[order] = _ascending(free) + steps
    return places


def _ascending(values):
    # The nearest ascending values by least squares (pool adjacent violators).
    blocks = []
    for value in values:
        blocks.append((value, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (mean, n), (other, m) = blocks.pop(), blocks.pop()
            blocks.append(((mean * n + other * m) / (n + m), n + m))
    return np.concatenate([np.full(n, mean) for mean, n in blocks])
