"""Focal loss (Lin et al. 2017): cross-entropy that counts less the surer a network is of the right class."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Closed, Number
from gfscore.networks.training_settings import Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class FocalCoefficients(Closed):
    """Coefficients of FOCAL."""

    gamma: Annotated[Number, Field(ge=0)] = Field(2, description="How fast the weight falls; 0 for cross-entropy.")


class Focal(Training):
    """Focal loss of unperturbed images."""

    method: Literal["FOCAL"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: FocalCoefficients = Field(default_factory=FocalCoefficients)


def focal(setup: objectives.Setup, coefficients: FocalCoefficients) -> objectives.Objective:
    """Mean of (1 - p_y)^gamma times the cross-entropy -log p_y (Lin et al. 2017, Eq. 4)."""
    del setup

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        losses = gradient_ascent.cross_entropy(network(images), labels)
        return ((1 - (-losses).exp()) ** coefficients.gamma * losses).mean()

    return objectives.Objective(loss)


METHOD = TrainingMethod(
    name="FOCAL", trains_on="images as they are, more on those it is unsure of", settings=Focal, objective=focal
)
