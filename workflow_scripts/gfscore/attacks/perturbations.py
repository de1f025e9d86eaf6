"""Random perturbations: what a neighbour of an image is.

A perturbation draws one neighbour of each image by its own random numbers, gfscore.statistics.draws. Images are tensors
(n, C, H, W) in [0, 1]; the numbers are on their device.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gfscore.attacks.search import random_in_ball
from gfscore.core.errors import InputError, unknown
from gfscore.core.tensors import Generator, Tensor
from gfscore.statistics.draws import Draws

Draw = Callable[[Tensor, Tensor, Draws], Tensor]


@dataclass(frozen=True)
class Perturbation:
    """Distribution of neighbours: `draw(images, labels, draws)` -> images of the same shape, its words, and `clip`.

    `clip` says whether neighbours are clipped to [0, 1], in place, which changes their distribution near the edges.
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
        return (neighbours.clamp_(0, 1) if self.clip else neighbours).detach()


def make_perturbation(settings: Mapping[str, Any]) -> Perturbation:
    """Perturbation that settings describe: `family`, a key of FAMILIES, the family's own numbers, and `clip`.

    Corruptions are clipped, and rounded to 256 levels, in any case, as an image file would hold them. Raises InputError
    for an unknown family and for arguments that it does not take.
    """
    own = {name: value for name, value in settings.items() if name not in ("family", "clip")}
    if settings["family"] not in FAMILIES:
        raise InputError(unknown("perturbation family", settings["family"], FAMILIES))
    try:
        draw, words = FAMILIES[settings["family"]](**own)
    except TypeError as error:
        raise InputError(f"perturbation {settings['family']}: {error}; correct its settings") from error
    words += "" if settings["family"] == "corruption" else _CLIPPED[bool(settings["clip"])]
    return Perturbation(draw, words, settings["clip"])


def of_sampler(sampler: Callable[[Tensor, Generator], Tensor], *, clip: bool, description: str = "") -> Perturbation:
    """Perturbation made of any function `sampler(images, generator)` -> images, whose result is clipped in place.

    The generator is seeded by all images of the batch, so their neighbours depend on which are drawn together.
    """
    words = (description or getattr(sampler, "__name__", type(sampler).__name__)) + _CLIPPED[bool(clip)]
    return Perturbation(lambda images, labels, draws: sampler(images, draws.generator()), words, clip)


_CLIPPED = {True: ", clipped to [0, 1]", False: ", not clipped"}


def of_attack(attack: Callable[[Tensor, Tensor], Tensor]) -> Perturbation:
    """Perturbation made of a random object that is called as torchattacks are, `attack(images, labels)` -> images.

    For instance additive Gaussian noise, or an attack with a random start. It draws from torch's global state, which is
    seeded by all images of the batch for the call and restored after it, so that a run can be repeated.
    # ASSUME: its calls are independent draws; for an attack without randomness the test says nothing.
    """
    import torch

    def draw(images: Tensor, labels: Tensor, draws: Draws) -> Tensor:
        devices = [images.device] if images.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(draws.generator().initial_seed())
            return attack(images, labels)

    return Perturbation(draw, f"{type(attack).__name__} (an attack object)")


def _linf_ball(*, eps):
    _require_positive("eps", eps)

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        import torch

        drawn = draws.uniform(images.shape[1:])
        return torch.add(images, drawn, alpha=eps, out=drawn)

    return draw, f"uniform in the l_inf ball of radius {eps:g}"


def _l2_ball(*, eps):
    _require_positive("eps", eps)
    words = f"uniform in the l_2 ball of radius {eps:g}"
    return lambda images, labels, draws: random_in_ball(images, draws, norm="l2", eps=eps).add_(images), words


def _gaussian(*, sigma):
    _require_positive("sigma", sigma)
    words = f"Gaussian noise of standard deviation {sigma:g}"
    return lambda images, labels, draws: draws.normal(images.shape[1:], std=sigma).add_(images), words


def _corruption(*, corruptions, severities):
    import numpy as np
    import torch

    from gfscore.images.corruptions.catalogue import corrupt
    from gfscore.images.corruptions.parameters import parameters_of
    from gfscore.statistics.draws import RowGenerators

    pairs = [(name, severity) for name in corruptions for severity in severities]
    if not pairs:
        raise InputError("perturbation corruption: name at least one corruption and one severity")
    for name, severity in pairs:
        # Unknown ones are refused before anything is drawn; their parameters for some size of image do not matter.
        parameters_of(name, severity, 32)

    def draw(images: Tensor, _labels: Tensor, draws: Draws) -> Tensor:
        rng = RowGenerators(draws.seeds)
        chosen = rng.integers(0, len(pairs), (len(images),))
        source = images.cpu().numpy()
        neighbours = np.empty_like(source)
        for index in np.unique(chosen):
            rows = chosen == index
            neighbours[rows] = corrupt(source[rows], *pairs[index], rng=rng[rows])
        return torch.from_numpy(neighbours).to(images.device)

    kinds, degrees = ", ".join(corruptions), ", ".join(map(str, severities))
    where = f"{kinds} at severity {degrees}"
    return draw, f"one at random of the corruptions {where}, clipped to [0, 1] and rounded to 256 levels"


def _require_positive(name, value):
    if not value > 0:
        raise InputError(f"perturbation: {name} must be positive, got {value!r}")


FAMILIES: dict[str, Callable[..., tuple[Draw, str]]] = {
    "linf_ball": _linf_ball,
    "l2_ball": _l2_ball,
    "gaussian": _gaussian,
    "corruption": _corruption,
}
"""Families by name: a function from the family's settings to `(draw, words)`.

A corruption that draws nothing at random (brightness, contrast, a blur) has a single outcome at each severity, so a
family of it alone has p of 0 or 1.
"""
