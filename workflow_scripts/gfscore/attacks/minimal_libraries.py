"""Minimal-norm attacks of public libraries, in the form of gfscore.attacks.minimal_norm.

Why others are not offered: of foolbox 3.3.4, L2FMNAttack never projects onto its ball (it finds distance 1 for every
image), DDNAttack is up to 40% too far on linear models after 200 steps, the Brendel-Bethge attack needs numba, and
DeepFool classifies once per class and step and keeps finished images in the batch; the targeted FAB of pyautoattack
0.2.0 stops at the first class that works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gfscore.attacks.boundary import refine
from gfscore.attacks.gradient_ascent import per_image
from gfscore.attacks.library_networks import as_library_expects
from gfscore.attacks.minimal_norm import length, require_norm

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

PROJECTIONS, BISECTIONS = ((1, 0.02), (9, 0.02), (1, 0.002)), 10
"""After Carlini and Wagner's attack: boundaries to how many classes each projection considers, and which share too far
it goes, so that there is something to bisect; steps of each bisection."""


def carlini_wagner(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    largest_distance: float,
    steps: int = 600,
    binary_search_steps: int = 9,
    step_size: float = 0.01,
) -> tuple[Tensor, Tensor]:
    """Carlini and Wagner's l2 attack, by foolbox: Adam on squared distance plus c times the margin, c searched.

    Adam's steps have a fixed length, so that even on linear models one end in ten is 4 to 25% too far. Projections of
    the image onto linearised boundaries follow, of which none can end farther. On a small adversarially trained
    network, after them, one end in ten is still 29% farther than what FMN or FAB finds with 100 steps of 0.01, the
    worst 3.5 times as far; with 600 such steps 6% and 1.5 times, with 100 steps of 0.05 8% and 1.5 times. Takes up to
    `steps` times `binary_search_steps` passes and about 50. Sources: Carlini and Wagner 2017, sections V and VI; the
    projections are those of Croce and Hein 2020, Eq. 7.
    """
    import foolbox

    require_norm(norm, ("l2",), attack="carlini-wagner")
    attack = foolbox.attacks.L2CarliniWagnerAttack(
        steps=steps, binary_search_steps=binary_search_steps, stepsize=step_size
    )
    with as_library_expects(network, seed=0) as counted:
        model = foolbox.PyTorchModel(counted, bounds=(0, 1), device=images.device)
        ends = attack.run(model, images, foolbox.Misclassification(labels))
        return _drawn_nearer(counted, images, ends.detach(), labels), _passes(counted, images)


def fab(
    network: Module, images: Tensor, labels: Tensor, *, norm: str, largest_distance: float, steps: int = 100
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack, untargeted, by pyautoattack: one gradient per class and step.

    Source: Croce and Hein 2020, Algorithm 1.
    """
    from pyautoattack.fab_pt import FABAttack_PT

    require_norm(norm, ("linf", "l2"), attack="fab")
    name = {"linf": "Linf", "l2": "L2"}[norm]
    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(counted, norm=name, eps=largest_distance, n_iter=steps, device=images.device)
        return attack.perturb(images, labels), _passes(counted, images)


def _drawn_nearer(network, images, candidates, labels):
    # Adversarial examples at most as far as the candidates; the image where a candidate is none.
    import torch

    nearest, found = refine(network, images, candidates, labels, steps=BISECTIONS)
    for rivals, overshoot in PROJECTIONS:
        onto = _projected(network, images, nearest, labels, rivals=rivals, overshoot=overshoot)
        points, there = refine(network, images, onto, labels, steps=BISECTIONS)
        nearer = found & there & (length(points - images, "l2") < length(nearest - images, "l2"))
        nearest = torch.where(per_image(nearer, images), points, nearest)
    return nearest


def _projected(network, images, points, labels, *, rivals, overshoot):
    # Images moved just across the nearest class boundary of the network that is linearised at the points.
    import torch
    from pyautoattack.fab_projections import projection_l2

    points = points.detach().requires_grad_()
    logits = network(points)
    own, others = logits.gather(1, labels[:, None])[:, 0], logits.scatter(1, labels[:, None], -torch.inf)
    found = []
    for rival in others.topk(min(rivals, logits.shape[1] - 1), dim=1).values.unbind(1):
        gradient = torch.autograd.grad((own - rival).sum(), points, retain_graph=True)[0].flatten(1)
        steepness = gradient.norm(dim=1).clamp_min(1e-20)
        # Of length 1, since the projection takes small weights for none.
        across = gradient / steepness[:, None]
        # Distance from the image: the boundary's from the point, and that of the two along the gradient.
        gap = (own - rival).detach() / steepness + (across * (images - points.detach()).flatten(1)).sum(1)
        found.append((gap, across))
    gaps, directions = (torch.stack(parts) for parts in zip(*found, strict=True))
    # Behind the image, without a gradient or without a number there is no boundary to go to.
    best = gaps.where((gaps > 0) & (directions.abs().amax(2) > 0), torch.inf).argmin(0)
    rows = torch.arange(len(images), device=images.device)
    gap, across = gaps[best, rows], directions[best, rows]
    move = projection_l2(images.flatten(1), across, (across * images.flatten(1)).sum(1) - gap)
    return (images + (1 + overshoot) * move.nan_to_num(nan=0.0).reshape(images.shape)).clamp(0, 1)


def _passes(counted, batch):
    import torch

    each = -(-counted.images // len(batch))
    return torch.full((len(batch),), each, dtype=torch.int64, device=batch.device)
