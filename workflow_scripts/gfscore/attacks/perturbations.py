"""Random perturbations: what a neighbour of an image is.

A perturbation draws one neighbour of each image, independently each time it is called. Images are tensors (n, C, H, W)
in [0, 1]; the generator lives on their device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gfscore.attacks.gradient_ascent import random_in_ball
from gfscore.core.errors import InputError, unknown

if TYPE_CHECKING:
    from torch import Generator, Tensor

    Sampler = Callable[[Tensor, Generator], Tensor]


@dataclass(frozen=True)
class Perturbation:
    """Distribution of neighbours: `draw(images, labels, generator)` -> images of the same shape, and its words."""

    draw: Callable[[Tensor, Tensor, Generator], Tensor]
    description: str

    def __call__(self, images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        """One random neighbour of each image, (n, C, H, W); raises InputError when the sampler changes the shape."""
        neighbours = self.draw(images, labels, generator)
        if neighbours.shape != images.shape:
            raise InputError(
                f"perturbation {self.description}: gives images of shape {tuple(neighbours.shape)} for "
                f"{tuple(images.shape)}; a neighbour has the shape of its image"
            )
        return neighbours.detach()


def make_perturbation(settings: Mapping[str, Any]) -> Perturbation:
    """Perturbation that settings describe: `family`, a key of FAMILIES, the family's own numbers, and `clip`.

    `clip` says whether neighbours are clipped to [0, 1], which changes their distribution near the edges; it stands in
    the description. Corruptions are clipped, and rounded to 256 levels, in any case. Raises InputError for an unknown
    family and for arguments that it does not take.
    """
    own = {name: value for name, value in settings.items() if name not in ("family", "clip")}
    if settings["family"] not in FAMILIES:
        raise InputError(unknown("perturbation family", settings["family"], FAMILIES))
    try:
        sampler, words = FAMILIES[settings["family"]](**own)
    except TypeError as error:
        raise InputError(f"perturbation {settings['family']}: {error}; correct its settings") from error
    perturbation = of_sampler(sampler, clip=settings["clip"], description=words)
    # What a corruption gives is what an image file would hold, whatever is asked for.
    return perturbation if settings["family"] != "corruption" else replace(perturbation, description=words)


def of_sampler(sampler: Sampler, *, clip: bool, description: str = "") -> Perturbation:
    """Perturbation made of any function `sampler(images, generator)` -> images, whose result is clipped in place."""

    def draw(images: Tensor, _labels: Tensor, generator: Generator) -> Tensor:
        neighbours = sampler(images, generator)
        return neighbours.clamp_(0, 1) if clip else neighbours

    words = description or getattr(sampler, "__name__", type(sampler).__name__)
    return Perturbation(draw, words + (", clipped to [0, 1]" if clip else ", not clipped"))


def of_attack(attack: Callable[[Tensor, Tensor], Tensor]) -> Perturbation:
    """Perturbation made of a random object that is called as torchattacks are, `attack(images, labels)` -> images.

    For instance additive Gaussian noise, or an attack with a random start. It draws from torch's global state, which is
    seeded from the generator for the call and restored after it, so that a run can be repeated.
    # ASSUME: its calls are independent draws; for an attack without randomness the test says nothing.
    """
    import torch

    def draw(images: Tensor, labels: Tensor, generator: Generator) -> Tensor:
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        devices = [images.device] if images.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            return attack(images, labels)

    return Perturbation(draw, f"{type(attack).__name__} (an attack object)")


def _linf_ball(*, eps):
    _require_positive("eps", eps)

    def sampler(images: Tensor, generator: Generator) -> Tensor:
        import torch

        integers = _uniform_integers(images, generator)
        return torch.add(images, integers, alpha=eps / 2**31, out=integers)

    return sampler, f"uniform in the l_inf ball of radius {eps:g}"


def _l2_ball(*, eps):
    _require_positive("eps", eps)

    def sampler(images: Tensor, generator: Generator) -> Tensor:
        return random_in_ball(images, norm="l2", eps=eps, generator=generator).add_(images)

    return sampler, f"uniform in the l_2 ball of radius {eps:g}"


def _gaussian(*, sigma):
    import torch

    _require_positive("sigma", sigma)

    def sampler(images: Tensor, generator: Generator) -> Tensor:
        return torch.empty_like(images).normal_(std=sigma, generator=generator).add_(images)

    return sampler, f"Gaussian noise of standard deviation {sigma:g}"


def _corruption(*, corruptions, severities):
    import numpy as np
    import torch

    from gfscore.images.corruptions.catalogue import corrupt
    from gfscore.images.corruptions.parameters import parameters_of

    pairs = [(name, severity) for name in corruptions for severity in severities]
    if not pairs:
        raise InputError("perturbation corruption: name at least one corruption and one severity")
    for name, severity in pairs:
        # Unknown ones are refused before anything is drawn; their parameters for some size of image do not matter.
        parameters_of(name, severity, 32)

    def sampler(images: Tensor, generator: Generator) -> Tensor:
        # Corruptions are functions of numpy arrays: one draw of the generator seeds theirs.
        seed = int(torch.randint(2**62, (), generator=generator, device=generator.device))
        rng = np.random.default_rng(seed)
        chosen = rng.integers(len(pairs), size=len(images))
        source = images.cpu().numpy()
        neighbours = np.empty_like(source)
        for index in np.unique(chosen):
            rows = chosen == index
            neighbours[rows] = corrupt(source[rows], *pairs[index], rng=rng)
        return torch.from_numpy(neighbours).to(images.device)

    kinds, degrees = ", ".join(corruptions), ", ".join(map(str, severities))
    return (
        sampler,
        f"one at random of the corruptions {kinds} at severity {degrees}, clipped to [0, 1] and rounded to 256 levels",
    )


def _uniform_integers(images, generator):
    """Integers drawn uniformly from [-2^31, 2^31), rounded to float32, of the images' shape."""
    import torch

    # Two numbers of 32 bits from each draw of 64, in nearly half the time of a draw for each: of what is spent between
    # the passes through a small network, this is the largest part.
    drawn = torch.empty((images.numel() + 1) // 2, dtype=torch.int64, device=images.device)
    drawn.random_(-(2**63), None, generator=generator)
    # Converted first: arithmetic of integers and numbers of another type takes several times as long.
    return drawn.view(torch.int32)[: images.numel()].reshape(images.shape).float()


def _require_positive(name, value):
    if not value > 0:
        raise InputError(f"perturbation: {name} must be positive, got {value!r}")


FAMILIES: dict[str, Callable[..., tuple[Sampler, str]]] = {
    "linf_ball": _linf_ball,
    "l2_ball": _l2_ball,
    "gaussian": _gaussian,
    "corruption": _corruption,
}
"""Families by name: a function from the family's settings to `(sampler, words)`.

A corruption that draws nothing at random (brightness, contrast, a blur) has a single outcome at each severity, so a
family of it alone has p of 0 or 1.
"""
