"""Networks as activations with affine functions between them, as sparse matrices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import csr_array, vstack
from torch import Tensor

from gfscore.core.errors import InputError
from gfscore.proofs.graph import Graph
from gfscore.proofs.operators.declaration import Activation, Affine, Array
from gfscore.proofs.rounding import LEAST_MAGNITUDE, UNIT, gamma

IMAGE = -1
"""Number of the image among the sources of an affine function; layers have theirs from 0."""

LARGEST_ENTRIES = 200_000_000
"""Entries of all matrices together, beyond which a network is refused: 5 GB."""

CHUNK = 1_000_000
"""Numbers of a tensor of coefficients while matrices are made."""

Interval = tuple[Array, Array]
"""Lower and upper bounds of the same shape, float64."""


@dataclass(frozen=True)
class AffineMap:
    """An affine function z = sum of W_s r_s + b of the image and of the outputs r_s of earlier layers.

    Attributes
    ----------
    weights : dict of int to csr_array
        Source s -> W_s (size, size of the source), float64.
    magnitudes : dict of int to csr_array
        Source s -> matrix of the shape of W_s: sums of the magnitudes of the products whose sum is the entry of W_s, at
        least LEAST_MAGNITUDE after each operator.
    bias, bias_magnitude : ndarray
        (size,).
    operations : int
        Roundings that entries have gone through: they differ from those in real arithmetic by at most
        gamma(operations) times their magnitudes.
    """

    weights: dict[int, csr_array]
    magnitudes: dict[int, csr_array]
    bias: Array
    bias_magnitude: Array
    operations: int

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.bias)

    def error(self, magnitudes: dict[int, Array]) -> Array:
        """Bound on rounding errors of values, and of their products with coefficients for each unit of a coefficient.

        Parameters
        ----------
        magnitudes : dict of int to ndarray
            Source -> largest magnitudes of its values, (size of the source, n).

        Returns
        -------
        ndarray
            (size, n).
        """
        total = self.bias_magnitude[:, None]
        length = self.operations + self.size + 64
        for source, matrix in self.magnitudes.items():
            sizes = np.where(magnitudes[source] != 0, np.maximum(magnitudes[source], LEAST_MAGNITUDE), 0.0)
            total = total + matrix @ sizes
            length += matrix.shape[1]
        return gamma(length) * total

    def interval(self, bounds: dict[int, Interval]) -> Interval:
        """Bounds of the values for values of the sources between bounds.

        Parameters
        ----------
        bounds : dict of int to tuple of ndarray
            Source -> lower and upper bounds, each (size of the source, n).

        Returns
        -------
        tuple of ndarray
            Lower and upper bounds (size, n), which hold in real arithmetic.
        """
        middle = self.bias[:, None]
        reach = np.zeros_like(middle)
        magnitudes = {}
        for source, matrix in self.weights.items():
            low, high = bounds[source]
            centre = (low + high) / 2
            radius = np.maximum(high - centre, centre - low) * (1 + 4 * UNIT)
            middle = middle + matrix @ centre
            reach = reach + abs(matrix) @ radius
            magnitudes[source] = np.abs(centre) + radius
        error = self.error(magnitudes)
        return middle - reach - error, middle + reach + error

    def rows(self, chosen: np.ndarray) -> AffineMap:
        """The function that gives some of the values."""
        return AffineMap(
            {source: matrix[chosen] for source, matrix in self.weights.items()},
            {source: matrix[chosen] for source, matrix in self.magnitudes.items()},
            self.bias[chosen],
            self.bias_magnitude[chosen],
            self.operations,
        )

    def combined(self, matrix: csr_array) -> AffineMap:
        """The function whose values are linear combinations of these, by the rows of a matrix (S, size)."""
        absolute = abs(matrix)
        return AffineMap(
            {source: csr_array(matrix @ weights) for source, weights in self.weights.items()},
            {source: csr_array(absolute @ sizes) for source, sizes in self.magnitudes.items()},
            matrix @ self.bias,
            absolute @ self.bias_magnitude,
            self.operations + self.size + 2,
        )


@dataclass(frozen=True)
class Layer:
    """An activation applied to the values of an affine function."""

    activation: Activation
    before: AffineMap


@dataclass(frozen=True)
class LayeredNetwork:
    """Layers in the order in which they are computed, and the affine function that gives the logits."""

    layers: tuple[Layer, ...]
    logits: AffineMap
    graph: Graph

    @property
    def classes(self) -> int:
        """Number of logits."""
        return self.logits.size


def layered(graph: Graph) -> LayeredNetwork:
    """Layers of a graph.

    Raises
    ------
    InputError
        For a network whose matrices would not fit into memory.
    """
    numbers = {0: IMAGE}
    layers: list[Layer] = []
    entries = 0
    for index, node in enumerate(graph.nodes):
        if isinstance(node.operator, Activation):
            before = _map_of(graph, node.inputs[0], numbers)
            numbers[index] = len(layers)
            layers.append(Layer(node.operator, before))
            entries += sum(matrix.nnz for matrix in before.weights.values())
        if entries > LARGEST_ENTRIES:
            raise InputError(
                f"this network is too large for proofs: its first {len(layers)} layers have {entries:,} weights when "
                f"convolutions are written as matrices, and {LARGEST_ENTRIES:,} is the most; prove a smaller one"
            )
    logits = _map_of(graph, len(graph.nodes) - 1, numbers)
    return LayeredNetwork(tuple(layers), logits, graph)


def _map_of(graph: Graph, target: int, numbers: dict[int, int]) -> AffineMap:
    # Affine map from the image and the nodes in `numbers` to the values of a node.
    size = torch.Size(graph.nodes[target].shape).numel()
    widest = max(torch.Size(node.shape).numel() for node in graph.nodes)
    chunk = max(1, CHUNK // widest)
    pieces = []
    for start in range(0, size, chunk):
        rows = torch.zeros(min(chunk, size - start), size, dtype=torch.float64)
        rows[torch.arange(len(rows)), torch.arange(start, start + len(rows))] = 1
        pieces.append(_backward(graph, target, rows.reshape(-1, *graph.nodes[target].shape), numbers))

    weights, magnitudes = {}, {}
    for source in pieces[0].weights:
        weights[source] = csr_array(vstack([piece.weights[source] for piece in pieces]))
        magnitudes[source] = csr_array(vstack([piece.magnitudes[source] for piece in pieces]))
    bias = np.concatenate([piece.bias for piece in pieces])
    bias_magnitude = np.concatenate([piece.bias_magnitude for piece in pieces])
    return AffineMap(weights, magnitudes, bias, bias_magnitude, pieces[0].operations)


def _backward(graph: Graph, target: int, rows: Tensor, numbers: dict[int, int]) -> AffineMap:
    # Coefficients of the target's values, and their magnitudes, are carried back to the sources.
    coefficients: dict[int, tuple[Tensor, Tensor]] = {target: (rows, rows)}
    constant = torch.zeros(len(rows), dtype=torch.float64)
    magnitude = torch.zeros_like(constant)
    weights, magnitudes = {}, {}
    operations = 2
    while coefficients:
        index = max(coefficients)
        signed, absolute = coefficients.pop(index)
        if index in numbers:
            weights[numbers[index]] = csr_array(signed.reshape(len(rows), -1).numpy())
            magnitudes[numbers[index]] = csr_array(absolute.reshape(len(rows), -1).numpy())
            continue
        node = graph.nodes[index]
        assert isinstance(node.operator, Affine)
        absolute_operator = node.operator.absolute()
        operations += node.operator.operations + 2
        if node.operator.bias is not None:
            assert absolute_operator.bias is not None
            axes = tuple(range(1, signed.ndim))
            constant = constant + (signed * node.operator.bias).sum(axes)
            magnitude = magnitude + (absolute * absolute_operator.bias).sum(axes)
            operations += signed[0].numel()
        inputs = node.operator.transpose(signed)
        input_magnitudes = absolute_operator.transpose(absolute)
        for position, source in enumerate(node.inputs):
            added, added_magnitude = inputs[position], input_magnitudes[position]
            added_magnitude = torch.where(added_magnitude != 0, added_magnitude.clamp(min=LEAST_MAGNITUDE), 0.0)
            if source in coefficients:
                added = added + coefficients[source][0]
                added_magnitude = added_magnitude + coefficients[source][1]
            coefficients[source] = (added, added_magnitude)
    return AffineMap(weights, magnitudes, constant.numpy(), magnitude.numpy(), operations)
