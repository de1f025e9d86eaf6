"""Linear relaxation of a network in the ball around an image: each nonlinear unit is bounded by two lines.

Units whose inputs keep one sign in the ball are affine and are folded into the affine functions between the others, so
that the relaxation consists of the unstable units only.

Terms: a *block* is the m unstable units of one layer; the *place* of a unit is its index among all values of its layer;
the M *units* are those of all blocks, one block after the other, and the index of a unit is its index among these.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from gfscore.proofs.balls import TorchBall, dot
from gfscore.proofs.operators.declaration import Array
from gfscore.proofs.rounding import TINY, gamma

FUNCTIONS_AT_ONCE = 256
"""Number of functions that are bounded at once on a CPU, so that their coefficients fit into its cache."""

MAX_DENSITY = 0.2
"""Largest share of nonzero entries with which a matrix is stored as sparse."""

LEAST_WEIGHT = 1e-30
"""Smaller sums of weights are replaced by it, so that none is divided by 0."""

SHARE_ERROR = 1e-9
"""Bound on the relative rounding errors of sums over pairs in float64."""


@dataclass(frozen=True)
class Matrix:
    """A matrix (m, k) and its transpose, each dense or in compressed rows."""

    forward: Tensor
    backward: Tensor

    @classmethod
    def of(cls, values: csr_array | Array, dtype: torch.dtype, device: str) -> Matrix:
        """From numpy or scipy."""
        entries = values.nnz if isinstance(values, csr_array) else np.count_nonzero(values)
        if entries > MAX_DENSITY * np.prod(values.shape):
            full = values.toarray() if isinstance(values, csr_array) else np.ascontiguousarray(values)
            dense = torch.from_numpy(full).to(device, dtype)
            return cls(dense, dense.T)
        sparse = csr_array(values)
        return cls(_rows(sparse, dtype, device), _rows(csr_array(sparse.T), dtype, device))


def _rows(values: csr_array, dtype: torch.dtype, device: str) -> Tensor:
    row_starts = torch.from_numpy(values.indptr.astype(np.int64))
    columns = torch.from_numpy(values.indices.astype(np.int64))
    data = torch.from_numpy(values.data).to(dtype)
    with warnings.catch_warnings():
        # Torch warns that compressed rows are in beta, and that it does not check their indices, which are scipy's.
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(row_starts, columns, data, size=values.shape, device=device)


@dataclass(frozen=True)
class Functions:
    """n linear functions of pixels and of the outputs of units.

    Attributes
    ----------
    image : Tensor
        Coefficients (d, n) of the pixels.
    units : tuple of Tensor
        Coefficients (m, n) of the outputs of the m units of each block.
    constant : Tensor
        (n,).
    error : Tensor
        (n,): bounds, over the ball, on their differences from the functions of the network that they represent.
    """

    image: Tensor
    units: tuple[Tensor, ...]
    constant: Tensor
    error: Tensor

    def to(self, dtype: torch.dtype, device: str) -> Functions:
        """In another number type."""
        return _converted(self, dtype, device)

    def columns(self, chosen: Tensor | slice) -> Functions:
        """Some of the functions."""
        units = tuple(values[:, chosen] for values in self.units)
        return Functions(self.image[:, chosen], units, self.constant[chosen], self.error[chosen])


@dataclass(frozen=True)
class Pairs:
    """P pairs of a block's m units whose inputs are nowhere in the ball both at an end of their bounds.

    For an input z between l and h, with the middle c and half the width w, the line above exceeds the unit by at least
    reach * (1 - |z - c| / w). In a pair, |z - c| / w of both units add up to at most 2 - slack anywhere in the ball, so
    at every point at least one of the lines lies above its unit.

    Attributes
    ----------
    first, second : Tensor
        (P,) indices of the units in the block.
    slack : Tensor
        (P, 1), above 0.
    reach : Tensor
        (m, 1), for each unit the excess of its line at the middle c that is proven at least.
    """

    first: Tensor
    second: Tensor
    slack: Tensor
    reach: Tensor

    @classmethod
    def none(cls) -> Pairs:
        """No pairs."""
        indices, numbers = torch.zeros(0, dtype=torch.int64), torch.zeros(0, 1, dtype=torch.float64)
        return cls(indices, indices, numbers, numbers)

    def gains(self, outputs: Tensor, signs: Tensor) -> tuple[Tensor, Tensor]:
        """Amounts by which pairs raise n lower bounds.

        A bound supposes that every line above touches its unit, which the two units of a pair do at no common point.

        Parameters
        ----------
        outputs : Tensor
            Coefficients (m, n) of the units' outputs; lines above stand for those that are negative.
        signs : Tensor
            (m, n), 0 where a unit is not split.

        Returns
        -------
        gains : Tensor
            (n,).
        by_unit : Tensor
            (m, n), or (1, n) without pairs: gain per magnitude of each unit's coefficient.
        """
        if not len(self.first):
            return outputs.new_zeros(outputs.shape[1]), outputs.new_zeros(1, outputs.shape[1])
        sizes = (-outputs).clamp_(min=0).mul_(self.reach).mul_(signs == 0)
        first, second = sizes[self.first], sizes[self.second]
        # A unit is divided among its pairs; a share of it that counts in one of them counts in no other.
        weights = torch.minimum(first, second).mul_(self.slack).square_()
        totals = self._sums_by_unit(sizes, weights, weights).clamp_(min=LEAST_WEIGHT)
        first_shares, second_shares = weights / totals[self.first], weights / totals[self.second]
        first, second = first.mul_(first_shares), second.mul_(second_shares)
        gains = dot(self.slack, torch.minimum(first, second)) * (1 - SHARE_ERROR)
        smaller = first <= second
        first_parts, second_parts = self.slack * first_shares * smaller, self.slack * second_shares * ~smaller
        return gains, self._sums_by_unit(sizes, first_parts, second_parts).mul_(self.reach)

    def _sums_by_unit(self, like: Tensor, of_first: Tensor, of_second: Tensor) -> Tensor:
        # Sums by unit of what its pairs have for it.
        return torch.zeros_like(like).index_add_(0, self.first, of_first).index_add_(0, self.second, of_second)


@dataclass(frozen=True)
class Block:
    """The m unstable units of one layer.

    Attributes
    ----------
    layer : int
        Number of the layer.
    places : ndarray
        (m,) indices of the units among the layer's values.
    image : Matrix
        (m, d): their inputs by pixels.
    units : tuple of Matrix
        (m, m'): their inputs by the outputs of the units of each earlier block.
    constant, error : Tensor
        (m, 1), see Functions.
    lower_slope, lower_intercept, upper_slope, upper_intercept : Tensor
        (m, 1), the lines around their outputs.
    input_magnitudes : Tensor
        (m, 1): bounds on the magnitudes of their inputs.
    output_magnitudes : Tensor
        (m, 1): bounds on the magnitudes of their outputs.
    term_magnitudes : Tensor
        (m, 1): bounds on the sums of the magnitudes of the terms that their inputs are sums of.
    splits : bool
        Whether branches may split on the signs of their inputs.
    pairs : Pairs
    """

    layer: int
    places: np.ndarray
    image: Matrix
    units: tuple[Matrix, ...]
    constant: Tensor
    error: Tensor
    lower_slope: Tensor
    lower_intercept: Tensor
    upper_slope: Tensor
    upper_intercept: Tensor
    input_magnitudes: Tensor
    output_magnitudes: Tensor
    term_magnitudes: Tensor
    splits: bool
    pairs: Pairs


@dataclass(frozen=True)
class Branches:
    """n parts of the ball, each with slopes and multipliers, for all M units in the order of the blocks.

    Attributes
    ----------
    slopes : Tensor
        (M, n) in [0, 1], of the lines below units that can be split; of split ones 1 or 0, as their signs say.
    signs : Tensor
        (M, n) int8: 1 where the unit's input is at least 0 in this part, -1 where it is at most 0, 0 without a split.
    multipliers : Tensor
        (M, n), of the splits, times their signs; 0 without a split.
    """

    slopes: Tensor
    signs: Tensor
    multipliers: Tensor

    def columns(self, chosen: Tensor | slice) -> Branches:
        """Some of the parts."""
        return Branches(self.slopes[:, chosen], self.signs[:, chosen], self.multipliers[:, chosen])

    @classmethod
    def joined(cls, groups: Sequence[Branches]) -> Branches:
        """The parts of several groups, one group after the other."""
        return cls(
            torch.cat([group.slopes for group in groups], dim=1),
            torch.cat([group.signs for group in groups], dim=1),
            torch.cat([group.multipliers for group in groups], dim=1),
        )


@dataclass(frozen=True)
class UpperLines:
    """Slopes and intercepts of the lines above the m units of a block, (m, n), or (m, 1) where all parts share them."""

    slopes: Tensor
    intercepts: Tensor


@dataclass(frozen=True)
class Bound:
    """Lower bounds of n functions, with the quantities of the backward pass that gradients need.

    Attributes
    ----------
    lower : Tensor
        (n,).
    outputs : tuple of Tensor
        Coefficients (m, n) of the outputs of the units of each block, once those of later blocks are replaced.
    slopes : tuple of Tensor
        (m, n), slopes of the lines that replaced the units.
    gains : tuple of Tensor
        (m, n) or (1, n), by how much lines above are lower by the pairs of a unit.
    image : Tensor
        Coefficients (d, n) of the pixels; empty for exact bounds, which are not optimised.
    """

    lower: Tensor
    outputs: tuple[Tensor, ...]
    slopes: tuple[Tensor, ...]
    gains: tuple[Tensor, ...]
    image: Tensor


@dataclass(frozen=True)
class Gradients:
    """How bounds change with slopes and multipliers, and what a split at each unit may gain, (M, n) each."""

    slopes: Tensor
    multipliers: Tensor
    gains: Tensor


@dataclass(frozen=True)
class Relaxation:
    """Unstable units of a network in a ball, block by block.

    Attributes
    ----------
    blocks : tuple of Block
    ball : TorchBall
    """

    blocks: tuple[Block, ...]
    ball: TorchBall

    @property
    def unit_count(self) -> int:
        """Number M of unstable units."""
        return sum(len(block.places) for block in self.blocks)

    def slices(self) -> list[slice]:
        """Indices of each block's units among all M units."""
        result = []
        start = 0
        for block in self.blocks:
            result.append(slice(start, start + len(block.places)))
            start += len(block.places)
        return result

    def branches(self, n: int) -> Branches:
        """The whole ball, n times, with the slopes of CROWN."""
        device, dtype = self.ball.low.device, self.ball.low.dtype
        slopes = torch.zeros(self.unit_count, n, device=device, dtype=dtype)
        for block, units in zip(self.blocks, self.slices(), strict=True):
            slopes[units] = block.lower_slope
        signs = torch.zeros(self.unit_count, n, device=device, dtype=torch.int8)
        return Branches(slopes, signs, torch.zeros_like(slopes))

    def upper_lines(self, branches: Branches) -> list[UpperLines]:
        """Lines above the units of each block: through both ends, and where a part is split the unit itself."""
        result = []
        for block, units in zip(self.blocks, self.slices(), strict=True):
            whole = branches.signs[units] == 0
            if bool(whole.all()):
                result.append(UpperLines(block.upper_slope, block.upper_intercept))
                continue
            slopes = torch.where(whole, block.upper_slope, branches.slopes[units])
            result.append(UpperLines(slopes, block.upper_intercept * whole))
        return result

    def lower(
        self, functions: Functions, branches: Branches, *, exact: bool, upper_lines: list[UpperLines] | None = None
    ) -> Bound:
        """Lower bounds of functions, each in its part of the ball.

        Parameters
        ----------
        functions : Functions
        branches : Branches
        exact : bool
            Whether rounding errors are subtracted, so that the bounds hold in real arithmetic. All numbers must then be
            float64.
        upper_lines : list of UpperLines, optional
            `self.upper_lines(branches)`, if the caller has it.

        References
        ----------
        Zhang et al. 2018 (CROWN); Xu et al. 2021 (slopes); Wang et al. 2021 (multipliers of splits).
        """
        pieces = column_slices(len(functions.constant), self.ball.low.device)
        if len(pieces) > 1:
            bounds = []
            for columns in pieces:
                bounds.append(self.lower(functions.columns(columns), branches.columns(columns), exact=exact))
            return _joined(bounds)
        if upper_lines is None:
            upper_lines = self.upper_lines(branches)
        return self._lower_of_piece(functions, branches, upper_lines, exact=exact)

    def _lower_of_piece(
        self, functions: Functions, branches: Branches, upper_lines: list[UpperLines], *, exact: bool
    ) -> Bound:
        # From the last block to the first: each unit is replaced by the line that makes the functions smallest, and so
        # by its inputs, until only pixels are left.
        outputs = [coefficients.clone() for coefficients in functions.units]
        image, constant = functions.image.clone(), functions.constant
        error = functions.error
        roundings = gamma(self.unit_count + functions.image.shape[0] + 4 * len(self.blocks) + 32)
        slices = self.slices()
        line_slopes, pair_gains = [], []
        for index in reversed(range(len(outputs))):
            block = self.blocks[index]
            multipliers = branches.multipliers[slices[index]]
            below = branches.slopes[slices[index]] if block.splits else block.lower_slope

            slopes = torch.where(outputs[index] > 0, below, upper_lines[index].slopes)
            line_slopes.append(slopes)
            inputs = outputs[index] * slopes - multipliers
            summands = _weighted_sum(upper_lines[index].intercepts, outputs[index].clamp(max=0))
            if not block.splits:
                summands = summands + dot(block.lower_intercept, outputs[index].clamp(min=0))
            gains, gains_by_unit = block.pairs.gains(outputs[index], branches.signs[slices[index]])
            pair_gains.append(gains_by_unit)
            constant = constant + summands + gains + dot(block.constant, inputs)
            image.addmm_(block.image.backward, inputs)
            for earlier, matrix in enumerate(block.units):
                outputs[earlier].addmm_(matrix.backward, inputs)

            if exact:
                error = _with_roundings(error, block, outputs[index], inputs, multipliers, roundings=roundings)
        minimum = self.ball.minimum(image)
        lower = constant + minimum
        if exact:
            error = error + self.ball.rounding_error(image, roundings)
            error = error + roundings * (constant.abs() + minimum.abs() + functions.constant.abs())
            lower = lower - error * (1 + roundings) - TINY * (1 + len(image))
            image = image[:0]
        return Bound(lower, tuple(outputs), tuple(reversed(line_slopes)), tuple(reversed(pair_gains)), image)

    def gradients(self, bound: Bound, upper_lines: list[UpperLines], *, gains: bool) -> Gradients:
        """Derivatives of bounds, and where asked for the gains of splits.

        The derivative by a coefficient is the value of what it multiplies at the point where the bound is attained.
        There a split replaces a unit's line by the unit's input in one part and by 0 in the other: its gain is by how
        much both bounds together rise at that point.
        """
        slope_gradients, multiplier_gradients, split_gains = [], [], []
        pixels = self.ball.minimiser(bound.image)
        values: list[Tensor] = []
        for index, outputs in enumerate(bound.outputs):
            block = self.blocks[index]
            inputs = torch.addmm(block.constant, block.image.forward, pixels)
            for earlier, matrix in enumerate(block.units):
                inputs.addmm_(matrix.forward, values[earlier])

            positive = outputs.clamp(min=0)
            lines = torch.where(outputs > 0, block.lower_intercept, upper_lines[index].intercepts - bound.gains[index])
            lines = lines.addcmul_(bound.slopes[index], inputs)
            values.append(lines)
            slope_gradients.append(positive * inputs)
            multiplier_gradients.append(-inputs)
            if gains:
                active, inactive = outputs * (inputs - lines), -outputs * lines
                split_gains.append(active.clamp(min=0) + inactive.clamp(min=0))
        empty = bound.image[:0]
        return Gradients(
            torch.cat([empty, *slope_gradients]),
            torch.cat([empty, *multiplier_gradients]),
            torch.cat([empty, *split_gains]),
        )

    def with_block(self, block: Block) -> Relaxation:
        """With the units of a further layer."""
        return replace(self, blocks=(*self.blocks, block))

    def to(self, dtype: torch.dtype, device: str) -> Relaxation:
        """In another number type, in which its bounds are approximate."""
        return _converted(self, dtype, device)


def column_slices(n: int, device: torch.device) -> list[slice]:
    """Columns of n functions that are bounded at once on a device, in pieces of about the same size."""
    count = -(-n // FUNCTIONS_AT_ONCE) if device.type == "cpu" else 1
    ends = np.linspace(0, n, max(count, 1) + 1).astype(int).tolist()
    return [slice(start, end) for start, end in pairwise(ends)]


def _with_roundings(
    error: Tensor, block: Block, outputs: Tensor, inputs: Tensor, multipliers: Tensor, *, roundings: float
) -> Tensor:
    # Error (n,) with the rounding errors of replacing a block's units: coefficients (m, n) of their outputs, of their
    # inputs, and of their splits.
    sizes = inputs.abs()
    intercepts = block.upper_intercept.abs() + block.lower_intercept.abs()
    rounded = dot(block.term_magnitudes + block.input_magnitudes, sizes)
    rounded = rounded + dot(block.input_magnitudes, multipliers.abs())
    rounded = rounded + dot(block.output_magnitudes + intercepts, outputs.abs())
    # Coefficients that are too small for float64.
    underflow = TINY * (block.input_magnitudes + block.output_magnitudes).sum()
    return error + dot(block.error, sizes) + roundings * rounded + underflow


def _weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    # Sums (n,) of each column of `values` with weights (m, n) or, for all columns, (m, 1).
    if weights.shape[1] == 1:
        return dot(weights, values)
    return (weights * values).sum(0)


def _joined(bounds: list[Bound]) -> Bound:
    blocks = zip(*[bound.outputs for bound in bounds], strict=True)
    return Bound(
        torch.cat([bound.lower for bound in bounds]),
        tuple(torch.cat(outputs, dim=1) for outputs in blocks),
        tuple(torch.cat(slopes, dim=1) for slopes in zip(*[bound.slopes for bound in bounds], strict=True)),
        tuple(torch.cat(gains, dim=1) for gains in zip(*[bound.gains for bound in bounds], strict=True)),
        torch.cat([bound.image for bound in bounds], dim=1),
    )


T = TypeVar("T")


def _converted(value: T, dtype: torch.dtype, device: str) -> T:
    # A dataclass with its tensors in another number type, at any depth; indices stay integers.
    if isinstance(value, Tensor):
        return value.to(device, dtype if value.is_floating_point() else value.dtype)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(_converted(member, dtype, device) for member in value)  # type: ignore[return-value]
    if not is_dataclass(value):
        return value
    changes = {name: _converted(member, dtype, device) for name, member in vars(value).items()}
    return replace(value, **changes)  # type: ignore[type-var]
