"""Attacks of public libraries, in the forms of gfscore.attacks.ball_attacks and gfscore.attacks.minimal_norm.

Within a ball only FAB and Square come from there. pyautoattack's Auto-PGD keeps fooled images to the end of a restart,
and its targeted one fails with fewer than 4 classes; foolbox 3.3.4 has neither Auto-PGD, FAB nor Square, and the
projected gradient descent of both foolbox and the adversarial-robustness-toolbox 1.20.1 tests the last iterate only and
never lets an image go. benchmarks/attacks.py compares them.

Why other searches for the nearest point are not offered: of foolbox 3.3.4, L2FMNAttack never projects onto its ball (it
finds distance 1 for every image), DDNAttack is up to 40% too far on linear models after 200 steps, the Brendel-Bethge
attack needs numba, and DeepFool classifies once per class and step and keeps finished images in the batch; the targeted
FAB of pyautoattack 0.2.0 stops at the first class that works.

foolbox and pyautoattack are imported by the attack that needs them: an audit without it runs without them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.gradient_ascent import Ball, logit_of, misclassified, other_logits, per_image
from gfscore.attacks.minimal_norm import TINY, length, refine
from gfscore.attacks.search import missing_gradient_error
from gfscore.core.errors import InputError
from gfscore.statistics.draws import Draws

LIBRARY_NORMS = {"linf": "Linf", "l2": "L2"}

SMALLEST_SQUARE_IMAGE = 5
"""Height in pixels below which Square of pyautoattack fails in l2."""

PROJECTIONS = ((1, 0.02), (9, 0.02), (1, 0.002))
"""Projections after Carlini and Wagner's attack, each with the number of class boundaries that it considers and the
share by which it overshoots, so that the boundary lies between two points."""

BISECTIONS = 10
"""Steps of the bisection after each projection."""


class CountedNetwork(Module):
    """A network as the libraries expect it, whose attribute `images` counts the images passed through it."""

    def __init__(self, network: Module) -> None:
        """Begin with no image."""
        super().__init__()
        self.network = network
        self.images = 0

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, K) float32; raises InputError where a gradient is wanted and there is none."""
        self.images += len(x)
        logits = self.network(x).float()
        if x.requires_grad and torch.is_grad_enabled():
            # No weight takes gradients, so that the logits do only along the image.
            if not logits.requires_grad:
                raise missing_gradient_error()
            # As in gfscore.attacks.search: what overflowed leads nowhere, and must not spread to the pixels.
            x.register_hook(lambda gradient: gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0))
        return logits

    def passes_of(self, images: Tensor) -> Tensor:
        """Passes of each image of a batch, (n,) int64, if all took as many; rounded up."""
        passes = -(-self.images // len(images))
        return torch.full((len(images),), passes, dtype=torch.int64, device=images.device)


@contextmanager
def as_library_expects(network: Module, *, seed: int) -> Iterator[CountedNetwork]:
    """Give the network to a library, and leave no trace of it.

    The libraries call backward(), which would leave gradients in the parameters, and draw from torch's global
    generator: meanwhile no parameter takes gradients, and the generator starts at `seed`. Both are restored.

    Raises
    ------
    InputError
        Where a library asks for gradients that the network does not have.
    """
    learned = [parameter for parameter in network.parameters() if parameter.requires_grad]
    for parameter in learned:
        parameter.requires_grad_(False)
    try:
        # Of one GPU only: by default the states of all of them are copied.
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield CountedNetwork(network).eval()
    finally:
        for parameter in learned:
            parameter.requires_grad_(True)


def fab_in_ball(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, steps: int, targets: int
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack towards each of the `targets` likeliest wrong classes in turn.

    `targets` < K. It searches the nearest boundary point, so it succeeds where that lies in the ball; it draws no
    random numbers.

    References
    ----------
    Croce and Hein 2020 (minimally distorted adversarial examples), Algorithm 1.
    """
    from pyautoattack.fab_pt import FABAttack_PT

    norm, eps = ball["norm"], ball["eps"]
    points = images.clone()
    passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    standing = torch.arange(len(images), device=images.device)
    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(counted, norm=LIBRARY_NORMS[norm], eps=eps, n_iter=steps, device=images.device)
        for rank in range(targets):
            if len(standing) == 0:
                break
            x, y = images[standing], labels[standing]
            # The library counts from the likeliest class, which is the true one.
            attack.target_class = rank + 2
            earlier = counted.images
            with torch.no_grad():
                candidates = attack.attack_single_run(x, y, is_targeted=True)
                difference = (candidates - x).flatten(1)
                distance = difference.abs().amax(1) if norm == "linf" else difference.norm(dim=1)
                fooled = (distance <= eps) & misclassified(counted(candidates), y)
            passes[standing] += (counted.images - earlier) // len(standing)
            points[standing[fooled]] = candidates[fooled]
            standing = standing[~fooled]
    return points, passes


def square(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, queries: int
) -> tuple[Tensor, Tensor]:
    """Square attack: random search over squares, which needs no gradients; at most `queries` + 1 passes.

    All images share where the squares lie, and in l_inf their colours, whatever their batch: that is seeded by
    `draws.common`. What else is random each image draws for itself.

    Raises
    ------
    InputError
        For images that are not square or, in l2, smaller than 5 pixels, on which the library fails.

    References
    ----------
    Andriushchenko et al. 2020, Algorithms 1 to 3.
    """
    from pyautoattack.square import SquareAttack

    height, width = images.shape[2:]
    too_small = ball["norm"] == "l2" and height < SMALLEST_SQUARE_IMAGE
    if height != width or too_small:
        raise InputError(
            f"attack 'square' does not work on images of {height} x {width} pixels; take it (and autoattack, which "
            "contains it) out of the attacks of this measure"
        )

    # The library evaluates margins only of images not yet fooled, in order, so that `standing` follows its rows.
    class Square(SquareAttack):
        standing = torch.arange(len(images), device=images.device)
        drawn = 0

        def margin_and_loss(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            # A tie is a misclassification. The library's search counts it as one, but its test before the search does
            # not: where ties are all that is left, it would search with an empty batch.
            margin, loss = super().margin_and_loss(x, y)
            self.standing = self.standing[margin > 0]
            return torch.where(margin == 0, -1e-30, margin), loss

        def random_choice(self, shape: Sequence[int]) -> Tensor:
            if len(shape) == images.ndim - 1:
                # (C, 1, 1): colours that all images share, from torch's generator.
                return super().random_choice(shape)
            # A batch axis first: signs for each image still attacked, from its own stream.
            self.drawn += 1
            return draws.stream(self.drawn)[self.standing].uniform(shape[1:]).sign()

    with as_library_expects(network, seed=draws.common) as counted:
        attack = Square(
            counted,
            norm=LIBRARY_NORMS[ball["norm"]],
            eps=ball["eps"],
            n_queries=queries,
            resc_schedule=False,
            device=images.device,
        )
        attack.init_hyperparam(images)
        passes, points = attack.attack_single_run(images, labels)
    return points, passes.long()


def carlini_wagner(
    network: Module,
    images: Tensor,
    labels: Tensor,
    *,
    norm: str,
    largest_distance: float,
    steps: int,
    binary_search_steps: int,
    step_size: float,
) -> tuple[Tensor, Tensor]:
    """Carlini and Wagner's l2 attack, by foolbox: Adam on squared distance plus c times the margin, c searched.

    Adam's steps have a fixed length, so ends overshoot: even on linear models a tenth of them are 4 to 25% too far. The
    ends are therefore projected onto linearised boundaries, which never makes one farther. Distance relative to the
    nearer of FMN and FAB (small adversarially trained network, after projection):

    =================== =============== =====
    steps x step_size   90th percentile worst
    =================== =============== =====
    600 x 0.01, default 1.06            1.5
    100 x 0.01          1.29            3.5
    100 x 0.05          1.08            1.5
    =================== =============== =====

    Takes up to `steps` times `binary_search_steps` passes and about 50. `norm`, which is l2, and `largest_distance`
    limit nothing: they are arguments of every minimal-norm attack.

    References
    ----------
    Carlini and Wagner 2017, sections V and VI; the projections are those of Croce and Hein 2020, Eq. 7.
    """
    import foolbox

    attack = foolbox.attacks.L2CarliniWagnerAttack(
        steps=steps, binary_search_steps=binary_search_steps, stepsize=step_size
    )
    with as_library_expects(network, seed=0) as counted:
        model = foolbox.PyTorchModel(counted, bounds=(0, 1), device=images.device)
        ends = attack.run(model, images, foolbox.Misclassification(labels)).detach()
        nearest = _projected_nearer(counted, images, ends, labels)
        return nearest, counted.passes_of(images)


def nearest_fab(
    network: Module, images: Tensor, labels: Tensor, *, norm: str, largest_distance: float, steps: int
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack, untargeted, by pyautoattack: one gradient per class and step.

    References
    ----------
    Croce and Hein 2020, Algorithm 1.
    """
    from pyautoattack.fab_pt import FABAttack_PT

    with as_library_expects(network, seed=0) as counted:
        attack = FABAttack_PT(
            counted, norm=LIBRARY_NORMS[norm], eps=largest_distance, n_iter=steps, device=images.device
        )
        points = attack.perturb(images, labels)
        return points, counted.passes_of(images)


def _projected_nearer(network: Module, images: Tensor, candidates: Tensor, labels: Tensor) -> Tensor:
    # Adversarial examples at most as far as the candidates; the image where a candidate is none.
    nearest, adversarial = refine(network, images, candidates, labels, steps=BISECTIONS)
    for rivals, overshoot in PROJECTIONS:
        projected = _projected(network, images, nearest, labels, rivals=rivals, overshoot=overshoot)
        points, across = refine(network, images, projected, labels, steps=BISECTIONS)
        shorter = length(points - images, "l2") < length(nearest - images, "l2")
        nearer = adversarial & across & shorter
        nearest = torch.where(per_image(nearer, images), points, nearest)
    return nearest


def _projected(
    network: Module, images: Tensor, points: Tensor, labels: Tensor, *, rivals: int, overshoot: float
) -> Tensor:
    # Images moved just across the nearest class boundary of the network that is linearised at the points.
    from pyautoattack.fab_projections import projection_l2

    points = points.detach().requires_grad_()
    logits = network(points)
    label_logits = logit_of(logits, labels)
    rival_logits = other_logits(logits, labels).topk(min(rivals, logits.shape[1] - 1), dim=1).values

    offset = (images - points.detach()).flatten(1)
    gaps = []
    directions = []
    for rival in rival_logits.unbind(1):
        margin = label_logits - rival
        gradient = torch.autograd.grad(margin.sum(), points, retain_graph=True)[0].flatten(1)
        steepness = gradient.norm(dim=1).clamp_min(TINY)
        # Unit normals: projection_l2 treats small weights as 0.
        direction = gradient / steepness[:, None]
        # Linearised margin at the image over the gradient's length: the image's distance from this boundary.
        linear_margin = margin.detach() / steepness + (direction * offset).sum(1)
        gaps.append(linear_margin)
        directions.append(direction)
    gap = torch.stack(gaps)
    direction = torch.stack(directions)

    # gap <= 0: the linearised boundary has already been crossed at the image; direction 0 or NaN: no boundary.
    reachable = (gap > 0) & (direction.abs().amax(2) > 0)
    best = gap.where(reachable, torch.inf).argmin(0)
    rows = torch.arange(len(images), device=images.device)
    gap, direction = gap[best, rows], direction[best, rows]
    pixels = images.flatten(1)
    move = projection_l2(pixels, direction, (direction * pixels).sum(1) - gap)
    move = move.nan_to_num(nan=0.0).reshape(images.shape)
    return (images + (1 + overshoot) * move).clamp(0, 1)
