"""What gradient attacks share: gradients of losses, batches that shrink as images are fooled, fast arithmetic.

An attack may search in TF32 or bfloat16. A success counts only if the network confirms it in float32, so that a value
never rests on reduced precision: it may be weaker, never wrong.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import Module

from gfscore.attacks.goals import Goal
from gfscore.attacks.gradient_ascent import per_image, steepest
from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.devices import device_of_weights
from gfscore.networks.precision import BFLOAT16, FULL, network_in
from gfscore.statistics.draws import Draws

Attack = Callable[..., tuple[Tensor, Tensor]]
"""attack(network, images, aims, **settings): points (n, C, H, W), and forward passes of each image, (n,) int64."""

AttackArguments = dict[str, Any]
"""Keyword arguments of an attack."""

SHORTENED = 10
"""Factor by which steps are fewer when an image that survived a search in bfloat16 is attacked in float32."""


class Search:
    """Adversarial examples of a batch; an image that has one leaves the batch.

    Parameters
    ----------
    images : Tensor
        (n, C, H, W); none of them is fooled yet.
    goal : Goal
        When an image is fooled.

    Attributes
    ----------
    standing : Tensor
        Indices (m,) int64 of the images that have no adversarial example yet.
    """

    def __init__(self, images: Tensor, goal: Goal) -> None:
        """Begin with all images."""
        self.goal = goal
        self.standing = torch.arange(len(images), device=images.device)
        self._points = images.clone()
        self._passes = torch.zeros(len(images), dtype=torch.int64, device=images.device)
        self._count = 0

    def spend(self, passes: int) -> None:
        """Count forward passes of every standing image."""
        self._count += passes

    def note(self, points: Tensor, logits: Tensor, aims: Tensor) -> Tensor | None:
        """Let the standing images leave that are fooled.

        Parameters
        ----------
        points : Tensor
            A point of every standing image, (m, C, H, W).
        logits, aims : Tensor
            Logits (m, K) of the points, and the aims of these images.

        Returns
        -------
        Tensor or None
            Rows (m',) int64 of the batch that go on; None where all do.
        """
        reached = self.goal.reached(logits, aims)
        # One synchronisation with the GPU for each call; a boolean mask would need one for each selection.
        count = int(reached.sum())
        if count == 0:
            return None
        keep, fooled = reached.int().argsort(stable=True).split([len(reached) - count, count])
        leaving = self.standing[fooled]
        self._points[leaving] = points[fooled]
        self._passes[leaving] = self._count
        self.standing = self.standing[keep]
        return keep

    def record_positions(self, points: Tensor) -> None:
        """Record where the standing images were moved to, though none is fooled there."""
        self._points[self.standing] = points

    @property
    def result(self) -> tuple[Tensor, Tensor]:
        """Points (n, C, H, W) and forward passes spent on each image, (n,) int64."""
        self._passes[self.standing] = self._count
        return self._points, self._passes


def ascent(network: Module, points: Tensor, aims: Tensor, goal: Goal) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (m, K), loss (m,) of a goal, and the gradient (m, C, H, W) along which it rises.

    Raises
    ------
    InputError
        For a network whose logits have no gradient.
    """
    points = points.detach().requires_grad_()
    logits = network(points).float()
    loss = goal.loss(logits, aims)
    gradient = gradient_of(loss.sum(), points)
    # The gradient may be an expanded view, which steps in place would corrupt. A loss that overflowed leads nowhere,
    # and must not spread to the pixels.
    gradient = gradient.contiguous().nan_to_num_(nan=0.0, posinf=0.0, neginf=0.0)
    return logits.detach(), loss.detach(), gradient


def gradient_of(value: Tensor, points: Tensor, weights: Tensor | None = None, *, retain_graph: bool = False) -> Tensor:
    """Gradient of a value, or of the sum of several by `weights`, with respect to points; InputError without one."""
    slope = None
    if value.requires_grad:
        slope = torch.autograd.grad(value, points, weights, allow_unused=True, retain_graph=retain_graph)[0]
    if slope is None:
        raise missing_gradient_error()
    return slope


def missing_gradient_error() -> InputError:
    """Error for a network whose logits have no gradient."""
    return InputError(
        "the classifier's logits have no gradient with respect to the image (detached, or computed outside torch); "
        "take the model out of measures that need gradients (of kind certified: write sandwich: null), or attack it by "
        "square alone, which needs none"
    )


def logits_of(network: Module, points: Tensor) -> Tensor:
    """Logits (m, K) float32 without a graph."""
    with torch.no_grad():
        return network(points).float()


def on_device(classifier: Classifier, images: ArrayLike, labels: ArrayLike) -> tuple[Module, Tensor, Tensor]:
    """Network of a classifier, and images and labels as tensors on its device; InputError where it has no gradients."""
    network = classifier.network
    if network is None:
        raise InputError(
            "attacks need gradients, which this classifier does not give (onnx has none); take the model out of "
            "measures of kind adversarial, minimal and targeted"
        )
    device = device_of_weights(network)
    pixels = np.ascontiguousarray(images, dtype=np.float32)
    x = torch.from_numpy(pixels).to(device)
    y = torch.from_numpy(np.asarray(labels, dtype=np.int64)).to(device)
    return network, x, y


def random_in_ball(images: Tensor, draws: Draws, *, norm: str, eps: float) -> Tensor:
    """Perturbations drawn uniformly from the ball of radius eps, same shape as the images, by each image's draws."""
    shape = images.shape[1:]
    if norm == "linf":
        return draws.uniform(shape).mul_(eps)
    direction = steepest(draws.normal(shape), norm="l2")
    # Volume grows with the radius to the power of the dimension.
    pixels = images[0].numel()
    share = draws.stream(1).uniform(()).add_(1).mul_(0.5) ** (1 / pixels)
    return direction.mul_(per_image(eps * share, images))


def distances(points: Tensor, images: Tensor, norm: str) -> Tensor:
    """Norm of each image's perturbation, (n,) float64."""
    # In float64, so that a sum over many pixels adds no rounding error to that of the float32 pixels.
    difference = (points.double() - images.double()).flatten(1)
    if norm == "l2":
        return difference.norm(dim=1)
    return difference.abs().amax(1)


def confirmed_attack(attack: Attack, reached: Callable[[Tensor, Tensor], Tensor], *, precision: str) -> Attack:
    """Attack that searches in a given precision, with successes confirmed in float32.

    Parameters
    ----------
    attack : callable
        attack(network, images, aims, **settings) of gfscore.attacks.ball_attacks or gfscore.attacks.minimal_norm.
    reached : callable
        Whether logits (n, K) are a success for the aims, (n,) bool: the criterion of the measure.
    precision : str
        "float32", which returns the attack itself, "tf32" or "bfloat16".

    Returns
    -------
    callable
        With the arguments and results of the attack. An image whose success float32 does not confirm is attacked anew
        in float32, with the same random draws. After bfloat16, an image without a success is attacked in float32 with
        a tenth of the steps or queries. All passes are counted, those that confirm among them.
    """
    if precision == FULL:
        return attack

    def search(network: Module, images: Tensor, aims: Tensor, **settings: Any) -> tuple[Tensor, Tensor]:
        with network_in(network, precision) as fast_network:
            points, passes = attack(fast_network, images, aims, **settings)
            points = points.detach()
            claimed = reached(logits_of(fast_network, points), aims)
        # Rounding of the fast logits depends on the batch. An image with fewer passes left the search early, because it
        # was fooled there, even if its logits in this batch deny it.
        claimed = claimed | (passes < passes.max())
        confirmed = reached(logits_of(network, points), aims)
        # One pass by the fast network, one in float32.
        passes = passes + 2

        refuted = (claimed & ~confirmed).nonzero().flatten()
        if len(refuted):
            ends, spent = attack(network, images[refuted], aims[refuted], **_of_rows(settings, refuted))
            points[refuted] = ends.detach()
            passes[refuted] += spent

        surviving = (~claimed & ~confirmed).nonzero().flatten()
        if precision == BFLOAT16 and len(surviving):
            short = shortened(_of_rows(settings, surviving))
            ends, spent = attack(network, images[surviving], aims[surviving], **short)
            success = reached(logits_of(network, ends.detach()), aims[surviving])
            points[surviving[success]] = ends.detach()[success]
            passes[surviving] += spent + 1
        return points, passes

    return search


def _of_rows(settings: AttackArguments, rows: Tensor) -> AttackArguments:
    # Of some images of a batch: what each of them draws stays the same.
    draws = settings.get("draws")
    if isinstance(draws, Draws):
        return {**settings, "draws": draws[rows]}
    return settings


def shortened(settings: AttackArguments) -> AttackArguments:
    """Settings of an attack with a tenth of its steps or queries, at least one."""
    shorter = dict(settings)
    for name in ("steps", "queries"):
        if name in settings:
            shorter[name] = max(1, settings[name] // SHORTENED)
    return shorter
