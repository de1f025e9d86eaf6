"""MART: misclassification-aware adversarial training (Wang et al. 2020, section 3)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.core.settings import Closed, Number
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class MartCoefficients(Closed):
    """Coefficients of MART."""

    lam: Number = Field(5, description="Weight of the divergence, which is larger for misclassified images.")


class Mart(Training):
    """MART: adversarial training with more weight on misclassified images."""

    method: Literal["MART"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: MartCoefficients = Field(default_factory=MartCoefficients)


def mart(setup: objectives.Setup, coefficients: MartCoefficients) -> objectives.Objective:
    """Boosted cross-entropy of PGD examples, and their divergence, weighted by how wrong the clean output is."""

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        adversarial = setup.perturb(network, images, labels)
        return mart_loss(network(images), network(adversarial), labels, lam=coefficients.lam)

    return objectives.Objective(loss)


def mart_loss(clean: torch.Tensor, adversarial: torch.Tensor, labels: torch.Tensor, *, lam: float) -> torch.Tensor:
    """Misclassification-aware loss of logits (n, K), a mean over the batch.

    BCE(adversarial, y) + lam KL(softmax(clean) || softmax(adversarial)) (1 - p_y(clean)) with
    BCE = -log p_y - log(1 - max_{k != y} p_k), the boosted cross-entropy. Source: Wang et al. 2020,
    section 3.
    """
    strongest_rival = gradient_ascent.other_logits(adversarial, labels).argmax(1)
    # 1 - p_k as a sum over the other classes, which is accurate where p_k rounds to 1.
    without_rival = gradient_ascent.other_logits(adversarial, strongest_rival)
    log_complement = without_rival.logsumexp(1) - adversarial.logsumexp(1)
    boosted = gradient_ascent.cross_entropy(adversarial, labels) - log_complement
    hardness = 1 - clean.softmax(1).gather(1, labels[:, None])[:, 0]
    return (boosted + lam * objectives.divergence(clean, adversarial) * hardness).mean()


METHOD = TrainingMethod(
    name="MART", trains_on="PGD examples, more on images that are misclassified", settings=Mart, objective=mart
)
