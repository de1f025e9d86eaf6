"""Slopes and multipliers of linear bounds, optimised by gradients."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gfscore.proofs.relaxation import Branches, Functions, Relaxation, column_slices

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
    gains : Tensor
        (M, n): by how much a split at each unit may raise the last bound.
    evaluations : int
        Bounds of single functions that were computed.
    """

    lower: Tensor
    branches: Branches
    gains: Tensor
    evaluations: int


def improved(relaxation: Relaxation, functions: Functions, branches: Branches, *, steps: int, rate: float) -> Improved:
    """Raise lower bounds of functions by Adam on slopes and multipliers; it ends early where all are positive.

    Parameters
    ----------
    relaxation, functions, branches
        See `Relaxation.lower`; the search starts from the slopes and multipliers of the branches.
    steps : int
        Steps at most.
    rate : float
        Step size of slopes; multipliers have half of it.

    References
    ----------
    Xu et al. 2021 (alpha-CROWN), Wang et al. 2021 (beta-CROWN).
    """
    n = len(functions.constant)
    pieces = column_slices(n, functions.constant.device)
    if len(pieces) > 1:
        searches = []
        for columns in pieces:
            piece, piece_branches = functions.columns(columns), branches.columns(columns)
            searches.append(improved(relaxation, piece, piece_branches, steps=steps, rate=rate))
        return Improved(
            torch.cat([search.lower for search in searches]),
            Branches.joined([search.branches for search in searches]),
            torch.cat([search.gains for search in searches], dim=1),
            sum(search.evaluations for search in searches),
        )

    slopes, multipliers = branches.slopes.clone(), branches.multipliers.clone()
    upper_lines = relaxation.upper_lines(branches)
    split = branches.signs != 0
    # Slopes of split units stay what they are; multipliers have the signs of splits.
    least_slopes, largest_slopes = slopes * split, 1 - (1 - slopes) * split
    largest_multipliers = torch.where(branches.signs > 0, torch.inf, 0.0)
    least_multipliers = torch.where(branches.signs < 0, -torch.inf, 0.0)
    optimiser = torch.optim.Adam([{"params": [slopes], "lr": rate}, {"params": [multipliers], "lr": rate / 2}])
    best_slopes, best_multipliers = slopes.clone(), multipliers.clone()
    best = torch.full_like(functions.constant, -torch.inf)
    for step in range(steps + 1):
        bound = relaxation.lower(
            functions, Branches(slopes, branches.signs, multipliers), exact=False, upper_lines=upper_lines
        )
        better = bound.lower > best
        best = torch.where(better, bound.lower, best)
        best_slopes = torch.where(better, slopes, best_slopes)
        best_multipliers = torch.where(better, multipliers, best_multipliers)
        last = step == steps or bool((best > 0).all())
        gradients = relaxation.gradients(bound, upper_lines, gains=last)
        if last:
            break
        slopes.grad, multipliers.grad = -gradients.slopes, -gradients.multipliers
        optimiser.step()
        slopes.clamp_(least_slopes, largest_slopes)
        multipliers.clamp_(least_multipliers, largest_multipliers)
    evaluations = (step + 1) * n
    return Improved(best, Branches(best_slopes, branches.signs, best_multipliers), gradients.gains, evaluations)


def rounded(slopes: Tensor) -> Tensor:
    """Slopes as numbers from 0 to 255, uint8."""
    return (slopes * LEVELS).round().to(torch.uint8)


def as_numbers(slopes: Tensor) -> Tensor:
    """Slopes in [0, 1], float64, of numbers from 0 to 255."""
    return slopes.double() / LEVELS
