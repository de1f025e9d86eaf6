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

if TYPE_CHECKING:
    from pandas import DataFrame
from collections.abc import Callable

from gfscore.statistics import SCALE
from gfscore.statistics.margins import (
    ACTIVATIONS,
    BLOCK_ELEMENTS,
    FEW_CLASSES,
    FLOOR,
    own_and_rival,
    real_logits,
    require_activation,
    require_temperature,
)

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


# ---- Class scores at many temperatures, sharing all work that does not depend on the temperature.


CHUNK_ELEMENTS = 1 << 14
"""Exponentials per block, so that input and output stay in the processor's first-level caches."""

ROWS = 1 << 10
"""Samples per block if there are many classes, so that summing over classes costs less than their exponentials."""

NEGLIGIBLE = -37.5
"""Exponents below this minus ln K do not change a float64 sum of K exponentials of which one is 1."""

TERMS = 12
RADIUS = 0.4
"""A power series of TERMS terms gives exp(x) for |x| <= RADIUS with a relative error of at most 6e-14."""


def class_scores_by_temperature(
    logits: ArrayLike, labels: ArrayLike, classes: int, *, activation: str
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Function from temperatures (P,) to class scores (P, K) float64, NaN for a class without samples.

    A class score is the mean of margins.scores over the samples of a class. Takes finite `logits` (N, K), `labels` (N,)
    int in 0..K-1, the number of classes and a key of ACTIVATIONS. Raises InputError for an unknown activation; the
    function raises it for a temperature that is not a positive number.
    """
    require_activation(activation)
    # Only correctly classified samples have a score above 0; they are processed class by class.
    logits, labels = real_logits(logits), np.asarray(labels)
    n = np.bincount(labels, minlength=classes)
    own, rival = own_and_rival(logits, labels)
    rows = np.flatnonzero(own > rival)
    # numpy sorts 16-bit integers by radix.
    short = labels[rows].astype(np.int16 if classes <= 1 << 15 else np.int32)
    rows = rows[np.argsort(short, kind="stable")]
    own, rival, label = own[rows], rival[rows], labels[rows]
    step = _rows_at_once(activation, logits.shape[1])

    def scores_at(temperatures: NDArray[np.float64]) -> NDArray[np.float64]:
        for temperature in temperatures:
            require_temperature(temperature)
        sums = np.zeros((len(temperatures), classes))
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            z = None if activation == "sigmoid" else logits[rows[part]]
            margins = _margins(activation, z, own[part], rival[part], temperatures)
            firsts = np.flatnonzero(np.diff(label[part], prepend=-1))
            present = label[part][firsts]
            for row, values in zip(sums, margins, strict=True):
                row[present] += np.add.reduceat(values, firsts)
        return np.divide(SCALE * sums, n, out=np.full(sums.shape, np.nan), where=n > 0)

    return scores_at


def _rows_at_once(activation, k):
    if activation == "sigmoid":
        return CHUNK_ELEMENTS
    return ROWS if k > FEW_CLASSES else max(1, BLOCK_ELEMENTS // k)


def _margins(activation, z, own, rival, temperatures):
    # Yields the margins (rows,) at each temperature, from logits (rows, K).
    # Differences that overflow become infinite, and their exponentials are correct.
    with np.errstate(over="ignore", invalid="ignore"):
        if activation == "softmax" and z.shape[1] > FEW_CLASSES:
            yield from _softmax_of_many_classes(z, own, rival, temperatures)
            return
        at = ACTIVATIONS[activation](None if z is None else np.ascontiguousarray(z.T), own, rival)
        for temperature in temperatures:
            yield at(float(temperature))


def _softmax_of_many_classes(z, own, rival, temperatures):
    # Logits in descending order, so that classes with a negligible exponential come last, and those of a chunk have
    # similar logits.
    z = np.ascontiguousarray(np.sort(z, axis=1)[:, ::-1].T)
    step = max(1, CHUNK_ELEMENTS // len(own))
    inverse = 1 / np.asarray(temperatures, dtype=np.float64)
    totals = np.zeros((len(inverse), len(own)))
    negligible = NEGLIGIBLE - np.log(len(z))
    for start in range(0, len(z), step):
        differences = z[start : start + step] - own
        radius = (differences[0] - differences[-1]).max() / 2
        matters = inverse * differences[0].max() >= negligible
        near = matters & (inverse * radius <= RADIUS)
        _add_series(totals, np.flatnonzero(near), differences, radius, inverse)
        _add_exponentials(totals, np.flatnonzero(matters & ~near), differences, inverse)
    for total, temperature in zip(totals, temperatures, strict=True):
        yield -np.expm1((rival - own) / temperature) / total


def _add_series(totals, which, differences, radius, inverse):
    # Sum over classes j of exp(b d_j) = exp(b c) sum_m (b r)^m sum_j ((d_j - c) / r)^m / m!, where |d_j - c| <= r.
    if not len(which):
        return
    radius = radius or 1.0
    middle = (differences[0] + differences[-1]) / 2
    offsets = (differences - middle) / radius
    moments, power = np.empty((TERMS, len(middle))), np.ones_like(offsets)
    for m in range(TERMS):
        moments[m] = np.add.reduce(power, axis=0)
        power *= offsets
        power /= m + 1
    for part in np.array_split(which, -(-len(which) // TERMS)):
        exponents = np.maximum(np.multiply.outer(inverse[part], middle), FLOOR)
        np.exp(exponents, out=exponents)
        exponents *= np.vander(inverse[part] * radius, TERMS, increasing=True) @ moments
        totals[part] += exponents


def _add_exponentials(totals, which, differences, inverse):
    lowest, exponents = differences[-1].min(), np.empty_like(differences)
    for index in which:
        np.multiply(differences, inverse[index], out=exponents)
        if lowest * inverse[index] < FLOOR:
            np.maximum(exponents, FLOOR, out=exponents)
        totals[index] += np.add.reduce(np.exp(exponents, out=exponents), axis=0)
