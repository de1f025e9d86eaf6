"""Branch and bound: a ball is split by the signs of units until the margins of every part are proven."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfscore.proofs.relaxation import Branches, Functions, Relaxation
from gfscore.proofs.slopes import as_numbers, improved, rounded

POINTS = 16
"""Parts of a round at whose lowest points the network is evaluated."""

CANDIDATES = 12
"""Units whose split is tried before one is chosen."""

STEPS = 5
"""Steps by which slopes and multipliers of a new part are optimised, from those of the part that was split."""

LAST_STEPS = 200
"""Steps for parts in which nothing is left to split."""

RATE = 0.1
"""Step size of slopes; multipliers have half of it."""


@dataclass(frozen=True)
class Leaf:
    """A part of the ball in which a margin is proven.

    Attributes
    ----------
    slopes : ndarray
        (M,) uint8, times 255.
    multipliers : ndarray
        float32, at least 0, one for each split on the way from the whole ball.
    lower : float
        Lower bound of the margin in real arithmetic.
    """

    slopes: NDArray[np.uint8]
    multipliers: NDArray[np.float32]
    lower: float


@dataclass
class Tree:
    """How the ball was split for one margin; the node 0 is the whole ball.

    Attributes
    ----------
    rival : int
        The other class.
    units : list of int
        By node the unit that splits it, -1 for a leaf.
    children : list of int
        By node the first child, whose part has the unit's input at least 0; the second one follows it; -1 for a leaf.
    parents : list of int
        By node.
    leaves : dict of int to Leaf
        By node.
    """

    rival: int
    units: list[int] = field(default_factory=lambda: [-1])
    children: list[int] = field(default_factory=lambda: [-1])
    parents: list[int] = field(default_factory=lambda: [-1])
    leaves: dict[int, Leaf] = field(default_factory=dict)

    def split(self, node: int, unit: int) -> int:
        """Split a node, and return its first child."""
        first = len(self.units)
        self.units[node] = unit
        self.children[node] = first
        for table in (self.units, self.children):
            table.extend([-1, -1])
        self.parents.extend([node, node])
        return first

    def path(self, node: int) -> tuple[list[int], list[int]]:
        """Units and signs of the splits on the way to a node."""
        units: list[int] = []
        signs: list[int] = []
        while node:
            parent = self.parents[node]
            units.append(self.units[parent])
            signs.append(1 if node == self.children[parent] else -1)
            node = parent
        return units[::-1], signs[::-1]

    @property
    def complete(self) -> bool:
        """Whether every part without a split is proven."""
        return self.units.count(-1) == len(self.leaves)


@dataclass(frozen=True)
class OpenParts:
    """Parts of the ball that are not proven.

    Attributes
    ----------
    lower : Tensor
        (n,) their bounds.
    functions : Tensor
        (n,) the margin of each, by its place among the functions.
    nodes : Tensor
        (n,) their nodes in the tree of that margin.
    branches : Branches
    candidates : Tensor
        (CANDIDATES, n) units that may be split.
    """

    lower: Tensor
    functions: Tensor
    nodes: Tensor
    branches: Branches
    candidates: Tensor

    def columns(self, chosen: Tensor | slice) -> OpenParts:
        """Some of the parts."""
        return OpenParts(
            self.lower[chosen],
            self.functions[chosen],
            self.nodes[chosen],
            self.branches.columns(chosen),
            self.candidates[:, chosen],
        )

    def joined(self, other: OpenParts) -> OpenParts:
        """These parts and others."""
        return OpenParts(
            torch.cat([self.lower, other.lower]),
            torch.cat([self.functions, other.functions]),
            torch.cat([self.nodes, other.nodes]),
            Branches.joined([self.branches, other.branches]),
            torch.cat([self.candidates, other.candidates], dim=1),
        )


@dataclass
class BranchAndBound:
    """The search in one ball.

    Attributes
    ----------
    relaxation, exact : Relaxation
        In float32 for the search, and in float64 for proofs, on one device.
    functions, exact_functions : Functions
        The margins in both.
    trees : list of Tree
        One per margin.
    batch : int
        Parts that are split at once.
    smallest_margins : callable
        From pixels (n, d) to the network's smallest margin at each (n,).
    lower : ndarray
        (n,) float64: the smallest bound of the leaves of each margin.
    evaluations : int
        Bounds of single functions that were computed.
    counterexample : Tensor or None
        Pixels (d,) of the ball with a margin that is not positive in float32, which end the search.
    """

    relaxation: Relaxation
    exact: Relaxation
    functions: Functions
    exact_functions: Functions
    trees: list[Tree]
    batch: int
    smallest_margins: Callable[[Tensor], Tensor]
    lower: NDArray[np.float64] = field(init=False)
    evaluations: int = 0
    counterexample: Tensor | None = None

    def __post_init__(self) -> None:
        """Start without leaves."""
        self.lower = np.full(len(self.trees), np.inf)

    def run(self, branches: Branches, lower: Tensor, gains: Tensor, budget: int) -> None:
        """Split the whole ball for every margin until all parts are proven, one is refuted or the budget is used up.

        Parameters
        ----------
        branches, lower, gains
            Slopes, bounds and gains of splits of the margins in the whole ball.
        budget : int
            Bounds that may be evaluated.
        """
        places = torch.arange(len(self.trees), device=lower.device)
        parts = OpenParts(lower, places, torch.zeros_like(places), branches, self._candidates(branches, gains))
        # The search may have found bounds that are positive.
        waiting = [parts.columns(self._unproven(parts))]
        while waiting and self.evaluations < budget:
            batch = self._next(waiting)
            if not len(batch.lower):
                continue
            self._look_for_counterexample(batch)
            if self.counterexample is not None:
                return
            whole = self._splittable(batch.branches).any(0)
            if not bool(whole.all()):
                if len(self._polished(batch.columns(~whole)).lower):
                    return
                batch = batch.columns(whole)
            waiting.append(self._children(batch))

    def _next(self, waiting: list[OpenParts]) -> OpenParts:
        # Parts that were made last come first: which parts a proof needs does not depend on the order, and so few wait.
        parts = waiting.pop()
        while waiting and len(parts.lower) < self.batch:
            parts = parts.joined(waiting.pop())
        if len(parts.lower) > self.batch:
            waiting.append(parts.columns(slice(self.batch, None)))
            parts = parts.columns(slice(self.batch))
        return parts.columns(torch.argsort(parts.lower, stable=True))

    def _polished(self, parts: OpenParts) -> OpenParts:
        # Parts in which nothing is left to split: their bounds are as good as slopes and multipliers are.
        functions = self.functions.columns(parts.functions)
        search = improved(self.relaxation, functions, parts.branches, steps=LAST_STEPS, rate=RATE)
        self.evaluations += search.evaluations
        parts = replace(parts, lower=search.lower, branches=search.branches)
        self._look_for_counterexample(parts, descent=True)
        return parts.columns(self._unproven(parts))

    def _look_for_counterexample(self, parts: OpenParts, *, descent: bool = False) -> None:
        # Where a linear bound is least, the network itself may be wrong, or not far from there.
        worst = slice(0, POINTS)
        functions = self.functions.columns(parts.functions[worst])
        bound = self.relaxation.lower(functions, parts.branches.columns(worst), exact=False)
        self.evaluations += len(bound.lower)
        pixels = self.relaxation.ball.lowest(bound.image).T
        if descent and self.relaxation.ball.norm == "linf":
            pixels = self._descended(pixels)
        margins = self.smallest_margins(pixels)
        lowest = int(margins.argmin())
        if float(margins[lowest]) <= 0:
            self.counterexample = pixels[lowest]

    def _descended(self, pixels: Tensor) -> Tensor:
        # The pixels (n, d) of smallest margin on a descent in the box, with steps that become shorter.
        low, high = self.relaxation.ball.low.T, self.relaxation.ball.high.T
        best = pixels
        smallest = self.smallest_margins(pixels)
        for step in range(LAST_STEPS):
            points = pixels.requires_grad_()
            margins = self.smallest_margins(points)
            better = margins.detach() < smallest
            best = torch.where(better[:, None], points.detach(), best)
            smallest = torch.where(better, margins.detach(), smallest)
            (gradient,) = torch.autograd.grad(margins.sum(), points)
            share = 0.25 * (1 - step / LAST_STEPS)
            pixels = (points.detach() - share * (high - low) * gradient.sign()).clamp(low, high)
        return best.detach()

    def _splittable(self, branches: Branches) -> Tensor:
        splits = torch.zeros(len(branches.slopes), 1, dtype=torch.bool, device=branches.slopes.device)
        for block, places in zip(self.relaxation.blocks, self.relaxation.slices(), strict=True):
            splits[places] = block.splits
        return splits & (branches.signs == 0)

    def _candidates(self, branches: Branches, gains: Tensor) -> Tensor:
        # Units whose split gains most where the bound is attained.
        scores = torch.where(self._splittable(branches), gains, -torch.inf)
        count = min(CANDIDATES, len(scores))
        return scores.topk(count, dim=0).indices

    def _children(self, parts: OpenParts) -> OpenParts:
        # Parts that are split at the candidate with the best bounds, as far as these are not proven.
        units, lower = self._chosen(parts)
        nodes = []
        for function, node, unit in zip(parts.functions.tolist(), parts.nodes.tolist(), units.tolist(), strict=True):
            nodes.append(self.trees[function].split(node, unit))
        first = torch.tensor(nodes, dtype=parts.nodes.dtype, device=units.device)
        children = OpenParts(
            lower=lower,
            functions=parts.functions.repeat(2),
            nodes=torch.cat([first, first + 1]),
            branches=_split(parts.branches, units),
            candidates=parts.candidates.repeat(1, 2),
        )
        children = children.columns(self._unproven(children))
        if not len(children.lower):
            return children
        functions = self.functions.columns(children.functions)
        search = improved(self.relaxation, functions, children.branches, steps=STEPS, rate=RATE)
        self.evaluations += search.evaluations
        candidates = self._candidates(search.branches, search.gains)
        children = replace(children, lower=search.lower, branches=search.branches, candidates=candidates)
        return children.columns(self._unproven(children))

    def _chosen(self, parts: OpenParts) -> tuple[Tensor, Tensor]:
        # The candidate whose split gives the best bounds with the slopes of the part itself, and these bounds (2 n,).
        n = len(parts.lower)
        functions = self.functions.columns(parts.functions.repeat(2))
        # Where few units are left to split, other candidates are split already, or are curves.
        allowed = self._splittable(parts.branches)
        best = torch.full_like(parts.lower, -torch.inf)
        chosen = parts.candidates[0]
        bounds = best.repeat(2)
        for candidate in parts.candidates:
            lower = self.relaxation.lower(functions, _split(parts.branches, candidate), exact=False).lower
            self.evaluations += 2 * n
            # A part that is proven needs no better bound.
            first, second = lower.clamp(max=0).chunk(2)
            value = first + second
            better = (value > best) & allowed.gather(0, candidate[None])[0]
            best = torch.where(better, value, best)
            chosen = torch.where(better, candidate, chosen)
            bounds = torch.where(better.repeat(2), lower, bounds)
        return chosen, bounds

    def _unproven(self, parts: OpenParts) -> Tensor:
        # Places of parts without a proof. What float32 holds for proven is computed in float64, with rounding errors.
        unproven = ~(parts.lower > 0)
        promising = torch.nonzero(~unproven)[:, 0]
        if not len(promising):
            return torch.nonzero(unproven)[:, 0]
        branches = parts.branches.columns(promising)
        slopes = rounded(branches.slopes)
        exact = Branches(as_numbers(slopes), branches.signs, branches.multipliers.double())
        functions = self.exact_functions.columns(parts.functions[promising])
        lower = self.exact.lower(functions, exact, exact=True).lower
        self.evaluations += len(promising)

        stored = slopes.T.cpu().numpy()
        multipliers = branches.multipliers.abs().T.cpu().numpy()
        for place, part in enumerate(promising.tolist()):
            value = float(lower[place])
            if not value > 0:
                unproven[part] = True
                continue
            function = int(parts.functions[part])
            tree = self.trees[function]
            units, _ = tree.path(int(parts.nodes[part]))
            tree.leaves[int(parts.nodes[part])] = Leaf(stored[place], multipliers[place][units], value)
            self.lower[function] = min(self.lower[function], value)
        return torch.nonzero(unproven)[:, 0]


def _split(branches: Branches, units: Tensor) -> Branches:
    # All parts with the unit's input at least 0, then all with at most 0.
    signs, slopes = branches.signs.repeat(1, 2), branches.slopes.repeat(1, 2)
    n = len(units)
    columns = torch.arange(n, device=units.device)
    signs[units, columns] = 1
    slopes[units, columns] = 1
    signs[units, columns + n] = -1
    slopes[units, columns + n] = 0
    return Branches(slopes, signs, branches.multipliers.repeat(1, 2))
