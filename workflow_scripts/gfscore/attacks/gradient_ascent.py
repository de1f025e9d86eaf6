"""Gradient ascent on a classifier's loss within a ball around each image: steps, projections, and the PGD of training.

Images are tensors (n, C, H, W) in [0, 1], labels (n,) int64; perturbations are in the same units. An attack returns
images of the same shape in the ball and in [0, 1], and leaves the network's mode and gradients as they were.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import Module, functional

SHORTEST = 1e-30
"""Length that replaces a shorter one before it divides."""


class Ball(TypedDict):
    """Points around an image: within distance `eps` of it in the norm "linf" or "l2"."""

    norm: str
    eps: float


def pgd(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    eps: float,
    step_size: float,
    steps: int,
    generator: Generator,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
) -> Tensor:
    """Projected gradient ascent from a random point of the ball: the last iterate of each sample.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, labels : Tensor
        (n, C, H, W) in [0, 1], and (n,) int64.
    norm : {"linf", "l2"}
        Norm of the ball.
    eps : float
        Radius of the ball.
    step_size : float
        Length of a step in the norm.
    steps : int
        Gradient steps.
    generator : Generator
        Draws the start, uniform in the ball.
    loss : callable, optional
        loss(logits, labels) -> (n,), what is maximised; cross-entropy if None.

    Returns
    -------
    Tensor
        (n, C, H, W) in the ball and in [0, 1].

    References
    ----------
    Madry et al. 2018, section 2.1; of one step: Wong et al. 2020, Algorithm 3.
    """
    if loss is None:
        loss = cross_entropy
    images = images.detach()
    ball = Ball(norm=norm, eps=eps)
    lowest = (images - eps).clamp_min_(0)
    highest = (images + eps).clamp_max_(1)

    start = images + random_in_ball(images, generator=generator, **ball)
    adversarial = project(start, images, **ball)
    for _ in range(steps):
        points = adversarial.detach().requires_grad_()
        total = loss(network(points), labels).sum()
        gradient = torch.autograd.grad(total, points)[0]
        moved = steepest(gradient, norm=norm).mul_(step_size).add_(points.detach())
        # A cube is left along each axis alone, so that its bounds are the same at every step.
        adversarial = moved.clamp_(lowest, highest) if norm == "linf" else project(moved, images, **ball)

    assert_allowed(adversarial, images, **ball)
    return adversarial


def survivors(
    network: Module,
    batches: Iterable[NDArray[np.float32]],
    labels: NDArray[np.integer],
    *,
    norm: str,
    eps: float,
    step_size: float,
    steps: int,
    restarts: int = 1,
    seed: int,
) -> NDArray[np.bool_]:
    """Which samples are classified correctly and survive PGD; their mean is the robust accuracy.

    A sample that is misclassified, clean or under an earlier restart, has not survived and leaves the batch. Surviving
    an attack proves nothing, so this is an upper bound on the share of robust samples.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    batches : iterable of ndarray
        Images (n, C, H, W) float32 in [0, 1], in the order of the labels.
    labels : ndarray
        (N,) int.
    norm, eps, step_size, steps : str, float, float, int
        As of `pgd`.
    restarts : int
        Random starts of each sample.
    seed : int
        Of the random starts.

    Returns
    -------
    ndarray
        (N,) bool.
    """
    parameter = next(network.parameters(), None)
    device = "cpu" if parameter is None else parameter.device
    generator = torch.Generator().manual_seed(seed)
    survived = np.zeros(len(labels), dtype=bool)

    start = 0
    for batch in batches:
        x = torch.from_numpy(batch).to(device)
        y = torch.from_numpy(labels[start : start + len(batch)].astype(np.int64)).to(device)
        with torch.no_grad():
            alive = torch.nonzero(correct(network(x), y)).flatten()
        for _ in range(restarts):
            if len(alive) == 0:
                break
            adversarial = pgd(
                network,
                x[alive],
                y[alive],
                norm=norm,
                eps=eps,
                step_size=step_size,
                steps=steps,
                generator=generator,
            )
            with torch.no_grad():
                right = correct(network(adversarial), y[alive])
            alive = alive[right]
        survived[start + alive.cpu().numpy()] = True
        start += len(batch)
    return survived


def attack_name(*, norm: str, eps: float, steps: int, restarts: int = 1, **_: object) -> str:
    """Name of a PGD attack as tables show it, for instance "PGD-20, l_inf 0.15"."""
    ball = {"linf": "l_inf", "l2": "l_2"}[norm]
    name = f"PGD-{steps}, {ball} {eps:g}"
    if restarts > 1:
        name += f", {restarts} restarts"
    return name


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the true class has the one largest logit, (n,) bool: a tie at the top is an error."""
    label_logits = logits.gather(1, labels[:, None])[:, 0]
    rivals = logits.scatter(1, labels[:, None], -float("inf"))
    return label_logits > rivals.amax(1)


