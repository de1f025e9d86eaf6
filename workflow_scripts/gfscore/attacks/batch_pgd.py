"""PGD of a whole batch, as training uses it: every image stays to the last step.

Images are tensors (n, C, H, W) in [0, 1], labels (n,) int64; perturbations are in the same units. One
generator draws for all images; measures, whose values must not depend on the batch, use gfscore.attacks.ball_attacks.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor
from torch.nn import Module

from gfscore.attacks.gradient_ascent import (
    assert_allowed,
    broadcast,
    correct,
    cross_entropy,
    per_image,
    project,
    steepest,
)
from gfscore.networks.devices import device_of_weights


def batch_pgd(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    eps: float | Tensor,
    step_size: float | Tensor,
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
    eps : float or Tensor of shape (n,)
        Radius of the ball, or of each image's.
    step_size : float or Tensor of shape (n,)
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
    radius = broadcast(eps, images)
    length = broadcast(step_size, images)
    lowest = (images - radius).clamp_min_(0)
    highest = (images + radius).clamp_max_(1)

    start = images + uniform_noise(images, norm=norm, eps=eps, generator=generator)
    adversarial = project(start, images, norm=norm, eps=eps)
    for _ in range(steps):
        points = adversarial.detach().requires_grad_()
        total = loss(network(points), labels).sum()
        gradient = torch.autograd.grad(total, points)[0]
        moved = steepest(gradient, norm=norm).mul_(length).add_(points.detach())
        # A cube is left along each axis alone, so that its bounds are the same at every step.
        adversarial = moved.clamp_(lowest, highest) if norm == "linf" else project(moved, images, norm=norm, eps=eps)

    assert_allowed(adversarial, images, norm=norm, eps=eps)
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
        See `batch_pgd`.
    restarts : int
        Random starts of each sample.
    seed : int
        Seed of the random starts.

    Returns
    -------
    ndarray
        (N,) bool.
    """
    device = device_of_weights(network)
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
            adversarial = batch_pgd(
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


def uniform_noise(images: Tensor, *, norm: str, eps: float | Tensor, generator: Generator) -> Tensor:
    """Perturbations drawn uniformly from the ball of radius eps, or (n,) of each image's; same shape as the images."""
    if isinstance(eps, Tensor):
        return uniform_noise(images, norm=norm, eps=1.0, generator=generator) * per_image(eps, images)

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
