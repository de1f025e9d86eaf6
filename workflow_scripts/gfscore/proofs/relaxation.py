"""One image's network with its nonlinear units between two lines: linear bounds on what it computes in a ball.

Units whose inputs keep one sign in the ball are folded into the affine functions between the others, so that all that
follows carries the unstable units only.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, is_dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from gfscore.proofs.balls import TorchBall, dot
from gfscore.proofs.operators.declaration import Array
from gfscore.proofs.rounding import TINY, gamma

COLUMNS = 64
"""Functions that are bounded at once on a CPU, so that their coefficients stay in its cache."""

SPARSE = 0.2
"""Share of entries that are not 0, up to which a matrix is stored by its entries."""


@dataclass(frozen=True)
class Matrix:
    """A matrix (m, k) and its transpose, each dense or in compressed rows."""

    forward: Tensor
    backward: Tensor

    @classmethod
    def of(cls, values: csr_array | Array, dtype: torch.dtype, device: str) -> Matrix:
        """From numpy or scipy."""
        sparse = csr_array(values)
        if sparse.nnz > SPARSE * np.prod(sparse.shape):
            dense = torch.from_numpy(sparse.toarray()).to(device, dtype)
            return cls(dense, dense.T)
        return cls(_rows(sparse, dtype, device), _rows(csr_array(sparse.T), dtype, device))


def _rows(values: csr_array, dtype: torch.dtype, device: str) -> Tensor:
    starts = torch.from_numpy(values.indptr.astype(np.int64))
    places = torch.from_numpy(values.indices.astype(np.int64))
    data = torch.from_numpy(values.data).to(dtype)
    with warnings.catch_warnings():
        # That compressed rows are new in torch, and that their indices are not checked: scipy made them.
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
        return torch.sparse_csr_tensor(starts, places, data, size=values.shape, device=device)


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
        (n,): by how much they may differ from what they stand for anywhere in the ball.
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
class Block:
    """The m unstable units of one layer.

    Attributes
    ----------
    layer : int
        Number of the layer.
    places : ndarray
        (m,) their places among the layer's values.
    image : Matrix
        (m, d): their inputs by pixels.
    units : tuple of Matrix
        (m, m'): their inputs by the outputs of the units of each earlier block.
    constant, error : Tensor
        (m, 1), as of Functions.
    lower_slope, lower_intercept, upper_slope, upper_intercept : Tensor
        (m, 1), the lines around their outputs.
    sizes : Tensor
        (m, 1): largest magnitudes of their inputs.
    output_sizes : Tensor
        (m, 1): largest magnitudes of their outputs.
    terms : Tensor
        (m, 1): largest sums of the magnitudes of what their inputs are the sum of.
    splits : bool
        Whether branches may split on the signs of their inputs.
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
    sizes: Tensor
    output_sizes: Tensor
    terms: Tensor
    splits: bool


@dataclass(frozen=True)
class Branches:
    """n parts of the ball, each with slopes and multipliers, for all M units in the order of the blocks.

    Attributes
    ----------
    slopes : Tensor
        (M, n) in [0, 1], of the lines below units that can be split.
    signs : Tensor
        (M, n) int8: 1 where the unit's input is at least 0 in this part, -1 where it is at most 0, 0 without a split.
    multipliers : Tensor
        (M, n), at least 0, of the splits.
    """

    slopes: Tensor
    signs: Tensor
    multipliers: Tensor

    def columns(self, chosen: Tensor | slice) -> Branches:
        """Some of the parts."""
        return Branches(self.slopes[:, chosen], self.signs[:, chosen], self.multipliers[:, chosen])


@dataclass(frozen=True)
class Bound:
    """Lower bounds of n functions, and what they were made of.

    Attributes
    ----------
    lower : Tensor
        (n,).
    outputs : tuple of Tensor
        Coefficients (m, n) of the outputs of the units of each block, on the way back.
    image : Tensor
        Coefficients (d, n) of the pixels; empty for bounds with rounding errors, which none is searched from.
    """

    lower: Tensor
    outputs: tuple[Tensor, ...]
    image: Tensor


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
    def units(self) -> int:
        """Number M of units."""
        return sum(len(block.places) for block in self.blocks)

    def slices(self) -> list[slice]:
        """Places of each block among all units."""
        result = []
        start = 0
        for block in self.blocks:
            result.append(slice(start, start + len(block.places)))
            start += len(block.places)
        return result

    def branches(self, n: int) -> Branches:
        """The whole ball, n times, with the slopes of CROWN."""
        device, dtype = self.ball.low.device, self.ball.low.dtype
        slopes = torch.zeros(self.units, n, device=device, dtype=dtype)
        for block, places in zip(self.blocks, self.slices(), strict=True):
            slopes[places] = block.lower_slope
        signs = torch.zeros(self.units, n, device=device, dtype=torch.int8)
        return Branches(slopes, signs, torch.zeros_like(slopes))

    def lower(self, functions: Functions, branches: Branches, *, exact: bool) -> Bound:
        """Lower bounds of functions, each in its part of the ball.

        Parameters
        ----------
        functions : Functions
        branches : Branches
        exact : bool
            Whether rounding errors are subtracted, so that the bounds hold in real arithmetic. All numbers must then be
            float64.

        References
        ----------
        Zhang et al. 2018 (CROWN); Xu et al. 2021 (slopes); Wang et al. 2021 (multipliers of splits).
        """
        n = len(functions.constant)
        if self.ball.low.device.type == "cpu" and n > COLUMNS:
            bounds = []
            for start in range(0, n, COLUMNS):
                columns = slice(start, start + COLUMNS)
                bounds.append(self.lower(functions.columns(columns), branches.columns(columns), exact=exact))
            return _joined(bounds)
        outputs = list(functions.units)
        image, constant = functions.image, functions.constant
        error = functions.error
        roundings = gamma(self.units + functions.image.shape[0] + 4 * len(self.blocks) + 32)
        slices = self.slices()
        for index in reversed(range(len(outputs))):
            block = self.blocks[index]
            signs = branches.signs[slices[index]]
            multipliers = branches.multipliers[slices[index]]
            below = branches.slopes[slices[index]] if block.splits else block.lower_slope
            whole = signs == 0

            positive = outputs[index].clamp(min=0)
            negative = outputs[index].clamp(max=0)
            lines = positive * below + negative * block.upper_slope
            inputs = torch.where(whole, lines, outputs[index] * (signs > 0)) - multipliers * signs
            intercepts = torch.where(whole, positive * block.lower_intercept + negative * block.upper_intercept, 0)
            constant = constant + intercepts.sum(0) + dot(block.constant, inputs)
            image = image + block.image.backward @ inputs
            for earlier, matrix in enumerate(block.units):
                outputs[earlier] = outputs[earlier] + matrix.backward @ inputs

            if exact:
                sizes = inputs.abs()
                rounded = dot(block.terms, sizes) + dot(block.sizes, sizes + multipliers)
                rounded = rounded + intercepts.abs().sum(0) + dot(block.output_sizes, outputs[index].abs())
                error = error + dot(block.error, sizes) + roundings * rounded
        least = self.ball.least(image)
        lower = constant + least
        if exact:
            error = error + self.ball.error(image, roundings)
            error = error + roundings * (constant.abs() + least.abs() + functions.constant.abs())
            lower = lower - error * (1 + roundings) - TINY
            image = image[:0]
        return Bound(lower, tuple(outputs), image)

    def gradients(self, branches: Branches, bound: Bound) -> tuple[Tensor, Tensor, Tensor]:
        """How bounds change with slopes and multipliers, and how much each unit's lines lose, (M, n) each.

        The derivative by a coefficient is the value of what it multiplies at the point where the bound is attained.
        """
        slopes, multipliers, losses = [], [], []
        pixels = self.ball.lowest(bound.image)
        values: list[Tensor] = []
        slices = self.slices()
        for index in range(len(bound.outputs)):
            block = self.blocks[index]
            signs = branches.signs[slices[index]]
            below = branches.slopes[slices[index]] if block.splits else block.lower_slope
            inputs = block.image.forward @ pixels + block.constant
            for earlier, matrix in enumerate(block.units):
                inputs = inputs + matrix.forward @ values[earlier]

            whole = signs == 0
            positive = bound.outputs[index] > 0
            lower_line = below * inputs + block.lower_intercept
            upper_line = block.upper_slope * inputs + block.upper_intercept
            lines = torch.where(positive, lower_line, upper_line)
            values.append(torch.where(whole, lines, inputs * (signs > 0)))
            coefficients = bound.outputs[index].clamp(min=0) * (whole & block.splits)
            slopes.append(coefficients * inputs)
            multipliers.append(-signs * inputs)
            if block.splits:
                lost = bound.outputs[index] * (inputs.clamp(min=0) - lines) * whole
            else:
                lost = torch.zeros_like(inputs)
            losses.append(lost)
        return torch.cat(slopes), torch.cat(multipliers), torch.cat(losses)

    def with_block(self, block: Block) -> Relaxation:
        """With the units of a further layer."""
        return replace(self, blocks=(*self.blocks, block))

    def to(self, dtype: torch.dtype, device: str) -> Relaxation:
        """In another number type, in which its bounds are approximate."""
        return _converted(self, dtype, device)


def _joined(bounds: list[Bound]) -> Bound:
    blocks = zip(*[bound.outputs for bound in bounds], strict=True)
    return Bound(
        torch.cat([bound.lower for bound in bounds]),
        tuple(torch.cat(outputs, dim=1) for outputs in blocks),
        torch.cat([bound.image for bound in bounds], dim=1),
    )


T = TypeVar("T")


def _converted(value: T, dtype: torch.dtype, device: str) -> T:
    # A dataclass with its tensors in another number type, at any depth.
    if isinstance(value, Tensor):
        return value.to(device, dtype)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(_converted(member, dtype, device) for member in value)  # type: ignore[return-value]
    if not is_dataclass(value):
        return value
    changes = {name: _converted(member, dtype, device) for name, member in vars(value).items()}
    return replace(value, **changes)  # type: ignore[type-var]
