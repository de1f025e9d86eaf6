"""Slopes and multipliers of linear bounds, optimised by gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gfscore.proofs.relaxation import Bound, Branches, Functions, Relaxation

LEVELS = 255
"""Slopes are rounded to so many steps, as which they are stored."""


@dataclass(frozen=True)
class Improved:
    """The best bounds of a search.

    Attributes
    ----------
    lower : Tensor
        (n,) the best bound of each function, in float32.
    branches : Branches
        The slopes and multipliers that gave it.
    losses : Tensor
        (M, n): how much of the last bound the lines of each unit lose.
    evaluations : int
        Bounds of single functions that were computed.
    """

    lower: Tensor
    branches: Branches
    losses: Tensor
    evaluations: int


def improved(relaxation: Relaxation, functions: Functions, branches: Branches, *, steps: int, rate: float) -> Improved:
    """Raise lower bounds of functions by Adam on slopes and multipliers; it ends early where all are positive.

    Parameters
    ----------
    relaxation, functions, branches
        As `Relaxation.lower` takes them; slopes and multipliers are where the search starts.
    steps : int
        Steps at most.
    rate : float
        Step size of slopes; multipliers have half of it.

    References
    ----------
    Xu et al. 2021 (alpha-CROWN), Wang et al. 2021 (beta-CROWN).
    """
    slopes, multipliers = branches.slopes.clone(), branches.multipliers.clone()
    optimiser = torch.optim.Adam([{"params": [slopes], "lr": rate}, {"params": [multipliers], "lr": rate / 2}])
    best_slopes, best_multipliers = slopes.clone(), multipliers.clone()
    best = torch.full_like(functions.constant, -torch.inf)
    for step in range(steps + 1):
        current = Branches(slopes, branches.signs, multipliers)
        bound: Bound = relaxation.lower(functions, current, exact=False)
        better = bound.lower > best
        best = torch.where(better, bound.lower, best)
        best_slopes = torch.where(better, slopes, best_slopes)
        best_multipliers = torch.where(better, multipliers, best_multipliers)
        slope_gradient, multiplier_gradient, losses = relaxation.gradients(current, bound)
        if step == steps or bool((best > 0).all()):
            break
        slopes.grad, multipliers.grad = -slope_gradient, -multiplier_gradient
        optimiser.step()
        slopes.clamp_(0, 1)
        multipliers.clamp_(min=0)
    evaluations = (step + 1) * len(best)
    return Improved(best, Branches(best_slopes, branches.signs, best_multipliers), losses, evaluations)


def rounded(slopes: Tensor) -> Tensor:
    """Slopes as numbers from 0 to 255, uint8."""
    return (slopes * LEVELS).round().to(torch.uint8)


def as_numbers(slopes: Tensor) -> Tensor:
    """Slopes in [0, 1], float64, of numbers from 0 to 255."""
    return slopes.double() / LEVELS
