"""Matrix products."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gfscore.proofs.operators.declaration import Affine, Builder, Call, Plain, Reader, Symbol

aten = torch.ops.aten


@dataclass(frozen=True)
class Linear(Affine):
    """Product with a matrix over the last axis, plus a bias; weight (in, out), bias (out,) or None."""

    weight: Tensor
    bias: Tensor | None = None

    @property
    def operations(self) -> int:
        return max(self.weight.shape) + 2

    def forward(self, *inputs: Tensor) -> Tensor:
        product = inputs[0] @ self.weight.to(inputs[0])
        return product if self.bias is None else product + self.bias.to(inputs[0])

    def transpose(self, rows: Tensor) -> tuple[Tensor, ...]:
        return (rows @ self.weight.T.to(rows),)

    def absolute(self) -> Affine:
        return Linear(self.weight.abs(), None if self.bias is None else self.bias.abs())

    def plain(self) -> Plain:
        arrays = {"weight": self.weight.numpy()}
        if self.bias is not None:
            arrays["bias"] = self.bias.numpy()
        return Plain("linear", arrays)


def _mm(builder: Builder, call: Call) -> Symbol:
    weight = call.constant("mat2").double()
    return builder.add(Linear(weight), [call.symbol("self")], call.shape)


def _addmm(builder: Builder, call: Call) -> Symbol:
    call.require(call.arguments["beta"] == 1 and call.arguments["alpha"] == 1, "alpha and beta must be 1")
    weight = call.constant("mat2").double()
    bias = call.constant("self").double()
    return builder.add(Linear(weight, bias.expand(weight.shape[1])), [call.symbol("mat1")], call.shape)


class _Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 3))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1) @ self.weight


def _layer() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(32, 3))


READERS = {aten.mm.default: Reader(_mm, _Product), aten.addmm.default: Reader(_addmm, _layer)}
