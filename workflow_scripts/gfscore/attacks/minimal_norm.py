"""Minimal-norm attacks: the nearest misclassified point that gradients lead to.

Images are tensors (n, C, H, W) in [0, 1], correctly classified, labels (n,) int64. An attack returns candidates (n, C,
H, W) in [0, 1], the nearest adversarial example that it met or the image itself, and the forward passes spent on each
image, (n,) int64. None draws random numbers or promises that a candidate is adversarial (`refine` tests that).
"""

import math

import torch
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.gradient_ascent import logit_of, misclassified, other_logits, per_image, power_of_two
from gfscore.attacks.search import gradient_of

START_STEPS = 10
"""DeepFool steps before FMN; on robust and undefended CIFAR-10 networks four suffice for most images."""

CANDIDATES = 10
"""Classes that DeepFool considers, the true one among them."""

SHRINK = 0.05
"""Share by which FMN's radius changes, annealed by a cosine."""

FIRST_STEP = 1.0
LAST_STEP = 0.05
"""Step sizes of FMN in units of the radius, annealed by a cosine from the first to the last."""

LEAST_ANNEALING = 0.02
"""Share of the change of FMN's radius that remains at the last step."""

ORDERS = {"l1": 1, "l2": 2, "linf": math.inf}
DUAL = {"l2": "l2", "linf": "l1"}
TINY = 1e-20
"""Length of a gradient that replaces a shorter one before it divides."""


def deepfool(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    largest_distance: float,
    steps: int = 50,
    overshoot: float = 0.02,
) -> tuple[Tensor, Tensor]:
    """DeepFool: steps to the nearest class boundary of the linearised network, until the true class has lost.

    An image that is misclassified, or whose gradients vanish, leaves the batch.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, labels : Tensor
        (n, C, H, W) in [0, 1], and (n,) int64.
    norm : {"linf", "l2"}
        Norm of the distance.
    largest_distance : float
        Does not limit the search.
    steps : int
        Gradient steps, each with a gradient for every class considered.
    overshoot : float
        Share by which a step is longer than the linear model needs.

    Returns
    -------
    points, passes : Tensor
        (n, C, H, W), and (n,) int64.

    References
    ----------
    Moosavi-Dezfooli et al. 2016, Algorithm 2 and Eq. 11.
    """
    points = images.clone()
    passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    active = torch.arange(len(images), device=images.device)
    for _ in range(steps):
        if len(active) == 0:
            break
        move, still_right = _to_linear_boundary(network, points[active], labels[active], norm=norm)
        passes[active] += 1
        # Not by the mask itself, for each use of which a GPU would have to be waited for.
        keep = still_right.nonzero().flatten()
        active, move = active[keep], move[keep]
        points[active] = (points[active] + (1 + overshoot) * move).clamp(0, 1)
    return points, passes


