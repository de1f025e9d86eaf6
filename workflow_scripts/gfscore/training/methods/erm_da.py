"""Empirical risk minimisation with data augmentation by affine transformations."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Closed, Number
from gfscore.networks.training_settings import Training, TrainingMethod
from gfscore.training.lazy import functional, gradient_ascent, objectives, torch


class Warp(Closed):
    """Random affine transformations of the training images."""

    rotation: Annotated[Number, Field(ge=0)] = Field(10, description="Largest rotation in degrees.")
    shift: Annotated[Number, Field(ge=0)] = Field(0.06, description="Largest translation relative to the side.")
    scale: Annotated[Number, Field(ge=0)] = Field(0.1, description="Largest relative change of size.")
    flip: bool = Field(False, description="Whether images are flipped horizontally with probability 0.5.")


class ErmDa(Training):
    """Empirical risk minimisation with data augmentation by affine transformations."""

    method: Literal["ERM_DA"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: Warp = Field(default_factory=Warp)


def erm_with_augmentation(setup: objectives.Setup, coefficients: Warp) -> objectives.Objective:
    """Mean cross-entropy of images that are transformed uniformly and independently of each other.

    Parameters
    ----------
    setup : Setup
        Its generator draws the transformations.
    coefficients : Warp
        Largest rotation in degrees, translation as a share of the side, change of size (a factor between 1 - scale and
        1 + scale); and whether images are flipped with probability 1/2, which is unsuitable for digits and letters.

    References
    ----------
    Simard et al. 2003; Krizhevsky et al. 2012.
    """

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        warped = warp(images, coefficients, generator=setup.generator)
        return gradient_ascent.cross_entropy(network(warped), labels).mean()

    return objectives.Objective(loss)


def warp(images: torch.Tensor, coefficients: Warp, *, generator: torch.Generator) -> torch.Tensor:
    """Images under random affine maps, bilinear with zeros outside; see `erm_with_augmentation` for the ranges."""

    def uniform(limit: float) -> torch.Tensor:
        return limit * (2 * torch.rand(len(images), generator=generator) - 1)

    angle = uniform(math.radians(coefficients.rotation))
    size = 1 + uniform(coefficients.scale)
    mirror = torch.ones(len(images))
    if coefficients.flip:
        flipped = torch.rand(len(images), generator=generator) < 0.5
        mirror = 1 - 2 * flipped.float()
    # affine_grid's coordinates run from -1 to 1, so a side has length 2.
    across = uniform(2 * coefficients.shift)
    down = uniform(2 * coefficients.shift)

    cosine = torch.cos(angle) / size
    sine = torch.sin(angle) / size
    rows = torch.stack([mirror * cosine, -sine, across, mirror * sine, cosine, down], dim=1)
    maps = rows.reshape(-1, 2, 3).to(images.device)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False).clamp(0, 1)


METHOD = TrainingMethod(
    name="ERM_DA",
    trains_on="images rotated, moved, scaled, mirrored",
    settings=ErmDa,
    objective=erm_with_augmentation,
)
