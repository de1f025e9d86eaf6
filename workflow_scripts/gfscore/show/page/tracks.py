"""Tracks: rows of a table, each a name, a value with its interval on one common scale, and the value as text.

The same rows are drawn by templates/tracks.html without JavaScript and by templates/tracks.js with it.
"""

from dataclasses import asdict, dataclass
from typing import Any

from gfscore.core import numbers

STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
MOST_TICKS = 6


@dataclass(frozen=True)
class Scale:
    """The common scale of rows: its two ends, where its ticks stand, what it measures, and a threshold or None."""

    low: float
    high: float
    title: str
    threshold: float | None = None

    @property
    def ticks(self) -> list[float]:
        """Round numbers on the scale, at most MOST_TICKS of them."""
        width = self.high - self.low
        step = next((step for step in STEPS if width / step < MOST_TICKS), width)
        first = int(-(-self.low // step))
        found = [round(place * step, 10) for place in range(first, first + MOST_TICKS + 1)]
        return [value for value in found if value <= self.high + 1e-9]

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"ticks": self.ticks}


@dataclass(frozen=True)
class Track:
    """One row: a name, short and whole; a value and its interval; a band; a tick; the value as text.

    `band` is (low, high), with `proven` whether its lower end is known; `key` is what choosing the row chooses; `word`
    is the verdict on it.
    """

    name: str
    short: str
    value: float | None
    low: float | None = None
    high: float | None = None
    band: tuple[float, float] | None = None
    proven: bool = False
    tick: float | None = None
    key: int | None = None
    word: str | None = None
    aside: str = ""
    highest: float | None = None

    @property
    def text(self) -> str:
        """The value as it is printed."""
        return numbers.number(self.value)

    @property
    def about(self) -> str:
        """The row in words, for tooltips and readers of screens."""
        between = "" if numbers.is_missing(self.low) else f", {numbers.interval(self.low, self.high, self.highest)}"
        tick = "" if numbers.is_missing(self.tick) else f"; clean accuracy {numbers.number(self.tick)}"
        return f"{self.name}: {self.text}{between}{tick}"

    def plain(self) -> dict[str, Any]:
        """For JSON: what the scripts draw a row from."""
        names = ("name", "short", "value", "low", "high", "band", "proven", "tick", "key", "word", "aside")
        return {name: getattr(self, name) for name in names} | {"text": self.text, "about": self.about}
