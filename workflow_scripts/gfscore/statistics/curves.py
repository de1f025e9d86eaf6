"""Class scores at many temperatures, and as smooth functions of the temperature.

A class score is an analytic function of log T, so its values at a few Chebyshev points determine it everywhere between
them, and a calibration needs a small table instead of the logits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

import numpy as np
import pandas as pd
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike, NDArray
from scipy.fft import dct

from gfscore.core.errors import InputError
from gfscore.statistics import SCALE
from gfscore.statistics.margins import (
    ACTIVATIONS,
    BLOCK_ELEMENTS,
    FEW_CLASSES,
    FLOOR,
    real_logits,
    require_activation,
    require_temperature,
    true_and_rival_logits,
)
from gfscore.statistics.quotients import ratio

TOLERANCE = 1e-10
"""Largest interpolation error, relative to the score's range [0, B]."""

POINTS = (65, 129, 257, 513)
"""Numbers of Chebyshev points: each set contains the previous one, whose values are reused."""

CACHED_EXPONENTIALS = 1 << 14
"""Exponentials per block, so that input and output stay in the processor's first-level caches."""

ROWS_OF_MANY_CLASSES = 1 << 10
"""Samples per block if there are many classes, so that summing over classes costs less than their exponentials."""

NEGLIGIBLE = -37.5
"""Exponents below this minus ln K do not change a float64 sum of K exponentials of which one is 1."""

TERMS = 12
"""Terms of the power series of an exponential."""

RADIUS = 0.4
"""A power series of TERMS terms gives exp(x) for |x| <= RADIUS with a relative error of at most 6e-14."""

Floats = NDArray[np.float64]

ScoresAt = Callable[[Floats], Floats]
"""Function from temperatures (P,) to class scores (P, K)."""


@dataclass(frozen=True, eq=False)
class ScoreCurves:
    """Class scores over temperatures.

    Attributes
    ----------
    temperatures : ndarray of shape (P,), float64
        Chebyshev points in log T, ascending.
    values : ndarray of shape (P, K), float64
        Class scores there, in [0, B]; NaN for a class without samples.
    n : ndarray of shape (K,), int64
        Samples per class.
    """

    temperatures: Floats
    values: Floats
    n: NDArray[np.int64]

    @classmethod
    def of_rows(cls, rows: pd.DataFrame, classes: int) -> Self:
        """Curves of one model from its rows of the table sweep, sorted by temperature and class."""
        points = rows[["temperature", "value"]].to_numpy().reshape(-1, classes, 2)
        return cls(points[:, 0, 0].copy(), points[:, :, 1].copy(), rows["n"].to_numpy()[:classes])

    def __call__(self, temperatures: ArrayLike) -> Floats:
        """Class scores at any temperatures within the range.

        Parameters
        ----------
        temperatures : array_like of shape (T,)
            Positive numbers between the first and the last point.

        Returns
        -------
        ndarray of shape (T, K), float64
            Exact to TOLERANCE * B; NaN for a class without samples.

        Raises
        ------
        InputError
            For a temperature outside the range.
        """
        low, high = self.temperatures[[0, -1]]
        temperatures = np.asarray(temperatures, dtype=np.float64)
        if temperatures.size and (temperatures.min() < low * (1 - 1e-9) or temperatures.max() > high * (1 + 1e-9)):
            raise InputError(f"temperatures must lie in the swept range [{low:g}, {high:g}]")
        # In log T, from -1 at the first point to 1 at the last.
        share = (np.log(temperatures) - np.log(low)) / (np.log(high) - np.log(low))
        position = np.clip(2 * share - 1, -1, 1)
        present = self.n > 0
        result = np.full((len(temperatures), len(self.n)), np.nan)
        result[:, present] = _basis(position.tobytes(), len(self.values) - 1) @ self._present_coefficients
        # Rounding of the interpolation must not make a score negative.
        return np.maximum(result, 0)

    @cached_property
    def _present_coefficients(self) -> Floats:
        return _coefficients(self.values[:, self.n > 0])


@lru_cache(maxsize=4)
def _basis(position: bytes, degree: int) -> Floats:
    # Chebyshev polynomials at float64 positions (T,), at which all models of an audit are evaluated.
    basis = chebyshev.chebvander(np.frombuffer(position), degree)
    return np.asarray(basis, dtype=np.float64)


