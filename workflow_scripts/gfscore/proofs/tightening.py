"""Bounds on the inputs of every activation in a ball, layer by layer, and the relaxation made of them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from torch import Tensor

from gfscore.proofs.balls import Ball, dot
from gfscore.proofs.layers import IMAGE, AffineMap, Interval, LayeredNetwork
from gfscore.proofs.operators.declaration import Array
from gfscore.proofs.relaxation import MAX_DENSITY, Block, Bound, Branches, Functions, Matrix, Pairs, Relaxation
from gfscore.proofs.rounding import TINY, gamma
from gfscore.proofs.slopes import as_numbers, improved, rounded

Indices = NDArray[np.int64]

CPU = "cpu"
"""Bounds on inputs are made there; branches may be on another device."""

RATE = 0.2
"""Step size of the optimisation of slopes; multipliers have half of it."""

PARTNERS = 6
"""Units that each unit is tried to be paired with: those whose inputs depend most on the same pixels and units."""

LEAST_SLACK = 0.3
"""Pairs with less slack gain nothing and take time."""

SLACK_ERROR = 1e-9
"""Subtracted from every slack, in half widths: more than the rounding errors of two middles and half widths."""


@dataclass(frozen=True)
class LayerState:
    """Bounds of one layer in a ball.

    Attributes
    ----------
    low, high : ndarray
        (size,) bounds of the inputs.
    outputs : tuple of ndarray
        Bounds of the outputs.
    active : ndarray
        (size,) bool: the output is the input.
    units : ndarray
        (m,) places of the inputs that need lines.
    error : ndarray
        (size,) bound on the rounding errors of each input; times a coefficient, on those of its product with it.
    """

    low: Array
    high: Array
    outputs: Interval
    active: NDArray[np.bool_]
    units: Indices
    error: Array

    @property
    def magnitude(self) -> Array:
        """Largest magnitude of each output, (size, 1)."""
        low, high = self.outputs
        return np.maximum(np.abs(low), np.abs(high))[:, None]


@dataclass(frozen=True)
class LayerSlopes:
    """Slopes by which the bounds of some of a layer's inputs were proven.

    Attributes
    ----------
    places : ndarray
        (m,) places of the inputs.
    lower, upper : ndarray
        (M, m) uint8, slopes times 255 of the M units of earlier layers for the lower and for the upper bounds.
    """

    places: Indices
    lower: NDArray[np.uint8]
    upper: NDArray[np.uint8]


@dataclass
class _Inputs:
    # Bounds (size,) of an activation's inputs while they are narrowed; `splits` as the activation has it.

    low: Array
    high: Array
    splits: bool

    def __post_init__(self) -> None:
        self.intervals = self.low.copy(), self.high.copy()

    def in_need_of_lines(self) -> Indices:
        if self.splits:
            # Also where a bound has overflowed to NaN.
            return np.flatnonzero(~(self.low >= 0) & ~(self.high <= 0))
        # The output of a curve is not 0 where its input is constant.
        return np.arange(len(self.low))

    def narrow(self, places: Indices, bounds: tuple[Bound, Bound]) -> None:
        # From the intervals again: bounds of CROWN are dropped once slopes are optimised, because a certificate stores
        # one set of slopes for each input.
        interval_low, interval_high = self.intervals
        self.low[places] = np.fmax(interval_low[places], bounds[0].lower.numpy())
        self.high[places] = np.fmin(interval_high[places], -bounds[1].lower.numpy())

    def still_in_need(self, places: Indices, functions: Functions) -> tuple[Indices, Functions]:
        needed = np.isin(places, self.in_need_of_lines())
        return places[needed], functions.columns(torch.from_numpy(needed))


@dataclass(frozen=True)
class _UnitRows:
    # How the inputs of m units depend on pixels (m, d), and on the units of each earlier block (m, m').

    image: csr_array | Array
    units: tuple[Array, ...]
    constant: Array
    error: Array

    @classmethod
    def of(cls, functions: Functions) -> _UnitRows:
        units = tuple(coefficients.T.numpy() for coefficients in functions.units)
        return cls(functions.image.T.numpy(), units, functions.constant.numpy(), functions.error.numpy())


@dataclass
class Tightening:
    """Bounds layer by layer in one ball, as they are made.

    Attributes
    ----------
    network : LayeredNetwork
    ball : Ball
    states : list of LayerState
    relaxation : Relaxation
        Relaxation of the layers so far, float64.
    slopes : dict of int to LayerSlopes
        By layer, where slopes were optimised.
    evaluations : int
        Bounds of single functions that were computed.
    """

    network: LayeredNetwork
    ball: Ball
    states: list[LayerState] = field(default_factory=list)
    relaxation: Relaxation = field(init=False)
    slopes: dict[int, LayerSlopes] = field(default_factory=dict)
    evaluations: int = 0

    def __post_init__(self) -> None:
        """Start without layers."""
        self.relaxation = Relaxation((), self.ball.to_torch(torch.float64, CPU))

    def output_intervals(self) -> dict[int, Interval]:
        """Bounds of the pixels and of the outputs of the layers so far, by layer, as columns (size, 1)."""
        result = {IMAGE: (self.ball.low[:, None], self.ball.high[:, None])}
        for number, state in enumerate(self.states):
            low, high = state.outputs
            result[number] = (low[:, None], high[:, None])
        return result

    def output_magnitudes(self) -> dict[int, Array]:
        """Largest magnitudes of the pixels and of the outputs of the layers so far, by layer, as columns (size, 1)."""
        result = {IMAGE: self.ball.magnitude[:, None]}
        for number, state in enumerate(self.states):
            result[number] = state.magnitude
        return result

    def functions_of(self, values: AffineMap) -> Functions:
        """Values of an affine map of layers as functions of the pixels and of units whose inputs need lines.

        The output of a unit that is active in the whole ball is its input, and is replaced by what that depends on.
        """
        coefficients: dict[int, csr_array | Array] = dict(values.weights)
        constant = values.bias.copy()
        magnitudes = self.output_magnitudes()
        error = values.error(magnitudes)[:, 0]
        units = {}
        for number in reversed(range(len(self.states))):
            if number not in coefficients:
                continue
            state = self.states[number]
            outputs = coefficients.pop(number)
            # Products of matrices with few entries that are 0 are faster without their indices.
            if isinstance(outputs, csr_array) and outputs.nnz > MAX_DENSITY * np.prod(outputs.shape):
                outputs = outputs.toarray()
            units[number] = _columns(outputs[:, state.units])
            before = self.network.layers[number].before
            active = np.flatnonzero(state.active)
            input_coefficients = outputs[:, active]
            for source, matrix in before.weights.items():
                added = input_coefficients @ matrix[active]
                coefficients[source] = coefficients[source] + added if source in coefficients else added
                # Products that are too small for float64.
                error += TINY * (1 + magnitudes[source].sum())
            constant += input_coefficients @ before.bias[active]
            error += abs(input_coefficients) @ state.error[active]

        image = coefficients.get(IMAGE, np.zeros((values.size, len(self.ball.centre))))
        blocks = []
        for block in self.relaxation.blocks:
            empty = torch.zeros(len(block.places), values.size, dtype=torch.float64)
            blocks.append(units.get(block.layer, empty))
        return Functions(_columns(image), tuple(blocks), torch.from_numpy(constant), torch.from_numpy(error))

    def add_layer(self, steps: int) -> None:
        """Bound the inputs of the next layer: by intervals, by CROWN, and with slopes optimised in so many steps."""
        number = len(self.states)
        layer = self.network.layers[number]
        low, high = layer.before.interval(self.output_intervals())
        inputs = _Inputs(low[:, 0], high[:, 0], layer.activation.splits)
        places = inputs.in_need_of_lines()
        rows = layer.before.rows(places)
        if self.ball.norm == "linf" and set(rows.weights) == {IMAGE}:
            # Intervals are exact, and linear bounds would give the same.
            error = rows.error(self.output_magnitudes())[:, 0]
            unit_rows = _UnitRows(rows.weights[IMAGE], (), rows.bias, error)
            pairs = self._pairs(inputs, places, self.functions_of(rows)) if steps else Pairs.none()
            self._append(number, inputs, places, unit_rows, pairs)
            return
        functions = self.functions_of(rows)
        if len(places):
            branches = self.relaxation.branches(len(places))
            inputs.narrow(places, self._crown_bounds(functions, branches, branches))
            places, functions = inputs.still_in_need(places, functions)
        if len(places) and self.relaxation.unit_count and steps:
            inputs.narrow(places, self._optimised(number, places, functions, steps))
            places, functions = inputs.still_in_need(places, functions)
        pairs = self._pairs(inputs, places, functions) if steps else Pairs.none()
        self._append(number, inputs, places, _UnitRows.of(functions), pairs)

    def _pairs(self, inputs: _Inputs, places: Indices, functions: Functions) -> Pairs:
        # Pairs of a layer's ReLUs, whose inputs are never both near an end of their bounds. An input x is scaled to
        # u = (x - middle) / half_width in [-1, 1]; units i and j are paired where CROWN proves that
        # |u_i| + |u_j| = max(|u_i + u_j|, |u_i - u_j|) <= 2 - slack in the ball, for a slack above LEAST_SLACK. This is
        # an instance of relaxations of several neurons (Singh et al. 2019); `Pairs` says what bounds gain by it.
        if not inputs.splits or len(places) < 2:
            return Pairs.none()
        low, high = torch.from_numpy(inputs.low[places]), torch.from_numpy(inputs.high[places])
        scaled = self._scaled(functions, (low + high) / 2, (high - low) / 2)
        first, second = self._proposed_pairs(functions)

        largest_sum = torch.zeros(len(first), dtype=torch.float64)
        branches = self.relaxation.branches(len(first))
        if self.relaxation.unit_count:
            # Without earlier units, bounds take as little time as intervals, which do not count as evaluations either.
            self.evaluations += 4 * len(first)
        for sign in (1, -1):
            sums = _sums(scaled.columns(first), scaled.columns(second), sign)
            for function in (sums, negated(sums)):
                bound = self.relaxation.lower(function, branches, exact=True)
                largest_sum = torch.maximum(largest_sum, -bound.lower)

        slack = 2 - largest_sum - SLACK_ERROR
        chosen = slack > LEAST_SLACK
        # By how much the line above a ReLU exceeds it at the middle of its input's bounds.
        reach = torch.minimum(high, -low) / 2
        return Pairs(first[chosen], second[chosen], slack[chosen][:, None], reach[:, None])

    def _scaled(self, functions: Functions, middle: Tensor, half_width: Tensor) -> Functions:
        # The functions (x - middle) / half_width, with the rounding errors of this.
        ball = self.relaxation.ball
        terms = dot(torch.maximum(ball.low.abs(), ball.high.abs()), functions.image.abs())
        for block, coefficients in zip(self.relaxation.blocks, functions.units, strict=True):
            terms = terms + dot(block.output_magnitudes, coefficients.abs())
        error = functions.error + gamma(8) * (terms + functions.constant.abs() + middle.abs())
        return Functions(
            functions.image / half_width,
            tuple(coefficients / half_width for coefficients in functions.units),
            (functions.constant - middle) / half_width,
            error / half_width,
        )

    def _proposed_pairs(self, functions: Functions) -> tuple[Tensor, Tensor]:
        # Pairs of m functions, each with the PARTNERS others that are most similar to it: indices (P,) of the first and
        # of the second ones.
        ball = self.relaxation.ball
        # How far each pixel and each unit of earlier layers can move each function, (d + M, m).
        moves = [functions.image.abs() * (ball.high - ball.low) / 2]
        for block, coefficients in zip(self.relaxation.blocks, functions.units, strict=True):
            moves.append(coefficients.abs() * block.output_magnitudes / 2)
        directions = torch.cat(moves)
        directions = directions / directions.norm(dim=0)
        cosines = directions.T @ directions
        cosines.fill_diagonal_(0)

        partners = cosines.topk(min(PARTNERS, len(cosines) - 1), dim=1).indices
        units = torch.arange(len(cosines))[:, None].expand_as(partners)
        ordered = torch.minimum(units, partners), torch.maximum(units, partners)
        first, second = torch.unique(torch.stack(ordered).flatten(1), dim=1)
        return first, second

    def _crown_bounds(self, functions: Functions, lower: Branches, upper: Branches) -> tuple[Bound, Bound]:
        # Lower bounds of functions and of their negatives, each with its own slopes.
        self.evaluations += 2 * len(functions.constant)
        below = self.relaxation.lower(functions, lower, exact=True)
        return below, self.relaxation.lower(negated(functions), upper, exact=True)

    def _optimised(self, number: int, places: Indices, functions: Functions, steps: int) -> tuple[Bound, Bound]:
        fast = self.relaxation.to(torch.float32, CPU)
        slopes = []
        for side in (functions, negated(functions)):
            search = improved(fast, side.to(torch.float32, CPU), fast.branches(len(places)), steps=steps, rate=RATE)
            slopes.append(rounded(search.branches.slopes))
            self.evaluations += search.evaluations
        bounds = self._crown_bounds(functions, as_branches(slopes[0]), as_branches(slopes[1]))
        # A bound uses a unit's lower line only where the unit has a positive coefficient; the slopes of all others are
        # set to 0, so that a certificate is compressed better.
        used_slopes = []
        for side_slopes, bound in zip(slopes, bounds, strict=True):
            used_slopes.append((side_slopes * (torch.cat(bound.outputs) > 0)).numpy())
        self.slopes[number] = LayerSlopes(places, *used_slopes)
        return bounds

    def _append(self, number: int, inputs: _Inputs, units: Indices, rows: _UnitRows, pairs: Pairs) -> None:
        layer = self.network.layers[number]
        low, high = inputs.low, inputs.high
        state = LayerState(
            low=low,
            high=high,
            outputs=layer.activation.interval(low, high),
            active=(low >= 0) & inputs.splits,
            units=units,
            error=layer.before.error(self.output_magnitudes())[:, 0],
        )
        if len(units):
            self.relaxation = self.relaxation.with_block(self._block(number, state, rows, pairs))
        self.states.append(state)

    def _block(self, number: int, state: LayerState, rows: _UnitRows, pairs: Pairs) -> Block:
        units = state.units
        layer = self.network.layers[number]
        low, high = state.low[units], state.high[units]
        lines = layer.activation.lines(low, high)
        terms = abs(rows.image) @ self.ball.magnitude + np.abs(rows.constant) + TINY
        matrices = []
        for block, coefficients in zip(self.relaxation.blocks, rows.units, strict=False):
            output_magnitudes = block.output_magnitudes[:, 0].numpy()
            terms = terms + np.abs(coefficients) @ output_magnitudes
            matrices.append(Matrix.of(coefficients, torch.float64, CPU))
        # A layer that sees only the image has no units before it, wherever it stands.
        for block in self.relaxation.blocks[len(rows.units) :]:
            matrices.append(Matrix.of(csr_array((len(units), len(block.places))), torch.float64, CPU))
        return Block(
            layer=number,
            places=units,
            image=Matrix.of(rows.image, torch.float64, CPU),
            units=tuple(matrices),
            constant=_column(rows.constant),
            error=_column(rows.error),
            lower_slope=_column(lines.lower_slope),
            lower_intercept=_column(lines.lower_intercept),
            upper_slope=_column(lines.upper_slope),
            upper_intercept=_column(lines.upper_intercept),
            input_magnitudes=_column(np.maximum(np.abs(low), np.abs(high))),
            output_magnitudes=torch.from_numpy(state.magnitude[units]),
            term_magnitudes=_column(terms),
            splits=layer.activation.splits,
            pairs=pairs,
        )


def _columns(rows: csr_array | Array) -> Tensor:
    # Coefficients (n, m) of n functions as columns (m, n).
    dense = rows.T.toarray() if isinstance(rows, csr_array) else np.ascontiguousarray(rows.T)
    return torch.from_numpy(dense)


def _column(values: Array) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float64))[:, None]


def as_branches(slopes: Tensor) -> Branches:
    """The whole ball with slopes (M, n) uint8, in float64."""
    numbers = as_numbers(slopes)
    return Branches(numbers, torch.zeros_like(slopes, dtype=torch.int8), torch.zeros_like(numbers))


def _sums(first: Functions, second: Functions, sign: int) -> Functions:
    # Functions of the first ones plus, or minus, the second ones.
    units = tuple(one + sign * other for one, other in zip(first.units, second.units, strict=True))
    image, constant = first.image + sign * second.image, first.constant + sign * second.constant
    return Functions(image, units, constant, first.error + second.error)


def negated(functions: Functions) -> Functions:
    """The functions times -1."""
    units = tuple(-values for values in functions.units)
    return Functions(-functions.image, units, -functions.constant, functions.error)


def margins(network: LayeredNetwork, label: int, rivals: Indices) -> AffineMap:
    """z_label - z_j for some classes j, as a function of the layers."""
    matrix = np.zeros((len(rivals), network.classes))
    matrix[:, label] = 1
    matrix[np.arange(len(rivals)), rivals] = -1
    return network.logits.combined(csr_array(matrix))
