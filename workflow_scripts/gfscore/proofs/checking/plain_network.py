"""Networks as names and numbers, as the checker of certificates computes with them: in numpy, without torch.

Values of a node have its shape and one more axis, the last one, of several columns: points, or coefficients of linear
functions. Coefficients may stand for a window of the node only, and are 0 outside of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.proofs.packing import arrays_of

Array = NDArray[np.float64]
Shape = tuple[int, ...]
Window = tuple[slice, ...]
Coefficients = tuple[Array, Window]

IMAGE = "image"
CURVES = {"tanh": (0.0, 1.0, 1.0), "sigmoid": (0.5, 0.5, 0.5)}
"""a, b and c of a + b tanh(c z)."""

ACTIVATIONS = ("relu", *CURVES)

LARGEST_NETWORK = 1 << 30
"""Bytes of the file of a network, and that it unpacks to."""


@dataclass(frozen=True)
class PlainNode:
    """An operator of a network.

    Attributes
    ----------
    kind : str
        image, linear, scale, sum, rearrangement, convolution, relu, sigmoid or tanh.
    arrays : dict of str to ndarray
        Its weights, bias and the like, by name.
    numbers : dict of str to list of int
        Stride, padding and the like, by name.
    inputs : tuple of int
        Indices of the nodes that it reads.
    shape : tuple of int
        Shape of its output for one image.
    """

    kind: str
    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, list[int]]
    inputs: tuple[int, ...]
    shape: Shape


class PlainNetwork:
    """A network that bounds are computed for: what all images share is made once.

    Parameters
    ----------
    nodes : sequence of PlainNode
        The first is the image, the last gives the logits.

    Attributes
    ----------
    operators : dict of int to Affine
        By node; none for the image and for activations.
    mixings : list of float
        By node, how often numbers are added on the way from the image; infinite behind activations.

    Raises
    ------
    InputError
        For an operator of another kind, and for nodes that are not in the order of computation.
    """

    def __init__(self, nodes: Sequence[PlainNode]) -> None:
        self.nodes = tuple(nodes)
        self.operators: dict[int, Affine] = {}
        self.mixings = [0.0]
        for index, node in enumerate(self.nodes):
            ordered = all(0 <= source < index for source in node.inputs)
            _require(
                ordered and (node.kind == IMAGE) == (index == 0) == (not node.inputs), "its operators are out of order"
            )
            if node.kind in OPERATORS:
                shapes = [self.nodes[source].shape for source in node.inputs]
                self.operators[index] = OPERATORS[node.kind](node, shapes)
                before = max(self.mixings[source] for source in node.inputs)
                self.mixings.append(before + (node.kind != "scale"))
            elif node.kind in ACTIVATIONS:
                _require([self.nodes[source].shape for source in node.inputs] == [node.shape], f"shapes of {node.kind}")
                self.mixings.append(np.inf)
            elif node.kind != IMAGE:
                raise InputError(f"certificates cannot be checked for networks with the operator {node.kind}")

    @property
    def classes(self) -> int:
        """Number of logits."""
        return int(np.prod(self.nodes[-1].shape))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of operators and weights."""
        return digest_of(self.nodes)

    def to_bytes(self) -> bytes:
        """The network as a compressed file."""
        facts = []
        arrays: dict[str, NDArray[Any]] = {}
        for index, node in enumerate(self.nodes):
            facts.append([node.kind, node.numbers, node.inputs, node.shape, sorted(node.arrays)])
            for name, values in sorted(node.arrays.items()):
                single = values.astype(np.float32) if values.dtype == np.float64 else values
                arrays[f"{index}_{name}"] = single if np.array_equal(single, values) else values
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, facts=np.array(json.dumps(facts)), **arrays)
        return content.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> PlainNetwork:
        """Read what `to_bytes` wrote; raises InputError for anything else."""
        nodes = []
        try:
            stored = arrays_of(content, largest=LARGEST_NETWORK)
            facts = json.loads(str(stored["facts"]))
            for index, (kind, numbers, inputs, shape, names) in enumerate(facts):
                arrays = {}
                for name in names:
                    arrays[name] = _numbers_of(stored[f"{index}_{name}"], places=name.startswith("places"))
                nodes.append(PlainNode(kind, arrays, numbers, tuple(inputs), tuple(shape)))
            return cls(nodes)
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, OSError) as error:
            raise InputError(f"a network to check certificates with is damaged ({error})") from error


def digest_of(nodes: Sequence[PlainNode]) -> str:
    """SHA-256 of operators and weights."""
    content = hashlib.sha256()
    for node in nodes:
        content.update(repr((node.kind, node.numbers, node.inputs, node.shape)).encode())
        for name, array in sorted(node.arrays.items()):
            content.update(f"{name}{array.dtype}{array.shape}".encode())
            content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()


def _numbers_of(values: NDArray[Any], *, places: bool) -> NDArray[Any]:
    # In the types that bounds are computed in: a magnitude of int8 may be negative.
    if places:
        _require(values.dtype == np.int64, f"places of type {values.dtype}")
        return values
    _require(values.dtype in (np.float32, np.float64), f"weights of type {values.dtype}")
    _require(bool(np.isfinite(values).all()), "weights that are no finite numbers")
    return values.astype(np.float64)


