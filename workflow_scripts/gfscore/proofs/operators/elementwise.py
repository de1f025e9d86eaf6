"""Sums, and affine functions of single numbers: normalisation of pixels and batches."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gfscore.proofs.operators.declaration import Affine, Builder, Call, Plain, Reader, Shape, Symbol

aten = torch.ops.aten


@dataclass(frozen=True)
class Scale(Affine):
    """a x + b for each number; a (`factor`) and b (`bias`) of the shape of the input, float64."""

    factor: Tensor
    bias: Tensor

    @property
    def operations(self) -> int:
        # Factors of batch normalisation have gone through a sum, a root and two products.
        return 10

    def forward(self, *inputs: Tensor) -> Tensor:
        return inputs[0] * self.factor.to(inputs[0]) + self.bias.to(inputs[0])

    def transpose(self, rows: Tensor) -> tuple[Tensor, ...]:
        return (rows * self.factor.to(rows),)

    def absolute(self) -> Affine:
        return Scale(self.factor.abs(), self.bias.abs())

    def plain(self) -> Plain:
        return Plain("scale", {"factor": self.factor.numpy(), "bias": self.bias.numpy()})


@dataclass(frozen=True)
class Sum(Affine):
    """Weighted sum of tensors of one shape; `weights`, one for each."""

    weights: tuple[float, ...]

    bias = None

    @property
    def operations(self) -> int:
        return len(self.weights) + 2

    def forward(self, *inputs: Tensor) -> Tensor:
        total = torch.zeros_like(inputs[0])
        for weight, values in zip(self.weights, inputs, strict=True):
            total = total + weight * values
        return total

    def transpose(self, rows: Tensor) -> tuple[Tensor, ...]:
        return tuple(weight * rows for weight in self.weights)

    def absolute(self) -> Affine:
        return Sum(tuple(abs(weight) for weight in self.weights))

    def plain(self) -> Plain:
        return Plain("sum", {"weights": torch.tensor(self.weights, dtype=torch.float64).numpy()})


def _add(builder: Builder, call: Call) -> Symbol:
    return _sum(builder, call, float(_number(call.arguments["alpha"])))


def _sub(builder: Builder, call: Call) -> Symbol:
    return _sum(builder, call, -float(_number(call.arguments["alpha"])))


def _rsub(builder: Builder, call: Call) -> Symbol:
    call.require(call.arguments["alpha"] == 1, "alpha must be 1")
    return _scaled(builder, call, call.symbol("self"), -1.0, _number(call.constant("other")))


def _sum(builder: Builder, call: Call, weight: float) -> Symbol:
    left, right = call.arguments["self"], call.arguments["other"]
    if not isinstance(right, Symbol):
        return _scaled(builder, call, call.symbol("self"), 1.0, weight * _number(right))
    if not isinstance(left, Symbol):
        return _scaled(builder, call, right, weight, _number(left))
    call.require(left.shape == right.shape, f"it adds tensors of different shapes, {left.shape} and {right.shape}")
    return builder.add(Sum((1.0, weight)), [left, right], call.shape)


def _mul(builder: Builder, call: Call) -> Symbol:
    left, right = call.arguments["self"], call.arguments["other"]
    if isinstance(left, Symbol):
        return _scaled(builder, call, left, _number(call.constant("other")), 0.0)
    return _scaled(builder, call, right, _number(left), 0.0)


def _div(builder: Builder, call: Call) -> Symbol:
    return _scaled(builder, call, call.symbol("self"), 1 / _number(call.constant("other")), 0.0)


def _neg(builder: Builder, call: Call) -> Symbol:
    return _scaled(builder, call, call.symbol("self"), -1.0, 0.0)


def _batch_norm(builder: Builder, call: Call) -> Symbol:
    call.require(not call.arguments.get("training", False), "it must be in eval mode")
    values = call.symbol("input")
    mean, variance = _number(call.constant("running_mean")), _number(call.constant("running_var"))
    factor = (variance + call.arguments["eps"]).rsqrt()
    if call.constant("weight") is not None:
        factor = factor * _number(call.constant("weight"))
    bias = torch.zeros_like(mean)
    if call.constant("bias") is not None:
        bias = _number(call.constant("bias"))
    # In two steps: bias - mean * factor may be far smaller than its terms, and so than their rounding errors.
    shape = (-1, *[1] * (len(values.shape) - 2))
    centred = _scaled(builder, call, values, 1.0, -mean.reshape(shape))
    return _scaled(builder, call, centred, factor.reshape(shape), bias.reshape(shape))


def _scaled(builder: Builder, call: Call, values: Symbol, factor: Tensor | float, bias: Tensor | float) -> Symbol:
    call.require(values.shape == call.shape, "it repeats numbers of its input")
    operator = Scale(_expanded(factor, call.shape), _expanded(bias, call.shape))
    return builder.add(operator, [values], call.shape)


def _expanded(value: Tensor | float, shape: Shape) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float64).expand(shape).contiguous()


def _number(value: Any) -> Tensor:
    # torch rounds numbers of Python, and tensors without axes, to the type of the tensor that they meet.
    return torch.as_tensor(value, dtype=torch.float32).double()


class _Normalised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.tensor([0.4, 0.6]).reshape(2, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        shifted = (1.5 - images) - self.mean + 0.1
        return (-(2 * shifted) / (self.mean + 0.1)).flatten(1)


class _Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv2d(2, 2, 3, padding=1)

    def forward(self, images: Tensor) -> Tensor:
        branch = torch.relu(self.layer(images))
        return (branch - images + torch.relu(branch)).flatten(1)


def _normalised_batches() -> nn.Module:
    layer = nn.BatchNorm2d(2)
    nn.init.uniform_(layer.weight, -1, 1)
    nn.init.uniform_(layer.bias, -1, 1)
    assert layer.running_mean is not None and layer.running_var is not None
    nn.init.uniform_(layer.running_mean, -1, 1)
    nn.init.uniform_(layer.running_var, 0.1, 2)
    return nn.Sequential(layer, nn.ReLU(), nn.Flatten(), nn.Linear(32, 3))


READERS = {
    aten.add.Tensor: Reader(_add, _Residual),
    aten.sub.Tensor: Reader(_sub, _Residual),
    aten.rsub.Scalar: Reader(_rsub, _Normalised),
    aten.mul.Tensor: Reader(_mul, _Normalised),
    aten.div.Tensor: Reader(_div, _Normalised),
    aten.neg.default: Reader(_neg, _Normalised),
    aten.native_batch_norm.default: Reader(_batch_norm, _normalised_batches),
    aten._native_batch_norm_legit_no_training.default: Reader(_batch_norm, _normalised_batches),
}
