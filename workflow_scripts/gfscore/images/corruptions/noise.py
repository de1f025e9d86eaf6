"""Noise: Gaussian, shot and impulse noise, independent for each value."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.parts import by_parts, parts_of


@by_parts
def gaussian_noise(images: NDArray[np.float64], deviation: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Add normal noise of a given standard deviation to images (n, C, H, W)."""
    return images + deviation * rng.standard_normal(images.shape)


@by_parts
def shot_noise(images: NDArray[np.float64], photons: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Photon noise: Poisson numbers with mean `photons` times the brightness, divided by `photons`."""
    return rng.poisson(images * photons) / photons


def impulse_noise(images: NDArray[np.float32], share: float, rng: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Replace a share of the values by black or white with equal probability."""
    hit = rng.random(images.shape) < share
    for rows, part in parts_of(images):
        yield np.where(hit[rows], rng.integers(0, 2, part.shape), part)
