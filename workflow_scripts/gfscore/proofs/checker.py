"""Independent check of certificates, in numpy and float64.

Bounds are computed anew from the operators of the network, by another way than the search takes: operator by operator,
for all neurons. Only the format of certificates and the operators' weights are common to both.
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
ROWS = 500_000
"""Numbers of coefficients that are carried at once."""


class Refused(InputError):
    """A certificate that does not prove its claim; the message says why."""


@dataclass(frozen=True)
class PlainNode:
    """An operator of the network: name of its formula, arrays, numbers, nodes of its inputs, shape of its output."""

    kind: str
    arrays: dict[str, NDArray[Any]]
    numbers: dict[str, list[int]]
    inputs: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass
class Splits:
    """Parts of the ball, by activation and place: signs and multipliers (R, size), slopes (R, size) or None."""

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
    if sorted(rivals) != [rival for rival in range(classes) if rival != claim.label]:
        raise Refused(f"the certificate holds proofs over the classes {sorted(rivals)}, not over all others")
    smallest = np.inf
    for tree in certificate.trees:
        direction = np.zeros((1, *nodes[-1].shape))
        direction.reshape(-1)[claim.label] = 1
        direction.reshape(-1)[tree.rival] = -1
        smallest = min(smallest, bounds.margin(tree, direction))
    return float(smallest)


class _Ball:
    # The ball cut with [0, 1], rounded outward.

    def __init__(self, image: NDArray[np.float32], claim: Claim) -> None:
        self.norm, self.eps = claim.norm, np.nextafter(claim.eps, np.inf)
        self.centre = image[None].astype(np.float64)
        self.low = np.clip(np.nextafter(self.centre - self.eps, -np.inf), 0, 1)
        self.high = np.clip(np.nextafter(self.centre + self.eps, np.inf), 0, 1)

    def least(self, rows: Array) -> Array:
        rows = rows.reshape(len(rows), -1)
        low, high, centre = self.low.reshape(-1), self.high.reshape(-1), self.centre.reshape(-1)
        sizes = np.abs(rows)
        terms = sizes @ np.maximum(np.abs(low), np.abs(high))
        value = np.maximum(rows, 0) @ low + np.minimum(rows, 0) @ high
        if self.norm == "l2":
            multiplier = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True) / self.eps, 1e-30)
            offset = np.clip(-rows / multiplier, np.nextafter(low - centre, -2), np.nextafter(high - centre, 2))
            inside = rows * offset + multiplier / 2 * offset**2
            value = rows @ centre + inside.sum(1) - multiplier[:, 0] / 2 * self.eps**2
            terms = terms + np.abs(inside).sum(1) + (multiplier * offset**2).sum(1) + multiplier[:, 0] * self.eps**2
        return value - _gamma(rows.shape[1]) * terms - 1e-290


class _Bounds:
    # Bounds on what every node of the network computes in a ball.

    def __init__(self, nodes: Sequence[PlainNode], ball: _Ball, certificate: Certificate) -> None:
        self.nodes, self.ball, self.certificate = nodes, ball, certificate
        self.low: list[Array] = [ball.low]
        self.high: list[Array] = [ball.high]
        self.terms: list[Array] = [np.zeros(0)]
        self.relus = [index for index, node in enumerate(nodes) if node.kind == "relu"]
        # Lines of each activation: slopes below and above, intercept above.
        self.lines: dict[int, tuple[Array, Array, Array]] = {}

    def forward(self) -> None:
        for index, node in enumerate(self.nodes[1:], start=1):
            inputs = [(self.low[source], self.high[source]) for source in node.inputs]
            if node.kind != "relu":
                low, high, terms = self._affine_interval(node, inputs)
                self.low.append(low)
                self.high.append(high)
                self.terms.append(terms)
                continue
            low, high = self._tightened(index, *inputs[0])
            self.lines[index] = _lines(low, high)
            self.terms.append(np.maximum(np.abs(low), np.abs(high)))
            self.low.append(np.maximum(low, 0))
            self.high.append(np.maximum(high, 0))

    def _affine_interval(self, node: PlainNode, inputs: list[tuple[Array, Array]]) -> tuple[Array, Array, Array]:
        shapes = [low.shape for low, _ in inputs]
        centres = [(low + high) / 2 for low, high in inputs]
        reaches = []
        for (low, high), centre in zip(inputs, centres, strict=True):
            reaches.append(np.maximum(high - centre, centre - low) * (1 + 4 * UNIT))
        sizes = [np.abs(centre) + reach for centre, reach in zip(centres, reaches, strict=True)]
        middle = _apply(node, centres, bias=True)
        reach = _apply(_absolute(node), reaches, bias=False)
        terms = _apply(_absolute(node), sizes, bias=True)
        error = _gamma(_length(node, shapes)) * terms
        return middle - reach - error, middle + reach + error, terms

    def _tightened(self, index: int, low: Array, high: Array) -> tuple[Array, Array]:
        # Bounds of an activation's inputs that may be negative or positive, carried back to the image.
        source = self.nodes[index].inputs[0]
        low, high = low.copy(), high.copy()
        places = np.flatnonzero((low.reshape(-1) < 0) & (high.reshape(-1) > 0))
        flat_low, flat_high = low.reshape(-1), high.reshape(-1)
        rows_at_once = max(1, ROWS // max(values.size for values in self.low))
        for start in range(0, len(places), rows_at_once):
            chosen = places[start : start + rows_at_once]
            rows = np.zeros((len(chosen), low.size))
            rows[np.arange(len(chosen)), chosen] = 1
            rows = rows.reshape(len(chosen), *low.shape)
            below = self._least(source, rows, self._splits(index, chosen, "lower"))
            above = -self._least(source, -rows, self._splits(index, chosen, "upper"))
            flat_low[chosen] = np.fmax(flat_low[chosen], below)
            flat_high[chosen] = np.fmin(flat_high[chosen], above)
        return low, high

    def _splits(self, index: int, places: NDArray[np.int64], side: str) -> Splits:
        # Slopes for bounds of some inputs; CROWN's where the certificate has none.
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
        # Activation, numbers and places of the first so many units.
        layers, places = self.certificate.layers[:count], self.certificate.places[:count]
        for number in np.unique(layers):
            units = np.flatnonzero(layers == number)
            computed = 0 <= number < len(self.lines)
            if not computed or not ((places[units] >= 0) & (places[units] < self.low[self.relus[number]].size)).all():
                raise Refused("the certificate names units that the network does not have")
            yield self.relus[number], units, places[units]

    def margin(self, tree: TreeProof, direction: Array) -> float:
        """Smallest bound over all leaves of a tree, for one linear function of the logits."""
        count = len(self.certificate.layers)
        leaves = list(_leaves(tree, count))
        counts = [len(units) for units, _ in leaves]
        usual = tree.slopes.shape[1] == 0
        multipliers = tree.multipliers.astype(np.float64)
        if len(multipliers) != sum(counts) or tree.slopes.shape != (len(leaves), 0 if usual else count):
            raise Refused("the certificate holds another number of slopes or multipliers than leaves and splits")
        if not (multipliers >= 0).all() or not np.isfinite(multipliers).all():
            raise Refused("the certificate holds multipliers that are negative or not finite")
        smallest = np.inf
        ends = np.cumsum(counts)
        rows_at_once = max(1, ROWS // max(values.size for values in self.low))
        for start in range(0, len(leaves), rows_at_once):
            members = range(start, min(start + rows_at_once, len(leaves)))
            signs = np.zeros((len(members), count))
            values = np.zeros((len(members), count))
            for row, leaf in enumerate(members):
                split_units, split_signs = leaves[leaf]
                signs[row, split_units] = split_signs
                values[row, split_units] = multipliers[ends[leaf] - counts[leaf] : ends[leaf]]
            splits = Splits({}, {}, None if usual else {})
            for layer, units, places in self._units(count):
                shape = (len(members), self.low[layer].size)
                splits.signs[layer], splits.multipliers[layer] = np.zeros(shape), np.zeros(shape)
                splits.signs[layer][:, places] = signs[:, units]
                splits.multipliers[layer][:, places] = values[:, units]
                if splits.slopes is not None:
                    splits.slopes[layer] = np.tile(self.lines[layer][0].reshape(-1), (len(members), 1))
                    splits.slopes[layer][:, places] = tree.slopes[list(members)][:, units] / 255
            rows = np.repeat(direction, len(members), axis=0)
            bounds = self._least(len(self.nodes) - 1, rows, splits)
            if not (bounds > 0).all():
                raise Refused(f"the margin over class {tree.rival} is not proven: its bound is {bounds.min():.3g}")
            smallest = min(smallest, bounds.min())
        return smallest

    def _least(self, node: int, rows: Array, splits: Splits) -> Array:
        # Lower bounds of linear functions (R, ...) of a node's values.
        pending = {node: rows}
        constant, error = np.zeros(len(rows)), np.zeros(len(rows))
        by_intervals = None
        while True:
            index = max(pending)
            stops = all(member == 0 or member in self.lines for member in pending)
            if by_intervals is None and stops and not splits.signs:
                by_intervals = constant - error + self._by_intervals(pending)
            if index == 0:
                break
            rows = pending.pop(index)
            source = self.nodes[index]
            if index in self.lines:
                inputs = [self._through_relu(index, rows, splits)]
                added, lost = inputs[0][1], inputs[0][2]
                carried = [inputs[0][0]]
            else:
                carried = _transpose(source, rows, [self.low[number].shape for number in source.inputs])
                added = _times_bias(source, rows)
                length = _length(source, [self.low[number].shape for number in source.inputs])
                lost = _gamma(length) * _dot(np.abs(rows), self.terms[index])
            constant, error = constant + added, error + lost + 4 * UNIT * np.abs(constant)
            for number, values in zip(source.inputs, carried, strict=True):
                if number not in pending:
                    pending[number] = values
                    continue
                pending[number] = pending[number] + values
                largest = np.maximum(np.abs(self.low[number]), np.abs(self.high[number]))
                error = error + 4 * UNIT * _dot(np.abs(pending[number]), largest)
        least = self.ball.least(pending[0])
        error = (error + 8 * UNIT * (np.abs(constant) + np.abs(least))) * (1 + 1e-6) + 1e-290
        bound = constant + least - error
        return bound if by_intervals is None else np.fmax(bound, by_intervals - 8 * UNIT * np.abs(by_intervals))

    def _by_intervals(self, pending: dict[int, Array]) -> Array:
        total = np.zeros(1)
        for number, rows in pending.items():
            low, high = self.low[number], self.high[number]
            terms = _dot(np.abs(rows), np.maximum(np.abs(low), np.abs(high)))
            total = total + _dot(np.maximum(rows, 0), low) + _dot(np.minimum(rows, 0), high)
            total = total - 4 * _gamma(low.size + len(pending)) * terms
        return total

    def _through_relu(self, index: int, rows: Array, splits: Splits) -> tuple[Array, Array, Array]:
        shape = rows.shape
        rows = rows.reshape(len(rows), -1)
        below, above, intercept = (values.reshape(-1) for values in self.lines[index])
        if splits.slopes is not None and index in splits.slopes:
            unstable = intercept > 0
            below = np.where(unstable, np.clip(splits.slopes[index], 0, 1), below)
        positive, negative = np.maximum(rows, 0), np.minimum(rows, 0)
        values = positive * below + negative * above
        added = negative * intercept
        multipliers = splits.multipliers.get(index, np.zeros(1))
        if index in splits.signs:
            signs = splits.signs[index]
            values = np.where(signs == 0, values, rows * (signs > 0)) - multipliers * signs
            added = np.where(signs == 0, added, 0)
        sizes = self.terms[index].reshape(-1)
        lost = 8 * UNIT * ((np.abs(values) + multipliers) @ sizes) + _gamma(len(sizes)) * np.abs(added).sum(1)
        return values.reshape(shape), added.sum(1), lost


def _lines(low: Array, high: Array) -> tuple[Array, Array, Array]:
    # max(-s l, (1 - s) h) lifts a line of any slope s above both ends of the ReLU.
    unstable = (low < 0) & (high > 0)
    active = (low >= 0).astype(np.float64)
    chord = np.where(unstable, np.clip(high / np.where(unstable, high - low, 1), 0, 1), active)
    intercept = np.where(unstable, np.maximum(-chord * low, (1 - chord) * high) * (1 + 8 * UNIT), 0)
    below = np.where(unstable, (high > -low).astype(np.float64), active)
    return below, chord, intercept


def _leaves(tree: TreeProof, units: int) -> Iterator[tuple[list[int], list[int]]]:
    # Units and signs on the way to each leaf, in the order of the nodes; every split must have both children.
    count = len(tree.units)
    ways: list[tuple[list[int], list[int]] | None] = [None] * count
    if count == 0 or len(tree.children) != count:
        raise Refused("the certificate holds no tree for a class")
    ways[0] = ([], [])
    for node in range(count):
        way = ways[node]
        unit, first = int(tree.units[node]), int(tree.children[node])
        if way is None:
            raise Refused("the certificate holds a part that no split makes")
        if unit < 0:
            continue
        if not node < first < count - 1 or ways[first] is not None or ways[first + 1] is not None:
            raise Refused("the certificate lacks a part of a split")
        if unit in way[0] or unit >= units:
            raise Refused("the certificate splits a part by a unit that it does not have, or twice by one")
        ways[first] = ([*way[0], unit], [*way[1], 1])
        ways[first + 1] = ([*way[0], unit], [*way[1], -1])
    for node, way in enumerate(ways):
        if tree.units[node] < 0 and way is not None:
            yield way


# Operators


def _gamma(length: int) -> float:
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
    return result + node.arrays["bias"] if bias and "bias" in node.arrays else result


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
    # Each place of the kernel with the pixels of the padded image that it meets.
    (down, right), (far, wide) = node.numbers["stride"], node.numbers["dilation"]
    for row in range(node.arrays["weight"].shape[2]):
        for column in range(node.arrays["weight"].shape[3]):
            top, left = row * far, column * wide
            bottom, end = top + (size[0] - 1) * down + 1, left + (size[1] - 1) * right + 1
            yield row, column, slice(top, bottom, down), slice(left, end, right)


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
        # One product for all places of the kernel.
        products = np.tensordot(np.moveaxis(grouped[:, group], 1, -1), kernels[group], axes=1)
        size = kernels.shape[2]
        members = slice(group * size, (group + 1) * size)
        for row, column, down, right in _windows(node, rows.shape[2:]):
            result[:, down, right, members] += products[..., row, column]
    inner = result[:, vertical : height - vertical, horizontal : width - horizontal]
    return np.ascontiguousarray(np.moveaxis(inner, -1, 1))[:, None]
