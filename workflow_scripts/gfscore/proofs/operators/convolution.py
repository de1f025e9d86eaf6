"""Convolutions, and averages as convolutions whose weights are equal."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.grad import conv2d_input

from gfscore.proofs.operators.declaration import Affine, Builder, Call, Plain, Reader, Shape, Symbol
from gfscore.proofs.operators.rearrangement import entry_indices, rearranged

aten = torch.ops.aten


@dataclass(frozen=True)
class Convolution(Affine):
    """Two-dimensional convolution of zero-padded images.

    Attributes
    ----------
    weight : Tensor
        (out channels, in channels / groups, height, width) float64.
    bias : Tensor or None
        (out channels, 1, 1).
    stride, padding, dilation : tuple of int
        Vertical and horizontal.
    groups : int
    input_shape : tuple of int
        (1, channels, height, width).
    """

    weight: Tensor
    bias: Tensor | None
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    input_shape: Shape

    @property
    def operations(self) -> int:
        return self.weight.numel() + 2

    def forward(self, *inputs: Tensor) -> Tensor:
        images = inputs[0].reshape(-1, *self.input_shape[1:])
        weight = self.weight.to(images)
        result = functional.conv2d(images, weight, None, self.stride, self.padding, self.dilation, self.groups)
        if self.bias is not None:
            result = result + self.bias.to(images)
        return result.reshape(len(inputs[0]), 1, *result.shape[1:])

    def transpose(self, rows: Tensor) -> tuple[Tensor, ...]:
        flat = rows.reshape(-1, *rows.shape[2:])
        shape = (len(flat), *self.input_shape[1:])
        result = conv2d_input(shape, self.weight.to(flat), flat, self.stride, self.padding, self.dilation, self.groups)
        return (result.reshape(len(rows), *self.input_shape),)

    def absolute(self) -> Affine:
        bias = None if self.bias is None else self.bias.abs()
        return replace(self, weight=self.weight.abs(), bias=bias)

    def plain(self) -> Plain:
        arrays = {"weight": self.weight.numpy()}
        if self.bias is not None:
            arrays["bias"] = self.bias.numpy()
        numbers = {"stride": list(self.stride), "padding": list(self.padding), "dilation": list(self.dilation)}
        return Plain("convolution", arrays, numbers | {"groups": [self.groups]})


def _convolution(builder: Builder, call: Call) -> Symbol:
    images = call.image("input")
    weight = call.constant("weight").double()
    bias = call.constant("bias")
    call.require(weight.ndim == 4, "it is not two-dimensional")
    call.require(not call.arguments["transposed"], "it is transposed")
    operator = Convolution(
        weight=weight,
        bias=None if bias is None else bias.double().reshape(-1, 1, 1),
        stride=call.pair("stride"),
        padding=call.pair("padding"),
        dilation=call.pair("dilation"),
        groups=call.arguments["groups"],
        input_shape=images.shape,
    )
    return builder.add(operator, [images], call.shape)


# Averages


def average(
    builder: Builder,
    images: Symbol,
    shape: Shape,
    *,
    size: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int] = (0, 0),
) -> Symbol:
    """Means of windows of images (1, C, H, W), padded with zeros that count.

    `size`, `stride` and `padding` of the windows are vertical and horizontal.
    """
    channels = images.shape[1]
    height, width = size
    weight = torch.full((channels, 1, height, width), 1 / (height * width), dtype=torch.float64)
    operator = Convolution(weight, None, stride, padding, (1, 1), channels, images.shape)
    return builder.add(operator, [images], shape)


def _avg_pool2d(builder: Builder, call: Call) -> Symbol:
    padding = call.pair("padding")
    counts_padding = call.arguments["count_include_pad"] or padding == (0, 0)
    equal_weights = counts_padding and not call.arguments["ceil_mode"] and call.arguments["divisor_override"] is None
    call.require(equal_weights, "every window must be averaged over its full size, padding included")
    kernel = call.pair("kernel_size")
    stride = call.pair("stride") if call.arguments["stride"] else kernel
    return average(builder, call.image("self"), call.shape, size=kernel, stride=stride, padding=padding)


def _adaptive_avg_pool2d(builder: Builder, call: Call) -> Symbol:
    images = call.image("self")
    height, width = images.shape[2:]
    rows, columns = call.shape[2:]
    divides = height % rows == 0 and width % columns == 0
    call.require(divides, f"windows of {images.shape[2:]} pixels for {call.shape[2:]} means differ in size")
    size = height // rows, width // columns
    return average(builder, images, call.shape, size=size, stride=size)


def _mean(builder: Builder, call: Call) -> Symbol:
    images = call.image("self")
    axes = sorted(axis % len(images.shape) for axis in call.arguments["dim"])
    call.require(len(images.shape) == 4 and axes == [2, 3], "the mean must be over height and width of images")
    size = (images.shape[2], images.shape[3])
    means = average(builder, images, (*images.shape[:2], 1, 1), size=size, stride=size)
    return rearranged(builder, means, entry_indices(means).reshape(call.shape))


# Networks that call the operators, for tests


class _SpatialMeans(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.mean(dim=(2, 3))


def _strided_convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2), nn.Flatten(), nn.Linear(16, 3))


def _average_pooling() -> nn.Module:
    return nn.Sequential(nn.AvgPool2d(3, 2, padding=1), nn.Flatten(), nn.Linear(8, 3))


def _adaptive_pooling() -> nn.Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 3))


READERS = {
    aten.convolution.default: Reader(_convolution, _strided_convolution),
    aten.avg_pool2d.default: Reader(_avg_pool2d, _average_pooling),
    aten._adaptive_avg_pool2d.default: Reader(_adaptive_avg_pool2d, _adaptive_pooling),
    aten.mean.dim: Reader(_mean, _SpatialMeans),
}
