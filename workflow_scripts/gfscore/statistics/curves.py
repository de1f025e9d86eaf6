"""Class scores as smooth functions of the temperature.

A class score is an analytic function of log T, so its values at a few Chebyshev points determine it everywhere between
them, and a calibration needs a small table instead of the logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.margin_sweeps import class_scores_by_temperature

if TYPE_CHECKING:
    from pandas import DataFrame

TOLERANCE = 1e-10
"""Largest interpolation error, relative to the score's range [0, B]."""

# Nested point sets: each contains the previous one, whose values are reused.
POINTS = (65, 129, 257, 513)


@dataclass(frozen=True, eq=False)
class ScoreCurves:
    """Class scores over temperatures.

    `temperatures` (P,) Chebyshev points in log T, ascending; `values` (P, K) class scores there, NaN for a class
    without samples; `n` (K,) samples per class.
    """

    temperatures: NDArray[np.float64]
    values: NDArray[np.float64]
    n: NDArray[np.int64]

    @classmethod
    def of_rows(cls, rows: DataFrame, classes: int) -> Self:
        """ScoreCurves from one model's rows of the table sweep, sorted by temperature and class (K `classes`)."""
        points = rows[["temperature", "value"]].to_numpy().reshape(-1, classes, 2)
        return cls(points[:, 0, 0].copy(), points[:, :, 1].copy(), rows["n"].to_numpy()[:classes])

    def __call__(self, temperatures: ArrayLike) -> NDArray[np.float64]:
        """Class scores at any temperatures (T,) within the range: (T, K) float64, exact to TOLERANCE * B."""
        low, high = self.temperatures[[0, -1]]
        temperatures = np.asarray(temperatures, dtype=np.float64)
        if temperatures.size and (temperatures.min() < low * (1 - 1e-9) or temperatures.max() > high * (1 + 1e-9)):
            raise InputError(f"temperatures must lie in the swept range [{low:g}, {high:g}]")
        position = _to_unit(temperatures, low, high)
        present = self.n > 0
        result = np.full((len(temperatures), len(self.n)), np.nan)
        result[:, present] = _basis(position.tobytes(), len(self.values) - 1) @ self._present_coefficients
        # Rounding of the interpolation must not make a score negative.
        return np.maximum(result, 0)

    @cached_property
    def _present_coefficients(self) -> NDArray[np.float64]:
        return _coefficients(self.values[:, self.n > 0])


@lru_cache(maxsize=4)
def _basis(position: bytes, degree: int) -> Any:
    # Chebyshev polynomials at float64 positions (T,), of which all models of an audit are asked at the same ones.
    return chebyshev.chebvander(np.frombuffer(position), degree)


def sweep_class_scores(
    logits: ArrayLike, labels: ArrayLike, classes: int, *, activation: str, low: float, high: float
) -> ScoreCurves:
    """Class scores over the temperatures [low, high], as ScoreCurves.

    Takes `logits` (N, K), `labels` (N,), K, an activation of margins.ACTIVATIONS and 0 < low < high. Doubles the
    number of Chebyshev points in log T until the last coefficients are below TOLERANCE.
    Raises InputError if they are not at the largest point set.
    """
    if not 0 < low < high:
        raise InputError(f"temperature range must satisfy 0 < low < high, got {low}, {high}")
    n = np.bincount(labels, minlength=classes)
    scores_at = class_scores_by_temperature(logits, labels, classes, activation=activation)
    finest = chebyshev_points(POINTS[-1], low, high)
    values = None
    for points in POINTS:
        temperatures = finest[:: (POINTS[-1] - 1) // (points - 1)]
        values = _refined(values, temperatures, scores_at)
        tail = np.abs(_coefficients(values[:, n > 0])[-points // 8 :])
        if tail.max() <= TOLERANCE:
            return ScoreCurves(temperatures=temperatures, values=values, n=n)
    raise InputError(
        f"class scores between T = {low:g} and {high:g} need more than {POINTS[-1]} points; narrow the range"
    )


def _refined(values, temperatures, scores_at):
    # Class scores at every temperature; `values`, if given, are those at every other one.
    if values is None:
        return scores_at(temperatures)
    refined = np.empty((len(temperatures), values.shape[1]))
    refined[::2], refined[1::2] = values, scores_at(temperatures[1::2])
    return refined


def chebyshev_points(points: int, low: float, high: float) -> NDArray[np.float64]:
    """Chebyshev points of the second kind in log T on [low, high], ascending, (P,)."""
    position = np.cos(np.pi * np.arange(points)[::-1] / (points - 1))
    temperatures = np.exp(_from_unit(position, low, high))
    temperatures[[0, -1]] = low, high
    return temperatures


def _coefficients(values):
    # Type-I discrete cosine transform: coefficients of the interpolating Chebyshev series, (P, K).
    from scipy.fft import dct

    coefficients = dct(values[::-1], type=1, axis=0) / (len(values) - 1)
    coefficients[[0, -1]] /= 2
    return coefficients


def _from_unit(position, low, high):
    return np.log(low) + (position + 1) / 2 * (np.log(high) - np.log(low))


def _to_unit(temperatures, low, high):
    return np.clip(2 * (np.log(temperatures) - np.log(low)) / (np.log(high) - np.log(low)) - 1, -1, 1)
