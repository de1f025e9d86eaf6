"""Maximisation of an objective over stretches of temperatures or the paper's grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.audit.settings import TemperatureGrid
from gfscore.core.errors import InputError
from gfscore.statistics.ranking import RESOLUTION

EQUAL = 1e-12
"""Tolerance of equal objective values."""


class UndefinedObjectiveError(InputError):
    """An objective is undefined at every temperature."""


def coarse_grid(settings: TemperatureGrid) -> NDArray[np.float64]:
    """Temperatures (T,) of the first phase, from `low` up to at most `high` in steps of `coarse_step`."""
    steps = int((settings.high - settings.low) / settings.coarse_step + 1e-9)
    # Rounded like the fine grid, so that common temperatures are equal.
    return np.round(settings.low + settings.coarse_step * np.arange(steps + 1), 12)


def fine_grid(settings: TemperatureGrid, center: float) -> NDArray[np.float64]:
    """Temperatures (T,) of the second phase around `center`, clipped to [low, high]."""
    steps = round(settings.fine_radius / settings.fine_step)
    grid = np.clip(center + settings.fine_step * np.arange(-steps, steps + 1), settings.low, settings.high)
    return np.unique(np.round(grid, 12))


@dataclass(frozen=True)
class Stretches:
    """Intervals of temperatures on each of which an objective is constant.

    They are adjacent, or single temperatures (first = last) of a grid.

    Parameters
    ----------
    first, last : ndarray (S,) of float64
        Ends of the intervals, ascending.
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

    Parameters
    ----------
    t_star : float
        Middle of `interval` in log T, or the nearest temperature that is no crossing.
    interval : (float, float)
        The widest of the stretches in log T.
    stretches : list of (float, float)
        All connected ranges of optimal temperatures, ascending.
    edge : bool
        Whether a range touches an end of the search range, which makes the optimum unreliable.
    best : float
        The maximum.
    """

    t_star: float
    interval: tuple[float, float]
    stretches: list[tuple[float, float]]
    edge: bool
    best: float


def optimum(stretches: Stretches, values: NDArray[np.float64]) -> Optimum:
    """Optimum of an objective that is constant on each of some stretches.

    Parameters
    ----------
    stretches : Stretches
    values : ndarray (S,) of float64
        Values of the objective, NaN where undefined.

    Raises
    ------
    UndefinedObjectiveError
        If all values are NaN.
    """
    # NaN only if all values are.
    best = float(np.fmax.reduce(values))
    if np.isnan(best):
        raise UndefinedObjectiveError(
            "undefined at every temperature: fewer than two models, or classes, to rank, or all of them are tied in "
            "the score or in what it is compared with"
        )
    # Runs of optimal stretches: from a start to before a stop.
    optimal = values >= best - EQUAL
    changes = np.diff(np.concatenate([[False], optimal, [False]]).astype(np.int8))
    starts = np.flatnonzero(changes == 1)
    stops = np.flatnonzero(changes == -1)

    first = stretches.first[starts]
    last = stretches.last[stops - 1]
    widest = np.argmax(np.log(last / first))

    # Temperature nearest to the middle of the widest run that is no boundary within it, where scores are tied.
    run = slice(starts[widest], stops[widest])
    middle = np.sqrt(first[widest] * last[widest])
    distances = np.abs(np.log(np.clip(middle, stretches.first[run], stretches.last[run]) / middle))
    nearest = starts[widest] + distances.argmin()
    low = stretches.first[nearest]
    high = stretches.last[nearest]
    if low * (1 + RESOLUTION) < middle < high / (1 + RESOLUTION):
        t_star = middle
    elif low < high:
        t_star = np.sqrt(low * high)
    else:
        t_star = low

    return Optimum(
        t_star=float(t_star),
        interval=(float(first[widest]), float(last[widest])),
        stretches=list(zip(first.tolist(), last.tolist(), strict=True)),
        edge=bool(optimal[0] or optimal[-1]),
        best=best,
    )


def two_phase_grid(
    objective: Callable[[NDArray[np.float64]], NDArray[np.float64]], settings: TemperatureGrid
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Search the paper's two-phase grid, whose fine phase refines only the first best coarse temperature.

    Parameters
    ----------
    objective : callable
        Maps temperatures (T,) to values (T,), NaN where undefined.
    settings : TemperatureGrid

    Returns
    -------
    temperatures, values : ndarray (T,) of float64
        All temperatures of the grid, ascending, and the objective's values there.

    Raises
    ------
    UndefinedObjectiveError
        If the objective is undefined on the coarse grid.

    References
    ----------
    GF-Score, section 3.4.
    """
    coarse = coarse_grid(settings)
    coarse_values = objective(coarse)
    fine = fine_grid(settings, optimum(Stretches.at(coarse), coarse_values).stretches[0][0])
    temperatures, rows = np.unique(np.concatenate([coarse, fine]), return_index=True)
    values = np.concatenate([coarse_values, objective(fine)])
    return temperatures, values[rows]
