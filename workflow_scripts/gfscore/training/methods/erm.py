"""Empirical risk minimisation (Vapnik 1998)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.networks.training_settings import NoCoefficients, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class Erm(Training):
    """Empirical risk minimisation on unperturbed images."""

    method: Literal["ERM"]
    threat: None = Field(None, description="This method perturbs nothing.")
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


def erm(setup: objectives.Setup, coefficients: NoCoefficients) -> objectives.Objective:
    """Mean cross-entropy of unperturbed images."""
    del setup, coefficients

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return gradient_ascent.cross_entropy(network(images), labels).mean()

    return objectives.Objective(loss)


METHOD = TrainingMethod(name="ERM", trains_on="images as they are", settings=Erm, objective=erm)
