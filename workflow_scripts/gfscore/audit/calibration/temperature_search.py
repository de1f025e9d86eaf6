"""Maximisation of an objective over stretches of temperatures or the paper's grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.ranking import RESOLUTION

EQUAL = 1e-12
"""Tolerance of equal objective values."""


class UndefinedObjectiveError(InputError):
    """An objective is undefined at every temperature."""


@dataclass(frozen=True)
class SearchSettings:
    """Search range [low, high], and the paper's two-phase grid: coarse, then fine around the best coarse point."""

    low: float
    high: float
    coarse_step: float
    fine_step: float
    fine_radius: float

    def coarse(self) -> NDArray[np.float64]:
        """Coarse temperatures (T,), from `low` up to at most `high` in steps of `coarse_step`."""
        steps = int((self.high - self.low) / self.coarse_step + 1e-9)
        # Rounded like the fine grid, so that common temperatures are equal.
        return np.round(self.low + self.coarse_step * np.arange(steps + 1), 12)

    def fine(self, center: float) -> NDArray[np.float64]:
        """Fine temperatures (T,) around `center`, clipped to [low, high]."""
        steps = round(self.fine_radius / self.fine_step)
        grid = np.clip(center + self.fine_step * np.arange(-steps, steps + 1), self.low, self.high)
        return np.unique(np.round(grid, 12))


@dataclass(frozen=True)
class Stretches:
    """Intervals [`first`, `last`] of temperatures, each (S,) ascending, on each of which an objective is constant.

    They are adjacent, or single temperatures (first = last) of a grid.
    """

    first: NDArray[np.float64]
    last: NDArray[np.float64]

    @classmethod
    def between(cls, boundaries: NDArray[np.float64]) -> Stretches:
        """The S stretches between boundaries (S + 1,)."""
        return cls(boundaries[:-1], boundaries[1:])

    @classmethod
    def at(cls, temperatures: NDArray[np.float64]) -> Stretches:
        """Single temperatures (S,)."""
        return cls(temperatures, temperatures)

    @property
    def middle(self) -> NDArray[np.float64]:
        """Middle of each stretch in log T, (S,)."""
        return np.sqrt(self.first * self.last)

    def holding(self, temperatures: NDArray[np.float64]) -> NDArray[np.int64]:
        """Index of the stretch that contains each temperature, (T,); a boundary belongs to the stretch above it."""
        return np.clip(np.searchsorted(self.first, temperatures, side="right") - 1, 0, len(self.first) - 1)


@dataclass(frozen=True)
class Optimum:
    """Maximum of an objective and the temperatures where it is attained.

    `stretches`: (first, last) of all connected ranges of optimal temperatures, ascending; `interval`: the widest of
    them in log T; `t_star`: its middle, or the nearest temperature that is no crossing; `edge`: whether a range touches
    an end of the search range, which makes the optimum unreliable; `best`: the maximum.
    """

    t_star: float
    interval: tuple[float, float]
    stretches: list[tuple[float, float]]
    edge: bool
    best: float


def optimum(stretches: Stretches, values: NDArray[np.float64]) -> Optimum:
    """Optimum of an objective with `values` (S,) on Stretches, NaN where undefined.

    Raises UndefinedObjectiveError if all values are NaN.
    """
    # NaN only if all values are.
    best = float(np.fmax.reduce(values))
    if np.isnan(best):
        raise UndefinedObjectiveError(
            "the calibration objective is undefined at every temperature (constant accuracies?)"
        )
    optimal = values >= best - EQUAL
    steps = np.flatnonzero(optimal[1:] != optimal[:-1]) + 1
    starts, stops = steps[optimal[steps]], steps[~optimal[steps]]
    if optimal[0]:
        starts = np.concatenate([[0], starts])
    if optimal[-1]:
        stops = np.concatenate([stops, [len(values)]])
    first, last = stretches.first[starts], stretches.last[stops - 1]
    widest = np.argmax(np.log(last / first))
    return Optimum(
        t_star=_middle_of(stretches, starts[widest], stops[widest]),
        interval=(float(first[widest]), float(last[widest])),
        stretches=list(zip(first.tolist(), last.tolist(), strict=True)),
        edge=bool(optimal[0] or optimal[-1]),
        best=best,
    )


def _middle_of(stretches, start, stop):
    # Temperature nearest to the middle of the range that is no boundary within it, where scores are tied.
    run = slice(start, stop)
    first, last = stretches.first[run], stretches.last[run]
    middle = np.sqrt(first[0] * last[-1])
    nearest = np.abs(np.log(np.clip(middle, first, last) / middle)).argmin()
    low, high = first[nearest], last[nearest]
    if low * (1 + RESOLUTION) < middle < high / (1 + RESOLUTION):
        return float(middle)
    return float(np.sqrt(low * high)) if low < high else float(low)


def two_phase_grid(
    objective: Callable[[NDArray[np.float64]], NDArray[np.float64]], settings: SearchSettings
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Temperatures (T,) of the paper's two-phase grid, ascending, and an objective's values (T,) there.

    `objective` maps temperatures (T,) to values (T,), NaN where undefined. As in the paper, the fine phase refines only
    the first best coarse temperature. Raises UndefinedObjectiveError if the objective is undefined on the coarse grid.
    Source: GF-Score, section 3.4.
    """
    coarse = settings.coarse()
    coarse_values = objective(coarse)
    fine = settings.fine(optimum(Stretches.at(coarse), coarse_values).stretches[0][0])
    temperatures, kept = np.unique(np.concatenate([coarse, fine]), return_index=True)
    return temperatures, np.concatenate([coarse_values, objective(fine)])[kept]
