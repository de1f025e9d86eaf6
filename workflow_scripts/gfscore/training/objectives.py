"""Objectives of the training methods.

An objective is created once per training by a function `(setup, *, coefficients)`, and called with a network, a batch
of images (n, C, H, W) in [0, 1] and labels (n,) int64; it returns the scalar loss to differentiate. A new method is one
such function and one line in METHODS, and its settings in gfscore.networks.sources.trained.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor
from torch.nn import Module, functional

from gfscore.attacks.batch_pgd import batch_pgd, uniform_noise
from gfscore.attacks.gradient_ascent import cross_entropy
from gfscore.core.errors import InputError
from gfscore.networks.sources.trained import Ball, OneStep, Steps, Training

Loss = Callable[[Tensor, Tensor], Tensor]
"""Function of logits (n, K) and labels (n,), which gives a loss (n,)."""

SMALLEST_WEIGHT = 1e-8
"""Of a class, since a weight of 0 would never grow again."""


@dataclass
class Objective:
    """Loss of a training method.

    Attributes
    ----------
    loss : callable
        Function of a network, a batch of images (n, C, H, W) and their labels (n,), which gives the scalar to
        differentiate.
    memory : dict
        Tensors by name that change from batch to batch, modified in place, so that an interrupted training can be
        resumed.
    """

    loss: Callable[[Module, Tensor, Tensor], Tensor]
    memory: dict[str, Tensor] = field(default_factory=dict)

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
    """Arguments of all objectives: `classes` K, the `threat`, and a torch `generator` of random starts."""

    classes: int
    threat: Threat
    generator: Generator

    def perturb(self, network: Module, images: Tensor, labels: Tensor, *, loss: Loss = cross_entropy) -> Tensor:
        """Images after PGD within the threat, which raises the `loss`."""
        return batch_pgd(
            network,
            images,
            labels,
            norm=self.threat.norm,
            eps=self.threat.eps,
            step_size=self.threat.step_size,
            steps=self.threat.steps,
            generator=self.generator,
            loss=loss,
        )


def make_objective(settings: Training, *, classes: int, generator: Generator) -> Objective:
    """Objective of a training method for K `classes`; `generator` draws perturbations and transformations."""
    setup = Setup(classes, threat_of(settings.threat), generator)
    coefficients = settings.coefficients.model_dump()
    return METHODS[settings.method](setup, **coefficients)


def threat_of(settings: Ball | None) -> Threat:
    """Threat by the settings of a method; none of size 0 for a method without. InputError for a missing value."""
    if settings is None:
        return Threat()
    if settings.norm is None or settings.eps is None:
        raise InputError("this training method needs threat.norm and threat.eps; add them to the model's entry")
    if not isinstance(settings, OneStep):
        return Threat(settings.norm, settings.eps)
    if settings.step_size is None:
        raise InputError("this training method needs threat.step_size; add it to the model's entry")
    steps = settings.steps if isinstance(settings, Steps) else 1
    return Threat(settings.norm, settings.eps, settings.step_size, steps)


def erm(setup: Setup) -> Objective:
    """Empirical risk minimisation: mean cross-entropy of the clean images (Vapnik 1998)."""

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(network(images), labels).mean()

    return Objective(loss)


def erm_with_augmentation(setup: Setup, *, rotation: float, shift: float, scale: float, flip: bool) -> Objective:
    """Empirical risk minimisation on randomly transformed images.

    Each image is transformed uniformly and independently.

    Parameters
    ----------
    setup : Setup
        Its generator draws the transformations.
    rotation : float
        Largest rotation, in degrees.
    shift : float
        Largest translation, as a share of the side.
    scale : float
        Images are scaled by a factor between 1 - scale and 1 + scale.
    flip : bool
        Whether images are flipped horizontally with probability 1/2, which is unsuitable for digits and letters.

    References
    ----------
    Simard et al. 2003; Krizhevsky et al. 2012.
    """

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        warped = warp(images, rotation=rotation, shift=shift, scale=scale, flip=flip, generator=setup.generator)
        return cross_entropy(network(warped), labels).mean()

    return Objective(loss)


def adversarial_training(setup: Setup) -> Objective:
    """Adversarial training: cross-entropy of images after gradient steps from a random start.

    Several steps are those of Madry et al. 2018, section 2; a single one is Wong et al. 2020, Algorithm 3.
    """

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        adversarial = setup.perturb(network, images, labels)
        return cross_entropy(network(adversarial), labels).mean()

    return Objective(loss)


def trades(setup: Setup, *, beta: float) -> Objective:
    """Clean cross-entropy + beta KL(p(x) || p(x')), x' maximising the latter (Zhang et al. 2019, section 3)."""

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        with torch.no_grad():
            clean = network(images)

        def divergence_from_clean(logits: Tensor, _labels: Tensor) -> Tensor:
            return divergence(clean, logits)

        # The divergence and its gradient are zero at x itself, so PGD needs its random start.
        adversarial = setup.perturb(network, images, labels, loss=divergence_from_clean)
        return trades_loss(network(images), network(adversarial), labels, beta=beta)

    return Objective(loss)


def mart(setup: Setup, *, lam: float) -> Objective:
    """Misclassification-aware adversarial training on PGD examples (Wang et al. 2020, section 3)."""

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        adversarial = setup.perturb(network, images, labels)
        return mart_loss(network(images), network(adversarial), labels, lam=lam)

    return Objective(loss)


def probabilistic(setup: Setup, *, rho: float, samples: int) -> Objective:
    """Probabilistically robust learning: CVaR of the loss over random perturbations.

    Parameters
    ----------
    setup : Setup
        Perturbations are uniform in the ball of its threat.
    rho : float
        The loss of an image is the mean of the largest share `rho` of those of its perturbations: 1 is the average,
        towards 0 the worst case.
    samples : int
        Perturbations of each image.

    Raises
    ------
    InputError
        Where the share holds less than one perturbation.

    References
    ----------
    Robey et al. 2022, "Probabilistically robust learning", Algorithm 1.
    """
    if not 0 < rho <= 1 or rho * samples < 1:
        raise InputError(
            f"PRL needs 0 < rho <= 1 and rho * samples >= 1, got rho {rho}, samples {samples}; correct them"
        )

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        repeated = images.repeat_interleave(samples, dim=0)
        noise = uniform_noise(repeated, norm=setup.threat.norm, eps=setup.threat.eps, generator=setup.generator)
        logits = network((repeated + noise).clamp(0, 1))
        losses = cross_entropy(logits, labels.repeat_interleave(samples))
        return conditional_value_at_risk(losses.reshape(len(images), samples), rho=rho).mean()

    return Objective(loss)


def worst_class(setup: Setup, *, rate: float, floor: float) -> Objective:
    """Class-fair adversarial training: cross-entropy of PGD examples, weighted towards the worst class.

    The class weights are updated by exponentiated gradient: after each batch the weight of class k is multiplied by
    exp(`rate` times its mean adversarial loss); classes without samples in the batch are unchanged.

    Parameters
    ----------
    setup : Setup
        Threat and number of classes.
    rate : float
        Learning rate of the class weights.
    floor : float
        Share of the weight that remains uniform, in [0, 1].

    References
    ----------
    Sagawa et al. 2020, Algorithm 1 (group DRO); Li and Liu 2023 (WAT) for classes under attack, with losses of a
    validation set in place of the training batch.
    """
    memory = torch.full((setup.classes,), 1 / setup.classes)

    def loss(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        adversarial = setup.perturb(network, images, labels)
        losses = cross_entropy(network(adversarial), labels)
        means, present = class_means(losses, labels, classes=setup.classes)
        memory.copy_(exponentiated_gradient(memory.to(means.device), means.detach(), rate=rate))
        weights = floor / setup.classes + (1 - floor) * memory.to(means.device)
        weights = weights * present
        return (weights * means).sum() / weights.sum()

    return Objective(loss, {"weights": memory})


def divergence(target: Tensor, logits: Tensor) -> Tensor:
    """Kullback-Leibler divergence KL(softmax(target) || softmax(logits)) of each row, (n,), in nats."""
    expected = target.log_softmax(1)
    return (expected.exp() * (expected - logits.log_softmax(1))).sum(1)


def trades_loss(clean: Tensor, adversarial: Tensor, labels: Tensor, *, beta: float) -> Tensor:
    """Mean of CE(clean, y) + beta KL(softmax(clean) || softmax(adversarial)); logits (n, K)."""
    return (cross_entropy(clean, labels) + beta * divergence(clean, adversarial)).mean()


def mart_loss(clean: Tensor, adversarial: Tensor, labels: Tensor, *, lam: float) -> Tensor:
    """Misclassification-aware loss of logits (n, K), a mean over the batch.

    BCE(adversarial, y) + lam KL(softmax(clean) || softmax(adversarial)) (1 - p_y(clean)) with
    BCE = -log p_y - log(1 - max_{k != y} p_k), the boosted cross-entropy. Source: Wang et al. 2020,
    section 3.
    """
    rivals = adversarial.scatter(1, labels[:, None], -float("inf"))
    strongest_rival = rivals.argmax(1, keepdim=True)
    # 1 - p_k as a sum over the other classes, which is accurate where p_k rounds to 1.
    without_rival = adversarial.scatter(1, strongest_rival, -float("inf"))
    log_complement = without_rival.logsumexp(1) - adversarial.logsumexp(1)
    boosted = cross_entropy(adversarial, labels) - log_complement
    hardness = 1 - clean.softmax(1).gather(1, labels[:, None])[:, 0]
    return (boosted + lam * divergence(clean, adversarial) * hardness).mean()


def conditional_value_at_risk(losses: Tensor, *, rho: float, steps: int = 30) -> Tensor:
    """Mean of the largest share rho of each row: min over alpha of alpha + E[(loss - alpha)_+] / rho.

    The inner problem is convex in alpha, so it is solved by bisections by the sign of the subgradient
    1 - P(loss > alpha) / rho, where the paper takes a few fixed gradient steps.

    Parameters
    ----------
    losses : Tensor of shape (n, M)
        M losses of each image.
    rho : float
        Share in (0, 1].
    steps : int
        Bisections; alpha is exact to 2^-steps of the row's range.

    Returns
    -------
    Tensor of shape (n,)

    References
    ----------
    Rockafellar and Uryasev 2000, Theorem 1; Robey et al. 2022, Algorithm 1.
    """
    count = rho * losses.shape[1]
    with torch.no_grad():
        low = losses.amin(1)
        high = losses.amax(1)
        for _ in range(steps):
            alpha = (low + high) / 2
            # The tolerance absorbs rounding of rho * M, such as 0.3 * 10.
            rising = (losses > alpha[:, None]).sum(1) <= count + 1e-9
            low = torch.where(rising, low, alpha)
            high = torch.where(rising, alpha, high)
    # The minimum is the mean of the tail above alpha, completed to the share rho by the next loss. This form has the
    # exact gradient also for tied losses.
    tail = losses > high[:, None]
    missing = (1 - tail.sum(1) / count).clamp_min(0)
    next_loss = losses.masked_fill(tail, -float("inf")).amax(1)
    return (losses * tail).mean(1) / rho + missing * next_loss


def class_means(losses: Tensor, labels: Tensor, *, classes: int) -> tuple[Tensor, Tensor]:
    """Mean loss of each class in the batch, 0 for absent classes, and an indicator of presence: (K,), (K,)."""
    members = torch.zeros(classes, len(labels), device=losses.device)
    members[labels, torch.arange(len(labels), device=losses.device)] = 1
    counts = members.sum(1)
    return members @ losses / counts.clamp_min(1), (counts > 0).to(losses.dtype)


def exponentiated_gradient(weights: Tensor, losses: Tensor, *, rate: float) -> Tensor:
    """Class weights (K,) after one step towards the classes of high loss; they are positive and sum to 1."""
    return (weights.clamp_min(SMALLEST_WEIGHT).log() + rate * losses).softmax(0)


def warp(images: Tensor, *, rotation: float, shift: float, scale: float, flip: bool, generator: Generator) -> Tensor:
    """Images under random affine maps, bilinear with zeros outside; see `erm_with_augmentation` for the ranges."""

    def uniform(limit: float) -> Tensor:
        return limit * (2 * torch.rand(len(images), generator=generator) - 1)

    angle = uniform(math.radians(rotation))
    size = 1 + uniform(scale)
    mirror = torch.ones(len(images))
    if flip:
        flipped = torch.rand(len(images), generator=generator) < 0.5
        mirror = 1 - 2 * flipped.float()
    # affine_grid's coordinates run from -1 to 1, so a side has length 2.
    across = uniform(2 * shift)
    down = uniform(2 * shift)

    cosine = torch.cos(angle) / size
    sine = torch.sin(angle) / size
    rows = torch.stack([mirror * cosine, -sine, across, mirror * sine, cosine, down], dim=1)
    maps = rows.reshape(-1, 2, 3).to(images.device)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False).clamp(0, 1)


METHODS: dict[str, Callable[..., Objective]] = {
    "ERM": erm,
    "ERM_DA": erm_with_augmentation,
    "FGSM": adversarial_training,
    "PGD": adversarial_training,
    "TRADES": trades,
    "MART": mart,
    "PRL": probabilistic,
    "WORST_CLASS": worst_class,
}
"""Functions that create objectives, by the name of the training method in config.yaml."""
