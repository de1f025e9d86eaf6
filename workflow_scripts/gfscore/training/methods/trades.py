"""TRADES (Zhang et al. 2019)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, Number
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class TradesCoefficients(Closed):
    """Coefficients of TRADES."""

    beta: Number = Field(6, description="Weight of the divergence between clean and adversarial outputs.")


class Trades(Training):
    """TRADES: cross-entropy of clean images plus the divergence between clean and adversarial outputs."""

    method: Literal["TRADES"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: TradesCoefficients = Field(default_factory=TradesCoefficients)


def trades(setup: objectives.Setup, coefficients: TradesCoefficients) -> objectives.Objective:
    """Clean cross-entropy + beta KL(p(x) || p(x')), x' maximising the latter (Zhang et al. 2019, section 3)."""

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        adversarial = setup.diverge(network, images)
        return trades_loss(network(images), network(adversarial), labels, beta=coefficients.beta)

    return objectives.Objective(loss)


def trades_loss(clean: torch.Tensor, adversarial: torch.Tensor, labels: torch.Tensor, *, beta: float) -> torch.Tensor:
    """Mean of CE(clean, y) + beta KL(softmax(clean) || softmax(adversarial)); logits (n, K)."""
    return (gradient_ascent.cross_entropy(clean, labels) + beta * objectives.divergence(clean, adversarial)).mean()


METHOD = TrainingMethod(
    name="TRADES",
    trains_on="images, and examples whose output differs most from theirs",
    settings=Trades,
    objective=trades,
)
