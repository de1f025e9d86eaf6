"""Activations between two lines."""

from typing import NamedTuple

import numpy as np

from gfscore.proofs.checking.plain_network import CURVES, Array
from gfscore.proofs.checking.rounding import TINY, UNIT

CURVE_ERROR = 64 * UNIT
"""Widening of tanh and of lines around it.

# ASSUME: numpy's tanh errs by fewer than 16 units in the last place.
"""


class Lines(NamedTuple):
    """Slopes and intercepts of lines below and above an activation, of its shape."""

    below: Array
    below_at_0: Array
    above: Array
    above_at_0: Array


def interval(kind: str, low: Array, high: Array, *, error: float) -> tuple[Array, Array]:
    """Bounds of an activation's outputs for inputs between two bounds; a curve is computed with an error."""
    if kind == "relu":
        return np.maximum(low, 0), np.maximum(high, 0)
    margin = CURVE_ERROR + error
    return _curve(kind, low) - margin, _curve(kind, high) + margin


def lines(kind: str, low: Array, high: Array) -> Lines:
    """Two lines around an activation for inputs between two bounds."""
    if kind != "relu":
        return _curve_lines(kind, low, high)
    # Below slope 0 or 1, above the chord, on [low, high].
    unstable = (low < 0) & (high > 0)
    active = (low >= 0).astype(np.float64)
    width = np.where(unstable, high - low, 1)
    chord = np.where(unstable, np.clip(high / width, 0, 1), active)
    # With max(-s l, (1 - s) h) a line of any slope s lies above the ReLU at both ends, hence between them.
    intercept = np.maximum(-chord * low, (1 - chord) * high) * (1 + 8 * UNIT) + TINY
    intercept = np.where(unstable, intercept, 0)
    below = np.where(unstable, (high > -low).astype(np.float64), active)
    return Lines(below, np.zeros_like(low), chord, intercept)


def _curve(kind: str, z: Array) -> Array:
    a, b, c = CURVES[kind]
    return a + b * np.tanh(c * z)


def _curve_lines(kind: str, low: Array, high: Array) -> Lines:
    # Of a few slopes s those whose lines lie closest to the middle of [low, high]. The curve less s z has its least and
    # greatest values at the ends, or where the curve's slope b c / cosh(c z)^2 is s.
    _, b, c = CURVES[kind]
    middle = (low + high) / 2
    ends = [b * c / np.cosh(np.clip(c * z, -300, 300)) ** 2 for z in (low, high, middle)]
    width = high - low
    rise = _curve(kind, high) - _curve(kind, low)
    chord = np.where(width > 1e-6, rise / np.maximum(width, 1e-6), ends[2])
    best = None
    for slope in (chord, np.minimum(ends[0], ends[1]), *ends):
        place = np.arccosh(np.sqrt(np.maximum(b * c / np.maximum(slope, 1e-280), 1))) / c
        gaps = []
        for z in (low, high, np.clip(place, low, high), np.clip(-place, low, high)):
            gaps.append(_curve(kind, z) - slope * z)
        margin = CURVE_ERROR * (1 + slope * np.maximum(np.abs(low), np.abs(high)))
        below, above = np.min(gaps, axis=0) - margin, np.max(gaps, axis=0) + margin
        if best is None:
            best = Lines(slope, below, slope, above)
            continue
        higher = slope * middle + below > best.below * middle + best.below_at_0
        lower = slope * middle + above < best.above * middle + best.above_at_0
        best = Lines(
            np.where(higher, slope, best.below),
            np.where(higher, below, best.below_at_0),
            np.where(lower, slope, best.above),
            np.where(lower, above, best.above_at_0),
        )
    assert best is not None
    return best
