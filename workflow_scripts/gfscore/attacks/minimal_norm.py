"""Minimal-norm attacks: the nearest misclassified point that gradients lead to.

Images are tensors (n, C, H, W) in [0, 1], correctly classified, labels (n,) int64. An attack returns candidates (n, C,
H, W) in [0, 1], the nearest adversarial example that it met or the image itself, and the forward passes spent on each
image, (n,) int64. None draws random numbers or promises that a candidate is adversarial (`refine` tests that).
"""

import math

from gfscore.attacks.gradient_ascent import misclassified, per_image
from gfscore.attacks.search import slope_of
from gfscore.core.tensors import Module, Tensor

START_STEPS = 10
"""DeepFool steps before FMN; on robust and undefended CIFAR-10 networks four suffice for most images."""


def deepfool(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    largest_distance: float,
    steps: int = 50,
    candidates: int = 10,
    overshoot: float = 0.02,
) -> tuple[Tensor, Tensor]:
    """DeepFool: steps to the nearest class boundary of the linearised network, until the true class has lost.

    `candidates` is how many classes are considered, the true one among them; a step is `overshoot` longer than the
    linear model asks. An image that is misclassified, or whose gradients vanish, leaves the batch. `largest_distance`
    does not limit the search. Source: Moosavi-Dezfooli et al. 2016, Algorithm 2 and Eq. 11.
    """
    import torch

    points = images.clone()
    passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    active = torch.arange(len(images), device=images.device)
    for _ in range(steps):
        if len(active) == 0:
            break
        move, still = _to_linear_boundary(network, points[active], labels[active], norm=norm, rivals=candidates - 1)
        passes[active] += 1
        # Not by the mask itself, for each use of which a GPU would have to be waited for.
        kept = still.nonzero().flatten()
        active, move = active[kept], move[kept]
        points[active] = (points[active] + (1 + overshoot) * move).clamp(0, 1)
    return points, passes


def fmn(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    largest_distance: float,
    steps: int = 100,
    shrink: float = 0.05,
    first_step: float = 1.0,
    last_step: float = 0.05,
) -> tuple[Tensor, Tensor]:
    """Fast minimum-norm attack, started where DeepFool crosses the boundary.

    Gradient steps on the margin within a ball whose radius follows the boundary: it is the linearised distance until
    something is found, then shrinks by a share `shrink` after a success and grows by it after a failure. Step sizes,
    in units of the radius, and that share are annealed by a cosine. `steps` counts FMN's own steps; START_STEPS of
    DeepFool precede them. The radius never exceeds `largest_distance`. The start brings in boundaries to other classes
    than the second most likely one, where gradients of the margin alone do not lead.
    Sources: Pintor et al. 2021, Algorithm 1; step sizes relative to the radius are ours.
    """
    import torch

    start, passes = deepfool(network, images, labels, norm=norm, largest_distance=largest_distance, steps=START_STEPS)
    nearest, distance = images.clone(), torch.full((len(images),), math.inf, device=images.device)
    # Where DeepFool did not cross, its last iterate may be far away.
    with torch.no_grad():
        difference = torch.where(per_image(misclassified(network(start), labels), images), start, images) - images
    for step in range(steps):
        annealed = (1 + math.cos(math.pi * step / steps)) / 2
        share = shrink * max(annealed, 0.02)
        points = images + difference
        logits, margin, gradient = _margin(network, points, labels)
        adversarial, reach = misclassified(logits, labels), length(difference, norm)
        nearer = adversarial & (reach < distance)
        distance = torch.where(nearer, reach, distance)
        nearest = torch.where(per_image(nearer, images), points, nearest)
        linear = reach + margin.abs() / length(gradient, _DUAL[norm]).clamp_min(_TINY)
        radius = torch.where(distance < math.inf, reach * (1 + share), linear)
        radius = torch.where(adversarial, distance * (1 - share), radius.minimum(distance))
        radius = radius.clamp_max(largest_distance)
        step_size = radius * (last_step + (first_step - last_step) * annealed)
        difference = difference.addcmul(per_image(step_size * _scale(gradient, norm), images), gradient, value=-1)
        # Clipping shortens what was scaled to the sphere; once more makes up for most of it.
        for _ in range(2):
            difference = (images + _on_sphere(difference, radius, norm)).clamp(0, 1) - images
    return nearest, passes + 1 + steps


def length(difference: Tensor, norm: str) -> Tensor:
    """Norm of each image's difference, (n,): "l2", "linf" or "l1"."""
    return difference.flatten(1).norm(p={"l1": 1, "l2": 2, "linf": math.inf}[norm], dim=1)


