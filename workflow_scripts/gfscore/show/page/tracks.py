"""Tables of tracks: values with their intervals on a common scale, one row each.

templates/tracks.html draws them without JavaScript, templates/tracks.js with it.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from gfscore.core import numbers

TICK_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_TICKS = 6

ROOMY = 10
"""Largest number of tracks that are drawn with space between them."""

NAME_WIDTHS = (4, 8, 12)
"""Letters that columns of names have room for, below the widest one."""

WIDEST_NAMES = 17


@dataclass(frozen=True)
class Scale:
    """The common scale of a table of tracks: its two ends, its title, and a threshold or None."""

    low: float
    high: float
    title: str
    threshold: float | None = None

    @property
    def ticks(self) -> list[float]:
        """Round numbers on the scale, at most MOST_TICKS of them."""
        width = self.high - self.low
        step = next((step for step in TICK_STEPS if width / step < MOST_TICKS), width)
        # A whole number of steps is one in spite of rounding.
        first = math.ceil(self.low / step - 1e-9)
        ticks = [round(index * step, 10) for index in range(first, first + MOST_TICKS + 1)]
        return [tick for tick in ticks if tick <= self.high + 1e-9]

    def plain(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "ticks": self.ticks}


@dataclass(frozen=True)
class Track:
    """One row of a table of tracks: the value of a class or of a model.

    Parameters
    ----------
    name, short : str
        Whole name, and short name for the picture.
    value : float or None
        Drawn as a dot.
    low, high : float or None
        Ends of its interval, drawn as a thin line.
    band : tuple of float, optional
        Smallest and largest value that the known samples allow, drawn as a band.
    closed : bool
        Whether both ends of the band are shown: where they differ, the band stands in place of the value. Of an open
        band the upper end alone is known.
    clean : float, optional
        Clean accuracy, drawn as a tick.
    model : int, optional
        Position of the model that a click on the row selects.
    verdict : str, optional
        Verdict on the model.
    missing : str
        Text in place of a missing value.
    highest : float, optional
        Largest possible value; no larger bound is printed.
    """

    name: str
    short: str
    value: float | None
    low: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None
    closed: bool = False
    clean: float | None = None
    model: int | None = None
    verdict: str | None = None
    missing: str = numbers.MISSING
    highest: float | None = None

    @property
    def point(self) -> float | None:
        """The value if it is drawn as a dot; None if a range is drawn."""
        return None if self.is_range else self.value

    @property
    def is_range(self) -> bool:
        """Whether the ends of the band are shown in place of the value."""
        return self.closed and self.band is not None and self.band[0] < self.band[1]

    @property
    def text(self) -> str:
        """The printed value, the ends of the range, or why there is no value."""
        if self.value is None:
            return self.missing
        if self.is_range:
            assert self.band is not None
            return numbers.interval(*self.band, self.highest)
        return numbers.number(self.value)

    @property
    def about(self) -> str:
        """The row in words, for tooltips and readers of screens."""
        words = f"{self.name}: {self.text}"
        if not numbers.is_missing(self.low):
            words += f"; interval {numbers.interval(self.low, self.high, self.highest)}"
        if not numbers.is_missing(self.clean):
            words += f"; clean accuracy {numbers.number(self.clean)}"
        return words

    def plain(self) -> dict[str, object]:
        """For JSON: what the scripts need to draw the row."""
        values = asdict(self)
        del values["missing"], values["highest"]
        values["point"] = self.point
        values["text"] = self.text
        values["about"] = self.about
        return values


def width_of(rows: Sequence[Track]) -> str:
    """Classes in the style sheet of a table of tracks: room for its longest name, and space between few rows."""
    longest = max((len(row.short) for row in rows), default=0)
    width = next((limit for limit in NAME_WIDTHS if longest <= limit), WIDEST_NAMES)
    if len(rows) <= ROOMY:
        return f"names-{width} roomy"
    return f"names-{width}"
