"""Branch and bound: a ball is split by the signs of units until every margin is proven on every part.

A subproblem is one margin on one part of the ball. It is proven where the margin's lower bound is positive, and refuted
by a point with a margin that is not. Otherwise its part is split in two, on which the input of one unit is at least 0
and at most 0, which makes two subproblems with better bounds.

References
----------
Bunel et al. 2020 (branch and bound for ReLU networks); Wang et al. 2021 (beta-CROWN: multipliers of splits).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gfscore.proofs.certificates import TreeProof
from gfscore.proofs.relaxation import Bound, Branches, Functions, Relaxation
from gfscore.proofs.slopes import Improved, as_numbers, improved, rounded

POINTS = 16
"""Subproblems of a batch at whose lowest points the network is evaluated."""

CANDIDATES = 12
"""Units whose split is tried before one is chosen."""

STEPS = 5
"""Steps by which slopes and multipliers of a child are optimised, from those of its parent."""

LAST_STEPS = 200
"""Steps for subproblems that cannot be split further."""

RATE = 0.1
"""Step size of slopes; multipliers have half of it."""

NONE = -1
"""Stands for no node and for no unit."""


# ---- trees of splits ----


@dataclass(frozen=True)
class Leaf:
    """Proof of a margin on a part of the ball that is not split.

    Attributes
    ----------
    slopes : ndarray
        (M,) uint8, times 255.
    multipliers : ndarray
        float32, at least 0, one for each split on the way from the whole ball.
    lower : float
        Lower bound of the margin in real arithmetic, above 0.
    """

    slopes: NDArray[np.uint8]
    multipliers: NDArray[np.float32]
    lower: float


@dataclass
class Node:
    """A part of the ball.

    Attributes
    ----------
    parent : int
        Index of the part that it is one half of; NONE for the whole ball.
    unit : int
        Unit whose sign splits it in two; NONE where it is not split.
    first_child : int
        Index of the half on which the unit's input is at least 0; the other half follows it. NONE without a split.
    leaf : Leaf or None
        Proof of the margin on this part, where there is one.
    """

    parent: int
    unit: int = NONE
    first_child: int = NONE
    leaf: Leaf | None = None


@dataclass
class Tree:
    """How the ball is split for one margin.

    Attributes
    ----------
    rival : int
        Class whose logit the margin subtracts from the label's.
    nodes : list of Node
        Parts of the ball; the first is the whole ball.
    """

    rival: int
    nodes: list[Node] = field(default_factory=lambda: [Node(parent=NONE)])

    def split(self, index: int, unit: int) -> int:
        """Split a node by the sign of a unit; returns the index of its first child."""
        node = self.nodes[index]
        node.unit = unit
        node.first_child = len(self.nodes)
        self.nodes += [Node(parent=index), Node(parent=index)]
        return node.first_child

    def split_units(self, index: int) -> list[int]:
        """Units that were split on the way from the whole ball to a node, in this order."""
        units: list[int] = []
        parent = self.nodes[index].parent
        while parent != NONE:
            units.append(self.nodes[parent].unit)
            parent = self.nodes[parent].parent
        return units[::-1]

    @property
    def is_split(self) -> bool:
        """Whether the ball is more than one part."""
        return len(self.nodes) > 1

    @property
    def parts(self) -> list[Node]:
        """Parts of the ball that are not split, which together are the whole ball."""
        return [node for node in self.nodes if node.unit == NONE]

    @property
    def is_proven(self) -> bool:
        """Whether the margin is proven on every part."""
        return all(part.leaf is not None for part in self.parts)

    @property
    def lower(self) -> float:
        """Lower bound of the margin on the parts where it is proven; infinite without any."""
        return min((part.leaf.lower for part in self.parts if part.leaf is not None), default=np.inf)

    def proof(self) -> TreeProof:
        """The splits and the proofs on all parts, as a certificate stores them."""
        leaves = [part.leaf for part in self.parts if part.leaf is not None]
        return TreeProof(
            rival=self.rival,
            units=np.array([node.unit for node in self.nodes]),
            children=np.array([node.first_child for node in self.nodes]),
            slopes=np.stack([leaf.slopes for leaf in leaves]),
            multipliers=np.concatenate([leaf.multipliers for leaf in leaves]),
        )


# ---- subproblems ----


@dataclass(frozen=True)
class RelaxedMargins:
    """Margins of a network whose units are between lines, in one number type and on one device.

    Attributes
    ----------
    relaxation : Relaxation
        The lines.
    functions : Functions
        The margins as linear functions of pixels and units.
    """

    relaxation: Relaxation
    functions: Functions

    def to(self, dtype: torch.dtype, device: str) -> RelaxedMargins:
        """In another number type, on a device."""
        return RelaxedMargins(self.relaxation.to(dtype, device), self.functions.to(dtype, device))

    def bound(self, margins: Tensor | slice, branches: Branches, *, exact: bool) -> Bound:
        """Lower bounds of margins, given by their indices, each on its branch; see `Relaxation.lower`."""
        return self.relaxation.lower(self.functions.columns(margins), branches, exact=exact)

    def improved(self, margins: Tensor | slice, branches: Branches, *, steps: int, rate: float) -> Improved:
        """Lower bounds with slopes and multipliers optimised from those of the branches; see `slopes.improved`."""
        return improved(self.relaxation, self.functions.columns(margins), branches, steps=steps, rate=rate)


@dataclass(frozen=True)
class Subproblems:
    """n margins, each on a part of the ball where it is not proven.

    Attributes
    ----------
    lower : Tensor
        (n,) lower bounds of the margins on these parts, in float32.
    margins : Tensor
        (n,) index of the margin.
    nodes : Tensor
        (n,) index of the part in the margin's tree.
    branches : Branches
        Splits of the parts, with the slopes and multipliers of the bounds.
    candidates : Tensor
        (CANDIDATES, n) units by which the parts may be split.
    """

    lower: Tensor
    margins: Tensor
    nodes: Tensor
    branches: Branches
    candidates: Tensor

    def __len__(self) -> int:
        """Number n of subproblems."""
        return len(self.lower)

    def columns(self, chosen: Tensor | slice) -> Subproblems:
        """Some of the subproblems."""
        return Subproblems(
            self.lower[chosen],
            self.margins[chosen],
            self.nodes[chosen],
            self.branches.columns(chosen),
            self.candidates[:, chosen],
        )

    def joined(self, other: Subproblems) -> Subproblems:
        """These subproblems, followed by others."""
        return Subproblems(
            torch.cat([self.lower, other.lower]),
            torch.cat([self.margins, other.margins]),
            torch.cat([self.nodes, other.nodes]),
            Branches.joined([self.branches, other.branches]),
            torch.cat([self.candidates, other.candidates], dim=1),
        )


# ---- the search ----


@dataclass
class BranchAndBound:
    """The search in one ball.

    Attributes
    ----------
    margins, exact_margins : RelaxedMargins
        In float32 for the search, and in float64 for proofs, on one device.
    trees : list of Tree
        One per margin.
    batch : int
        Subproblems that are split at once.
    smallest_margins : callable
        From pixels (n, d) to the network's smallest margin at each (n,).
    evaluations : int
        Bounds of single functions that were computed.
    """

    margins: RelaxedMargins
    exact_margins: RelaxedMargins
    trees: list[Tree]
    batch: int
    smallest_margins: Callable[[Tensor], Tensor]
    evaluations: int = 0

    def run(self, whole_ball: Improved, *, budget: int) -> Tensor | None:
        """Split the ball until every margin is proven on every part, one is refuted, or the budget is used up.

        Proofs become leaves of the trees. The search also ends where a part can neither be split nor proven.

        Parameters
        ----------
        whole_ball : Improved
            Bounds of all margins in the whole ball, with the slopes that gave them and the gains of splits.
        budget : int
            Bounds that may be evaluated. It is checked before every batch.

        Returns
        -------
        Tensor or None
            Counterexample: pixels (d,) of the ball with a margin that is not positive in float32; None without one.
        """
        waiting = [self._pruned(self._root(whole_ball))]
        while waiting and self.evaluations < budget:
            batch = self._next_batch(waiting)
            if not len(batch):
                continue
            counterexample = self._counterexample(batch)
            if counterexample is not None:
                return counterexample

            has_splits = self._splittable(batch.branches).any(0)
            if not bool(has_splits.all()):
                leaves = self._bounded(batch.columns(~has_splits), steps=LAST_STEPS)
                counterexample = self._counterexample(leaves, descent=True)
                if len(self._pruned(leaves)) or counterexample is not None:
                    return counterexample
                batch = batch.columns(has_splits)

            children = self._pruned(self._children(batch))
            if len(children):
                children = self._pruned(self._bounded(children, steps=STEPS))
            waiting.append(children)
        return None

    def _root(self, whole_ball: Improved) -> Subproblems:
        margins = torch.arange(len(self.trees), device=whole_ball.lower.device)
        return Subproblems(
            lower=whole_ball.lower,
            margins=margins,
            nodes=torch.zeros_like(margins),
            branches=whole_ball.branches,
            candidates=self._candidates(whole_ball.branches, whole_ball.gains),
        )

    def _next_batch(self, waiting: list[Subproblems]) -> Subproblems:
        # Taken from `waiting`, the ones with the lowest bounds first. Depth first, so that few subproblems wait: which
        # of them a proof needs does not depend on the order.
        batch = waiting.pop()
        while waiting and len(batch) < self.batch:
            batch = batch.joined(waiting.pop())
        if len(batch) > self.batch:
            waiting.append(batch.columns(slice(self.batch, None)))
            batch = batch.columns(slice(self.batch))
        return batch.columns(torch.argsort(batch.lower, stable=True))

    # Branch

    def _children(self, parents: Subproblems) -> Subproblems:
        # Both halves of every parent's part, split by the unit that gives the best bounds: first all halves on which
        # the unit's input is at least 0, then all others.
        units, lower = self._best_splits(parents)
        first_children = []
        for margin, node, unit in zip(parents.margins.tolist(), parents.nodes.tolist(), units.tolist(), strict=True):
            first_children.append(self.trees[margin].split(node, unit))
        first = torch.tensor(first_children, dtype=parents.nodes.dtype, device=units.device)
        return Subproblems(
            lower=lower,
            margins=parents.margins.repeat(2),
            nodes=torch.cat([first, first + 1]),
            branches=_split(parents.branches, units),
            candidates=parents.candidates.repeat(1, 2),
        )

    def _best_splits(self, parents: Subproblems) -> tuple[Tensor, Tensor]:
        # The candidate (n,) whose split gives the best bounds with the parent's slopes, and these bounds of the
        # children (2 n,).
        n = len(parents)
        # Where few units are left to split, other candidates are split already, or are curves.
        splittable = self._splittable(parents.branches)
        best = torch.full_like(parents.lower, -torch.inf)
        best_units = parents.candidates[0]
        best_lower = best.repeat(2)
        for units in parents.candidates:
            lower = self.margins.bound(parents.margins.repeat(2), _split(parents.branches, units), exact=False).lower
            self.evaluations += 2 * n
            # A child that is proven needs no better bound.
            first, second = lower.clamp(max=0).chunk(2)
            value = first + second
            better = (value > best) & splittable.gather(0, units[None])[0]
            best = torch.where(better, value, best)
            best_units = torch.where(better, units, best_units)
            best_lower = torch.where(better.repeat(2), lower, best_lower)
        return best_units, best_lower

    def _candidates(self, branches: Branches, gains: Tensor) -> Tensor:
        # Units whose split gains most where the bound is attained.
        scores = torch.where(self._splittable(branches), gains, -torch.inf)
        count = min(CANDIDATES, len(scores))
        return scores.topk(count, dim=0).indices

    def _splittable(self, branches: Branches) -> Tensor:
        # Whether each of the M units can still be split on each branch, (M, n).
        relaxation = self.margins.relaxation
        has_sign = torch.zeros(len(branches.slopes), 1, dtype=torch.bool, device=branches.slopes.device)
        for block, units in zip(relaxation.blocks, relaxation.slices(), strict=True):
            has_sign[units] = block.splits
        return has_sign & (branches.signs == 0)

    # Bound

    def _bounded(self, subproblems: Subproblems, *, steps: int) -> Subproblems:
        # With bounds raised by so many steps on slopes and multipliers, and the candidates of these.
        search = self.margins.improved(subproblems.margins, subproblems.branches, steps=steps, rate=RATE)
        self.evaluations += search.evaluations
        candidates = self._candidates(search.branches, search.gains)
        return replace(subproblems, lower=search.lower, branches=search.branches, candidates=candidates)

    def _pruned(self, subproblems: Subproblems) -> Subproblems:
        # Subproblems that are not proven.
        is_open = ~(subproblems.lower > 0)
        promising = torch.nonzero(~is_open)[:, 0]
        if len(promising):
            is_open[promising] = ~self._proven(subproblems.columns(promising))
        return subproblems.columns(torch.nonzero(is_open)[:, 0])

    def _proven(self, subproblems: Subproblems) -> Tensor:
        # Whether the bounds of subproblems hold in real arithmetic, (n,) bool: they are computed in float64, less
        # rounding errors, with slopes as they are stored. Each proof becomes a leaf of its tree.
        branches = subproblems.branches
        slopes = rounded(branches.slopes)
        exact = Branches(as_numbers(slopes), branches.signs, branches.multipliers.double())
        lower = self.exact_margins.bound(subproblems.margins, exact, exact=True).lower
        self.evaluations += len(subproblems)

        stored_slopes = slopes.T.cpu().numpy()
        multipliers = branches.multipliers.abs().T.cpu().numpy()
        margins, nodes = subproblems.margins.tolist(), subproblems.nodes.tolist()
        for row, value in enumerate(lower.tolist()):
            if value > 0:
                tree = self.trees[margins[row]]
                split_units = tree.split_units(nodes[row])
                tree.nodes[nodes[row]].leaf = Leaf(stored_slopes[row], multipliers[row][split_units], value)
        return lower > 0

    # Refute

    def _counterexample(self, subproblems: Subproblems, *, descent: bool = False) -> Tensor | None:
        # Where a linear bound is least, the network itself may be wrong, or not far from there.
        worst = subproblems.columns(slice(0, POINTS))
        bound = self.margins.bound(worst.margins, worst.branches, exact=False)
        self.evaluations += len(worst)
        ball = self.margins.relaxation.ball
        pixels = ball.minimiser(bound.image).T
        if descent and ball.norm == "linf":
            pixels = self._descended(pixels)
        margins = self.smallest_margins(pixels)
        lowest = int(margins.argmin())
        if float(margins[lowest]) <= 0:
            return pixels[lowest]
        return None

    def _descended(self, pixels: Tensor) -> Tensor:
        # The pixels (n, d) of smallest margin on a descent in the box, with steps that become shorter.
        ball = self.margins.relaxation.ball
        low, high = ball.low.T, ball.high.T
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


def _split(branches: Branches, units: Tensor) -> Branches:
    # Both halves of n branches: first all on which the unit's input is at least 0, then all on which it is at most 0.
    signs, slopes = branches.signs.repeat(1, 2), branches.slopes.repeat(1, 2)
    n = len(units)
    columns = torch.arange(n, device=units.device)
    signs[units, columns] = 1
    slopes[units, columns] = 1
    signs[units, columns + n] = -1
    slopes[units, columns + n] = 0
    return Branches(slopes, signs, branches.multipliers.repeat(1, 2))