def sweep_class_scores(
    logits: ArrayLike, labels: ArrayLike, classes: int, *, activation: str, low: float, high: float
) -> ScoreCurves:
    """Class scores over a range of temperatures.

    The number of Chebyshev points in log T is doubled until the last coefficients are below TOLERANCE.

    Parameters
    ----------
    logits : array_like of shape (N, K)
        Finite logits.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    activation : str
        A key of margins.ACTIVATIONS.
    low, high : float
        Range of temperatures, 0 < low < high.

    Returns
    -------
    ScoreCurves
        Class scores as functions of T.

    Raises
    ------
    InputError
        For a range that is empty or not positive, and where the largest set of points does not suffice.
    """
    if not 0 < low < high:
        raise InputError(f"temperature range must satisfy 0 < low < high, got {low}, {high}")
    n = np.bincount(labels, minlength=classes)
    scores_at = class_scores_by_temperature(logits, labels, classes, activation=activation)
    finest = chebyshev_points(POINTS[-1], low, high)
    values = None
    for points in POINTS:
        temperatures = finest[:: (POINTS[-1] - 1) // (points - 1)]
        if values is None:
            values = scores_at(temperatures)
        else:
            coarse = values
            values = np.empty((points, classes))
            values[::2] = coarse
            values[1::2] = scores_at(temperatures[1::2])
        tail = np.abs(_coefficients(values[:, n > 0])[-points // 8 :])
        if tail.max() <= TOLERANCE:
            return ScoreCurves(temperatures=temperatures, values=values, n=n)
    raise InputError(
        f"class scores between T = {low:g} and {high:g} need more than {POINTS[-1]} points; narrow the range"
    )


def chebyshev_points(points: int, low: float, high: float) -> Floats:
    """Chebyshev points of the second kind in log T on [low, high], ascending, (P,)."""
    position = np.cos(np.pi * np.arange(points)[::-1] / (points - 1))
    temperatures = np.exp(np.log(low) + (position + 1) / 2 * (np.log(high) - np.log(low)))
    temperatures[[0, -1]] = low, high
    return temperatures


def _coefficients(values: Floats) -> Floats:
    # Type-I discrete cosine transform: coefficients of the interpolating Chebyshev series, (P, K).
    coefficients: Floats = dct(values[::-1], type=1, axis=0) / (len(values) - 1)
    coefficients[[0, -1]] /= 2
    return coefficients


# ---- class scores at many temperatures ----


def class_scores_by_temperature(logits: ArrayLike, labels: ArrayLike, classes: int, *, activation: str) -> ScoresAt:
    """Function from temperatures to class scores, which shares all work that does not depend on the temperature.

    A class score is the mean of margins.scores over the samples of a class.

    Parameters
    ----------
    logits : array_like of shape (N, K)
        Finite logits.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    activation : str
        A key of margins.ACTIVATIONS.

    Returns
    -------
    callable
        Maps temperatures (P,) to class scores (P, K) float64 in [0, B], NaN for a class without samples. Raises
        InputError for a temperature that is not a positive number.

    Raises
    ------
    InputError
        For an unknown activation.
    """
    require_activation(activation)
    logits = real_logits(logits)
    labels = np.asarray(labels)
    n = np.bincount(labels, minlength=classes)

    # Only correctly classified samples have a score above 0; they are processed class by class.
    true_logit, rival_logit = true_and_rival_logits(logits, labels)
    rows = np.flatnonzero(true_logit > rival_logit)
    # numpy sorts 16-bit integers by radix.
    sort_keys = labels[rows].astype(np.int16 if classes <= 1 << 15 else np.int32)
    rows = rows[np.argsort(sort_keys, kind="stable")]
    true_logit = true_logit[rows]
    rival_logit = rival_logit[rows]
    label = labels[rows]
    if activation == "sigmoid":
        block_size = CACHED_EXPONENTIALS
    elif logits.shape[1] > FEW_CLASSES:
        block_size = ROWS_OF_MANY_CLASSES
    else:
        block_size = max(1, BLOCK_ELEMENTS // logits.shape[1])

    def scores_at(temperatures: Floats) -> Floats:
        for temperature in temperatures:
            require_temperature(temperature)
        sums = np.zeros((len(temperatures), classes))
        for start in range(0, len(rows), block_size):
            block = slice(start, start + block_size)
            z = None if activation == "sigmoid" else logits[rows[block]]
            margins = _margins(activation, z, true_logit[block], rival_logit[block], temperatures)
            # The first sample of each class, whose samples are adjacent.
            first_rows = np.flatnonzero(np.diff(label[block], prepend=-1))
            present = label[block][first_rows]
            for sums_by_class, values in zip(sums, margins, strict=True):
                sums_by_class[present] += np.add.reduceat(values, first_rows)
        return ratio(SCALE * sums, n)

    return scores_at


def _margins(
    activation: str,
    z: NDArray[np.floating] | None,
    true_logit: Floats,
    rival_logit: Floats,
    temperatures: Floats,
) -> Iterator[Floats]:
    # Margins (rows,) at each temperature, from logits (rows, K), which the sigmoid does not need.
    # Differences that overflow become infinite, and their exponentials are correct.
    with np.errstate(over="ignore", invalid="ignore"):
        if activation == "softmax" and z is not None and z.shape[1] > FEW_CLASSES:
            yield from _softmax_of_many_classes(z, true_logit, rival_logit, temperatures)
            return
        by_class = None if z is None else np.ascontiguousarray(z.T)
        margins_at = ACTIVATIONS[activation](by_class, true_logit, rival_logit)
        for temperature in temperatures:
            yield margins_at(float(temperature))


def _softmax_of_many_classes(
    z: NDArray[np.floating], true_logit: Floats, rival_logit: Floats, temperatures: Floats
) -> Iterator[Floats]:
    # Each row in descending order, so that exponentials that are negligible come last, and those of a chunk of ranks
    # have similar logits: (K, rows).
    z = np.ascontiguousarray(np.sort(z, axis=1)[:, ::-1].T)
    chunk_size = max(1, CACHED_EXPONENTIALS // len(true_logit))
    inverse = 1 / np.asarray(temperatures, dtype=np.float64)
    # Sums over classes j of exp((z_j - z_y) / T), (P, rows).
    totals = np.zeros((len(inverse), len(true_logit)))
    negligible = NEGLIGIBLE - np.log(len(z))
    for start in range(0, len(z), chunk_size):
        differences = z[start : start + chunk_size] - true_logit
        radius = (differences[0] - differences[-1]).max() / 2
        # At temperatures that are high enough for it, one power series replaces the exponentials of a chunk.
        matters = inverse * differences[0].max() >= negligible
        has_series = matters & (inverse * radius <= RADIUS)
        _add_series(totals, np.flatnonzero(has_series), differences, radius, inverse)
        _add_exponentials(totals, np.flatnonzero(matters & ~has_series), differences, inverse)
    for total, temperature in zip(totals, temperatures, strict=True):
        yield -np.expm1((rival_logit - true_logit) / temperature) / total


def _add_series(totals: Floats, indices: NDArray[np.intp], differences: Floats, radius: float, inverse: Floats) -> None:
    # Adds, at the temperatures 1 / b of these indices, the sum over classes j of
    # exp(b d_j) = exp(b c) sum_m (b r)^m sum_j ((d_j - c) / r)^m / m!, where |d_j - c| <= r.
    if not len(indices):
        return
    radius = radius or 1.0
    middle = (differences[0] + differences[-1]) / 2
    offsets = (differences - middle) / radius
    moments = np.empty((TERMS, len(middle)))
    power = np.ones_like(offsets)
    for m in range(TERMS):
        moments[m] = np.add.reduce(power, axis=0)
        power *= offsets
        power /= m + 1
    for block in np.array_split(indices, -(-len(indices) // TERMS)):
        exponents = np.maximum(np.multiply.outer(inverse[block], middle), FLOOR)
        np.exp(exponents, out=exponents)
        exponents *= np.vander(inverse[block] * radius, TERMS, increasing=True) @ moments
        totals[block] += exponents


def _add_exponentials(totals: Floats, indices: NDArray[np.intp], differences: Floats, inverse: Floats) -> None:
    # The same sum as _add_series, term by term.
    lowest = differences[-1].min()
    exponents = np.empty_like(differences)
    for index in indices:
        np.multiply(differences, inverse[index], out=exponents)
        if lowest * inverse[index] < FLOOR:
            np.maximum(exponents, FLOOR, out=exponents)
        np.exp(exponents, out=exponents)
        totals[index] += np.add.reduce(exponents, axis=0)
