"""What every gradient ascent in a ball is made of: steps, projections, the loss, and when a sample is misclassified.

Images are tensors (n, C, H, W) in [0, 1], labels (n,) int64; perturbations are in the same units.
"""

from typing import TypedDict

import torch
from torch import Tensor
from torch.nn import functional

SHORTEST = 1e-30
"""Length that replaces a shorter one before it divides."""


class Ball(TypedDict):
    """Points around an image: within distance `eps` of it in the norm "linf" or "l2"."""

    norm: str
    eps: float


def logit_of(logits: Tensor, classes: Tensor) -> Tensor:
    """Logit of one class of each sample, (n,)."""
    return logits.gather(1, classes[:, None])[:, 0]


def other_logits(logits: Tensor, classes: Tensor) -> Tensor:
    """Logits (n, K) with -infinity in the place of one class of each sample."""
    return logits.scatter(1, classes[:, None], -float("inf"))


def correct(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether the true class has the one largest logit, (n,) bool: a tie at the top is an error."""
    return logit_of(logits, labels) > other_logits(logits, labels).amax(1)


def margins(logits: Tensor, labels: Tensor) -> Tensor:
    """Logit of the true class minus the largest other one, (n,): positive where the sample is right."""
    return logit_of(logits, labels) - other_logits(logits, labels).amax(1)


def misclassified(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether a class other than the true one has a logit at least as large, (n,) bool; never where one is NaN."""
    return ~correct(logits, labels) & ~logits.isnan().any(1)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each sample, (n,), in nats."""
    return functional.cross_entropy(logits, labels, reduction="none")


def steepest(gradient: Tensor, *, norm: str) -> Tensor:
    """Step of length 1 in the norm that raises the linearised loss most; 0 where the gradient is 0."""
    if norm == "linf":
        return gradient.sign()
    gradient = gradient / per_image(power_of_two(gradient), gradient)
    length = gradient.flatten(1).norm(dim=1)
    return gradient / per_image(length.clamp_min(SHORTEST), gradient)


def power_of_two(gradients: Tensor) -> Tensor:
    """Power of two near the largest number of each gradient (n, ...), (n,); 1 where all are 0.

    Dividing by it rounds nothing, and afterwards squares neither overflow nor vanish, as they would in float32 where a
    network multiplies its logits by 1e20 or 1e-22.
    """
    rows = gradients.flatten(1)
    largest = torch.maximum(rows.amax(1), -rows.amin(1))
    return (largest / (2 * largest.frexp().mantissa)).where(largest > 0, 1.0)


def project(points: Tensor, images: Tensor, *, norm: str, eps: float | Tensor) -> Tensor:
    """Nearest point in the ball, then in [0, 1], which cannot leave the ball of an image in [0, 1].

    Parameters
    ----------
    points, images : Tensor
        (n, C, H, W).
    norm : {"linf", "l2"}
        Norm of the ball.
    eps : float or Tensor of shape (n,)
        Radius of the ball, or of each image's.
    """
    difference = points - images
    if norm == "linf":
        radius = broadcast(eps, images)
        # Two numbers or two tensors, which the types of torch do not know.
        difference = difference.clamp(-radius, radius)  # type: ignore[arg-type]
    else:
        length = difference.flatten(1).norm(dim=1)
        share = (eps / length.clamp_min(SHORTEST)).clamp_max(1)
        difference = difference * per_image(share, images)
    return (images + difference).clamp(0, 1)


def per_image(values: Tensor, images: Tensor) -> Tensor:
    """Values (n,) in a shape that broadcasts over images (n, C, H, W)."""
    return values.reshape(-1, *[1] * (images.ndim - 1))


def broadcast(value: float | Tensor, images: Tensor) -> float | Tensor:
    """A number for all images, or (n,) numbers in a shape that broadcasts over images."""
    return per_image(value, images) if isinstance(value, Tensor) else value


def assert_allowed(adversarial: Tensor, images: Tensor, *, norm: str, eps: float | Tensor) -> None:
    """Assert that points lie in the ball around their images, but for rounding, and in [0, 1]."""
    difference = (adversarial - images).flatten(1)
    length = difference.abs().amax(1) if norm == "linf" else difference.norm(dim=1)
    # float32: a difference of numbers in [0, 1] is off by up to 6e-8, a norm by that times sqrt(pixels).
    slack = 1e-7 * difference.shape[1] ** 0.5
    # One transfer, because each waits for the GPU.
    extremes = torch.stack([(length - (1 + 1e-5) * eps).max(), adversarial.min(), adversarial.max()])
    excess, lowest, highest = extremes.cpu().tolist()
    assert excess <= slack, f"left the {norm} ball of radius {eps} by {excess}"
    assert lowest >= 0, f"pixel below 0: {lowest}"
    assert highest <= 1, f"pixel above 1: {highest}"
