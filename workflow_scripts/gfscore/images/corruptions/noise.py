"""Noise: Gaussian, shot and impulse noise, independent for each value."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.parts import by_parts, parts_of
from gfscore.statistics.draws import RowGenerators


@by_parts
def gaussian_noise(images: NDArray[np.float64], deviation: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Add normal noise of a standard deviation to images (n, C, H, W)."""
    return images + deviation * rng.standard_normal(images.shape)


@by_parts
def shot_noise(images: NDArray[np.float64], photons: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Count photons: Poisson with mean `photons` times the brightness, over `photons`."""
    return rng.poisson(images * photons) / photons


def impulse_noise(images: NDArray[np.float32], share: float, rng: RowGenerators) -> Iterator[NDArray[np.float64]]:
    """Replace a share of the values by black or white, equally often."""
    hit = rng.random(images.shape) < share
    for rows, part in parts_of(images):
        yield np.where(hit[rows], rng[rows].integers(0, 2, part.shape), part)
