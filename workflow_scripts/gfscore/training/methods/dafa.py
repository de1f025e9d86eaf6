"""DAFA: distance-aware fair adversarial training (Lee et al. 2024)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gfscore.core.errors import InputError
from gfscore.core.settings import Closed, Number, Positive, Share
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class DafaCoefficients(Closed):
    """Coefficients of DAFA."""

    beta: Number = Field(6, description="Weight of the divergence between clean and adversarial outputs.")
    scale: Positive = Field(1, description="How far class weights depart from 1 (the paper's lambda).")
    warmup: Share = Field(0.64, description="Share of the epochs before classes are weighted.")


class Dafa(Training):
    """DAFA: TRADES with weight and radius by class, larger for hard classes that resemble easier ones."""

    method: Literal["DAFA"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: DafaCoefficients = Field(default_factory=DafaCoefficients)


def dafa(setup: objectives.Setup, coefficients: DafaCoefficients) -> objectives.Objective:
    """Loss of TRADES with a weight W_k of each class, for its cross-entropy and for its radius and steps.

    The weights are 1 during a warm-up. Its last epoch gives the mean softmax output of the perturbed training images of
    each class, by which `class_weights` says how hard a class is and which ones it resembles. From then on an image of
    class k is perturbed within W_k eps by steps of W_k times their size, and its clean cross-entropy counts W_k times.

    Parameters
    ----------
    setup : Setup
        Threat and number of classes.
    coefficients : DafaCoefficients
        See there.

    References
    ----------
    Lee et al. 2024, "DAFA: Distance-aware fair adversarial training", section 4 and Algorithm 1, on TRADES; the sums of
    the weights as in the authors' code since September 2024. Defaults: lambda of CIFAR-10 (the paper has 1.5 for
    CIFAR-100 and STL-10) and 70 of 110 epochs of warm-up. Left out: DAFA on PGD.
    """
    classes = setup.classes
    weights = torch.ones(classes)
    outputs = torch.zeros(classes, classes)
    seen = torch.zeros(classes)

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        weight = weights.to(labels.device)[labels]
        adversarial = setup.diverge(network, images, radius=weight, step=weight)
        clean = network(images)
        perturbed = network(adversarial)
        outputs.index_add_(0, labels.cpu(), perturbed.detach().float().softmax(1).cpu())
        seen.add_(torch.bincount(labels.cpu(), minlength=classes))

        losses = weight * gradient_ascent.cross_entropy(clean, labels)
        losses = losses + coefficients.beta * objectives.divergence(clean, perturbed)
        return losses.mean()

    def weigh(end: objectives.EpochEnd) -> None:
        if end.epochs == setup.epochs_of(coefficients.warmup):
            weights.copy_(class_weights(outputs / seen.clamp_min(1)[:, None], scale=coefficients.scale))
            if weights.min() <= 0:
                raise InputError(
                    f"DAFA: coefficients.scale {coefficients.scale:g} gives class {int(weights.argmin())} the weight "
                    f"{weights.min():.3g}, which leaves it no radius; lower it, or raise warmup"
                )
        outputs.zero_()
        seen.zero_()

    return objectives.Objective(loss, {"weights": weights, "outputs": outputs, "seen": seen}, after_epoch=weigh)


def class_weights(similarity: torch.Tensor, *, scale: float) -> torch.Tensor:
    """Weights of the classes by how often images of one are taken for another.

    Parameters
    ----------
    similarity : Tensor of shape (K, K)
        Row k: mean softmax output p_k of the perturbed images of class k.
    scale : float
        lambda.

    Returns
    -------
    Tensor of shape (K,)
        W_k = 1 + lambda (sum of p_k(j) p_j(j) over the classes j that are easier, p_j(j) > p_k(k), less the sum of
        p_j(k) p_k(k) over those that are harder). A hard class gains what the easier ones that it resembles lose, so
        that the sum of the weights is K.
    """
    ease = similarity.diagonal()
    easier = ease[None, :] > ease[:, None]
    # Row k: what the hard class k takes from each easier one.
    transfers = torch.where(easier, similarity * ease, 0)
    return 1 + scale * (transfers.sum(1) - transfers.sum(0))


METHOD = TrainingMethod(
    name="DAFA",
    trains_on="as TRADES, with weight and radius by how hard each class is, and how like easier ones",
    settings=Dafa,
    objective=dafa,
    baseline="TRADES",
)
