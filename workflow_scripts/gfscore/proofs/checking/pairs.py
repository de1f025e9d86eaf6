"""Pairs of ReLUs whose inputs no point of a ball brings to the ends of their bounds at the same time."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.proofs.checking.plain_network import Array, Window

LEAST_WEIGHT = 1e-30
"""Smaller sums of weights are replaced by it, so that none is divided by 0."""

ERROR = 1e-9
"""Bound on the relative rounding errors of the sums in this module."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Pairs:
    """P pairs of the ReLUs of an activation.

    For an input z between l < 0 and h > 0, with the middle c and half the width w, the line above exceeds the ReLU by
    at least min(h, -l) / 2 * (1 - |z - c| / w). In a pair, |z - c| / w of both add up to at most 2 - slack in the ball.

    Attributes
    ----------
    first, second : ndarray
        (P,) places in the activation.
    slack : ndarray
        (P,), at least 0.
    reach : ndarray
        (size,) min(h, -l) / 2 of each ReLU, 0 where it is not unstable.
    shape : tuple of int
        Of the activation.
    """

    first: Indices
    second: Indices
    slack: Array
    reach: Array
    shape: tuple[int, ...]

    def gains(self, coefficients: Array, window: Window) -> Array:
        """Amounts, (R,), by which pairs of ReLUs raise lower bounds of R linear functions.

        Parameters
        ----------
        coefficients : ndarray
            (..., R), of the outputs of a window of the activation; 0 where it is not the line above that counts.
        window : tuple of slice
        """
        positions = np.full(self.shape, -1)
        positions[window] = np.arange(positions[window].size).reshape(positions[window].shape)
        first, second = positions.reshape(-1)[self.first], positions.reshape(-1)[self.second]
        inside = (first >= 0) & (second >= 0)
        units, members = np.unique(np.concatenate([first[inside], second[inside]]), return_inverse=True)
        first, second = np.split(members, 2)
        slack = self.slack[inside][:, None]
        rows = coefficients.reshape(-1, coefficients.shape[-1])[units]
        sizes = np.maximum(-rows, 0) * self.reach.reshape(self.shape)[window].reshape(-1)[units][:, None]

        # A ReLU is divided among its pairs, so that no share of it counts twice.
        weights = (slack * np.minimum(sizes[first], sizes[second])) ** 2
        totals = np.zeros_like(sizes)
        np.add.at(totals, first, weights)
        np.add.at(totals, second, weights)
        totals = np.maximum(totals, LEAST_WEIGHT)
        shares = np.minimum(sizes[first] / totals[first], sizes[second] / totals[second]) * weights
        return (slack * shares).sum(0) * (1 - ERROR)
