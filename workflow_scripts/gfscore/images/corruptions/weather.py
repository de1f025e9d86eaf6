"""Weather: snow, frost, fog and brightness."""

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.blur import smear, zoom
from gfscore.statistics.draws import RowGenerators

ICE_DECAY = 1.6**0.5
"""Decay of the height map of frost; chosen here, since the published frost uses photographs."""

FIRST_SPREAD = 100.0
"""Range of the noise at the coarsest step of a height map."""


def snow(images: NDArray[np.float64], parameters: tuple[float, ...], rng: RowGenerators) -> NDArray[np.float64]:
    """Brighten the image and add steeply falling flakes.

    Parameters
    ----------
    images : ndarray of shape (n, C, H, W), float64
        In [0, 1].
    parameters : tuple of float
        Mean and standard deviation of the flakes, their zoom, the threshold below which there is none, radius and
        standard deviation of their motion in pixels, and the weight of the image against its brightened copy.
    rng : RowGenerators
        Random numbers of the images.
    """
    mean, spread, size, threshold, radius, deviation, weight = parameters
    number, _, height, width = images.shape
    drawn = rng.normal(mean, spread, (number, 1, height, width))
    angles = np.deg2rad(rng.uniform(-135, -45, (number,)))

    flakes = np.clip(zoom(drawn, size), 0, 1)
    flakes = np.where(flakes < threshold, 0, flakes)
    flakes = smear(flakes, radius, deviation, angles)

    grey = luminance(images) * 1.5 + 0.5
    brightened = weight * images + (1 - weight) * np.maximum(images, grey)
    return brightened + flakes + flakes[:, :, ::-1, ::-1]


def frost(images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators) -> NDArray[np.float64]:
    """Overlay the image with ice; `parameters` are the weights of image and ice.

    The published sets use six photographs that may not be redistributed. Here the ice is a random texture of feathered
    ridges, so results differ from CIFAR-10-C and ImageNet-C; evaluate those datasets to compare with published numbers.
    """
    image_weight, ice_weight = parameters
    relief = _height_maps_of(images, ICE_DECAY, rng)
    ice = (1 - np.abs(2 * relief - 1)) ** 2
    return image_weight * images + ice_weight * ice


def fog(images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators) -> NDArray[np.float64]:
    """Add a cloud of diamond-square noise and rescale to the original maximum.

    `parameters` are the weight of the cloud, and the decay of its details (see `plasma`).
    """
    weight, decay = parameters
    clouds = _height_maps_of(images, decay, rng)
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    return (images + weight * clouds) * brightest / (brightest + weight)


def brightness(images: NDArray[np.float64], increment: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Raise the value of HSV, at most to 1; hue and saturation stay. No random draw."""
    del rng
    value = images.max(axis=1, keepdims=True)
    raised = np.minimum(value + increment, 1)
    factor = np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    # Black has neither hue nor saturation: it becomes grey.
    return np.where(value > 0, images * factor, raised)


def luminance(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Grey values (n, 1, H, W) of images (n, C, H, W): ITU-R 601 for three channels, else the mean."""
    channels = images.shape[1]
    weights = np.full(channels, 1 / channels)
    if channels == 3:
        weights = np.array([0.299, 0.587, 0.114])
    return np.tensordot(images, weights, axes=([1], [0]))[:, None]


def plasma(number: int, side: int, *, decay: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Random height maps by the diamond-square algorithm, periodic.

    Midpoints of successively halved squares are the mean of the corners plus noise, whose range is divided by decay^2
    at each step, as in the code that made CIFAR-10-C and ImageNet-C, where a factor and a range both fall by `decay`.

    Parameters
    ----------
    number : int
        How many maps n.
    side : int
        Their side in pixels.
    decay : float
        Above 1; the maps are rougher for a smaller one.
    rng : RowGenerators
        Random numbers of the n maps.

    Returns
    -------
    ndarray of shape (n, side, side), float64
        Heights in [0, 1]; before the crop to `side`, each map has both ends.

    References
    ----------
    Fournier, Fussell and Carpenter 1982, "Computer rendering of stochastic models".
    """
    size = 1 << max(1, int(np.ceil(np.log2(side))))
    heights = np.zeros((number, size, size))
    # One number for each height except at the corner, drawn at once.
    drawn = rng.uniform(-1, 1, (number, size * size - 1))
    used = 0
    step = size
    spread = FIRST_SPREAD
    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        _, rows, columns = corners.shape
        count = 3 * rows * columns
        noise = spread * drawn[:, used : used + count].reshape(number, 3, rows, columns)
        used += count

        below = np.roll(corners, -1, axis=1)
        right = np.roll(corners, -1, axis=2)
        diagonal = np.roll(below, -1, axis=2)
        heights[:, half::step, half::step] = (corners + below + right + diagonal) / 4 + noise[:, 0]
        middles = heights[:, half::step, half::step]
        middles_above = np.roll(middles, 1, axis=1)
        heights[:, ::step, half::step] = (corners + right + middles + middles_above) / 4 + noise[:, 1]
        middles_left = np.roll(middles, 1, axis=2)
        heights[:, half::step, ::step] = (corners + below + middles + middles_left) / 4 + noise[:, 2]

        step = half
        spread = spread / decay**2
    heights -= heights.min(axis=(1, 2), keepdims=True)
    heights = heights / heights.max(axis=(1, 2), keepdims=True)
    return heights[:, :side, :side]


def _height_maps_of(images: NDArray[np.float64], decay: float, rng: RowGenerators) -> NDArray[np.float64]:
    # One map for each image, (n, 1, H, W).
    number, _, height, width = images.shape
    maps = plasma(number, max(height, width), decay=decay, rng=rng)
    return maps[:, None, :height, :width]
