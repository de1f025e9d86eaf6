"""Adversarial training by projected gradient descent (Madry et al. 2018, section 2)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.networks.training_settings import NoCoefficients, Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class Pgd(Training):
    """Adversarial training by PGD."""

    method: Literal["PGD"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


def adversarial_training(setup: objectives.Setup, coefficients: NoCoefficients) -> objectives.Objective:
    """Mean cross-entropy of images after gradient steps from a random start."""
    del coefficients

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        adversarial = setup.perturb(network, images, labels)
        return gradient_ascent.cross_entropy(network(adversarial), labels).mean()

    return objectives.Objective(loss)


METHOD = TrainingMethod(name="PGD", trains_on="PGD examples", settings=Pgd, objective=adversarial_training)