def fmn(
    network: Module, images: Tensor, labels: Tensor, *, norm: str, largest_distance: float, steps: int = 100
) -> tuple[Tensor, Tensor]:
    """Fast minimum-norm attack, started where DeepFool crosses the boundary.

    Gradient steps on the margin within a ball whose radius follows the boundary: it is the linearised distance until
    the first success, then shrinks by a share after a success and grows by the same share after a failure. The start
    brings in boundaries to other classes than the second most likely one, where gradients of the margin alone do not
    lead.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, labels : Tensor
        (n, C, H, W) in [0, 1], and (n,) int64.
    norm : {"linf", "l2"}
        Norm of the distance.
    largest_distance : float
        The radius never exceeds it.
    steps : int
        FMN's own steps; START_STEPS of DeepFool precede them.

    Returns
    -------
    points, passes : Tensor
        (n, C, H, W), and (n,) int64.

    References
    ----------
    Pintor et al. 2021, Algorithm 1; step sizes relative to the radius are ours.
    """
    start, passes = deepfool(network, images, labels, norm=norm, largest_distance=largest_distance, steps=START_STEPS)
    # Where DeepFool did not cross, its last iterate may be far away.
    with torch.no_grad():
        crossed = misclassified(network(start), labels)
        difference = torch.where(per_image(crossed, images), start, images) - images

    nearest = images.clone()
    distance = torch.full((len(images),), math.inf, device=images.device)
    for step in range(steps):
        annealed = (1 + math.cos(math.pi * step / steps)) / 2
        share = SHRINK * max(annealed, LEAST_ANNEALING)
        points = images + difference
        logits, margin, gradient = _margin(network, points, labels)

        adversarial = misclassified(logits, labels)
        reach = length(difference, norm)
        nearer = adversarial & (reach < distance)
        distance = torch.where(nearer, reach, distance)
        nearest = torch.where(per_image(nearer, images), points, nearest)

        linear = reach + margin.abs() / length(gradient, DUAL[norm]).clamp_min(TINY)
        grown = torch.where(distance < math.inf, reach * (1 + share), linear)
        radius = torch.where(adversarial, distance * (1 - share), grown.minimum(distance))
        radius = radius.clamp_max(largest_distance)

        step_size = radius * (LAST_STEP + (FIRST_STEP - LAST_STEP) * annealed)
        along = per_image(step_size * _scale(gradient, norm), images)
        difference = difference.addcmul(along, gradient, value=-1)
        # Clipping shortens what was scaled to the sphere; once more makes up for most of it.
        for _ in range(2):
            difference = (images + _on_sphere(difference, radius, norm)).clamp(0, 1) - images
    return nearest, passes + 1 + steps


def length(difference: Tensor, norm: str) -> Tensor:
    """Norm of each image's difference, (n,): "l2", "linf" or "l1"."""
    return difference.flatten(1).norm(p=ORDERS[norm], dim=1)


def refine(network: Module, images: Tensor, candidates: Tensor, labels: Tensor, *, steps: int) -> tuple[Tensor, Tensor]:
    """Nearest adversarial example on the line from each image to its candidate, by bisection.

    The adversarial side is kept, so the end is within 2^-steps of the candidate's distance of a crossing (of one, where
    the line crosses several times). Asserted: points in [0, 1], adversarial ones misclassified, a tie at the top being
    an error.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, candidates : Tensor
        (n, C, H, W) in [0, 1].
    labels : Tensor
        (n,) int64.
    steps : int
        Halvings.

    Returns
    -------
    points : Tensor
        (n, C, H, W); the image where the candidate is classified correctly.
    adversarial : Tensor
        (n,) bool, whether the candidate is misclassified.
    """
    difference = candidates - images

    def at(share: Tensor) -> Tensor:
        return (images + per_image(share, images) * difference).clamp(0, 1)

    # Every pass takes the whole batch: rounding depends on a batch's size, and these points lie on the boundary.
    with torch.no_grad():
        outside = torch.ones(len(images), device=images.device)
        inside = torch.zeros_like(outside)
        adversarial = misclassified(network(at(outside)), labels)
        for _ in range(steps):
            middle = (inside + outside) / 2
            crossed = misclassified(network(at(middle)), labels)
            outside = torch.where(crossed, middle, outside)
            inside = torch.where(crossed, inside, middle)
        points = torch.where(per_image(adversarial, images), at(outside), images)

        assert points.min() >= 0, f"pixel below 0: {points.min()}"
        assert points.max() <= 1, f"pixel above 1: {points.max()}"
        right = ~misclassified(network(points), labels) & adversarial
        assert not right.any(), f"{int(right.sum())} of {int(adversarial.sum())} points are classified correctly"
    return points, adversarial


