"""ReLU, and what is made of it: LeakyReLU and the largest number of a window."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor, nn

from gfscore.proofs.operators.declaration import Activation, Array, Builder, Call, Lines, Plain, Reader, Symbol
from gfscore.proofs.operators.elementwise import Sum
from gfscore.proofs.operators.rearrangement import entry_indices, rearranged
from gfscore.proofs.rounding import TINY, UNIT

aten = torch.ops.aten


@dataclass(frozen=True)
class Relu(Activation):
    """max(z, 0)."""

    splits = True

    def forward(self, values: Tensor) -> Tensor:
        return torch.relu(values)

    def interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        return np.maximum(low, 0), np.maximum(high, 0)

    def lines(self, low: Array, high: Array) -> Lines:
        """The chord above; below the line through 0 with slope 0 or 1 that leaves the smaller area."""
        active = low >= 0
        unstable = ~active & (high > 0)
        width = np.where(unstable, high - low, 1)
        chord = np.clip(np.where(unstable, high / width, active), 0, 1)
        # Any slope in [0, 1] does; the intercept is rounded up so that the line passes above both ends.
        above = np.maximum(-chord * low, (1 - chord) * high) * (1 + 8 * UNIT) + TINY
        intercept = np.where(unstable, above, 0)
        lower = np.where(unstable, high > -low, active)
        return Lines(lower.astype(np.float64), np.zeros_like(low), chord, intercept)

    def plain(self) -> Plain:
        return Plain("relu")


def relu(builder: Builder, values: Symbol) -> Symbol:
    """ReLU of a tensor."""
    return builder.add(Relu(), [values], values.shape)


def _relu(builder: Builder, call: Call) -> Symbol:
    return relu(builder, call.symbol("self"))


def _leaky_relu(builder: Builder, call: Call) -> Symbol:
    # a x + (1 - a) relu(x). Numbers of the call are decimals; torch computes with the nearest float32 number.
    values = call.symbol("self")
    slope = float(np.float32(call.arguments["negative_slope"]))
    return builder.add(Sum((slope, 1 - slope)), [values, relu(builder, values)], call.shape)


def _max_pool2d(builder: Builder, call: Call) -> Symbol:
    # max(a, b) = b + relu(a - b), for windows in pairs.
    call.require(call.pair("padding") == (0, 0), "it must not be padded")
    plain = call.pair("dilation") == (1, 1) and not call.arguments["ceil_mode"]
    call.require(plain, "dilation must be 1, ceil_mode false")
    height, width = call.pair("kernel_size")
    down, right = call.pair("stride") if call.arguments["stride"] else (height, width)

    images = call.symbol("self")
    places = entry_indices(images)
    rows, columns = call.shape[2:]
    members = []
    for top, left in product(range(height), range(width)):
        window = places[:, :, top : top + down * rows : down, left : left + right * columns : right]
        members.append(rearranged(builder, images, window[:, :, :rows, :columns]))
    while len(members) > 1:
        pairs = []
        for first, second in zip(members[::2], members[1::2], strict=False):
            # max(a, b) = b + relu(a - b).
            difference = builder.add(Sum((1.0, -1.0)), [first, second], first.shape)
            pairs.append(builder.add(Sum((1.0, 1.0)), [second, relu(builder, difference)], first.shape))
        members = pairs + members[2 * len(pairs) :]
    return members[0]


def _rectified() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(27, 6), nn.ReLU(), nn.Linear(6, 3))


def _leaky() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(27, 3))


def _largest() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 2, 2), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(8, 3))


READERS = {
    aten.relu.default: Reader(_relu, _rectified),
    aten.leaky_relu.default: Reader(_leaky_relu, _leaky),
    aten.max_pool2d_with_indices.default: Reader(_max_pool2d, _largest),
}
