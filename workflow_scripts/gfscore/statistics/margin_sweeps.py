"""Class scores at many temperatures, sharing all work that does not depend on the temperature."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
from gfscore.statistics.scale import SCALE

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