def _margin(network: Module, points: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    # Logits, and true minus best other logit with its gradient, both divided by a power of two.
    points = points.detach().requires_grad_()
    logits = network(points)
    rivals = other_logits(logits.detach(), labels)
    best = rivals.amax(1, keepdim=True)
    tied = rivals == best
    weights = (tied / -tied.sum(1, keepdim=True)).scatter_(1, labels[:, None], 1.0)
    gradient = _feasible(_gradient(logits, points, weights), points)
    # A logit that overflowed leads nowhere, and must not spread.
    margin = (logit_of(logits.detach(), labels) - best[:, 0]).nan_to_num()
    power = power_of_two(gradient)
    return logits.detach(), margin / power, gradient / per_image(power, gradient)


def _to_linear_boundary(network: Module, points: Tensor, labels: Tensor, *, norm: str) -> tuple[Tensor, Tensor]:
    # The shortest move to a boundary of the linearised network, and which points still are on the right side.
    points = points.detach().requires_grad_()
    logits = network(points)
    rivals = other_logits(logits.detach(), labels)
    rival_logits, classes = rivals.topk(min(CANDIDATES, logits.shape[1]) - 1, dim=1)

    # One slice per rival, so that all else is computed once and not once per rival; little against what the gradients
    # themselves take.
    gradients = torch.empty(classes.shape[1], *points.shape, dtype=points.dtype, device=points.device)
    weights = rivals.new_zeros(len(gradients), *rivals.shape).scatter_(2, classes.T[:, :, None], -1.0)
    weights.scatter_(2, labels[:, None].expand(len(gradients), -1, 1), 1.0)
    for gradient, rival_weights in zip(gradients, weights, strict=True):
        _gradient(logits, points, rival_weights, out=gradient)
    _feasible(gradients, points)

    # Without a gradient the linear model has no boundary.
    power = power_of_two(gradients.flatten(0, 1))
    gradients.flatten(0, 1).div_(per_image(power, points))
    steepness = length(gradients.flatten(0, 1), DUAL[norm]).reshape(len(gradients), -1)
    leads = (logit_of(logits.detach(), labels) - rival_logits.T) / power.reshape(steepness.shape)
    distances = torch.where(steepness > 0, leads / steepness.clamp_min(TINY), math.inf)
    nearest, rival = distances.where(~distances.isnan(), math.inf).min(0)
    still_right = ~misclassified(logits.detach(), labels) & nearest.isfinite()

    rows = torch.arange(len(points), device=points.device)
    direction = gradients[rival, rows]
    slope = steepness[rival, rows].clamp_min(TINY)
    unit = direction.sign() if norm == "linf" else direction / per_image(slope, points)
    return -per_image(nearest, points) * unit, still_right


def _gradient(logits: Tensor, points: Tensor, weights: Tensor, *, out: Tensor | None = None) -> Tensor:
    # Gradient of a weighted sum of an image's logits, 0 in place of NaN and infinity. With `out`, where it is written,
    # further gradients of the same logits can follow.
    gradient = gradient_of(logits, points, weights, retain_graph=out is not None)
    return torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0, out=out)


def _feasible(gradient: Tensor, points: Tensor) -> Tensor:
    # In place. A pixel at the end of its range cannot follow the descent any further, so that others must.
    points = points.detach()
    least = torch.where(points >= 1, 0.0, -math.inf)
    largest = torch.where(points <= 0, 0.0, math.inf)
    return gradient.clamp_(least, largest)


def _scale(gradient: Tensor, norm: str) -> Tensor:
    # What makes a gradient a direction, (n,): of length 1 in l2; for linf as long as the ball's corner in l2, so that a
    # step of one radius can cross the ball.
    scale = length(gradient, "l2").clamp_min(TINY).reciprocal()
    if norm == "l2":
        return scale
    return scale * math.sqrt(gradient[0].numel())


def _on_sphere(difference: Tensor, radius: Tensor, norm: str) -> Tensor:
    if norm == "linf":
        radius = per_image(radius, difference)
        return difference.clamp(-radius, radius)
    # Of exactly this length: a step inwards would waste what the radius allows.
    return difference * per_image(radius / length(difference, "l2").clamp_min(TINY), difference)
