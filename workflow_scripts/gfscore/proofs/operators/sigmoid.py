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
"""Relative margin for rounding errors in values of sigmoid and tanh, and in lines around them.

ASSUME: numpy's and scipy's functions err by fewer than 16 units in the last place.
"""


@dataclass(frozen=True)
class SShaped(Activation):
    """An increasing function that is convex below 0 and concave above, with an even derivative."""

    splits = False

    @abstractmethod
    def value(self, z: Array) -> Array:
        """The function."""

    @abstractmethod
    def derivative(self, z: Array) -> Array:
        """Its derivative."""

    @abstractmethod
    def tangent_point(self, slope: Array) -> Array:
        """The z >= 0 at which the derivative is `slope`, a number between 0 and its maximum."""

    def interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        lowest, highest = self.value(low), self.value(high)
        return lowest - MARGIN * (1 + np.abs(lowest)), highest + MARGIN * (1 + np.abs(highest))

    def lines(self, low: Array, high: Array) -> Lines:
        """The lines below and above that are tightest at the middle of the interval.

        Their slopes are those of the chord or of a tangent, at an end or at the middle.
        """
        middle = (low + high) / 2
        width = high - low
        rise = self.value(high) - self.value(low)
        chord = np.where(width > 1e-6, rise / np.maximum(width, 1e-6), self.derivative(middle))
        below, above = self.intercepts(chord, low, high)
        best = Lines(chord, below, chord, above)
        slopes_at_ends = self.derivative(low), self.derivative(high)
        for slope in (np.minimum(*slopes_at_ends), self.derivative(middle), np.maximum(*slopes_at_ends)):
            below, above = self.intercepts(slope, low, high)
            higher = slope * middle + below > best.lower_slope * middle + best.lower_intercept
            lower = slope * middle + above < best.upper_slope * middle + best.upper_intercept
            best = Lines(
                np.where(higher, slope, best.lower_slope),
                np.where(higher, below, best.lower_intercept),
                np.where(lower, slope, best.upper_slope),
                np.where(lower, above, best.upper_intercept),
            )
        return best

    def intercepts(self, slope: Array, low: Array, high: Array) -> tuple[Array, Array]:
        """Intercepts of the lines of a slope below and above the function between two bounds, rounded outward."""
        tangent_point = self.tangent_point(slope)
        smallest = np.full_like(low, np.inf)
        largest = np.full_like(low, -np.inf)
        magnitude = np.maximum(np.abs(low), np.abs(high))
        # value(z) - slope * z is extreme at an end, or where the tangent has this slope.
        for z in (low, high, np.clip(tangent_point, low, high), np.clip(-tangent_point, low, high)):
            intercept = self.value(z) - slope * z
            smallest = np.minimum(smallest, intercept)
            largest = np.maximum(largest, intercept)
        margin = MARGIN * (1 + np.abs(slope) * magnitude)
        return smallest - margin, largest + margin


@dataclass(frozen=True)
class Sigmoid(SShaped):
    """1 / (1 + exp(-z))."""

    def forward(self, values: Tensor) -> Tensor:
        return torch.sigmoid(values)

    def value(self, z: Array) -> Array:
        return expit(z)

    def derivative(self, z: Array) -> Array:
        value = expit(z)
        return value * (1 - value)

    def tangent_point(self, slope: Array) -> Array:
        root = np.sqrt(np.clip(1 - 4 * slope, 0, 1))
        return logit(np.clip((1 + root) / 2, 0.5, 1 - 1e-15))

    def plain(self) -> Plain:
        return Plain("sigmoid")


@dataclass(frozen=True)
class Tanh(SShaped):
    """Hyperbolic tangent."""

    def forward(self, values: Tensor) -> Tensor:
        return torch.tanh(values)

    def value(self, z: Array) -> Array:
        return np.tanh(z)

    def derivative(self, z: Array) -> Array:
        return 1 - np.tanh(z) ** 2

    def tangent_point(self, slope: Array) -> Array:
        return np.arctanh(np.clip(np.sqrt(np.clip(1 - slope, 0, 1)), 0, 1 - 1e-15))

    def plain(self) -> Plain:
        return Plain("tanh")


def _sigmoid(builder: Builder, call: Call) -> Symbol:
    return builder.add(Sigmoid(), [call.symbol("self")], call.shape)


def _tanh(builder: Builder, call: Call) -> Symbol:
    return builder.add(Tanh(), [call.symbol("self")], call.shape)


def _example(activation: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 8), activation, nn.Linear(8, 6), activation, nn.Linear(6, 3))


READERS = {
    aten.sigmoid.default: Reader(_sigmoid, lambda: _example(nn.Sigmoid())),
    aten.tanh.default: Reader(_tanh, lambda: _example(nn.Tanh())),
}
