"""Random perturbations: what a neighbour of an image is.

A perturbation draws one neighbour of each image by the image's random numbers (gfscore.statistics.draws). Images are
tensors (n, C, H, W) in [0, 1]; the numbers are on their device.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Generator, Tensor

from gfscore.attacks.search import random_in_ball
from gfscore.core.errors import InputError
from gfscore.images.corruptions.catalogue import corrupt
from gfscore.statistics.draws import Draws, RowGenerators

Draw = Callable[[Tensor, Tensor, Draws], Tensor]
"""draw(images, labels, draws) -> images of the same shape."""


@dataclass(frozen=True)
class Perturbation:
    """Distribution of neighbours.

    Parameters
    ----------
    draw : callable
        draw(images, labels, draws) -> images of the same shape, one neighbour of each.
    description : str
        The distribution in words.
    clip : bool
        Whether neighbours are clipped to [0, 1], in place, which changes their distribution near the edges.
    """

    draw: Draw
    description: str
    clip: bool = False

    def __call__(self, images: Tensor, labels: Tensor, draws: Draws) -> Tensor:
        """One random neighbour of each image, (n, C, H, W); raises InputError when the sampler changes the shape."""
        neighbours = self.draw(images, labels, draws)
        if neighbours.shape != images.shape:
            raise InputError(
                f"perturbation {self.description}: gives images of shape {tuple(neighbours.shape)} for "
                f"{tuple(images.shape)}; a neighbour has the shape of its image"
            )
        if self.clip:
            neighbours.clamp_(0, 1)
        return neighbours.detach()


def of_sampler(sampler: Callable[[Tensor, Generator], Tensor], *, clip: bool, description: str = "") -> Perturbation:
    """Perturbation made of any function of images and a generator.

    The generator is seeded by all images of the batch, so their neighbours depend on which are drawn together.

    Parameters
    ----------
    sampler : callable
        sampler(images, generator) -> images, which are clipped in place.
    clip : bool
        Whether they are clipped to [0, 1].
    description : str
        The distribution in words; the name of the sampler if empty.
    """
    words = description or getattr(sampler, "__name__", type(sampler).__name__)

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        return sampler(images, draws.generator())

    return Perturbation(draw, words + _clip_words(clip), clip)


def of_attack(attack: Callable[[Tensor, Tensor], Tensor]) -> Perturbation:
    """Perturbation made of a random object that is called as torchattacks are, `attack(images, labels)` -> images.

    For instance additive Gaussian noise, or an attack with a random start. It draws from torch's global state, which is
    seeded by all images of the batch for the call and restored after it, so that a run can be repeated.
    # ASSUME: its calls are independent draws; for an attack without randomness the test says nothing.
    """

    def draw(images: Tensor, labels: Tensor, draws: Draws) -> Tensor:
        devices = [images.device] if images.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(draws.generator().initial_seed())
            return attack(images, labels)

    return Perturbation(draw, f"{type(attack).__name__} (an attack object)")


def linf_ball(*, eps: float, clip: bool = True) -> Perturbation:
    """Uniform in the l_inf ball of radius eps."""
    _require_positive("eps", eps)

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        noise = draws.uniform(images.shape[1:])
        return torch.add(images, noise, alpha=eps, out=noise)

    return Perturbation(draw, f"uniform in the l_inf ball of radius {eps:g}{_clip_words(clip)}", clip)


def l2_ball(*, eps: float, clip: bool = True) -> Perturbation:
    """Uniform in the l_2 ball of radius eps."""
    _require_positive("eps", eps)

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        return random_in_ball(images, draws, norm="l2", eps=eps).add_(images)

    return Perturbation(draw, f"uniform in the l_2 ball of radius {eps:g}{_clip_words(clip)}", clip)


def gaussian(*, sigma: float, clip: bool = True) -> Perturbation:
    """Gaussian noise of standard deviation sigma."""
    _require_positive("sigma", sigma)

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        return draws.normal(images.shape[1:], std=sigma).add_(images)

    return Perturbation(draw, f"Gaussian noise of standard deviation {sigma:g}{_clip_words(clip)}", clip)


def one_corruption(*, corruptions: Sequence[str], severities: Sequence[int]) -> Perturbation:
    """One of the corruptions at one of the severities, at random, clipped and rounded to 256 levels as in image files.

    A corruption that draws nothing at random (brightness, contrast, a blur) has a single outcome at each severity, so a
    family of it alone has p of 0 or 1.
    """
    pairs = list(product(corruptions, severities))
    if not pairs:
        raise InputError("perturbation corruption: name at least one corruption and one severity")

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        rng = RowGenerators(draws.seeds)
        chosen = rng.integers(0, len(pairs), (len(images),))
        pixels = images.cpu().numpy()
        neighbours = np.empty_like(pixels)
        for index in np.unique(chosen):
            rows = chosen == index
            name, severity = pairs[index]
            neighbours[rows] = corrupt(pixels[rows], name, severity, rng=rng[rows])
        return torch.from_numpy(neighbours).to(images.device)

    kinds = ", ".join(corruptions)
    degrees = ", ".join(map(str, severities))
    words = (
        f"one at random of the corruptions {kinds} at severity {degrees}, clipped to [0, 1] and rounded to 256 levels"
    )
    return Perturbation(draw, words)


def _clip_words(clip: bool) -> str:
    return ", clipped to [0, 1]" if clip else ", not clipped"


def _require_positive(name: str, value: float) -> None:
    if not value > 0:
        raise InputError(f"perturbation: {name} must be positive, got {value!r}")
