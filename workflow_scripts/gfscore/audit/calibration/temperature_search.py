"""Where an objective of the temperature is largest, on stretches of temperatures or on the paper's grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.crossings import RESOLUTION

EQUAL = 1e-12
"""Objectives no further apart differ by rounding only, and are the same optimum."""


class UndefinedObjectiveError(InputError):
    """An objective has no value at any temperature, so that there is none to choose."""


@dataclass(frozen=True)
class SearchSettings:
    """The range [low, high] that is searched, and the paper's two-phase grid over it.

    The grid is coarse over the range, then fine within `fine_radius` of the best coarse point.
    """

    low: float
    high: float
    coarse_step: float
    fine_step: float
    fine_radius: float

    def coarse(self) -> NDArray[np.float64]:
        """Coarse temperatures (T,), from `low` in steps of `coarse_step`, never above `high`."""
        steps = int((self.high - self.low) / self.coarse_step + 1e-9)
        # Rounded as the fine grid is, so that a temperature of both is one temperature.
        return np.round(self.low + self.coarse_step * np.arange(steps + 1), 12)

    def fine(self, center: float) -> NDArray[np.float64]:
        """Fine temperatures (T,) around `center`, clipped to [low, high]."""
        steps = round(self.fine_radius / self.fine_step)
        grid = np.clip(center + self.fine_step * np.arange(-steps, steps + 1), self.low, self.high)
        return np.unique(np.round(grid, 12))


@dataclass(frozen=True)
class Stretches:
    """Stretches of temperature, ascending: from `first` (S,) to `last` (S,), on each of which an objective is constant.

    They border on each other, or are single temperatures (first = last) of a grid.
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
        """Index of the stretch that holds each temperature, (T,); a boundary belongs to the stretch above it."""
        return np.clip(np.searchsorted(self.first, temperatures, side="right") - 1, 0, len(self.first) - 1)


@dataclass(frozen=True)
class Optimum:
    """The largest value of an objective and where it is attained.

    `stretches` are the (first, last) of every unbroken run of optimal temperatures, ascending; `interval` is the widest
    of them in log T, and `t_star` its middle, or the nearest temperature that no crossing falls on; `edge` says
    whether any run touches the end of the search, where the optimum is not to be trusted; `best` is the value.
    """

    t_star: float
    interval: tuple[float, float]
    stretches: list[tuple[float, float]]
    edge: bool
    best: float


def optimum(stretches: Stretches, values: NDArray[np.float64]) -> Optimum:
    """Optimum of an objective whose values (S,) on Stretches are given, NaN where undefined.

    Raises UndefinedObjectiveError when the objective is undefined everywhere.
    """
    # NaN where every value is.
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
    # Temperature nearest to the middle of the run, but off the boundaries within it: there scores are tied.
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

    `objective` maps temperatures (T,) to values (T,), NaN where undefined; `settings` are SearchSettings. The fine
    phase refines the surroundings of the first best coarse temperature only, as the paper's does.
    Raises UndefinedObjectiveError when the objective is undefined on the coarse grid. Source: GF-Score, section 3.4.
    """
    coarse = settings.coarse()
    coarse_values = objective(coarse)
    fine = settings.fine(optimum(Stretches.at(coarse), coarse_values).stretches[0][0])
    temperatures, kept = np.unique(np.concatenate([coarse, fine]), return_index=True)
    return temperatures, np.concatenate([coarse_values, objective(fine)])[kept]
