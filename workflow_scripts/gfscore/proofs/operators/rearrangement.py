"""Operators that move, copy and join entries of tensors: views, slices, padding, concatenation."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gfscore.proofs.operators.declaration import Affine, Builder, Call, Plain, Reader, Shape, Symbol

aten = torch.ops.aten


@dataclass(frozen=True)
class Rearrangement(Affine):
    """Each entry of the output is an entry of one input, or a constant.

    Attributes
    ----------
    places : tuple of Tensor
        For each input (size of the output,) int64: 1-based index in the flattened input of each entry of the output; 0
        for entries that this input does not provide.
    input_shapes : tuple
        Shapes of the inputs.
    shape : tuple of int
        Of the output.
    bias : Tensor
        Constants of the entries that no input provides; 0 for all others.
    """

    places: tuple[Tensor, ...]
    input_shapes: tuple[Shape, ...]
    shape: Shape
    bias: Tensor

    @property
    def operations(self) -> int:
        # An entry of the input may be copied to every entry of the output.
        return self.bias.numel() + 2

    def forward(self, *inputs: Tensor) -> Tensor:
        total = self.bias.to(inputs[0])
        for places, values in zip(self.places, inputs, strict=True):
            flat = values.reshape(len(values), -1)
            padded = torch.cat([torch.zeros_like(flat[:, :1]), flat], dim=1)
            total = total + padded[:, places].reshape(len(values), *self.shape)
        return total

    def transpose(self, rows: Tensor) -> tuple[Tensor, ...]:
        flat = rows.reshape(len(rows), -1)
        results = []
        for places, shape in zip(self.places, self.input_shapes, strict=True):
            size = torch.Size(shape).numel()
            result = flat.new_zeros(len(rows), size + 1)
            result.index_add_(1, places.to(rows.device), flat)
            results.append(result[:, 1:].reshape(len(rows), *shape))
        return tuple(results)

    def absolute(self) -> Affine:
        return Rearrangement(self.places, self.input_shapes, self.shape, self.bias.abs())

    def plain(self) -> Plain:
        arrays = {"bias": self.bias.numpy()}
        for number, places in enumerate(self.places):
            arrays[f"places{number}"] = places.numpy()
        return Plain("rearrangement", arrays)


def rearranged(builder: Builder, values: Symbol, places: Tensor) -> Symbol:
    """Entries of a tensor at 1-based indices, in the shape of `places`; 0 at the index 0."""
    shape = tuple(places.shape)
    bias = torch.zeros(shape, dtype=torch.float64)
    operator = Rearrangement((places.reshape(-1),), (values.shape,), shape, bias)
    return builder.add(operator, [values], shape)


def entry_indices(values: Symbol) -> Tensor:
    """1-based indices of a tensor's entries, in its shape."""
    return torch.arange(1, torch.Size(values.shape).numel() + 1).reshape(values.shape)


def _moved(builder: Builder, call: Call) -> Symbol | list[Symbol]:
    # The operator is run on the indices of the entries, which shows where it moves each of them.
    values = call.symbol("self")
    arguments = dict(call.arguments)
    arguments["self"] = entry_indices(values)
    arguments.pop("memory_format", None)
    places = call.run(**arguments)
    if isinstance(places, Tensor):
        return rearranged(builder, values, places)
    return [rearranged(builder, values, piece) for piece in places]


def _padded(builder: Builder, call: Call) -> Symbol:
    call.require(call.arguments["value"] == 0, "it must pad with zeros")
    return _moved(builder, call)  # type: ignore[return-value]


def _joined(builder: Builder, call: Call) -> Symbol:
    members = call.arguments["tensors"]
    axis = call.arguments["dim"]
    absent = [torch.zeros(tuple(member.shape), dtype=torch.int64) for member in members]

    symbols: list[Symbol] = []
    places = []
    constants = []
    for position, member in enumerate(members):
        if not isinstance(member, Symbol):
            constants.append(member.double())
            continue
        constants.append(torch.zeros(member.shape, dtype=torch.float64))
        # Found by position rather than by symbol, since a tensor may be joined to itself.
        pieces = list(absent)
        pieces[position] = entry_indices(member)
        places.append(torch.cat(pieces, dim=axis).reshape(-1))
        symbols.append(member)
    bias = torch.cat(constants, dim=axis)
    shapes = tuple(symbol.shape for symbol in symbols)
    return builder.add(Rearrangement(tuple(places), shapes, call.shape, bias), symbols, call.shape)


class _Moves(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(31, 3))

    def forward(self, images: Tensor) -> Tensor:
        rows = images.permute(0, 2, 3, 1).transpose(1, 2).flip(1).contiguous().reshape(1, 4, 8)
        edge = nn.functional.pad(rows, (1, 0))[:, 1:, ::2].unsqueeze(1).squeeze(1)
        first, second = edge.split(2, dim=1)
        chosen = edge.index_select(1, torch.tensor([2, 0]))
        pieces = [first.flatten(1), second.flatten(1), chosen.flatten(1), images[:, 0, 0].expand(1, 4).clone()]
        pieces.append(torch.ones(1, 2))
        (row,) = torch.relu(torch.cat(pieces, dim=1)).t().t().unbind(0)
        return row[None] @ self.weight


MOVES = (
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.t.default,
    aten.transpose.int,
    aten.permute.default,
    aten.slice.Tensor,
    aten.select.int,
    aten.index_select.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.expand.default,
    aten.flip.default,
    aten.clone.default,
    aten.alias.default,
    aten.detach.default,
    aten.split.Tensor,
    aten.split_with_sizes.default,
    aten.unbind.int,
)
"""Operators that only select, move or copy entries of their first argument."""

READERS = {operator: Reader(_moved, _Moves) for operator in MOVES}
READERS[aten.constant_pad_nd.default] = Reader(_padded, _Moves)
READERS[aten.cat.default] = Reader(_joined, _Moves)
