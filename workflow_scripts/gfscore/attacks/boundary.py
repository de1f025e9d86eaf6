"""Where the line from an image to an adversarial example crosses the decision boundary.

Tensors as in gfscore.attacks.gradient_ascent: images (n, C, H, W) in [0, 1], labels (n,) int64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.attacks.gradient_ascent import correct

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def refine(network: Module, images: Tensor, candidates: Tensor, labels: Tensor, *, steps: int) -> tuple[Tensor, Tensor]:
    """Nearest adversarial example on the line from each image to its candidate, as far as bisection tells.

    Takes `candidates` (n, C, H, W) in [0, 1] and the number of bisection `steps`: the adversarial side is kept, so the
    end is within 2^-steps of the candidate's distance of a crossing (of one, where the line crosses several times).
    Returns points (n, C, H, W) and `found` (n,) bool; where the candidate is classified correctly nothing was found
    and the point is the image. Guaranteed, and asserted: points in [0, 1], found ones misclassified, a tie at the top
    being an error.
    """
    import torch

    shape = (-1, *[1] * (images.ndim - 1))
    difference = candidates - images

    def at(share: Tensor) -> Tensor:
        return (images + share.reshape(shape) * difference).clamp(0, 1)

    # Every pass takes the whole batch: rounding depends on a batch's size, and these points lie on the boundary.
    with torch.no_grad():
        outside = torch.ones(len(images), device=images.device)
        inside = torch.zeros_like(outside)
        found = misclassified(network(at(outside)), labels)
        for _ in range(steps):
            middle = (inside + outside) / 2
            adversarial = misclassified(network(at(middle)), labels)
            outside = torch.where(adversarial, middle, outside)
            inside = torch.where(adversarial, inside, middle)
        points = torch.where(found.reshape(shape), at(outside), images)
        _assert_adversarial(network, points, labels, found=found)
    return points, found


def misclassified(logits: Tensor, labels: Tensor) -> Tensor:
    """Whether a class other than the true one has a logit at least as large, (n,) bool; never where one is NaN."""
    return ~correct(logits, labels) & ~logits.isnan().any(1)


def _assert_adversarial(network, points, labels, *, found):
    assert points.min() >= 0, f"pixel below 0: {points.min()}"
    assert points.max() <= 1, f"pixel above 1: {points.max()}"
    wrong = misclassified(network(points), labels)
    assert (wrong | ~found).all(), (
        f"{int((~wrong & found).sum())} of {int(found.sum())} points are classified correctly"
    )
