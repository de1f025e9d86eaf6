"""White-box attacks: gradient ascent on a classifier's loss within a ball around each image.

Images are tensors (n, C, H, W) in [0, 1], labels (n,) int64; perturbations are in the same units. An attack
returns images of the same shape in the ball and in [0, 1], and leaves the network's mode and gradients as
they were.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from gfscore.core.tensors import Generator, Module, Tensor


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

    `norm` is "linf" or "l2", `eps` the ball's radius, `step_size` the length of a step in that norm, `generator` a
    torch Generator, by which the start is uniform in the ball, `loss(logits, labels)` -> (n,) what is maximised,
    cross-entropy unless given. Sources: Madry et al. 2018, section 2.1; of one step: Wong et al. 2020, Algorithm 3.
    """
    import torch

    loss = cross_entropy if loss is None else loss
    images, ball = images.detach(), Ball(norm=norm, eps=eps)
    lowest, highest = (images - eps).clamp_min_(0), (images + eps).clamp_max_(1)
    adversarial = project(images + random_in_ball(images, generator=generator, **ball), images, **ball)
    for _ in range(steps):
        points = adversarial.detach().requires_grad_()
        gradient = torch.autograd.grad(loss(network(points), labels).sum(), points)[0]
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
    """Which samples are classified correctly and survive PGD, (N,) bool; their mean is the robust accuracy.

    Takes images in `batches`, arrays (n, C, H, W) float32 in the order of `labels` (N,). A sample that is
    misclassified, clean or under an earlier restart, has not survived and leaves the batch. Surviving an attack proves
    nothing, so this is an upper bound on the share of robust samples. `seed` determines the random starts.
    """
    import torch

    attack: dict[str, Any] = {"norm": norm, "eps": eps, "step_size": step_size, "steps": steps}
    device = next((value.device for value in network.parameters()), "cpu")
    generator = torch.Generator().manual_seed(seed)
    survived, start = np.zeros(len(labels), dtype=bool), 0
    for batch in batches:
        x = torch.from_numpy(batch).to(device)
        y = torch.from_numpy(labels[start : start + len(batch)].astype(np.int64)).to(device)
        with torch.no_grad():
            alive = torch.nonzero(correct(network(x), y)).flatten()
        for _ in range(restarts):
            if len(alive) == 0:
                break
            adversarial = pgd(network, x[alive], y[alive], generator=generator, **attack)
            with torch.no_grad():
                alive = alive[correct(network(adversarial), y[alive])]
        survived[start + alive.cpu().numpy()] = True
        start += len(batch)
    return survived


def attack_name(*, norm: str, eps: float, steps: int, restarts: int = 1, **_: object) -> str:
    """Name of a PGD attack as tables show it, for instance "PGD-20, l_inf 0.15"."""
    ball = {"linf": "l_inf", "l2": "l_2"}[norm]
    return f"PGD-{steps}, {ball} {eps:g}" + (f", {restarts} restarts" if restarts > 1 else "")


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the true class has the one largest logit, (n,) bool: a tie at the top is an error."""
    own = logits.gather(1, labels[:, None])
    others = logits.scatter(1, labels[:, None], -float("inf"))
    return own[:, 0] > others.amax(1)


def misclassified(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether a class other than the true one has a logit at least as large, (n,) bool; never where one is NaN."""
    return ~correct(logits, labels) & ~logits.isnan().any(1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each sample, (n,), in nats."""
    from torch.nn import functional

    return functional.cross_entropy(logits, labels, reduction="none")


def random_in_ball(images: Tensor, *, norm: str, eps: float, generator: Generator) -> Tensor:
    """Perturbations drawn uniformly from the ball of radius eps, same shape as the images."""
    import torch

    # Drawn where the generator lives, so that a GPU sees the same numbers as the CPU.
    def draw(function: str, shape: Sequence[int], *limits: float) -> Tensor:
        drawn = getattr(torch.empty(shape, device=generator.device), function)(*limits, generator=generator)
        return drawn.to(images.device)

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
    return gradient / per_image(length.clamp_min(1e-30), gradient)


def project(points: Tensor, images: Tensor, *, norm: str, eps: float) -> Tensor:
    """Nearest point in the ball, then in [0, 1], which cannot leave the ball of an image in [0, 1]."""
    difference = points - images
    if norm == "linf":
        difference = difference.clamp(-eps, eps)
    else:
        length = difference.flatten(1).norm(dim=1)
        difference = difference * per_image((eps / length.clamp_min(1e-30)).clamp_max(1), images)
    return (images + difference).clamp(0, 1)


def per_image(values: Tensor, images: Tensor) -> Tensor:
    """Values (n,) in a shape that broadcasts over images (n, C, H, W)."""
    return values.reshape(-1, *[1] * (images.ndim - 1))


def assert_allowed(adversarial: Tensor, images: Tensor, *, norm: str, eps: float) -> None:
    """Assert that points lie in the ball around their images, but for rounding, and in [0, 1]."""
    import torch

    difference = (adversarial - images).flatten(1)
    length = difference.abs().amax(1) if norm == "linf" else difference.norm(dim=1)
    # float32: a difference of numbers in [0, 1] is off by up to 6e-8, a norm by that times sqrt(pixels).
    slack = 1e-7 * difference.shape[1] ** 0.5 + 1e-5 * eps
    # At once, as a GPU has to be waited for.
    farthest, lowest, highest = torch.stack([length.max(), adversarial.min(), adversarial.max()]).cpu().tolist()
    assert farthest <= eps + slack, f"left the {norm} ball of radius {eps}: {farthest}"
    assert lowest >= 0, f"pixel below 0: {lowest}"
    assert highest <= 1, f"pixel above 1: {highest}"
