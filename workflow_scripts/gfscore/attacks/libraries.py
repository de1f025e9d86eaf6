"""Attacks of public libraries, with the interfaces of gfscore.attacks.ball_attacks and gfscore.attacks.minimal_norm.

Within a ball, FAB is that of pyautoattack 0.2.0, and so is Square (`square_search`). PGD and Auto-PGD are our own,
because no library tests every iterate and also removes each image from the batch once it is fooled:

- Auto-PGD of pyautoattack keeps fooled images in the batch to the end of a restart. Its targeted version fails with
  fewer than 4 classes.
- PGD of foolbox 3.3.4 and of the adversarial-robustness-toolbox 1.20.1 tests only the last iterate, and keeps fooled
  images in the batch.

foolbox has no Auto-PGD, FAB or Square. benchmarks/attacks.py compares the attacks.

Minimal-norm attacks of these libraries that are not offered, and why:

- L2FMNAttack of foolbox never projects onto its ball: it finds distance 1 for every image.
- DDNAttack of foolbox ends up to 40% too far on linear models after 200 steps.
- The Brendel-Bethge attack of foolbox needs numba.
- DeepFool of foolbox makes a forward pass for each class and step, and finished images stay in the batch.
- The targeted FAB of pyautoattack stops at the first class that works.

foolbox and pyautoattack are imported by the attack that needs them, so that an audit with other attacks needs neither.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.gradient_ascent import Ball, logit_of, misclassified, other_logits, per_image
from gfscore.attacks.minimal_norm import TINY, length, refine
from gfscore.attacks.search import missing_gradient_error
from gfscore.networks.devices import device_of_weights
from gfscore.statistics.draws import Draws

LIBRARY_NORMS = {"linf": "Linf", "l2": "L2"}

PROJECTIONS = ((1, 0.02), (9, 0.02), (1, 0.002))
"""Projections after Carlini and Wagner's attack, in order: number of class boundaries that are considered, and share by
which the projection goes beyond the nearest one, so that a bisection can follow."""

BISECTIONS = 10
"""Steps of each bisection between an image and a candidate or projected point."""


class CountedNetwork(Module):
    """A network as the libraries expect it, which counts its forward passes.

    Attributes
    ----------
    images : int
        Images passed through the network so far.
    """

    def __init__(self, network: Module) -> None:
        """Wrap a network; nothing is counted yet."""
        super().__init__()
        self.network = network
        self.images = 0

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, K) float32 of images (n, C, H, W).

        Raises
        ------
        InputError
            Where x needs a gradient that the network does not have.
        """
        self.images += len(x)
        logits = self.network(x).float()
        if x.requires_grad and torch.is_grad_enabled():
            # No parameter needs a gradient here: logits need one only where they depend differentiably on x.
            if not logits.requires_grad:
                raise missing_gradient_error()
            # As in gfscore.attacks.search: a gradient that overflowed counts as 0, and must not spread to the pixels.
            x.register_hook(lambda gradient: gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0))
        return logits

    def passes_of(self, images: Tensor) -> Tensor:
        """Forward passes of each image of a batch, (n,) int64: an equal share of all passes so far, rounded up."""
        passes = -(-self.images // len(images))
        return torch.full((len(images),), passes, dtype=torch.int64, device=images.device)


@contextmanager
def as_library_expects(network: Module, *, seed: int) -> Iterator[CountedNetwork]:
    """Let a library attack a network, which is afterwards as it was.

    The libraries call backward(), which would leave gradients in the parameters, expect a network in evaluation mode,
    and draw from torch's global generator. Within the context no parameter needs a gradient, every module is in
    evaluation mode, and the generator starts at `seed`; afterwards all three are restored.

    Raises
    ------
    InputError
        Where a library asks for gradients that the network does not have.
    """
    trainable = [parameter for parameter in network.parameters() if parameter.requires_grad]
    in_training_mode = [module for module in network.modules() if module.training]
    for parameter in trainable:
        parameter.requires_grad_(False)
    try:
        # Of the network's GPU only: by default the states of all are copied, and a job on the processor must not begin
        # to use one.
        device = device_of_weights(network)
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield CountedNetwork(network).eval()
    finally:
        for parameter in trainable:
            parameter.requires_grad_(True)
        for module in in_training_mode:
            module.training = True


def fab_in_ball(
    network: Module, images: Tensor, labels: Tensor, *, ball: Ball, draws: Draws, steps: int, targets: int
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack towards each of the `targets` likeliest wrong classes in turn.

    FAB searches the nearest point of a class boundary, and succeeds where that point lies in the ball.

    Parameters
    ----------
    network : Module
        From images to logits (n, K).
    images, labels : Tensor
        (n, C, H, W) in [0, 1], correctly classified, and (n,) int64.
    ball : Ball
        Norm and radius.
    draws : Draws
        Not used, since this attack draws no random numbers: an argument of every attack within a ball.
    steps : int
        Steps towards each class.
    targets : int
        Wrong classes, fewer than K.

    Returns
    -------
    points, passes : Tensor
        (n, C, H, W), the image where the attack failed; forward passes (n,) int64. Towards each class, the images still
        attacked share the passes equally, rounded down.

    References
    ----------
    Croce and Hein 2020 (minimally distorted adversarial examples), Algorithm 1.
    """
    from pyautoattack.fab_pt import FABAttack_PT

    norm, eps = ball["norm"], ball["eps"]
    points = images.clone()
    passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
    # Indices of the images that have no adversarial example yet, as in gfscore.attacks.search.Search.
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
                fooled = (length(candidates - x, norm) <= eps) & misclassified(counted(candidates), y)
            passes[standing] += (counted.images - earlier) // len(standing)
            points[standing[fooled]] = candidates[fooled]
            standing = standing[~fooled]
    return points, passes


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
    """Carlini and Wagner's l2 attack, by foolbox: Adam on the squared distance plus c times the margin; c is searched.

    Adam's steps do not become shorter near the boundary, so that the attack ends beyond it: even on linear models a
    tenth of the adversarial examples are 4 to 25% too far. They are therefore projected onto linearised class
    boundaries, unless the projection is farther from the image. Distances after the projections, relative to the
    smaller one of FMN and FAB, on a small adversarially trained network:

    =================== =============== =====
    steps x step_size   90th percentile worst
    =================== =============== =====
    600 x 0.01, default 1.06            1.5
    100 x 0.01          1.29            3.5
    100 x 0.05          1.08            1.5
    =================== =============== =====

    It takes up to `steps` times `binary_search_steps` forward passes, and about 50 for the projections. Not used are
    `norm`, which is l2, and `largest_distance`: they are arguments of every minimal-norm attack.

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
        candidates = attack.run(model, images, foolbox.Misclassification(labels)).detach()
        nearest = _projected_nearer(counted, images, candidates, labels)
        return nearest, counted.passes_of(images)


def nearest_fab(
    network: Module, images: Tensor, labels: Tensor, *, norm: str, largest_distance: float, steps: int
) -> tuple[Tensor, Tensor]:
    """Fast adaptive boundary attack, untargeted, by pyautoattack: one gradient per class and step.

    An image whose adversarial example is farther away than `largest_distance` is returned unchanged.

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
    # Adversarial examples (n, C, H, W), at most as far as the candidates; the image where its candidate is none.
    nearest, adversarial = refine(network, images, candidates, labels, steps=BISECTIONS)
    for boundaries, overshoot in PROJECTIONS:
        projected = _projected(network, images, nearest, labels, boundaries=boundaries, overshoot=overshoot)
        points, crossed = refine(network, images, projected, labels, steps=BISECTIONS)
        shorter = length(points - images, "l2") < length(nearest - images, "l2")
        nearer = adversarial & crossed & shorter
        nearest = torch.where(per_image(nearer, images), points, nearest)
    return nearest


def _projected(
    network: Module, images: Tensor, points: Tensor, labels: Tensor, *, boundaries: int, overshoot: float
) -> Tensor:
    # The network is linearised at the points (n, C, H, W). Each image is moved to the nearest of the boundaries between
    # its label and the likeliest other classes, and beyond it by the share `overshoot`.
    from pyautoattack.fab_projections import projection_l2

    points = points.detach().requires_grad_()
    logits = network(points)
    label_logits = logit_of(logits, labels)
    rival_logits = other_logits(logits, labels).topk(min(boundaries, logits.shape[1] - 1), dim=1).values

    offset = (images - points.detach()).flatten(1)
    distance_list = []
    normal_list = []
    for rival_logit in rival_logits.unbind(1):
        margin = label_logits - rival_logit
        gradient = torch.autograd.grad(margin.sum(), points, retain_graph=True)[0].flatten(1)
        steepness = gradient.norm(dim=1).clamp_min(TINY)
        # Of length 1, because projection_l2 treats small weights as 0.
        normal = gradient / steepness[:, None]
        # The image's signed distance from this boundary: linearised margin at the image over the gradient's length.
        distance_list.append(margin.detach() / steepness + (normal * offset).sum(1))
        normal_list.append(normal)
    distances = torch.stack(distance_list)
    normals = torch.stack(normal_list)

    # Distance <= 0: the image lies beyond the linearised boundary already; normal 0 or NaN: there is no boundary.
    reachable = (distances > 0) & (normals.abs().amax(2) > 0)
    nearest = distances.where(reachable, torch.inf).argmin(0)
    rows = torch.arange(len(images), device=images.device)
    normal = normals[nearest, rows]
    pixels = images.flatten(1)
    move = projection_l2(pixels, normal, (normal * pixels).sum(1) - distances[nearest, rows])
    move = move.nan_to_num(nan=0.0).reshape(images.shape)
    return (images + (1 + overshoot) * move).clamp(0, 1)
