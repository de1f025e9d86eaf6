"""TRADES (Zhang et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from gfscore.core.settings import Closed, Number
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from gfscore.training.objectives import Objective, Setup


class TradesCoefficients(Closed):
    """Coefficients of TRADES."""

    beta: Number = Field(6, description="Weight of the divergence between clean and adversarial outputs.")


class Trades(Training):
    """TRADES: cross-entropy of clean images plus the divergence between clean and adversarial outputs."""

    method: Literal["TRADES"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: TradesCoefficients = Field(default_factory=TradesCoefficients)


def trades(setup: Setup, coefficients: TradesCoefficients) -> Objective:
    """Clean cross-entropy + beta KL(p(x) || p(x')), x' maximising the latter (Zhang et al. 2019, section 3)."""

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        adversarial = setup.diverge(network, images)
        return trades_loss(network(images), network(adversarial), labels, beta=coefficients.beta)

    return objectives.Objective(loss)


def trades_loss(clean: Tensor, adversarial: Tensor, labels: Tensor, *, beta: float) -> Tensor:
    """Mean of CE(clean, y) + beta KL(softmax(clean) || softmax(adversarial)); logits (n, K)."""
    return (gradient_ascent.cross_entropy(clean, labels) + beta * objectives.divergence(clean, adversarial)).mean()


METHOD = TrainingMethod(
    name="TRADES",
    trains_on="images, and examples whose output differs most from theirs",
    settings=Trades,
    objective=trades,
)
