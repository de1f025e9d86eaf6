"""What training methods are made of: objectives, the perturbations of a threat, and losses that several share.

An objective is made once per training, by the function that its method declares, and called with a network, a batch of
images (n, C, H, W) in [0, 1] and labels (n,) int64; it returns the scalar loss to differentiate.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor
from torch.nn import Module

from gfscore.attacks.batch_pgd import batch_pgd
from gfscore.attacks.gradient_ascent import correct, cross_entropy
from gfscore.networks.training_settings import Ball, OneStep, Steps, Training, training_methods

Loss = Callable[[Tensor, Tensor], Tensor]
"""Function of logits (n, K) and labels (n,), which gives a loss (n,)."""


@dataclass(frozen=True)
class EpochEnd:
    """State of a training after an epoch, for objectives that change between epochs.

    Attributes
    ----------
    network : Module
        The network, in training mode.
    epochs : int
        Epochs that are finished.
    held_out : callable
        held_out() -> HeldOut: outcomes of the present network on the images that the objective holds out.
    """

    network: Module
    epochs: int
    held_out: Callable[[], "HeldOut"]


@dataclass(frozen=True)
class HeldOut:
    """Outcomes on the training images that are held out.

    Attributes
    ----------
    labels : Tensor
        (n,) int64.
    clean : Tensor
        (n,) bool, whether an image is classified correctly.
    robust : Tensor
        (n,) bool, whether it is classified correctly both as it is and after PGD within the threat of the training.
    """

    labels: Tensor
    clean: Tensor
    robust: Tensor


@dataclass
class Objective:
    """Loss of a training method, and what it does between epochs.

    Attributes
    ----------
    loss : callable
        Function of a network, a batch of images (n, C, H, W) and their labels (n,), which gives the scalar to
        differentiate.
    memory : dict
        Tensors by name that change from batch to batch or from epoch to epoch, modified in place, so that an
        interrupted training can be resumed.
    after_epoch : callable, optional
        Function of an EpochEnd, called after every epoch.
    held_out : float
        Share of the training images of each class that is not trained on, for `after_epoch`.
    finish : callable, optional
        Function of the trained network, which may change its weights in place.
    """

    loss: Callable[[Module, Tensor, Tensor], Tensor]
    memory: dict[str, Tensor] = field(default_factory=dict)
    after_epoch: Callable[[EpochEnd], None] | None = None
    held_out: float = 0.0
    finish: Callable[[Module], None] | None = None

    def __call__(self, network: Module, images: Tensor, labels: Tensor) -> Tensor:
        """Loss of a batch."""
        return self.loss(network, images, labels)


@dataclass(frozen=True)
class Threat:
    """Perturbations of a training: a ball in a norm, "linf" or "l2", and the gradient steps in it."""

    norm: str = "linf"
    eps: float = 0.0
    step_size: float = 0.0
    steps: int = 0


@dataclass(frozen=True)
class Setup:
    """What all objectives depend on: classes, threat, network, length of the training.

    Attributes
    ----------
    classes : int
        Number of classes K.
    threat : Threat
        Perturbations.
    generator : Generator
        Draws perturbations and transformations.
    network : Module
        The network before its training.
    epochs : int
        Length of the training.
    """

    classes: int
    threat: Threat
    generator: Generator
    network: Module
    epochs: int

    def epochs_of(self, share: float) -> int:
        """Number of epochs of a share of the training, at least 1."""
        return max(1, round(share * self.epochs))

    def perturb(
        self,
        network: Module,
        images: Tensor,
        labels: Tensor,
        *,
        loss: Loss = cross_entropy,
        radius: Tensor | float = 1.0,
        step: Tensor | float = 1.0,
    ) -> Tensor:
        """Images after PGD within the threat, which raises the `loss`.

        Parameters
        ----------
        network : Module
            From images to logits (n, K).
        images, labels : Tensor
            (n, C, H, W) in [0, 1], and (n,) int64.
        loss : callable
            What is maximised.
        radius, step : float or Tensor of shape (n,)
            Factors of the threat's radius and step size.

        Returns
        -------
        Tensor
            (n, C, H, W) in [0, 1].
        """
        return batch_pgd(
            network,
            images,
            labels,
            norm=self.threat.norm,
            eps=self.threat.eps * radius,
            step_size=self.threat.step_size * step,
            steps=self.threat.steps,
            generator=self.generator,
            loss=loss,
        )

    def diverge(
        self, network: Module, images: Tensor, *, radius: Tensor | float = 1.0, step: Tensor | float = 1.0
    ) -> Tensor:
        """Images after PGD within the threat, which raises the divergence from the output on the images.

        The examples of TRADES (Zhang et al. 2019, Algorithm 1). The divergence and its gradient are zero at an image
        itself, so PGD needs its random start. For `radius` and `step` see `perturb`.
        """
        with torch.no_grad():
            clean = network(images)

        def divergence_from_clean(logits: Tensor, _labels: Tensor) -> Tensor:
            return divergence(clean, logits)

        labels = torch.zeros(len(images), dtype=torch.long, device=images.device)
        return self.perturb(network, images, labels, loss=divergence_from_clean, radius=radius, step=step)

    def outcomes(self, network: Module, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Which images the network classifies correctly, and which of them also after PGD: (n,) bool each."""
        adversarial = self.perturb(network, images, labels)
        with torch.no_grad():
            clean = correct(network(images), labels)
            robust = correct(network(adversarial), labels)
        return clean, clean & robust


def make_objective(settings: Training, setup: Setup) -> Objective:
    """Objective of a training by its settings."""
    return training_methods()[settings.method].objective(setup, settings.coefficients)


def threat_of(settings: Ball | None) -> Threat:
    """Threat by the complete settings of a method; none of size 0 for a method without."""
    if settings is None:
        return Threat()
    assert settings.norm is not None and settings.eps is not None
    if not isinstance(settings, OneStep):
        return Threat(settings.norm, settings.eps)
    assert settings.step_size is not None
    steps = settings.steps if isinstance(settings, Steps) else 1
    return Threat(settings.norm, settings.eps, settings.step_size, steps)


# ---- losses ----


def divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Kullback-Leibler divergence KL(softmax(target) || softmax(logits)) of each row, (n,), in nats."""
    expected = target.log_softmax(1)
    return (expected.exp() * (expected - logits.log_softmax(1))).sum(1)


def class_means(losses: Tensor, labels: Tensor, *, classes: int) -> tuple[Tensor, Tensor]:
    """Mean loss of each class in the batch, 0 for absent classes, and an indicator of presence: (K,), (K,)."""
    members = torch.zeros(classes, len(labels), device=losses.device)
    members[labels, torch.arange(len(labels), device=losses.device)] = 1
    counts = members.sum(1)
    return members @ losses / counts.clamp_min(1), (counts > 0).to(losses.dtype)
