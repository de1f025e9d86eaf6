"""Adversarial training by single gradient steps from a random start (Wong et al. 2020, Algorithm 3)."""

from typing import Literal

from pydantic import Field

from gfscore.networks.training_settings import NoCoefficients, OneStep, Training, TrainingMethod
from gfscore.training.methods.pgd import adversarial_training


class Fgsm(Training):
    """Adversarial training by single gradient steps from a random start."""

    method: Literal["FGSM"]
    threat: OneStep = Field(default_factory=OneStep)
    coefficients: NoCoefficients = Field(default_factory=NoCoefficients)


METHOD = TrainingMethod(
    name="FGSM", trains_on="single steps from a random start", settings=Fgsm, objective=adversarial_training
)