def misclassified(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether a class other than the true one has a logit at least as large, (n,) bool; never where one is NaN."""
    return ~correct(logits, labels) & ~logits.isnan().any(1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each sample, (n,), in nats."""
    return functional.cross_entropy(logits, labels, reduction="none")


def random_in_ball(images: Tensor, *, norm: str, eps: float, generator: Generator) -> Tensor:
    """Perturbations drawn uniformly from the ball of radius eps, same shape as the images."""

    # Drawn where the generator lives, so that a GPU sees the same numbers as the CPU.
    def draw(function: str, shape: Sequence[int], *limits: float) -> Tensor:
        numbers = torch.empty(shape, device=generator.device)
        getattr(numbers, function)(*limits, generator=generator)
        return numbers.to(images.device)

    if norm == "linf":
        return draw("uniform_", images.shape, -eps, eps)
    direction = steepest(draw("normal_", images.shape), norm="l2")
    pixels = images[0].numel()
    # Volume grows with the radius to the power of the dimension.
    radius = eps * draw("uniform_", (len(images),)) ** (1 / pixels)
    return direction * per_image(radius, images)


def steepest(gradient: Tensor, *, norm: str) -> Tensor:
    """Step of length 1 in the norm that raises the linearised loss most; 0 where the gradient is 0."""
    if norm == "linf":
        return gradient.sign()
    length = gradient.flatten(1).norm(dim=1)
    return gradient / per_image(length.clamp_min(SHORTEST), gradient)


def project(points: Tensor, images: Tensor, *, norm: str, eps: float) -> Tensor:
    """Nearest point in the ball, then in [0, 1], which cannot leave the ball of an image in [0, 1].

    Parameters
    ----------
    points, images : Tensor
        (n, C, H, W).
    norm : {"linf", "l2"}
        Norm of the ball.
    eps : float
        Radius of the ball.
    """
    difference = points - images
    if norm == "linf":
        difference = difference.clamp(-eps, eps)
    else:
        length = difference.flatten(1).norm(dim=1)
        share = (eps / length.clamp_min(SHORTEST)).clamp_max(1)
        difference = difference * per_image(share, images)
    return (images + difference).clamp(0, 1)


def per_image(values: Tensor, images: Tensor) -> Tensor:
    """Values (n,) in a shape that broadcasts over images (n, C, H, W)."""
    return values.reshape(-1, *[1] * (images.ndim - 1))


def assert_allowed(adversarial: Tensor, images: Tensor, *, norm: str, eps: float) -> None:
    """Assert that points lie in the ball around their images, but for rounding, and in [0, 1]."""
    difference = (adversarial - images).flatten(1)
    length = difference.abs().amax(1) if norm == "linf" else difference.norm(dim=1)
    # float32: a difference of numbers in [0, 1] is off by up to 6e-8, a norm by that times sqrt(pixels).
    slack = 1e-7 * difference.shape[1] ** 0.5 + 1e-5 * eps
    # In one copy, as a GPU has to be waited for.
    extremes = torch.stack([length.max(), adversarial.min(), adversarial.max()])
    farthest, lowest, highest = extremes.cpu().tolist()
    assert farthest <= eps + slack, f"left the {norm} ball of radius {eps}: {farthest}"
    assert lowest >= 0, f"pixel below 0: {lowest}"
    assert highest <= 1, f"pixel above 1: {highest}"