def _require(condition: bool, words: str) -> None:
    # A network that somebody hands over may compute one thing forward and another back unless its shapes fit.
    if not condition:
        raise InputError(f"a network to check certificates with is damaged: {words}")


# ---- windows ----


def whole(shape: Shape) -> Window:
    """The window that is the whole of a node."""
    return tuple(slice(0, size) for size in shape)


def added(first: Coefficients, second: Coefficients) -> Coefficients:
    """Sum of coefficients of one node, for the smallest window around both."""
    window = []
    for one, other in zip(first[1], second[1], strict=True):
        window.append(slice(min(one.start, other.start), max(one.stop, other.stop)))
    return _within(first, tuple(window)) + _within(second, tuple(window)), tuple(window)


def _within(coefficients: Coefficients, window: Window) -> Array:
    # For a larger window.
    values, inner = coefficients
    if inner == window:
        return values
    result = np.zeros((*(piece.stop - piece.start for piece in window), values.shape[-1]))
    result[tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(inner, window, strict=True))] = values
    return result


# ---- operators ----


class Affine(ABC):
    """W x + b.

    Parameters
    ----------
    node : PlainNode
    shapes : list of tuple of int
        Of its inputs.

    Attributes
    ----------
    bias : ndarray
        b, of the shape of the output.
    roundings : int
        More than those of any number that the operator computes, forward or back.
    """

    def __init__(self, node: PlainNode, shapes: list[Shape]) -> None:
        self.node, self.shapes = node, shapes
        self.bias = np.broadcast_to(node.arrays.get("bias", 0.0), node.shape).astype(np.float64)
        self.roundings = int(np.prod(node.shape)) + sum(int(np.prod(shape)) for shape in shapes)

    @property
    @abstractmethod
    def products(self) -> int:
        """Numbers that are summed for one of the output, those of the bias among them."""

    @abstractmethod
    def forward(self, inputs: list[Array], *, magnitudes: bool = False) -> Array:
        """W x, or |W| x, for columns x."""

    @abstractmethod
    def transpose(self, rows: Array, window: Window) -> list[Coefficients]:
        """Coefficients of each input for those of the output."""


class _Linear(Affine):
    # A matrix over the last axis.

    def __init__(self, node: PlainNode, shapes: list[Shape]) -> None:
        super().__init__(node, shapes)
        (shape,) = shapes
        fits = node.arrays["weight"].shape == (shape[-1], node.shape[-1]) and shape[:-1] == node.shape[:-1]
        _require(fits, "shapes of a matrix")

    @property
    def products(self) -> int:
        return len(self.node.arrays["weight"]) + 1

    def forward(self, inputs: list[Array], *, magnitudes: bool = False) -> Array:
        weight = self.node.arrays["weight"]
        return (np.abs(weight) if magnitudes else weight).T @ inputs[0]

    def transpose(self, rows: Array, window: Window) -> list[Coefficients]:
        return [(self.node.arrays["weight"] @ rows, whole(self.shapes[0]))]


class _Scale(Affine):
    # Factors of batch normalisation have gone through a sum, a root and two products.
    products = 10

    def __init__(self, node: PlainNode, shapes: list[Shape]) -> None:
        super().__init__(node, shapes)
        _require(shapes == [node.shape] and node.arrays["factor"].shape == node.shape, "shapes of factors")

    def forward(self, inputs: list[Array], *, magnitudes: bool = False) -> Array:
        factor = self.node.arrays["factor"]
        return (np.abs(factor) if magnitudes else factor)[..., None] * inputs[0]

    def transpose(self, rows: Array, window: Window) -> list[Coefficients]:
        return [(self.node.arrays["factor"][window][..., None] * rows, window)]


class _Sum(Affine):
    def __init__(self, node: PlainNode, shapes: list[Shape]) -> None:
        super().__init__(node, shapes)
        _require(set(shapes) == {node.shape} and node.arrays["weights"].shape == (len(shapes),), "shapes of a sum")

    @property
    def products(self) -> int:
        return len(self.shapes)

    def forward(self, inputs: list[Array], *, magnitudes: bool = False) -> Array:
        total = np.zeros_like(inputs[0])
        for weight, values in zip(self.node.arrays["weights"], inputs, strict=True):
            total += (abs(weight) if magnitudes else weight) * values
        return total

    def transpose(self, rows: Array, window: Window) -> list[Coefficients]:
        return [(weight * rows, window) for weight in self.node.arrays["weights"]]


