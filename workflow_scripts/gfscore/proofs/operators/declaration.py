"""What an operator declares so that bounds can be propagated through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from gfscore.core.errors import InputError

Shape = tuple[int, ...]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plain:
    """An operator as names and numbers, for digests and for the checker.

    Attributes
    ----------
    kind : str
        Name of the formula.
    arrays : dict of str to ndarray
        Weights and indices.
    numbers : dict of str to list of int
        Strides and the like.
    """

    kind: str
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    numbers: dict[str, list[int]] = field(default_factory=dict)


class Affine(ABC):
    """An affine function y = W x + b of one or several tensors.

    Attributes
    ----------
    bias : Tensor or None
        b, float64, of the shape of the output or broadcast to it.
    """

    bias: Tensor | None

    @property
    @abstractmethod
    def operations(self) -> int:
        """Most roundings behind an entry of W or b, or of a product with the transpose of W."""

    @abstractmethod
    def forward(self, *inputs: Tensor) -> Tensor:
        """Values of the output."""

    @abstractmethod
    def transpose(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Coefficients of each input for coefficients (R, ...) of the output."""

    @abstractmethod
    def absolute(self) -> Affine:
        """The operator with the magnitudes of W and b."""

    @abstractmethod
    def plain(self) -> Plain:
        """The operator as names and numbers."""


@dataclass(frozen=True)
class Lines:
    """Two lines around an activation, for each of n inputs z between two bounds.

    Attributes
    ----------
    lower_slope, lower_intercept, upper_slope, upper_intercept : ndarray
        (n,) float64, of lines below and above the function for all z between the bounds, in real arithmetic.
    """

    lower_slope: Array
    lower_intercept: Array
    upper_slope: Array
    upper_intercept: Array


class Activation(ABC):
    """A non-decreasing function of one number, applied to each entry of a tensor.

    Attributes
    ----------
    splits : bool
        Whether it is piecewise linear with slopes 0 below 0 and 1 above: branches may split on the sign of its input,
        and the slope of its lower line may be any number from 0 to 1.
    """

    splits: bool

    @abstractmethod
    def forward(self, values: Tensor) -> Tensor:
        """Values of the output."""

    @abstractmethod
    def interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bounds of the output, rounded outward, for inputs between two bounds."""

    @abstractmethod
    def lines(self, low: Array, high: Array) -> Lines:
        """Two lines around the function for inputs between two bounds."""

    @abstractmethod
    def plain(self) -> Plain:
        """The operator as names and numbers."""


Operator = Affine | Activation


@dataclass(frozen=True)
class Symbol:
    """A tensor of a graph: its node, and its shape for a batch of one image."""

    node: int
    shape: Shape


@dataclass(frozen=True)
class Node:
    """An operator applied to the tensors of earlier nodes; the first node is the image, without an operator."""

    operator: Operator | None
    inputs: tuple[int, ...]
    shape: Shape


@dataclass(frozen=True)
class Call:
    """A call of an operator of torch.

    Attributes
    ----------
    name : str
        Of the operator.
    arguments : dict
        Argument -> value: a Symbol for a tensor that depends on the image, else what torch takes.
    shape : tuple of int
        Of the output, or the first one.
    run : callable
        The operator itself, for tensors in place of symbols.
    """

    name: str
    arguments: dict[str, Any]
    shape: Shape
    run: Callable[..., Any]

    def symbol(self, argument: str) -> Symbol:
        """An argument that depends on the image."""
        value = self.arguments[argument]
        if not isinstance(value, Symbol):
            raise self.refusal(f"its {argument} does not depend on the image")
        return value

    def image(self, argument: str) -> Symbol:
        """An argument that depends on the image, and holds features of it alone, (1, C, H, W)."""
        value = self.symbol(argument)
        # A network with a fixed batch size fills the batch up.
        self.require(value.shape[0] == 1, f"on {value.shape[0]} images at a time; make the network take any number")
        return value

    def constant(self, argument: str) -> Any:
        """An argument that does not depend on the image."""
        value = self.arguments[argument]
        if isinstance(value, Symbol):
            raise self.refusal(f"its {argument} depends on the image")
        return value

    def pair(self, argument: str) -> tuple[int, int]:
        """An argument for rows and columns, which may be one number for both."""
        value = self.arguments[argument]
        values = [value] if isinstance(value, int) else list(value)
        return values[0], values[-1]

    def require(self, condition: bool, words: str) -> None:
        """Raise InputError unless a condition holds that bounds of this operator need."""
        if not condition:
            raise self.refusal(words)

    def refusal(self, words: str) -> InputError:
        """InputError for a call without bounds."""
        return InputError(f"there are no bounds for the operator {self.name} as this network calls it: {words}")


@dataclass
class Builder:
    """Nodes of a graph while it is read."""

    nodes: list[Node]

    def add(self, operator: Operator, inputs: list[Symbol], shape: Shape) -> Symbol:
        """Append a node."""
        indices = tuple(symbol.node for symbol in inputs)
        self.nodes.append(Node(operator, indices, tuple(shape)))
        return Symbol(len(self.nodes) - 1, tuple(shape))


@dataclass(frozen=True)
class Reader:
    """How an operator of torch is read.

    Attributes
    ----------
    read : callable
        From a Builder and a Call to the output's Symbol, to a list of them for several outputs, or to a tensor where
        the output does not depend on the image.
    example : callable
        Makes a network of images (2, 4, 4) that calls the operator, for tests.
    """

    read: Callable[[Builder, Call], Symbol | list[Symbol] | Tensor]
    example: Callable[[], nn.Module]
