"""Objectives of the training methods.

An objective is created once per training by a function `(setup, *, coefficients)`, and called with a network, a batch
of images (n, C, H, W) in [0, 1] and labels (n,) int64; it returns the scalar loss to differentiate. Its state, if any,
is a mapping of tensors in its attribute `memory`, modified in place, so that an interrupted training can be resumed. A
new method is one such function and one line in METHODS.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from gfscore.attacks.gradient_ascent import cross_entropy, pgd, random_in_ball
from gfscore.core.errors import InputError
from gfscore.core.tensors import Generator, Module, Tensor

Objective = Callable[[Module, Tensor, Tensor], Tensor]
"""Function from a network, a batch of images and their labels to the loss to differentiate."""


@dataclass(frozen=True)
class Setup:
    """Arguments of all objectives: `classes` K, `threat` (norm, eps, step_size, steps), a torch `generator`."""

    classes: int
    threat: Mapping[str, Any]
    generator: Generator

    def attack(self, *keys: str) -> dict[str, Any]:
        """Values of the threat for `keys`, as a mapping; InputError for a missing one."""
        missing = [key for key in keys if (self.threat or {}).get(key) is None]
        if missing:
            raise InputError(f"this training method needs threat.{missing[0]}; add it to the model's entry")
        return {key: self.threat[key] for key in keys}

    def perturb(self, **changes: Any) -> Callable[..., Tensor]:
        """PGD within the threat, a function of a network, images, labels and, where given, another `loss`."""
        keys = [key for key in ("norm", "eps", "step_size", "steps") if key not in changes]
        return partial(pgd, generator=self.generator, **self.attack(*keys), **changes)


def erm(setup: Setup) -> Objective:
    """Empirical risk minimisation: mean cross-entropy of the clean images (Vapnik 1998)."""

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(network(images), labels).mean()

    return objective


def erm_with_augmentation(setup: Setup, *, rotation: float, shift: float, scale: float, flip: bool) -> Objective:
    """Empirical risk minimisation on randomly transformed images (Simard et al. 2003; Krizhevsky et al. 2012).

    Each image is rotated by up to `rotation` degrees, translated by up to `shift` of its side, and scaled by a factor
    between 1 - `scale` and 1 + `scale`, uniformly and independently; with `flip` it is flipped horizontally with
    probability 1/2, which is unsuitable for digits and letters.
    """

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        warped = warp(images, rotation=rotation, shift=shift, scale=scale, flip=flip, generator=setup.generator)
        return cross_entropy(network(warped), labels).mean()

    return objective


def fgsm_training(setup: Setup) -> Objective:
    """Adversarial training on single steps from a random start (Wong et al. 2020, Algorithm 3)."""
    perturb = setup.perturb(steps=1)

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(network(perturb(network, images, labels)), labels).mean()

    return objective


def pgd_training(setup: Setup) -> Objective:
    """Adversarial training: cross-entropy of PGD examples (Madry et al. 2018, section 2)."""
    perturb = setup.perturb()

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(network(perturb(network, images, labels)), labels).mean()

    return objective


def trades(setup: Setup, *, beta: float) -> Objective:
    """Clean cross-entropy + beta KL(p(x) || p(x')), x' maximising the latter (Zhang et al. 2019, section 3)."""
    perturb = setup.perturb()

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        import torch

        with torch.no_grad():
            target = network(images)
        # The divergence and its gradient are zero at x itself, so PGD needs its random start.
        adversarial = perturb(network, images, labels, loss=lambda logits, _: divergence(target, logits))
        return trades_loss(network(images), network(adversarial), labels, beta=beta)

    return objective


def mart(setup: Setup, *, lam: float) -> Objective:
    """Misclassification-aware adversarial training on PGD examples (Wang et al. 2020, section 3)."""
    perturb = setup.perturb()

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        adversarial = perturb(network, images, labels)
        return mart_loss(network(images), network(adversarial), labels, lam=lam)

    return objective


def probabilistic(setup: Setup, *, rho: float, samples: int) -> Objective:
    """Probabilistically robust learning: CVaR of the loss over random perturbations.

    Source: Robey et al. 2022, Algorithm 1. For each image, `samples` perturbations are drawn uniformly from the ball;
    its loss is the mean of the largest share `rho` of their losses. rho = 1 is the average, rho -> 0 the worst case.
    """
    ball = setup.attack("norm", "eps")
    if not 0 < rho <= 1 or rho * samples < 1:
        raise InputError(
            f"PRL needs 0 < rho <= 1 and rho * samples >= 1, got rho {rho}, samples {samples}; correct them"
        )

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        repeated = images.repeat_interleave(samples, dim=0)
        noise = random_in_ball(repeated, generator=setup.generator, **ball)
        losses = cross_entropy(network((repeated + noise).clamp(0, 1)), labels.repeat_interleave(samples))
        return conditional_value_at_risk(losses.reshape(len(images), samples), rho=rho).mean()

    return objective


def worst_class(setup: Setup, *, rate: float, floor: float) -> Objective:
    """Class-fair adversarial training: cross-entropy of PGD examples, weighted towards the worst class.

    The class weights are updated by exponentiated gradient: after each batch the weight of class k is multiplied by
    exp(`rate` times its mean adversarial loss); classes without samples in the batch are unchanged. A share `floor` of
    the weight remains uniform. Sources: Sagawa et al. 2020, Algorithm 1 (group DRO); Li and Liu 2023 (WAT) for classes
    under attack, with losses of a validation set in place of the training batch.
    """
    import torch

    perturb = setup.perturb()
    weights = torch.full((setup.classes,), 1 / setup.classes)

    def objective(network: Module, images: Tensor, labels: Tensor) -> Tensor:
        adversarial = perturb(network, images, labels)
        means, present = class_means(cross_entropy(network(adversarial), labels), labels, classes=setup.classes)
        weights.copy_(exponentiated_gradient(weights.to(means.device), means.detach(), rate=rate))
        used = (floor / setup.classes + (1 - floor) * weights.to(means.device)) * present
        return (used * means).sum() / used.sum()

    objective.memory = {"weights": weights}  # type: ignore[attr-defined]
    return objective


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
    others = adversarial.scatter(1, labels[:, None], -float("inf"))
    # 1 - p_k as a sum over the other classes, which is accurate where p_k rounds to 1.
    without_rival = adversarial.scatter(1, others.argmax(1, keepdim=True), -float("inf"))
    log_rest = without_rival.logsumexp(1) - adversarial.logsumexp(1)
    boosted = cross_entropy(adversarial, labels) - log_rest
    hardness = 1 - clean.softmax(1).gather(1, labels[:, None])[:, 0]
    return (boosted + lam * divergence(clean, adversarial) * hardness).mean()


def conditional_value_at_risk(losses: Tensor, *, rho: float, steps: int = 30) -> Tensor:
    """Mean of the largest share rho of each row, (n, M) -> (n,): min over alpha of alpha + E[(loss - alpha)_+] / rho.

    The inner problem is convex in alpha, so it is solved by `steps` bisections by the sign of the subgradient
    1 - P(loss > alpha) / rho, to 2^-steps of the row's range, where the paper takes a few fixed gradient steps.
    Sources: Rockafellar and Uryasev 2000, Theorem 1; Robey et al. 2022, Algorithm 1.
    """
    import torch

    with torch.no_grad():
        low, high = losses.amin(1), losses.amax(1)
        for _ in range(steps):
            alpha = (low + high) / 2
            # The tolerance absorbs rounding of rho * M, such as 0.3 * 10.
            rising = (losses > alpha[:, None]).sum(1) <= rho * losses.shape[1] + 1e-9
            low, high = torch.where(rising, low, alpha), torch.where(rising, alpha, high)
    # The minimum is the mean of the tail above alpha, completed to the share rho by the next loss. This form has the
    # exact gradient also for tied losses.
    tail = losses > high[:, None]
    missing = (1 - tail.sum(1) / (rho * losses.shape[1])).clamp_min(0)
    return (losses * tail).mean(1) / rho + missing * losses.masked_fill(tail, -float("inf")).amax(1)


def class_means(losses: Tensor, labels: Tensor, *, classes: int) -> tuple[Tensor, Tensor]:
    """Mean loss of each class in the batch, 0 for absent classes, and an indicator of presence: (K,), (K,)."""
    import torch

    members = torch.zeros(classes, len(labels), device=losses.device)
    members[labels, torch.arange(len(labels), device=losses.device)] = 1
    counts = members.sum(1)
    return members @ losses / counts.clamp_min(1), (counts > 0).to(losses.dtype)


def exponentiated_gradient(weights: Tensor, losses: Tensor, *, rate: float) -> Tensor:
    """Class weights (K,) after one step towards the classes of high loss; they are positive and sum to 1."""
    # Clamped, since a weight of 0 would never grow again.
    return (weights.clamp_min(1e-8).log() + rate * losses).softmax(0)


def warp(images: Tensor, *, rotation: float, shift: float, scale: float, flip: bool, generator: Generator) -> Tensor:
    """Images under random affine maps, bilinear with zeros outside; see `erm_with_augmentation` for the ranges."""
    import torch
    from torch.nn import functional

    def uniform(limit: float) -> Tensor:
        return limit * (2 * torch.rand(len(images), generator=generator) - 1)

    angle, size = uniform(math.radians(rotation)), 1 + uniform(scale)
    mirror = 1 - 2 * (torch.rand(len(images), generator=generator) < 0.5).float() if flip else torch.ones(len(images))
    # affine_grid's coordinates run from -1 to 1, so a side has length 2.
    across, down = uniform(2 * shift), uniform(2 * shift)
    cosine, sine = torch.cos(angle) / size, torch.sin(angle) / size
    rows = torch.stack([mirror * cosine, -sine, across, mirror * sine, cosine, down], dim=1)
    maps = rows.reshape(-1, 2, 3).to(images.device)
    grid = functional.affine_grid(maps, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid, align_corners=False).clamp(0, 1)


METHODS: dict[str, Callable[..., Objective]] = {
    "ERM": erm,
    "ERM_DA": erm_with_augmentation,
    "FGSM": fgsm_training,
    "PGD": pgd_training,
    "TRADES": trades,
    "MART": mart,
    "PRL": probabilistic,
    "WORST_CLASS": worst_class,
}
"""Functions that create objectives, by the name of the training method in config.yaml."""


def make_objective(method: str, setup: Setup, coefficients: Mapping[str, float]) -> Objective:
    """Objective of a training method; InputError for an unknown method, and for missing or unknown coefficients."""
    if method not in METHODS:
        raise InputError(f"training method {method!r} is unknown; choose one of {', '.join(METHODS)}")
    known = list(inspect.signature(METHODS[method]).parameters)[1:]
    if sorted(coefficients) != sorted(known):
        raise InputError(
            f"training method {method!r} takes the coefficients {known or 'none'}, "
            f"got {sorted(coefficients) or 'none'}; correct the model's entry"
        )
    return METHODS[method](setup, **coefficients)