class _Rearrangement(Affine):
    # Every number of the output is one of an input, at a place from 1, or none, at 0.

    products = 1

    def __init__(self, node: PlainNode, shapes: list[Shape]) -> None:
        super().__init__(node, shapes)
        self.places = [node.arrays[f"places{number}"] for number in range(len(shapes))]
        self.once = []
        for places, shape in zip(self.places, shapes, strict=True):
            inside = places.min(initial=0) >= 0 and places.max(initial=0) <= np.prod(shape)
            _require(places.shape == (int(np.prod(node.shape)),) and bool(inside), "places of numbers that are moved")
            used = places[places > 0]
            self.once.append(len(np.unique(used)) == len(used))

    def forward(self, inputs: list[Array], *, magnitudes: bool = False) -> Array:
        total = np.zeros((*self.node.shape, inputs[0].shape[-1]))
        for places, values in zip(self.places, inputs, strict=True):
            flat = values.reshape(-1, values.shape[-1])
            padded = np.concatenate([np.zeros_like(flat[:1]), flat])
            total += padded[places].reshape(total.shape)
        return total

    def transpose(self, rows: Array, window: Window) -> list[Coefficients]:
        flat = _within((rows, window), whole(self.node.shape)).reshape(-1, rows.shape[-1])
        results = []
        for places, once, shape in zip(self.places, self.once, self.shapes, strict=True):
            result = np.zeros((int(np.prod(shape)) + 1, rows.shape[-1]))
            if once:
                result[places] = flat
            else:
                np.add.at(result, places, flat)
            results.append((result[1:].reshape(*shape, -1), whole(shape)))
        return results


class _Convolution(Affine):
    def __init__(self, node: PlainNode, shapes: list[Shape]) -> None:
        super().__init__(node, shapes)
        (self.groups,) = node.numbers["groups"]
        self.stride, self.padding = node.numbers["stride"], node.numbers["padding"]
        self.dilation = node.numbers["dilation"]
        weight = node.arrays["weight"]
        self.kernel: Shape = weight.shape[2:]
        # (groups, outputs of a group, inputs of a group times size of the kernel).
        self.weight = weight.reshape(self.groups, len(weight) // self.groups, -1)
        self.span = [(size - 1) * step + 1 for size, step in zip(self.kernel, self.dilation, strict=True)]
        (shape,) = shapes
        sizes = []
        for size, span, step, padding in zip(shape[2:], self.span, self.stride, self.padding, strict=True):
            sizes.append((size + 2 * padding - span) // step + 1)
        fits = node.shape == (1, len(weight), *sizes) and shape[:2] == (1, weight.shape[1] * self.groups)
        _require(fits and min(self.stride + self.dilation + [self.groups]) > 0, "shapes of a convolution")

    @property
    def products(self) -> int:
        return self.weight.shape[-1] + 1

    def forward(self, inputs: list[Array], *, magnitudes: bool = False) -> Array:
        (above, beside), columns = self.padding, inputs[0].shape[-1]
        padded = np.pad(inputs[0][0], ((0, 0), (above, above), (beside, beside), (0, 0)))
        windows = sliding_window_view(padded, self.span, axis=(1, 2))
        windows = windows[:, :: self.stride[0], :: self.stride[1], :, :: self.dilation[0], :: self.dilation[1]]
        # Channels, then the kernel, are summed over.
        members = windows.transpose(0, 4, 5, 1, 2, 3).reshape(self.groups, self.weight.shape[-1], -1)
        result = (np.abs(self.weight) if magnitudes else self.weight) @ members
        return result.reshape(*self.node.shape, columns)

    def transpose(self, rows: Array, window: Window) -> list[Coefficients]:
        height, width, columns = rows.shape[2:]
        _, channels, rows_of_input, columns_of_input = self.shapes[0]
        if height * width == 0:
            # What is read here is padding alone.
            nothing = slice(0, 0)
            inner = np.zeros((1, channels, 0, 0, columns))
            return [(inner, (slice(0, 1), slice(0, channels), nothing, nothing))]
        products = self.weight.transpose(0, 2, 1) @ rows.reshape(self.groups, self.weight.shape[1], -1)
        products = products.reshape(-1, *self.kernel, height, width, columns)
        down, right = self.stride
        tall, wide = (height - 1) * down + self.span[0], (width - 1) * right + self.span[1]
        canvas = np.zeros((products.shape[0], tall, wide, columns))
        for row, column in product(*map(range, self.kernel)):
            top, left = row * self.dilation[0], column * self.dilation[1]
            below, beside = top + (height - 1) * down + 1, left + (width - 1) * right + 1
            canvas[:, top:below:down, left:beside:right] += products[:, row, column]
        # What lies on the padding counts for nothing.
        top, left = window[2].start * down - self.padding[0], window[3].start * right - self.padding[1]
        vertical = slice(max(top, 0), max(top, 0, min(top + tall, rows_of_input)))
        horizontal = slice(max(left, 0), max(left, 0, min(left + wide, columns_of_input)))
        inner = canvas[
            None, :, vertical.start - top : vertical.stop - top, horizontal.start - left : horizontal.stop - left
        ]
        return [(inner, (slice(0, 1), slice(0, channels), vertical, horizontal))]


OPERATORS: dict[str, Callable[[PlainNode, list[Shape]], Affine]] = {
    "linear": _Linear,
    "scale": _Scale,
    "sum": _Sum,
    "rearrangement": _Rearrangement,
    "convolution": _Convolution,
}
