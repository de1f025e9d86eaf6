"""FRL: fair robust learning by reweighting (Xu et al. 2021)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Closed, InnerShare, Number, Positive, Share
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class FrlCoefficients(Closed):
    """Coefficients of FRL."""

    beta: Number = Field(1, description="Weight of the divergence between clean and adversarial outputs.")
    tolerance: Share = Field(
        0.05, description="Clean and boundary error that a class may have beyond those of all images."
    )
    rate: Positive = Field(
        0.05, description="Learning rate of the multipliers; twice this for those of boundary errors."
    )
    limit: InnerShare = Field(0.5, description="Largest sum of the multipliers of either error.")
    warmup: Share = Field(0.5, description="Share of the epochs before classes are weighted.")
    held_out: Annotated[InnerShare, Field(description="Share of the training images that errors are measured on.")] = (
        0.06
    )


class Frl(Training):
    """FRL: TRADES with class weights by which no class errs much more than all, undisturbed or for its boundary."""

    method: Literal["FRL"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: FrlCoefficients = Field(default_factory=FrlCoefficients)


def frl(setup: objectives.Setup, coefficients: FrlCoefficients) -> objectives.Objective:
    """Loss of TRADES with class weights of its own for the cross-entropy and for the divergence.

    After each epoch the clean error and the boundary error (correct, but not under attack) of each class are measured
    on images that are held out. The multiplier of class k rises by `rate` times the excess of its error over that of
    all images and the `tolerance`; multipliers are at least 0, and their sum at most `limit`. The weight of class k is
    1 / K + multiplier_k - mean multiplier, the factor of its error in the Lagrangian of the constraints.

    Parameters
    ----------
    setup : Setup
        Threat and number of classes; errors are measured under its threat.
    coefficients : FrlCoefficients
        See there.

    References
    ----------
    Xu et al. 2021, "To be robust or to be fair", section 4: the constraints, their Lagrangian, and Algorithm 1 with the
    strategy Reweight. From the authors' code are how multipliers are limited and losses normalised, and the defaults
    of beta, rate, limit and held-out images (300 of 5,000 in each class). Left out: the strategies Remargin and
    Reweight+Remargin, which enlarge the radius of classes, and halving the rate every 40 epochs. The authors start
    from a robust network; in its place stands a warm-up by TRADES within one schedule of the learning rate.
    """
    classes = setup.classes
    natural = torch.zeros(classes)
    boundary = torch.zeros(classes)

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        adversarial = setup.diverge(network, images)
        clean = network(images)
        natural_weights = class_weights(natural).to(labels.device)[labels]
        boundary_weights = class_weights(boundary).to(labels.device)[labels]
        losses = natural_weights * gradient_ascent.cross_entropy(clean, labels)
        losses = losses + coefficients.beta * boundary_weights * objectives.divergence(clean, network(adversarial))
        return losses.sum() / (natural_weights + boundary_weights).sum()

    def update_multipliers(end: objectives.EpochEnd) -> None:
        if end.epochs < setup.epochs_of(coefficients.warmup):
            return
        outcomes = end.held_out()
        clean_errors = (~outcomes.clean).float()
        boundary_errors = (outcomes.clean & ~outcomes.robust).float()
        for multipliers, errors, rate in (
            (natural, clean_errors, coefficients.rate),
            (boundary, boundary_errors, 2 * coefficients.rate),
        ):
            by_class, _ = objectives.class_means(errors, outcomes.labels, classes=classes)
            excess = by_class - errors.mean() - coefficients.tolerance
            multipliers.copy_(limited(multipliers + rate * excess, largest_sum=coefficients.limit))

    return objectives.Objective(
        loss,
        {"natural": natural, "boundary": boundary},
        after_epoch=update_multipliers,
        held_out=coefficients.held_out,
    )


def class_weights(multipliers: torch.Tensor) -> torch.Tensor:
    """Weights (K,) of the class errors in the Lagrangian, for multipliers (K,): they sum to 1."""
    return 1 / len(multipliers) + multipliers - multipliers.mean()


def limited(multipliers: torch.Tensor, *, largest_sum: float) -> torch.Tensor:
    """Multipliers (K,) of at least 0, scaled to a sum of `largest_sum` where theirs is larger."""
    multipliers = multipliers.clamp_min(0)
    return multipliers * (largest_sum / multipliers.sum().clamp_min(largest_sum))


METHOD = TrainingMethod(
    name="FRL",
    trains_on="as TRADES, weighted towards classes that err more, clean or under attack, on held-out images",
    settings=Frl,
    objective=frl,
    baseline="TRADES",
)
