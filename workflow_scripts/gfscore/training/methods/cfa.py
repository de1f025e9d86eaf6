"""CFA: class-wise calibrated fair adversarial training (Wei et al. 2023)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gfscore.core.settings import Closed, InnerShare, Number, Positive, Share
from gfscore.networks.training_settings import Steps, Training, TrainingMethod
from gfscore.training.lazy import gradient_ascent, objectives, torch


class CfaCoefficients(Closed):
    """Coefficients of CFA."""

    beta: Number = Field(6, description="Weight of the divergence between clean and adversarial outputs.")
    radius: Positive = Field(
        0.5, description="Radius of a class without robust images, relative to the threat's; 1 more if all are robust."
    )
    regularisation: Positive = Field(
        0.5, description="Weight of a class without robust images, relative to beta; 1 more if all are robust."
    )
    warmup: Share = Field(0.05, description="Share of the epochs in which all classes have radius and beta as given.")
    threshold: Share = Field(
        0.24, description="Robust accuracy that each class must have on held-out images for weights to be averaged."
    )
    decay: Share = Field(0.88, description="Share of the average that an epoch leaves.")
    held_out: Annotated[InnerShare, Field(description="Share of the training images for the threshold.")] = 0.02


class Cfa(Training):
    """CFA: TRADES with radius and regularisation by class, and an average of weights that are fair enough."""

    method: Literal["CFA"]
    threat: Steps = Field(default_factory=Steps)
    coefficients: CfaCoefficients = Field(default_factory=CfaCoefficients)


def cfa(setup: objectives.Setup, coefficients: CfaCoefficients) -> objectives.Objective:
    """Loss of TRADES with the radius and beta of each class set by its robust accuracy in the epoch before.

    With t_k the share of class k's training images that were classified correctly after their perturbation: its radius
    is (`radius` + t_k) eps, its beta_k is (`regularisation` + t_k) beta, and the loss of its images is
    CE / (1 + beta_k) + KL beta_k / (1 + beta_k). So harder classes see smaller perturbations and less regularisation.
    What the training ends with is a moving average over the epochs whose worst class reaches the `threshold` on images
    that are held out.

    Parameters
    ----------
    setup : Setup
        Threat, number of classes, and the network whose weights are averaged.
    coefficients : CfaCoefficients
        See there.

    References
    ----------
    Wei et al. 2023, "CFA: Class-wise calibrated fair adversarial training", section 4: customised margin, customised
    regularisation, fairness-aware weight averaging; Algorithm 1 on TRADES. Defaults and the held-out images (2%) are
    those of the authors' code for TRADES. Left out: CFA on PGD and on friendly adversarial training.
    """
    classes = setup.classes
    radius = torch.ones(classes)
    beta = torch.full((classes,), float(coefficients.beta))
    robust = torch.zeros(classes)
    seen = torch.zeros(classes)
    averaged_epochs = torch.zeros(1)
    average = {}
    for name, value in setup.network.state_dict().items():
        average[f"average.{name}"] = value.detach().clone()

    def loss(network: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        adversarial = setup.diverge(network, images, radius=radius.to(labels.device)[labels])
        clean = network(images)
        perturbed = network(adversarial)
        correct = gradient_ascent.correct(perturbed.detach(), labels)
        robust.add_(torch.bincount(labels[correct], minlength=classes).to(robust.device))
        seen.add_(torch.bincount(labels, minlength=classes).to(seen.device))

        class_beta = beta.to(labels.device)[labels]
        losses = gradient_ascent.cross_entropy(clean, labels)
        losses = losses + class_beta * objectives.divergence(clean, perturbed)
        return (losses / (1 + class_beta)).mean()

    def calibrate(end: objectives.EpochEnd) -> None:
        if end.epochs >= setup.epochs_of(coefficients.warmup):
            accuracy = robust / seen.clamp_min(1)
            radius.copy_(coefficients.radius + accuracy)
            beta.copy_((coefficients.regularisation + accuracy) * coefficients.beta)
        robust.zero_()
        seen.zero_()

        outcomes = end.held_out()
        by_class, _ = objectives.class_means(outcomes.robust.float(), outcomes.labels, classes=classes)
        if by_class.min() < coefficients.threshold:
            return
        decay = coefficients.decay if averaged_epochs.item() else 0.0
        for name, value in end.network.state_dict().items():
            mean = average[f"average.{name}"]
            if mean.is_floating_point():
                mean.mul_(decay).add_(value, alpha=1 - decay)
            else:
                # Of buffers that count, such as those of batch normalisation, the last value is kept.
                mean.copy_(value)
        averaged_epochs.add_(1)

    def take_average(network: torch.nn.Module) -> None:
        if not averaged_epochs.item():
            print(f"CFA: in no epoch the worst class reached {coefficients.threshold:g}; the weights are not averaged")
            return
        network.load_state_dict({name.removeprefix("average."): value for name, value in average.items()})

    memory = {"radius": radius, "beta": beta, "robust": robust, "seen": seen, "averaged_epochs": averaged_epochs}
    return objectives.Objective(
        loss,
        memory | average,
        after_epoch=calibrate,
        held_out=coefficients.held_out,
        finish=take_average,
    )


METHOD = TrainingMethod(
    name="CFA",
    trains_on="as TRADES, with radius and `beta` by how robust each class is; fair epochs are averaged",
    settings=Cfa,
    objective=cfa,
    baseline="TRADES",
)
