"""Attacks of public libraries, in the forms of gfscore.attacks.ball_attacks and gfscore.attacks.minimal_norm.

Within a ball only FAB and Square come from there. pyautoattack's Auto-PGD keeps fooled images to the end of a restart,
and its targeted one fails with fewer than 4 classes; foolbox 3.3.4 has neither Auto-PGD, FAB nor Square, and the
projected gradient descent of both foolbox and the adversarial-robustness-toolbox 1.20.1 tests the last iterate only and
never lets an image go. benchmarks/attacks.py compares them.

Why other searches for the nearest point are not offered: of foolbox 3.3.4, L2FMNAttack never projects onto its ball (it
finds distance 1 for every image), DDNAttack is up to 40% too far on linear models after 200 steps, the Brendel-Bethge
attack needs numba, and DeepFool classifies once per class and step and keeps finished images in the batch; the targeted
FAB of pyautoattack 0.2.0 stops at the first class that works.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gfscore.attacks.gradient_ascent import Ball, misclassified, per_image
from gfscore.attacks.minimal_norm import length, refine
from gfscore.attacks.search import no_gradient
from gfscore.core.errors import InputError
from gfscore.core.tensors import Module, Tensor
from gfscore.statistics.draws import Draws

_NORM = {"linf": "Linf", "l2": "L2"}


@contextmanager
def as_library_expects(network: Module, *, seed: int) -> Iterator[Any]:
    """Give the network as a module whose attribute `images` counts the images passed through it.

    The libraries call backward(), which would leave gradients in the parameters, and draw from torch's global
    generator: meanwhile no parameter takes gradients, and the generator starts at `seed`. Both are restored. Raises
    InputError where a library asks for gradients that the network does not have.
    """
    import torch

    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        # Of one GPU only: by default the states of all of them are copied.
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield _counted(network)
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def _counted(network):
    import torch

    class Counted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network, self.images = network, 0

        def forward(self, x: Tensor) -> Tensor:
            self.images += len(x)
            logits = self.network(x).float()
            if x.requires_grad and torch.is_grad_enabled():
                # No weight takes gradients here, so that the logits do only along the image.
                if not logits.requires_grad:
                    raise no_gradient()
                # As in gfscore.attacks.search: what overflowed leads nowhere, and must not spread to the pixels.
                x.register_hook(lambda gradient: gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0))
            return logits

    return Counted().eval()


def fab_in_ball(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, steps: int, targets: int
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack towards each of the `targets` likeliest wrong classes in turn.

    `targets` < K. It searches the nearest boundary point, so it succeeds where that lies in the ball; it draws no
    random numbers. Source: Croce and Hein 2020 (minimally distorted adversarial examples), Algorithm 1.
    """
    import torch
    from pyautoattack.fab_pt import FABAttack_PT

    points = images.clone()
    passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    standing = torch.arange(len(images), device=images.device)
    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(counted, norm=_NORM[ball["norm"]], eps=ball["eps"], n_iter=steps, device=images.device)
        for rank in range(targets):
            if len(standing) == 0:
                break
            x, y = images[standing], labels[standing]
            # The library counts from the likeliest class, which is the true one.
            attack.target_class = rank + 2
            before = counted.images
            with torch.no_grad():
                found = attack.attack_single_run(x, y, is_targeted=True)
                difference = (found - x).flatten(1)
                length = difference.abs().amax(1) if ball["norm"] == "linf" else difference.norm(dim=1)
                fooled = (length <= ball["eps"]) & misclassified(counted(found), y)
            passes[standing] += (counted.images - before) // len(standing)
            points[standing[fooled]] = found[fooled]
            standing = standing[~fooled]
    return points, passes


def square(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, queries: int
) -> tuple[Tensor, Tensor]:
    """Square attack: random search over squares, which needs no gradients; at most `queries` + 1 passes.

    Where the squares lie, and in l_inf their colours, all images share, whatever their batch: that is seeded by
    `draws.common`. What else is random each image draws for itself.
    Raises InputError for images that are not square or, in l2, smaller than 5 pixels, on which the library fails.
    Source: Andriushchenko et al. 2020, Algorithms 1 to 3.
    """
    import torch
    from pyautoattack.square import SquareAttack

    height, width = images.shape[2:]
    if height != width or (ball["norm"] == "l2" and height < 5):
        raise InputError(
            f"attack 'square' does not work on images of {height} x {width} pixels; take it (and autoattack, which "
            "contains it) out of the attacks of this measure"
        )

    class Square(SquareAttack):
        standing, drawn = torch.arange(len(images), device=images.device), 0

        def margin_and_loss(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            # A tie at the top is an error here, but starts the library on an empty batch.
            margin, loss = super().margin_and_loss(x, y)
            self.standing = self.standing[margin > 0]
            return torch.where(margin == 0, -1e-30, margin), loss

        def random_choice(self, shape: Sequence[int]) -> Tensor:
            if len(shape) == images.ndim - 1:
                return super().random_choice(shape)
            # Signs of each image that is still attacked.
            self.drawn += 1
            return draws.stream(self.drawn)[self.standing].uniform(shape[1:]).sign()

    with as_library_expects(network, seed=draws.common) as counted:
        attack = Square(
            counted, norm=_NORM[ball["norm"]], eps=ball["eps"], n_queries=queries, resc_schedule=False,
            device=images.device,
        )  # fmt: skip
        attack.init_hyperparam(images)
        passes, points = attack.attack_single_run(images, labels)
    return points, passes.long()


PROJECTIONS, BISECTIONS = ((1, 0.02), (9, 0.02), (1, 0.002)), 10
"""Projections after Carlini and Wagner's attack, each with the number of class boundaries that it considers and the
share by which it overshoots, so that the boundary lies between two points; steps of each bisection."""


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

    attack = foolbox.attacks.L2CarliniWagnerAttack(
        steps=steps, binary_search_steps=binary_search_steps, stepsize=step_size
    )
    with as_library_expects(network, seed=0) as counted:
        model = foolbox.PyTorchModel(counted, bounds=(0, 1), device=images.device)
        ends = attack.run(model, images, foolbox.Misclassification(labels))
        return _drawn_nearer(counted, images, ends.detach(), labels), _passes(counted, images)


def nearest_fab(
    network: Module, images: Tensor, labels: Tensor, *, norm: str, largest_distance: float, steps: int = 100
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack, untargeted, by pyautoattack: one gradient per class and step.

    Source: Croce and Hein 2020, Algorithm 1.
    """
    from pyautoattack.fab_pt import FABAttack_PT

    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(counted, norm=_NORM[norm], eps=largest_distance, n_iter=steps, device=images.device)
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
