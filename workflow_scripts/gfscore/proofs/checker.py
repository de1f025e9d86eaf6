"""Independent check of certificates, in numpy and float64.

Bounds are computed again from the operators of the network: intervals operator by operator, and linear functions that
are carried back to the image (CROWN; Zhang et al. 2018). The search computes them by other code. Only the format of
certificates and the operators' weights are common to both. Every bound allows for the rounding of its own computation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.proofs.certificates import Certificate, Claim, TreeProof

Array = NDArray[np.float64]

UNIT = 2.0**-53
"""Largest relative rounding error of one operation in float64."""

COEFFICIENTS_AT_ONCE = 500_000
"""Coefficients of linear functions that are carried back at a time, which bounds memory."""


class Refused(InputError):
    """A certificate that does not prove its claim; the message says why."""


@dataclass(frozen=True)
class PlainNode:
    """An operator of the network.

    Attributes
    ----------
    kind : str
        linear, scale, sum, rearrangement, convolution or relu.
    arrays : dict of str to ndarray
        Its weights, bias and the like, by name.
    numbers : dict of str to list of int
        Stride, padding and the like, by name.
    inputs : tuple of int
        Indices of the nodes that it reads.
    shape : tuple of int
        Shape of its output, with a first axis of 1.
    """

    kind: str
    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, list[int]]
    inputs: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass
class Splits:
    """Splits of R linear functions: how each restricts the inputs of activations, and the slopes of its lines.

    Attributes
    ----------
    signs : dict of int to ndarray
        By index of the activation, (R, size): 1 where its input is at least 0, -1 where at most, 0 without a split.
    multipliers : dict of int to ndarray
        Lagrange multipliers of these restrictions, of the same shapes.
    slopes : dict of int to ndarray, or None
        Slopes of the lines below the activations, of the same shapes; None for those of CROWN.
    """

    signs: dict[int, Array]
    multipliers: dict[int, Array]
    slopes: dict[int, Array] | None


def check(certificate: Certificate, claim: Claim, nodes: Sequence[PlainNode], image: NDArray[np.float32]) -> float:
    """Smallest margin in the ball that a certificate proves, above 0.

    Parameters
    ----------
    certificate : Certificate
    claim : Claim
        What it should prove.
    nodes : sequence of PlainNode
        The network of the claim; the first node is the image.
    image : ndarray
        (C, H, W) float32.

    Raises
    ------
    Refused
        Where it does not prove the claim.
    """
    if certificate.claim != claim:
        raise Refused("the certificate is for another network, image, label or ball")
    ball = _Ball(image, claim)
    bounds = _Bounds(nodes, ball, certificate)
    bounds.forward()
    classes = nodes[-1].shape[-1]
    rivals = [tree.rival for tree in certificate.trees]
    other_classes = sorted(set(range(classes)) - {claim.label})
    if sorted(rivals) != other_classes:
        raise Refused(f"the certificate holds proofs over the classes {sorted(rivals)}, not over all others")
    smallest = np.inf
    for tree in certificate.trees:
        direction = np.zeros((1, *nodes[-1].shape))
        direction.reshape(-1)[claim.label] = 1
        direction.reshape(-1)[tree.rival] = -1
        smallest = min(smallest, bounds.margin(tree, direction))
    return float(smallest)


class _Ball:
    # The ball around the image, cut with [0, 1] and rounded outward.

    def __init__(self, image: NDArray[np.float32], claim: Claim) -> None:
        self.norm = claim.norm
        self.eps = np.nextafter(claim.eps, np.inf)
        self.centre = image[None].astype(np.float64)
        self.low = np.clip(np.nextafter(self.centre - self.eps, -np.inf), 0, 1)
        self.high = np.clip(np.nextafter(self.centre + self.eps, np.inf), 0, 1)

    def lower_bounds(self, rows: Array) -> Array:
        # Of the linear functions with the coefficients `rows` (R, ...), on the ball.
        rows = rows.reshape(len(rows), -1)
        low = self.low.reshape(-1)
        high = self.high.reshape(-1)
        # Sums of the sizes of all terms, which bound the rounding error.
        sizes = np.abs(rows) @ np.maximum(np.abs(low), np.abs(high))
        if self.norm != "l2":
            minimum = np.maximum(rows, 0) @ low + np.minimum(rows, 0) @ high
            return minimum - _gamma(rows.shape[1]) * sizes - 1e-290

        # Lagrangian dual of the minimum in the box under |offset| <= eps: a lower bound with any multiplier.
        centre = self.centre.reshape(-1)
        multiplier = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True) / self.eps, 1e-30)
        offset = np.clip(-rows / multiplier, np.nextafter(low - centre, -2), np.nextafter(high - centre, 2))
        penalised = rows * offset + multiplier / 2 * offset**2
        dual = rows @ centre + penalised.sum(1) - multiplier[:, 0] / 2 * self.eps**2
        sizes = sizes + np.abs(penalised).sum(1)
        sizes = sizes + (multiplier * offset**2).sum(1)
        sizes = sizes + multiplier[:, 0] * self.eps**2
        return dual - _gamma(rows.shape[1]) * sizes - 1e-290


class _Bounds:
    # Lower and upper bounds of the values of every node in the ball.

    def __init__(self, nodes: Sequence[PlainNode], ball: _Ball, certificate: Certificate) -> None:
        self.nodes, self.ball, self.certificate = nodes, ball, certificate
        self.low: list[Array] = [ball.low]
        self.high: list[Array] = [ball.high]
        # Sums of the sizes of all terms of a value, which bound the rounding error of the network itself.
        self.sizes: list[Array] = [np.zeros(0)]
        self.relus = [index for index, node in enumerate(nodes) if node.kind == "relu"]
        # By activation: slope of the line below it, slope and intercept of the line above it.
        self.lines: dict[int, tuple[Array, Array, Array]] = {}

    def forward(self) -> None:
        for index, node in enumerate(self.nodes[1:], start=1):
            inputs = [(self.low[source], self.high[source]) for source in node.inputs]
            if node.kind != "relu":
                low, high, sizes = self._affine_interval(node, inputs)
                self.low.append(low)
                self.high.append(high)
                self.sizes.append(sizes)
                continue
            low, high = self._tightened(index, *inputs[0])
            self.lines[index] = _lines(low, high)
            self.sizes.append(np.maximum(np.abs(low), np.abs(high)))
            self.low.append(np.maximum(low, 0))
            self.high.append(np.maximum(high, 0))

    def _affine_interval(self, node: PlainNode, inputs: list[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
        # Interval arithmetic by centres and radii: the operator on the centres, its absolute weights on the radii.
        shapes = []
        centres = []
        radii = []
        input_sizes = []
        for low, high in inputs:
            centre = (low + high) / 2
            radius = np.maximum(high - centre, centre - low) * (1 + 4 * UNIT)
            shapes.append(low.shape)
            centres.append(centre)
            radii.append(radius)
            input_sizes.append(np.abs(centre) + radius)
        absolute = _absolute(node)
        centre = _apply(node, centres, bias=True)
        radius = _apply(absolute, radii, bias=False)
        sizes = _apply(absolute, input_sizes, bias=True)
        error = _gamma(_length(node, shapes)) * sizes
        return centre - radius - error, centre + radius + error, sizes

    def _tightened(self, index: int, low: Array, high: Array) -> tuple[Array, Array]:
        # Narrower bounds of the inputs of an activation whose sign is not certain, from functions carried to the image.
        source = self.nodes[index].inputs[0]
        low = low.copy()
        high = high.copy()
        # Views, so that the copies change with them.
        flat_low = low.reshape(-1)
        flat_high = high.reshape(-1)
        unstable = np.flatnonzero((flat_low < 0) & (flat_high > 0))
        rows_at_once = self._rows_at_once()
        for start in range(0, len(unstable), rows_at_once):
            places = unstable[start : start + rows_at_once]
            rows = np.zeros((len(places), low.size))
            rows[np.arange(len(places)), places] = 1
            rows = rows.reshape(len(places), *low.shape)
            below = self._lower_bounds(source, rows, self._slopes(index, places, "lower"))
            above = -self._lower_bounds(source, -rows, self._slopes(index, places, "upper"))
            flat_low[places] = np.fmax(flat_low[places], below)
            flat_high[places] = np.fmin(flat_high[places], above)
        return low, high

    def _rows_at_once(self) -> int:
        widest = max(values.size for values in self.low)
        return max(1, COEFFICIENTS_AT_ONCE // widest)

    def _slopes(self, index: int, places: NDArray[np.int64], side: str) -> Splits:
        # No splits, and the certificate's slopes for bounds of some inputs; CROWN's where it has none.
        number = self.relus.index(index)
        proof = self.certificate.proofs.get(number)
        if proof is None:
            return Splits({}, {}, None)
        stored = getattr(proof, side)
        slopes = {}
        rows, members = np.nonzero(places[:, None] == proof.places[None])
        for layer, units, unit_places in self._units(stored.shape[1]):
            values = np.tile(self.lines[layer][0].reshape(-1), (len(places), 1))
            values[np.ix_(rows, unit_places)] = stored[np.ix_(members, units)] / 255
            slopes[layer] = values
        return Splits({}, {}, slopes)

    def _units(self, count: int) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        # By layer, of the first `count` units of the certificate: index of the activation, units, and their places.
        layers = self.certificate.layers[:count]
        places = self.certificate.places[:count]
        for number in np.unique(layers):
            if not 0 <= number < len(self.lines):
                raise Refused("the certificate names units that the network does not have")
            activation = self.relus[number]
            units = np.flatnonzero(layers == number)
            unit_places = places[units]
            if (unit_places < 0).any() or (unit_places >= self.low[activation].size).any():
                raise Refused("the certificate names units that the network does not have")
            yield activation, units, unit_places

    def margin(self, tree: TreeProof, direction: Array) -> float:
        # Smallest bound over all leaves of a tree, for one linear function of the logits.
        count = len(self.certificate.layers)
        leaves = list(_leaves(tree, count))
        split_counts = [len(units) for units, _ in leaves]
        slopes_per_leaf = 0 if tree.slopes.shape[1] == 0 else count
        multipliers = tree.multipliers.astype(np.float64)
        if len(multipliers) != sum(split_counts) or tree.slopes.shape != (len(leaves), slopes_per_leaf):
            raise Refused("the certificate holds another number of slopes or multipliers than leaves and splits")
        if not (multipliers >= 0).all() or not np.isfinite(multipliers).all():
            raise Refused("the certificate holds multipliers that are negative or not finite")

        leaf_multipliers = np.split(multipliers, np.cumsum(split_counts)[:-1])
        smallest = np.inf
        rows_at_once = self._rows_at_once()
        for start in range(0, len(leaves), rows_at_once):
            block = slice(start, start + rows_at_once)
            splits = self._splits(leaves[block], leaf_multipliers[block], tree.slopes[block])
            rows = np.repeat(direction, len(leaves[block]), axis=0)
            bounds = self._lower_bounds(len(self.nodes) - 1, rows, splits)
            if not (bounds > 0).all():
                raise Refused(f"the margin over class {tree.rival} is not proven: its bound is {bounds.min():.3g}")
            smallest = min(smallest, bounds.min())
        return smallest

    def _splits(
        self,
        leaves: Sequence[tuple[list[int], list[int]]],
        leaf_multipliers: Sequence[Array],
        slopes: NDArray[np.uint8],
    ) -> Splits:
        # Of some leaves: first by unit of the certificate, then by the place of the unit in its activation.
        count = len(self.certificate.layers)
        signs = np.zeros((len(leaves), count))
        multipliers = np.zeros((len(leaves), count))
        for leaf, (split_units, split_signs) in enumerate(leaves):
            signs[leaf, split_units] = split_signs
            multipliers[leaf, split_units] = leaf_multipliers[leaf]

        splits = Splits({}, {}, {} if slopes.shape[1] else None)
        for layer, units, places in self._units(count):
            shape = (len(leaves), self.low[layer].size)
            splits.signs[layer] = np.zeros(shape)
            splits.signs[layer][:, places] = signs[:, units]
            splits.multipliers[layer] = np.zeros(shape)
            splits.multipliers[layer][:, places] = multipliers[:, units]
            if splits.slopes is not None:
                splits.slopes[layer] = np.tile(self.lines[layer][0].reshape(-1), (len(leaves), 1))
                splits.slopes[layer][:, places] = slopes[:, units] / 255
        return splits

    def _lower_bounds(self, node: int, rows: Array, splits: Splits) -> Array:
        # Of linear functions (R, ...) of a node's values. They are carried back from node to node; `pending` holds the
        # coefficients of the nodes that are still to be replaced by their inputs.
        pending = {node: rows}
        constant = np.zeros(len(rows))
        error = np.zeros(len(rows))
        by_intervals = None
        while True:
            index = max(pending)
            on_activations = all(member == 0 or member in self.lines for member in pending)
            if by_intervals is None and on_activations and not splits.signs:
                # The intervals of the last activations may give a better bound than the image.
                by_intervals = constant - error + self._by_intervals(pending)
            if index == 0:
                break
            rows = pending.pop(index)
            operator = self.nodes[index]
            if index in self.lines:
                values, summand, rounding = self._through_relu(index, rows, splits)
                input_rows = [values]
            else:
                shapes = [self.low[number].shape for number in operator.inputs]
                input_rows = _transpose(operator, rows, shapes)
                summand = _times_bias(operator, rows)
                rounding = _gamma(_length(operator, shapes)) * _dot(np.abs(rows), self.sizes[index])
            error = error + rounding + 4 * UNIT * np.abs(constant)
            constant = constant + summand
            for number, values in zip(operator.inputs, input_rows, strict=True):
                if number not in pending:
                    pending[number] = values
                    continue
                pending[number] = pending[number] + values
                largest = np.maximum(np.abs(self.low[number]), np.abs(self.high[number]))
                error = error + 4 * UNIT * _dot(np.abs(pending[number]), largest)
        minimum = self.ball.lower_bounds(pending[0])
        error = (error + 8 * UNIT * (np.abs(constant) + np.abs(minimum))) * (1 + 1e-6) + 1e-290
        bounds = constant + minimum - error
        if by_intervals is None:
            return bounds
        return np.fmax(bounds, by_intervals - 8 * UNIT * np.abs(by_intervals))

    def _by_intervals(self, pending: dict[int, Array]) -> Array:
        # Smallest values of linear functions where each node's values lie anywhere in their intervals.
        total = np.zeros(1)
        for number, rows in pending.items():
            low = self.low[number]
            high = self.high[number]
            sizes = _dot(np.abs(rows), np.maximum(np.abs(low), np.abs(high)))
            total = total + _dot(np.maximum(rows, 0), low) + _dot(np.minimum(rows, 0), high)
            total = total - 4 * _gamma(low.size + len(pending)) * sizes
        return total

    def _through_relu(self, index: int, rows: Array, splits: Splits) -> tuple[Array, Array, Array]:
        # Coefficients of the activation's inputs, constant summand, and rounding error of linear functions of its
        # outputs. The line below takes the place of the ReLU where a coefficient is positive, the one above elsewhere.
        shape = rows.shape
        rows = rows.reshape(len(rows), -1)
        below, above, intercept = (values.reshape(-1) for values in self.lines[index])
        if splits.slopes is not None and index in splits.slopes:
            unstable = intercept > 0
            below = np.where(unstable, np.clip(splits.slopes[index], 0, 1), below)
        negative = np.minimum(rows, 0)
        values = np.maximum(rows, 0) * below + negative * above
        summands = negative * intercept
        multipliers = splits.multipliers.get(index, np.zeros(1))
        if index in splits.signs:
            # A split ReLU is linear: the identity for inputs of at least 0, else 0.
            signs = splits.signs[index]
            values = np.where(signs == 0, values, rows * (signs > 0)) - multipliers * signs
            summands = np.where(signs == 0, summands, 0)
        sizes = self.sizes[index].reshape(-1)
        rounding = 8 * UNIT * ((np.abs(values) + multipliers) @ sizes) + _gamma(len(sizes)) * np.abs(summands).sum(1)
        return values.reshape(shape), summands.sum(1), rounding


def _lines(low: Array, high: Array) -> tuple[Array, Array, Array]:
    # Slope of a line below the ReLU on [low, high], slope and intercept of one above it.
    unstable = (low < 0) & (high > 0)
    active = (low >= 0).astype(np.float64)
    width = np.where(unstable, high - low, 1)
    chord = np.where(unstable, np.clip(high / width, 0, 1), active)
    # With max(-s l, (1 - s) h) a line of any slope s lies above the ReLU at both ends, hence between them.
    intercept = np.where(unstable, np.maximum(-chord * low, (1 - chord) * high) * (1 + 8 * UNIT), 0)
    below = np.where(unstable, (high > -low).astype(np.float64), active)
    return below, chord, intercept


def _leaves(tree: TreeProof, units: int) -> Iterator[tuple[list[int], list[int]]]:
    # Units and signs on the way to each leaf, in the order of the nodes; every split must have both children.
    count = len(tree.units)
    paths: list[tuple[list[int], list[int]] | None] = [None] * count
    if count == 0 or len(tree.children) != count:
        raise Refused("the certificate holds no tree for a class")
    paths[0] = ([], [])
    for node in range(count):
        path = paths[node]
        unit = int(tree.units[node])
        first = int(tree.children[node])
        if path is None:
            raise Refused("the certificate holds a part that no split makes")
        if unit < 0:
            continue
        if not node < first < count - 1 or paths[first] is not None or paths[first + 1] is not None:
            raise Refused("the certificate lacks a part of a split")
        split_units, signs = path
        if unit in split_units or unit >= units:
            raise Refused("the certificate splits a part by a unit that it does not have, or twice by one")
        paths[first] = ([*split_units, unit], [*signs, 1])
        paths[first + 1] = ([*split_units, unit], [*signs, -1])
    for node, path in enumerate(paths):
        if tree.units[node] < 0 and path is not None:
            yield path


# Operators


def _gamma(length: int) -> float:
    # Bound of the relative rounding error of a sum of so many products (Higham 2002, Lemma 3.1), with room to spare.
    operations = 4 * (length + 64)
    return operations * UNIT / (1 - operations * UNIT)


def _dot(rows: Array, values: Array) -> Array:
    return rows.reshape(len(rows), -1) @ values.reshape(-1)


def _length(node: PlainNode, shapes: list[tuple[int, ...]]) -> int:
    # More than the roundings of any number that the operator computes, forward or back.
    return int(np.prod(node.shape)) + sum(int(np.prod(shape)) for shape in shapes)


def _absolute(node: PlainNode) -> PlainNode:
    arrays = {name: np.abs(values) for name, values in node.arrays.items()}
    return PlainNode(node.kind, arrays, node.numbers, node.inputs, node.shape)


def _times_bias(node: PlainNode, rows: Array) -> Array:
    if "bias" not in node.arrays:
        return np.zeros(len(rows))
    return _dot(rows, np.broadcast_to(node.arrays["bias"], node.shape))


def _apply(node: PlainNode, inputs: list[Array], *, bias: bool) -> Array:
    if node.kind == "linear":
        result = inputs[0] @ node.arrays["weight"]
    elif node.kind == "scale":
        result = inputs[0] * node.arrays["factor"]
    elif node.kind == "sum":
        result = sum(weight * values for weight, values in zip(node.arrays["weights"], inputs, strict=True))
    elif node.kind == "rearrangement":
        result = np.zeros(node.shape)
        for number, values in enumerate(inputs):
            padded = np.concatenate([[0.0], values.reshape(-1)])
            result = result + padded[node.arrays[f"places{number}"]].reshape(node.shape)
    elif node.kind == "convolution":
        result = _convolve(node, inputs[0])
    else:
        raise Refused(f"the operator {node.kind} cannot be checked")
    if bias and "bias" in node.arrays:
        return result + node.arrays["bias"]
    return result


def _transpose(node: PlainNode, rows: Array, shapes: list[tuple[int, ...]]) -> list[Array]:
    if node.kind == "linear":
        return [rows @ node.arrays["weight"].T]
    if node.kind == "scale":
        return [rows * node.arrays["factor"]]
    if node.kind == "sum":
        return [weight * rows for weight in node.arrays["weights"]]
    if node.kind == "convolution":
        return [_convolve_back(node, rows[:, 0], shapes[0])]
    results = []
    for number, shape in enumerate(shapes):
        result = np.zeros((int(np.prod(shape)) + 1, len(rows)))
        np.add.at(result, node.arrays[f"places{number}"], rows.reshape(len(rows), -1).T)
        results.append(np.ascontiguousarray(result[1:].T).reshape(len(rows), *shape))
    return results


def _windows(node: PlainNode, size: tuple[int, ...]) -> Iterator[tuple[int, int, slice, slice]]:
    # Row and column of each weight of the kernel, and rows and columns of the padded image that it is multiplied with.
    row_stride, column_stride = node.numbers["stride"]
    row_dilation, column_dilation = node.numbers["dilation"]
    kernel_rows, kernel_columns = node.arrays["weight"].shape[2:]
    for row in range(kernel_rows):
        top = row * row_dilation
        rows = slice(top, top + (size[0] - 1) * row_stride + 1, row_stride)
        for column in range(kernel_columns):
            left = column * column_dilation
            columns = slice(left, left + (size[1] - 1) * column_stride + 1, column_stride)
            yield row, column, rows, columns


def _convolve(node: PlainNode, image: Array) -> Array:
    weight, groups = node.arrays["weight"], node.numbers["groups"][0]
    vertical, horizontal = node.numbers["padding"]
    padded = np.pad(image[0], ((0, 0), (vertical, vertical), (horizontal, horizontal)))
    grouped = padded.reshape(groups, -1, *padded.shape[1:])
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    result = np.zeros((groups, kernels.shape[1], *node.shape[2:]))
    for row, column, rows, columns in _windows(node, node.shape[2:]):
        result += np.einsum("goi,gihw->gohw", kernels[..., row, column], grouped[:, :, rows, columns], optimize=True)
    return result.reshape(node.shape)


def _convolve_back(node: PlainNode, rows: Array, shape: tuple[int, ...]) -> Array:
    weight, groups = node.arrays["weight"], node.numbers["groups"][0]
    vertical, horizontal = node.numbers["padding"]
    kernels = weight.reshape(groups, -1, *weight.shape[1:])
    grouped = rows.reshape(len(rows), groups, -1, *rows.shape[2:])
    height, width = shape[2] + 2 * vertical, shape[3] + 2 * horizontal
    result = np.zeros((len(rows), height, width, shape[1]))
    for group in range(groups):
        # One product for all weights of the kernel.
        products = np.tensordot(np.moveaxis(grouped[:, group], 1, -1), kernels[group], axes=1)
        size = kernels.shape[2]
        members = slice(group * size, (group + 1) * size)
        for row, column, image_rows, image_columns in _windows(node, rows.shape[2:]):
            result[:, image_rows, image_columns, members] += products[..., row, column]
    inner = result[:, vertical : height - vertical, horizontal : width - horizontal]
    return np.ascontiguousarray(np.moveaxis(inner, -1, 1))[:, None]
