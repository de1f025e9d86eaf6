"""Balls around images, and the least value of linear functions on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfscore.proofs.operators.declaration import Array
from gfscore.proofs.rounding import TINY, gamma


@dataclass(frozen=True)
class Ball:
    """All images in [0, 1] within a distance of one image.

    Attributes
    ----------
    centre, low, high : ndarray
        (d,) float64: the flattened image, and the ends of the box around the ball, rounded outward.
    eps : float
        Radius, above 0.
    norm : str
        "linf" or "l2".
    """

    centre: Array
    low: Array
    high: Array
    eps: float
    norm: str

    @property
    def magnitude(self) -> Array:
        """Largest magnitude of each pixel."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def to_torch(self, dtype: torch.dtype, device: str) -> TorchBall:
        """The ball in a number type of torch; in float32 it is only approximate."""
        low_offset = np.nextafter(self.low - self.centre, -np.inf)
        high_offset = np.nextafter(self.high - self.centre, np.inf)

        def column(values: Array) -> Tensor:
            return torch.from_numpy(values).to(device, dtype)[:, None]

        return TorchBall(
            centre=column(self.centre),
            low=column(self.low),
            high=column(self.high),
            low_offset=column(low_offset),
            high_offset=column(high_offset),
            eps=float(np.nextafter(self.eps, np.inf)),
            norm=self.norm,
        )


def ball(image: NDArray[np.float32], eps: float, norm: str) -> Ball:
    """Ball around an image (C, H, W) with pixels in [0, 1]."""
    centre = image.reshape(-1).astype(np.float64)
    reach = np.nextafter(eps, np.inf)
    low = np.clip(np.nextafter(centre - reach, -np.inf), 0, 1)
    high = np.clip(np.nextafter(centre + reach, np.inf), 0, 1)
    return Ball(centre, low, high, eps, norm)


@dataclass(frozen=True)
class TorchBall:
    """A ball as columns (d, 1) of torch; `low_offset` and `high_offset` are the box's ends less the centre."""

    centre: Tensor
    low: Tensor
    high: Tensor
    low_offset: Tensor
    high_offset: Tensor
    eps: float
    norm: str

    def minimum(self, coefficients: Tensor) -> Tensor:
        """Lower bounds (n,) of linear functions of the pixels on the ball, for coefficients (d, n).

        On an l2 ball by duality: for offsets x from the centre and any multiplier mu >= 0, the minimum over the box of
        a . x + mu (|x|^2 - eps^2) / 2 is a lower bound. The multiplier used is the best one for a ball without a box.
        """
        if self.norm == "linf":
            return dot(self.low, coefficients.clamp(min=0)) + dot(self.high, coefficients.clamp(max=0))
        multiplier = self._multiplier(coefficients)
        offsets = self._offsets(coefficients, multiplier)
        inside = (coefficients * offsets + multiplier / 2 * offsets**2).sum(0)
        return dot(self.centre, coefficients) + inside - multiplier / 2 * self.eps**2

    def minimiser(self, coefficients: Tensor) -> Tensor:
        """Pixels (d, n) at which linear functions attain the bounds of `minimum`."""
        if self.norm == "linf":
            middle = (self.low + self.high) / 2
            half_width = (self.high - self.low) / 2
            return torch.addcmul(middle, coefficients.sign(), half_width, value=-1)
        return self.centre + self._offsets(coefficients, self._multiplier(coefficients))

    def rounding_error(self, coefficients: Tensor, roundings: float) -> Tensor:
        """Bound (n,) on the rounding errors of `minimum`, for coefficients (d, n) in float64.

        `roundings` bounds the errors of the coefficients themselves, relative to the sums of magnitudes that they were
        computed from.
        """
        magnitudes = coefficients.abs()
        terms = dot(torch.maximum(self.low.abs(), self.high.abs()), magnitudes)
        if self.norm == "l2":
            multiplier = self._multiplier(coefficients)
            offsets = self._offsets(coefficients, multiplier)
            terms = terms + (magnitudes * offsets.abs() + multiplier * offsets**2).sum(0) + multiplier * self.eps**2
        return (gamma(len(coefficients) + 16) + roundings) * terms + TINY

    def _multiplier(self, coefficients: Tensor) -> Tensor:
        return (coefficients.norm(dim=0) / self.eps).clamp(min=1e-30)

    def _offsets(self, coefficients: Tensor, multiplier: Tensor) -> Tensor:
        offsets = -coefficients / multiplier
        return torch.minimum(torch.maximum(offsets, self.low_offset), self.high_offset)


def dot(column: Tensor, values: Tensor) -> Tensor:
    """Products (n,) of a column (m, 1) with each column of values (m, n)."""
    return (column.T @ values)[0]