def refine(network: Module, images: Tensor, candidates: Tensor, labels: Tensor, *, steps: int) -> tuple[Tensor, Tensor]:
    """Nearest adversarial example on the line from each image to its candidate, as far as bisection tells.

    Takes `candidates` (n, C, H, W) in [0, 1] and the number of bisection `steps`: the adversarial side is kept, so the
    end is within 2^-steps of the candidate's distance of a crossing (of one, where the line crosses several times).
    Returns points (n, C, H, W) and `found` (n,) bool; where the candidate is classified correctly nothing was found
    and the point is the image. Guaranteed, and asserted: points in [0, 1], found ones misclassified, a tie at the top
    being an error.
    """
    import torch

    difference = candidates - images

    def at(share: Tensor) -> Tensor:
        return (images + per_image(share, images) * difference).clamp(0, 1)

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
        points = torch.where(per_image(found, images), at(outside), images)
        _assert_adversarial(network, points, labels, found=found)
    return points, found


def _assert_adversarial(network, points, labels, *, found):
    assert points.min() >= 0, f"pixel below 0: {points.min()}"
    assert points.max() <= 1, f"pixel above 1: {points.max()}"
    wrong = misclassified(network(points), labels)
    assert (wrong | ~found).all(), (
        f"{int((~wrong & found).sum())} of {int(found.sum())} points are classified correctly"
    )


_TINY = 1e-20
_DUAL = {"l2": "l2", "linf": "l1"}


def _margin(network, points, labels):
    # Logits, true minus best other logit, and its gradient.
    points = points.detach().requires_grad_()
    logits = network(points)
    own, others = _own_and_others(logits, labels)
    best = others.amax(1, keepdim=True)
    tied = others == best
    weights = (tied / -tied.sum(1, keepdim=True)).scatter_(1, labels[:, None], 1.0)
    # A logit that overflowed leads nowhere, and must not spread.
    return logits.detach(), (own - best[:, 0]).nan_to_num(), _feasible(_gradient(logits, points, weights), points)


def _to_linear_boundary(network, points, labels, *, norm, rivals):
    # The shortest move to a boundary of the linearised network, and which points still are on the right side.
    import torch

    points = points.detach().requires_grad_()
    logits = network(points)
    own, others = _own_and_others(logits, labels)
    gaps, classes = others.topk(min(rivals, logits.shape[1] - 1), dim=1)
    # One slice per rival, so that all else is computed once and not once per rival; little beside what the gradients
    # themselves take.
    gradients = torch.empty(classes.shape[1], *points.shape, dtype=points.dtype, device=points.device)
    weights = others.new_zeros(len(gradients), *others.shape).scatter_(2, classes.T[:, :, None], -1.0)
    weights.scatter_(2, labels[:, None].expand(len(gradients), -1, 1), 1.0)
    for gradient, of_logits in zip(gradients, weights, strict=True):
        _gradient(logits, points, of_logits, out=gradient)
    _feasible(gradients, points)
    steepness = length(gradients.flatten(0, 1), _DUAL[norm]).reshape(len(gradients), -1)
    # Without a gradient the linear model has no boundary.
    distances = torch.where(steepness > 0, (own - gaps.T) / steepness.clamp_min(_TINY), math.inf)
    nearest, rival = distances.where(~distances.isnan(), math.inf).min(0)
    image = torch.arange(len(points), device=points.device)
    direction, steepness = gradients[rival, image], steepness[rival, image]
    still = ~misclassified(logits.detach(), labels) & nearest.isfinite()
    unit = direction.sign() if norm == "linf" else direction / per_image(steepness.clamp_min(_TINY), points)
    return -per_image(nearest, points) * unit, still


def _own_and_others(logits, labels):
    logits = logits.detach()
    own = logits.gather(1, labels[:, None])[:, 0]
    return own, logits.scatter(1, labels[:, None], -math.inf)


def _gradient(logits, points, weights, *, out=None):
    # Gradient of the weighted sum of an image's logits, where it is a number; with `out` not the last of these logits.
    import torch

    gradient = slope_of(logits, points, weights, retain_graph=out is not None)
    return torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0, out=out)


def _feasible(gradient, points):
    # In place. A pixel at the end of its range cannot follow the descent any further, so that others must.
    import torch

    points = points.detach()
    least, largest = torch.where(points >= 1, 0.0, -math.inf), torch.where(points <= 0, 0.0, math.inf)
    return gradient.clamp_(least, largest)


def _scale(gradient, norm):
    # What makes a gradient a direction, (n,): of length 1 in l2; for linf as long as the ball's corner in l2, so that a
    # step of one radius can cross the ball.
    scale = length(gradient, "l2").clamp_min(_TINY).reciprocal()
    return scale if norm == "l2" else scale * math.sqrt(gradient[0].numel())


def _on_sphere(difference, radius, norm):
    if norm == "linf":
        radius = per_image(radius, difference)
        return difference.clamp(-radius, radius)
    # Of exactly this length: a step inwards would waste what the radius allows.
    return difference * per_image(radius / length(difference, "l2").clamp_min(_TINY), difference)
