"""Class-fair adversarial training: class weights by exponentiated gradient (Li and Liu 2023; Sagawa et al. 2020)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, Number, Share
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch

SMALLEST_WEIGHT = 1e-8
"""Of a class, since a weight of 0 would never grow again."""


class WorstClassCoefficients(Closed):
    """Coefficients of WORST_CLASS."""

    rate: Number = Field(0.03, description="Learning rate of the class weights.")
    floor: Share = Field(0.1, description="Share of the weight that remains uniform.")


class WorstClass(Training):
    """Adversarial training by PGD with class weights that favour the worst class."""

    method: Literal["WORST_CLASS"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: WorstClassCoefficients = Field(default_factory=WorstClassCoefficients)


def worst_class(setup: objectives.Setup, coefficients: WorstClassCoefficients) -> objectives.Objective:
    """Cross-entropy of PGD examples, weighted towards the worst class.

    The class weights are updated by exponentiated gradient before they weight the loss of a batch: the weight of class
    k is multiplied by exp(`rate` times its mean adversarial loss in the batch), by 1 where it has no samples there, and
    all of them are divided by their sum.

    Parameters
    ----------
    setup : Setup
        Threat and number of classes.
    coefficients : WorstClassCoefficients
        Learning rate of the class weights, and the share of the weight that remains uniform.

    References
    ----------
    Sagawa et al. 2020, Algorithm 1 (group DRO); Li and Liu 2023 (WAT) for classes under attack, with losses of a
    validation set in place of the training batch.
    """
    rate = coefficients.rate
    floor = coefficients.floor
    class_weights = torch.full((setup.classes,), 1 / setup.classes)

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        adversarial = setup.perturb(network, images, labels)
        losses = gradient_ascent.cross_entropy(network(adversarial), labels)
        means, present = objectives.class_means(losses, labels, classes=setup.classes)
        class_weights.copy_(exponentiated_gradient(class_weights.to(means.device), means.detach(), rate=rate))
        weights = floor / setup.classes + (1 - floor) * class_weights.to(means.device)
        weights = weights * present
        return (weights * means).sum() / weights.sum()

    return objectives.Objective(loss, {"weights": class_weights})


def exponentiated_gradient(weights: torch.Tensor, losses: torch.Tensor, *, rate: float) -> torch.Tensor:
    """Class weights (K,) after one step towards the classes of high loss; they are positive and sum to 1."""
    return (weights.clamp_min(SMALLEST_WEIGHT).log() + rate * losses).softmax(0)


METHOD = TrainingMethod(
    name="WORST_CLASS",
    trains_on="PGD examples, weighted towards the worst class",
    settings=WorstClass,
    objective=worst_class,
    baseline="PGD",
)
