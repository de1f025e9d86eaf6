"""Bounds of the values of a network in a ball."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gfscore.proofs.certificates import Certificate
from gfscore.proofs.checking.activations import Lines, interval, lines
from gfscore.proofs.checking.pairs import ERROR, Pairs
from gfscore.proofs.checking.plain_network import (
    CURVES,
    Affine,
    Array,
    Coefficients,
    PlainNetwork,
    Shape,
    Window,
    added,
    whole,
)
from gfscore.proofs.checking.rounding import FLOAT32, REAL, TINY, UNIT, gamma
from gfscore.proofs.checking.trees import Leaf, Refused

COEFFICIENTS_AT_ONCE = 1_000_000
"""Coefficients of linear functions that are carried back at a time, which bounds memory."""

TILES = 4
"""Pieces, along either side, into which an image of neurons is cut; functions of one piece see a part of the pixels."""

Indices = NDArray[np.int64]


class Ball:
    """The ball around an image, cut with [0, 1] and rounded outward.

    Parameters
    ----------
    image : ndarray
        (C, H, W).
    norm : str
        "linf" or "l2".
    eps : float
        Radius.
    """

    def __init__(self, image: NDArray[np.floating], norm: str, eps: float) -> None:
        self.norm = norm
        self.eps = np.nextafter(eps, np.inf)
        self.centre = image[None].astype(np.float64)
        self.low = np.clip(np.nextafter(self.centre - self.eps, -np.inf), 0, 1)
        self.high = np.clip(np.nextafter(self.centre + self.eps, np.inf), 0, 1)

    def lower_bounds(self, rows: Array, window: Window) -> Array:
        """Lower bounds (R,) over the ball of linear functions, whose coefficients for a window of pixels are `rows`.

        Parameters
        ----------
        rows : ndarray
            (..., R), one function in each column.
        window : tuple of slice
            Pixels with a coefficient.
        """
        rows = rows.reshape(-1, rows.shape[-1])
        low = self.low[window].reshape(-1)
        high = self.high[window].reshape(-1)
        centre = self.centre[window].reshape(-1)
        # Sums of the sizes of all terms, which bound the rounding error.
        sizes = np.maximum(np.abs(low), np.abs(high)) @ np.abs(rows)
        if self.norm != "l2":
            positive = np.maximum(rows, 0)
            minimum = low @ positive + high @ (rows - positive)
            return minimum - gamma(len(rows)) * sizes - TINY

        # Lagrangian dual of the minimum in the box under |offset| <= eps: a lower bound with any multiplier.
        multiplier = np.maximum(np.linalg.norm(rows, axis=0) / self.eps, 1e-30)
        lowest = np.nextafter(low - centre, -2)[:, None]
        highest = np.nextafter(high - centre, 2)[:, None]
        offset = np.clip(-rows / multiplier, lowest, highest)
        penalised = rows * offset + multiplier / 2 * offset**2
        dual = centre @ rows + penalised.sum(0) - multiplier / 2 * self.eps**2
        sizes = sizes + np.abs(penalised).sum(0) + multiplier * ((offset**2).sum(0) + self.eps**2)
        return dual - gamma(len(rows)) * sizes - TINY


class Intervals:
    """Lower and upper bounds of the values of every node, operator by operator.

    Parameters
    ----------
    network : PlainNetwork
    low, high : ndarray
        Bounds of the pixels, (1, C, H, W).
    float32 : bool
        Whether the values are those that float32 arithmetic computes, else those of the real function.

    Attributes
    ----------
    low, high, largest : list of ndarray
        By node, of its shape; the largest magnitude of a value.
    errors : list of ndarray
        By node, bounds of the rounding errors of its values, and of their products with coefficients for each unit of
        a coefficient; by activation, of those of its inputs.
    overflows : bool
        Whether a value may be too large for float32.
    """

    def __init__(self, network: PlainNetwork, low: Array, high: Array, *, float32: bool = False) -> None:
        self.network = network
        self.arithmetic = FLOAT32 if float32 else REAL
        self.overflows = False
        self.low: list[Array] = [low]
        self.high: list[Array] = [high]
        self.largest: list[Array] = [np.maximum(np.abs(low), np.abs(high))]
        self.errors: list[Array] = [np.zeros_like(low)]
        for index in range(1, len(network.nodes)):
            operator = network.operators.get(index)
            if operator is not None:
                low, high, errors = self._affine_interval(operator, network.nodes[index].inputs)
            else:
                low, high = self._inputs(index)
                errors = 8 * UNIT * np.maximum(np.abs(low), np.abs(high))
                low, high = interval(network.nodes[index].kind, low, high, error=16 * self.arithmetic.unit)
            self.low.append(low)
            self.high.append(high)
            self.largest.append(np.maximum(np.abs(low), np.abs(high)))
            self.errors.append(errors)

    def _inputs(self, index: int) -> tuple[Array, Array]:
        # Bounds of the inputs of an activation.
        (source,) = self.network.nodes[index].inputs
        return self.low[source], self.high[source]

    def _affine_interval(self, operator: Affine, sources: Sequence[int]) -> tuple[Array, Array, Array]:
        # Interval arithmetic by centres and radii: the operator on the centres, its magnitudes on the radii.
        centres = []
        magnitudes = []
        for source in sources:
            low, high = self.low[source], self.high[source]
            centre = (low + high) / 2
            radius = np.maximum(high - centre, centre - low) * (1 + 4 * UNIT)
            centres.append(centre[..., None])
            magnitudes.append(np.stack([radius, np.abs(centre) + radius], axis=-1))
        centre = operator.forward(centres)[..., 0] + operator.bias
        bounds = operator.forward(magnitudes, magnitudes=True)
        radius, sizes = bounds[..., 0], bounds[..., 1] + np.abs(operator.bias)
        self.overflows |= bool((sizes > self.arithmetic.largest).any())
        errors = gamma(operator.roundings) * sizes + TINY
        # Of the network's own products and sums.
        errors += 2 * operator.products * (self.arithmetic.unit * sizes + self.arithmetic.least)
        return centre - radius - errors, centre + radius + errors, errors


@dataclass
class _Choices:
    # What a certificate chooses for the bounds of R linear functions. Keys are indices of activations, values have the
    # shape of the activation and R.

    slopes: dict[int, Array] = field(default_factory=dict)  # of the lines below ReLUs; without a key those of CROWN
    signs: dict[int, Array] = field(default_factory=dict)  # of inputs that are split, 0 for the others
    multipliers: dict[int, Array] = field(default_factory=dict)  # Lagrange multipliers of the splits


class _LinearFunctions:
    # R linear functions of the values of some nodes, with a constant, (R,), and a bound of its rounding error, (R,).

    def __init__(self, node: int, rows: Array, window: Window) -> None:
        self.coefficients: dict[int, Coefficients] = {node: (rows, window)}
        self.constant = np.zeros(rows.shape[-1])
        self.error = np.zeros(rows.shape[-1])

    @property
    def last_node(self) -> int:
        return max(self.coefficients)


class Bounds(Intervals):
    """Intervals of a network's values in a ball, narrowed by a certificate, and the margins that it proves there.

    Raises
    ------
    Refused
        For a certificate that does not belong to the network.
    """

    def __init__(self, network: PlainNetwork, ball: Ball, certificate: Certificate, *, float32: bool = False) -> None:
        self.ball, self.certificate = ball, certificate
        self.lines: dict[int, Lines] = {}
        self.pairs: dict[int, Pairs] = {}
        self.activations = [index for index in range(1, len(network.nodes)) if index not in network.operators]
        super().__init__(network, ball.low, ball.high, float32=float32)

    # ---- bounds of the inputs of activations ----

    def _inputs(self, index: int) -> tuple[Array, Array]:
        low, high = self._tightened(index, *super()._inputs(index))
        self.lines[index] = lines(self.network.nodes[index].kind, low, high)
        self._add_pairs(index, low, high)
        return low, high

    def _add_pairs(self, index: int, low: Array, high: Array) -> None:
        # Pairs of an activation's units, with their slack in the ball.
        pairs = self.certificate.pairs
        if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs < 0).any() or (pairs >= len(self.certificate.layers)).any():
            raise Refused("the certificate pairs units that it does not list")
        in_layer = self.certificate.layers[pairs] == self.activations.index(index)
        if not in_layer.any():
            return
        if (in_layer[:, 0] != in_layer[:, 1]).any() or self._is_curve(index):
            raise Refused("the certificate pairs units that are not ReLUs of one layer")
        first, second = self.certificate.places[pairs[in_layer[:, 0]]].T
        if min(first.min(), second.min()) < 0 or max(first.max(), second.max()) >= low.size:
            raise Refused("the certificate names units that the network does not have")
        unstable = (low < 0) & (high > 0)
        reach = np.where(unstable, np.minimum(high, -low) / 2, 0).reshape(-1)
        if (first == second).any() or not (reach[first] > 0).all() or not (reach[second] > 0).all():
            raise Refused("the certificate pairs a unit with itself, or one that keeps its sign")
        slack = np.zeros(len(first))
        flat_low, flat_high = low.reshape(-1), high.reshape(-1)
        pairs_at_once = max(1, self._functions_at_once() // 4)
        for tile in _tiles(first, low.shape):
            members = np.flatnonzero(np.isin(first, tile))
            for start in range(0, len(members), pairs_at_once):
                chosen = members[start : start + pairs_at_once]
                places = np.concatenate([first[chosen], second[chosen]])
                slack[chosen] = self._slack(index, places, flat_low[places], flat_high[places])
        self.pairs[index] = Pairs(first, second, np.maximum(slack, 0), reach, low.shape)

    def _slack(self, index: int, places: Indices, low: Array, high: Array) -> Array:
        # 2 less the largest sum of the distances of two inputs from their middles, in half widths; `places` has the
        # first units of all pairs, then the second ones.
        scale = 2 / (high - low)
        middles = np.split((low + high) / 2 * scale, 2)
        (source,) = self.network.nodes[index].inputs
        rows, window = _unit_vectors(places, self.network.nodes[index].shape)
        first, second = np.split(rows * scale, 2, axis=-1)
        functions, middle = [], []
        for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            functions.append(signs[0] * first + signs[1] * second)
            middle.append(signs[0] * middles[0] + signs[1] * middles[1])
        bounds = self._lower_bounds(source, np.concatenate(functions, axis=-1), window, _Choices())
        return 2 + (bounds - np.concatenate(middle)).reshape(4, -1).min(0) - ERROR

    def _tightened(self, index: int, low: Array, high: Array) -> tuple[Array, Array]:
        # Narrower bounds of inputs that need two lines, from functions carried to the image.
        source = self.network.nodes[index].inputs[0]
        if self.ball.norm == "linf" and self.network.mixings[source] <= 1:
            # Intervals are exact.
            return low, high
        # The flat arrays are views: what is written to them changes low and high.
        low, high = low.copy(), high.copy()
        flat_low, flat_high = low.reshape(-1), high.reshape(-1)
        needs_two_lines = (flat_low < 0) & (flat_high > 0)
        if self._is_curve(index):
            needs_two_lines = flat_low < flat_high
        functions_at_once = max(1, self._functions_at_once() // 2)
        for tile in _tiles(np.flatnonzero(needs_two_lines), low.shape):
            for start in range(0, len(tile), functions_at_once):
                places = tile[start : start + functions_at_once]
                count = len(places)
                # Lower bounds of every input, and of its negative: minus an upper bound.
                rows, window = _unit_vectors(np.concatenate([places, places]), low.shape)
                rows[..., count:] *= -1
                bounds = self._lower_bounds(source, rows, window, self._slopes(index, places))
                flat_low[places] = np.fmax(flat_low[places], bounds[:count])
                flat_high[places] = np.fmin(flat_high[places], -bounds[count:])
        return low, high

    def _functions_at_once(self) -> int:
        return max(1, COEFFICIENTS_AT_ONCE // max(values.size for values in self.low))

    def _slopes(self, index: int, places: Indices) -> _Choices:
        # The certificate's slopes for lower and upper bounds of some inputs; those of CROWN where it has none.
        choices = _Choices()
        proof = self.certificate.proofs.get(self.activations.index(index))
        if proof is None:
            return choices
        columns, members = np.nonzero(places[:, None] == proof.places[None])
        stored = np.concatenate([proof.lower[members], proof.upper[members]])
        columns = np.concatenate([columns, columns + len(places)])
        for layer, units, unit_places in self._units_by_layer(stored.shape[1]):
            if self._is_curve(layer):
                continue
            slopes = np.repeat(self.lines[layer].below.reshape(-1, 1), 2 * len(places), axis=1)
            slopes[np.ix_(unit_places, columns)] = stored[:, units].T / 255
            choices.slopes[layer] = slopes.reshape(*self.low[layer].shape, -1)
        return choices

    def _is_curve(self, index: int) -> bool:
        return self.network.nodes[index].kind in CURVES

    def _units_by_layer(self, count: int) -> Iterator[tuple[int, Indices, Indices]]:
        # The first `count` units of the certificate, layer by layer: index of the activation in the network, numbers of
        # the units in the certificate, and their places in the activation.
        layers, places = self.certificate.layers[:count], self.certificate.places[:count]
        for number in np.unique(layers):
            units = np.flatnonzero(layers == number)
            exists = 0 <= number < len(self.lines)
            size = self.low[self.activations[number]].size if exists else 0
            if (places[units] < 0).any() or (places[units] >= size).any():
                raise Refused("the certificate names units that the network does not have")
            yield self.activations[number], units, places[units]

    # ---- margins ----

    def smallest_margin(self, leaves: Sequence[Leaf], label: int) -> float:
        """Smallest bound of a margin z_label - z_rival in any leaf."""
        if self.overflows:
            return -np.inf
        last = len(self.network.nodes) - 1
        shape = self.network.nodes[last].shape
        smallest = np.inf
        leaves_at_once = self._functions_at_once()
        for start in range(0, len(leaves), leaves_at_once):
            block = leaves[start : start + leaves_at_once]
            rows = np.zeros((self.network.classes, len(block)))
            rows[label] = 1
            rows[[leaf.rival for leaf in block], np.arange(len(block))] = -1
            bounds = self._lower_bounds(last, rows.reshape(*shape, -1), whole(shape), self._choices(block))
            # NaN is no bound.
            smallest = min(smallest, np.where(np.isnan(bounds), -np.inf, bounds).min())
        return float(smallest)

    def _choices(self, leaves: Sequence[Leaf]) -> _Choices:
        # Signs, multipliers and slopes of some leaves. Leaves give them by unit of the certificate; from there they are
        # written to the place of the unit in its activation, a column for each leaf.
        count = len(self.certificate.layers)
        choices = _Choices()
        signs = np.zeros((count, len(leaves)))
        multipliers = np.zeros((count, len(leaves)))
        with_slopes = []
        bytes_of_slopes = []
        for column, leaf in enumerate(leaves):
            signs[leaf.units, column] = leaf.signs
            multipliers[leaf.units, column] = leaf.multipliers
            if len(leaf.slopes):
                with_slopes.append(column)
                bytes_of_slopes.append(leaf.slopes)
        slopes = np.array(bytes_of_slopes).T / 255

        for layer, units, places in self._units_by_layer(count):
            shape = (*self.low[layer].shape, len(leaves))
            if self._is_curve(layer):
                if signs[units].any():
                    raise Refused("the certificate splits by the sign of a unit that is no ReLU")
                continue
            if with_slopes:
                values = np.repeat(self.lines[layer].below.reshape(-1, 1), len(leaves), axis=1)
                values[np.ix_(places, np.array(with_slopes))] = slopes[units]
                choices.slopes[layer] = values.reshape(shape)
            if signs[units].any():
                for target, source in ((choices.signs, signs), (choices.multipliers, multipliers)):
                    values = np.zeros((self.low[layer].size, len(leaves)))
                    values[places] = source[units]
                    target[layer] = values.reshape(shape)
        return choices

    # ---- linear functions ----

    def _lower_bounds(self, node: int, rows: Array, window: Window, choices: _Choices) -> Array:
        # Lower bounds of linear functions of a node's values: in the ball, once they are functions of the image, or
        # from the intervals of the last activations, which may be better.
        functions = _LinearFunctions(node, rows, window)
        while not functions.coefficients.keys().isdisjoint(self.network.operators):
            self._carry_back(functions, choices)
        by_intervals = functions.constant - functions.error + self._by_intervals(functions.coefficients)
        by_intervals -= 8 * UNIT * np.abs(by_intervals)

        while functions.last_node > 0:
            self._carry_back(functions, choices)
        minimum = self.ball.lower_bounds(*functions.coefficients[0])
        rounding = 8 * UNIT * (np.abs(functions.constant) + np.abs(minimum))
        error = (functions.error + rounding) * (1 + 1e-6) + TINY
        return np.fmax(functions.constant + minimum - error, by_intervals)

    def _carry_back(self, functions: _LinearFunctions, choices: _Choices) -> None:
        # Make them functions of the inputs of the last node that they are functions of.
        index = functions.last_node
        rows, window = functions.coefficients.pop(index)
        operator = self.network.operators.get(index)
        if operator is None:
            values, summand, rounding = self._through_activation(index, rows, window, choices)
            coefficients = [(values, window)]
        else:
            coefficients = operator.transpose(rows, window)
            summand = _dot(operator.bias[window], rows)
            rounding = _dot(self.errors[index][window], np.abs(rows)) + TINY
        functions.error += rounding + 4 * UNIT * np.abs(functions.constant)
        functions.constant = functions.constant + summand
        for source, of_source in zip(self.network.nodes[index].inputs, coefficients, strict=True):
            # Coefficients that are too small for float64.
            functions.error += TINY * self.largest[source][of_source[1]].sum()
            if source not in functions.coefficients:
                functions.coefficients[source] = of_source
                continue
            sums, sums_window = added(functions.coefficients[source], of_source)
            functions.coefficients[source] = sums, sums_window
            # The sum of coefficients is rounded.
            functions.error += 4 * UNIT * _dot(self.largest[source][sums_window], np.abs(sums))

    def _by_intervals(self, coefficients: Mapping[int, Coefficients]) -> Array:
        # Smallest values of linear functions where each node's values lie anywhere in their intervals.
        total = np.zeros(1)
        for number, (rows, window) in coefficients.items():
            low, high = self.low[number][window], self.high[number][window]
            positive = np.maximum(rows, 0)
            sizes = _dot(self.largest[number][window], np.abs(rows))
            minimum = _dot(low, positive) + _dot(high, rows - positive)
            total = total + minimum - 4 * gamma(low.size + len(coefficients)) * sizes - TINY
        return total

    def _through_activation(
        self, index: int, rows: Array, window: Window, choices: _Choices
    ) -> tuple[Array, Array, Array]:
        # Coefficients of the activation's inputs, constant summand, and rounding error of linear functions of its
        # outputs. The line below takes the place of the activation where a coefficient is positive, else the one above.
        below, below_at_0, above, above_at_0 = (values[window] for values in self.lines[index])
        below = below[..., None]
        if index in choices.slopes:
            unstable = (above_at_0 > 0)[..., None]
            below = np.where(unstable, np.clip(choices.slopes[index][window], 0, 1), below)
        values = rows * np.where(rows > 0, below, above[..., None])
        magnitudes = np.abs(values)
        if index in choices.signs:
            # A split ReLU is linear: the identity for inputs of at least 0, else 0. Its inputs have one sign.
            signs = choices.signs[index][window]
            multipliers = choices.multipliers[index][window]
            values = np.where(signs == 0, values, rows * (signs > 0) - multipliers * signs)
            magnitudes = np.abs(rows) + multipliers
            rows = rows * (signs == 0)
        positive = np.maximum(rows, 0)
        negative = rows - positive
        constant = _dot(below_at_0, positive) + _dot(above_at_0, negative)
        if index in self.pairs:
            constant = constant + self.pairs[index].gains(negative, window)
        sizes = _dot(np.abs(below_at_0), positive) - _dot(np.abs(above_at_0), negative)
        rounding = _dot(self.errors[index][window], magnitudes) + gamma(below.size) * sizes + TINY
        if self._is_curve(index):
            # The network's own error.
            rounding += 16 * self.arithmetic.unit * np.abs(rows).sum(axis=tuple(range(rows.ndim - 1)))
        return values, constant, rounding


def _dot(values: Array, rows: Array) -> Array:
    return values.reshape(-1) @ rows.reshape(-1, rows.shape[-1])


def _tiles(places: Indices, shape: Shape) -> Iterator[Indices]:
    # Places of inputs, by the piece of the image that they lie in.
    if len(shape) != 4:
        yield places
        return
    _, _, rows, columns = np.unravel_index(places, shape)
    # Sides of a piece, rounded up.
    height = -(-shape[2] // TILES)
    width = -(-shape[3] // TILES)
    tile = rows // height * TILES + columns // width
    for number in np.unique(tile):
        yield places[tile == number]


def _unit_vectors(places: Indices, shape: Shape) -> Coefficients:
    # Linear functions that are single values of a node, one in each column, in the smallest window that holds them all.
    window = list(whole(shape))
    positions = list(np.unravel_index(places, shape))
    if len(shape) == 4:
        for axis in (2, 3):
            window[axis] = slice(int(positions[axis].min()), int(positions[axis].max()) + 1)
            positions[axis] = positions[axis] - window[axis].start
    rows = np.zeros((*(piece.stop - piece.start for piece in window), len(places)))
    rows[(*positions, np.arange(len(places)))] = 1
    return rows, tuple(window)
