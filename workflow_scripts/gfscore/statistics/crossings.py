"""Temperatures at which the ranking of smooth curves changes.

Curves are expanded in short Chebyshev series on pieces of log T. A series proves for its whole piece that two curves
are apart, or tied; pieces where it proves neither are halved until they are narrower than LEAF. Unlike a grid, this
misses no change of order.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.curves import TOLERANCE
from gfscore.statistics.disparity import TIE_TOLERANCE

DEGREE = 16
"""Degree of the series on one piece."""

FEWEST_PIECES, MOST_PIECES = 64, 4096
"""Initial number of pieces, at which the series of a class score is exact to rounding; and the largest number."""

LEAF = 1e-8
"""Width in log T at which a change of ranking counts as located."""

RESOLUTION = 1e-6
"""Length in log T below which an interval of temperatures counts as a single crossing."""

NOISE = 1e-14
"""Change of a difference over a piece that is rounding error; such a piece is not halved further."""

PAIRS_AT_ONCE = 1 << 12

# Chebyshev points of the first kind, and the matrices that map values there to coefficients (points x coefficients)
# and coefficients on a piece to those on its lower and upper half.
_ANGLES = (np.arange(DEGREE + 1) + 0.5) * np.pi / (DEGREE + 1)
_POINTS = np.cos(_ANGLES)
_TO_SERIES = 2 / (DEGREE + 1) * np.cos(np.outer(_ANGLES, np.arange(DEGREE + 1)))
_TO_SERIES[:, 0] /= 2
_HALVES = [np.polynomial.chebyshev.chebvander((_POINTS + side) / 2, DEGREE).T @ _TO_SERIES for side in (-1, 1)]


def rank_boundaries(
    curves: Callable[[NDArray[np.float64]], NDArray[np.float64]], *, low: float, high: float
) -> NDArray[np.float64]:
    """Boundaries (S + 1,), ascending, of S intervals of [low, high] on which the ranking of C curves is constant.

    `curves` maps temperatures (T,) to values (T, C), smooth in log T. Between neighbouring boundaries ranking.ranks
    gives the same ranks, ties included, except for changes that last less than RESOLUTION in log T; the ranking may
    also be equal on both sides of a boundary. Raises InputError when curves are too rough for MOST_PIECES series.
    """
    edges, series = _pieces(curves, low, high)
    first, second = np.triu_indices(series.shape[1], 1)
    located = [edges[[0, -1]]]
    for start in range(0, len(first), PAIRS_AT_ONCE):
        pairs = slice(start, start + PAIRS_AT_ONCE)
        differences = series[:, first[pairs]] - series[:, second[pairs]]
        starts = np.repeat(edges[:-1], differences.shape[1])
        located += _changes(differences.reshape(-1, DEGREE + 1), starts, edges[1] - edges[0])
    return joined(np.exp(np.concatenate(located)), low=low, high=high)


def joined(boundaries: NDArray[np.float64], *, low: float, high: float) -> NDArray[np.float64]:
    """Boundaries without intervals shorter than RESOLUTION, (S + 1,) ascending from `low` to `high`.

    Boundaries that are that close together are replaced by one in their middle.
    """
    boundaries = np.unique(np.clip(np.concatenate([boundaries, [low, high]]), low, high))
    kept = np.diff(np.log(boundaries)) > RESOLUTION
    first, last = boundaries[:-1][kept], boundaries[1:][kept]
    return np.concatenate([[low], np.sqrt(last[:-1] * first[1:]), [high]])


def _pieces(curves, low, high):
    # Edges (P + 1,) in log T and series (P, C, DEGREE + 1); more pieces until the last coefficients vanish.
    pieces = FEWEST_PIECES
    while pieces <= MOST_PIECES:
        edges = np.linspace(np.log(low), np.log(high), pieces + 1)
        middles, half = (edges[:-1] + edges[1:]) / 2, (edges[1] - edges[0]) / 2
        values = curves(np.clip(np.exp(middles[:, None] + half * _POINTS), low, high).ravel())
        series = values.reshape(pieces, DEGREE + 1, -1).swapaxes(1, 2) @ _TO_SERIES
        if np.abs(series[..., -2:]).max(initial=0) <= TOLERANCE:
            return edges, series
        pieces *= 2
    raise InputError(
        f"score curves between T = {low:g} and {high:g} are too rough to find their crossings with {MOST_PIECES} "
        "series; narrow the range"
    )


def _changes(differences, starts, width):
    # Ends, in log T, of the smallest pieces on which |difference| crosses the tolerance of ties.
    ends = []
    while len(differences):
        middle, spread = np.abs(differences[:, 0]), np.abs(differences[:, 1:]).sum(axis=1)
        undecided = (middle - spread <= TIE_TOLERANCE) & (middle + spread > TIE_TOLERANCE)
        located = undecided & ((spread <= NOISE) | (width <= LEAF))
        ends += [starts[located], starts[located] + width]
        halved = undecided & ~located
        width /= 2
        starts = np.concatenate([starts[halved], starts[halved] + width])
        differences = np.concatenate([differences[halved] @ half for half in _HALVES])
    return ends
