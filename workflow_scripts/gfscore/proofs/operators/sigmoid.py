"""Sigmoid and tanh."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import expit, logit
from torch import Tensor, nn

from gfscore.proofs.operators.declaration import Activation, Array, Builder, Call, Lines, Plain, Reader, Symbol
from gfscore.proofs.rounding import UNIT

aten = torch.ops.aten

MARGIN = 64 * UNIT
"""Relative widening of values of exp, tanh, and of lines through them.

# ASSUME: numpy's and scipy's functions err by fewer than 16 units in the last place.
"""


@dataclass(frozen=True)
class Curve(Activation):
    """An increasing function of the shape of an S, convex below 0 and concave above."""

    splits = False

    @abstractmethod
    def value(self, z: Array) -> Array:
        """The function."""

    @abstractmethod
    def slope(self, z: Array) -> Array:
        """Its derivative."""

    @abstractmethod
    def place_of(self, slope: Array) -> Array:
        """The z >= 0 at which the derivative has a value between 0 and the largest."""

    def interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        bottom, top = self.value(low), self.value(high)
        return bottom - MARGIN * (1 + np.abs(bottom)), top + MARGIN * (1 + np.abs(top))

    def lines(self, low: Array, high: Array) -> Lines:
        """Among a few slopes those whose lines lie highest below, and lowest above, the middle of the interval."""
        middle = (low + high) / 2
        width = high - low
        rise = self.value(high) - self.value(low)
        chord = np.where(width > 1e-6, rise / np.maximum(width, 1e-6), self.slope(middle))
        flat = np.minimum(self.slope(low), self.slope(high))
        candidates = [chord, flat, self.slope(middle), self.slope(low), self.slope(high)]

        best = None
        for slope in candidates:
            below, above = self.intercepts(slope, low, high)
            if best is None:
                best = Lines(slope, below, slope, above)
                continue
            higher = slope * middle + below > best.lower_slope * middle + best.lower_intercept
            lower = slope * middle + above < best.upper_slope * middle + best.upper_intercept
            best = Lines(
                np.where(higher, slope, best.lower_slope),
                np.where(higher, below, best.lower_intercept),
                np.where(lower, slope, best.upper_slope),
                np.where(lower, above, best.upper_intercept),
            )
        assert best is not None
        return best

    def intercepts(self, slope: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Smallest and largest value of the function less slope * z between the bounds, rounded outward."""
        extreme = self.place_of(slope)
        smallest = np.full_like(low, np.inf)
        largest = np.full_like(low, -np.inf)
        reach = np.maximum(np.abs(low), np.abs(high))
        for place in (low, high, np.clip(extreme, low, high), np.clip(-extreme, low, high)):
            gap = self.value(place) - slope * place
            smallest = np.minimum(smallest, gap)
            largest = np.maximum(largest, gap)
        margin = MARGIN * (1 + np.abs(slope) * reach)
        return smallest - margin, largest + margin


@dataclass(frozen=True)
class Sigmoid(Curve):
    """1 / (1 + exp(-z))."""

    def forward(self, values: Tensor) -> Tensor:
        return torch.sigmoid(values)

    def value(self, z: Array) -> Array:
        return expit(z)

    def slope(self, z: Array) -> Array:
        value = expit(z)
        return value * (1 - value)

    def place_of(self, slope: Array) -> Array:
        root = np.sqrt(np.clip(1 - 4 * slope, 0, 1))
        return logit(np.clip((1 + root) / 2, 0.5, 1 - 1e-15))

    def plain(self) -> Plain:
        return Plain("sigmoid")


@dataclass(frozen=True)
class Tanh(Curve):
    """Hyperbolic tangent."""

    def forward(self, values: Tensor) -> Tensor:
        return torch.tanh(values)

    def value(self, z: Array) -> Array:
        return np.tanh(z)

    def slope(self, z: Array) -> Array:
        return 1 - np.tanh(z) ** 2

    def place_of(self, slope: Array) -> Array:
        return np.arctanh(np.clip(np.sqrt(np.clip(1 - slope, 0, 1)), 0, 1 - 1e-15))

    def plain(self) -> Plain:
        return Plain("tanh")


def _sigmoid(builder: Builder, call: Call) -> Symbol:
    return builder.add(Sigmoid(), [call.symbol("self")], call.shape)


def _tanh(builder: Builder, call: Call) -> Symbol:
    return builder.add(Tanh(), [call.symbol("self")], call.shape)


def _curved(activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 8), activation, nn.Linear(8, 6), activation, nn.Linear(6, 3))


READERS = {
    aten.sigmoid.default: Reader(_sigmoid, lambda: _curved(nn.Sigmoid())),
    aten.tanh.default: Reader(_tanh, lambda: _curved(nn.Tanh())),
}
