"""Weather: snow, frost, fog and brightness."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.blur import smear, zoom
from gfscore.images.corruptions.parts import by_parts, parts_of
from gfscore.statistics.draws import RowGenerators

ICE_DECAY = 1.6**0.5
"""Decay of the height map of frost; chosen here, since the published frost uses photographs."""


def snow(
    images: NDArray[np.float32], parameters: tuple[float, ...], rng: RowGenerators
) -> Iterator[NDArray[np.float64]]:
    """Brighten the image and add steeply falling flakes."""
    mean, spread, size, threshold, radius, deviation, weight = parameters
    number, _, height, width = images.shape
    drawn = rng.normal(mean, spread, (number, 1, height, width))
    angles = np.deg2rad(rng.uniform(-135, -45, (number,)))
    for rows, part in parts_of(images):
        flakes = np.clip(zoom(drawn[rows], size), 0, 1)
        flakes = smear(np.where(flakes < threshold, 0, flakes), radius, deviation, angles[rows])
        grey = luminance(part) * 1.5 + 0.5
        brightened = weight * part + (1 - weight) * np.maximum(part, grey)
        yield brightened + flakes + flakes[:, :, ::-1, ::-1]


def frost(
    images: NDArray[np.float32], parameters: tuple[float, float], rng: RowGenerators
) -> Iterator[NDArray[np.float64]]:
    """Overlay the image with ice.

    The published sets use six photographs that may not be redistributed. Here the ice is a random texture of feathered
    ridges, so results differ from CIFAR-10-C and ImageNet-C; evaluate those datasets to compare with published numbers.
    """
    of_image, of_ice = parameters
    number, _, height, width = images.shape
    reliefs = plasma(number, max(height, width), decay=ICE_DECAY, rng=rng)[:, None, :height, :width]
    for rows, part in parts_of(images):
        ice = (1 - np.abs(2 * reliefs[rows] - 1)) ** 2
        yield of_image * part + of_ice * ice


def fog(
    images: NDArray[np.float32], parameters: tuple[float, float], rng: RowGenerators
) -> Iterator[NDArray[np.float64]]:
    """Add a cloud of diamond-square noise and rescale to the original maximum."""
    weight, decay = parameters
    number, _, height, width = images.shape
    clouds = plasma(number, max(height, width), decay=decay, rng=rng)[:, None, :height, :width]
    for rows, part in parts_of(images):
        brightest = part.max(axis=(1, 2, 3), keepdims=True)
        yield (part + weight * clouds[rows]) * brightest / (brightest + weight)


@by_parts
def brightness(images: NDArray[np.float64], added: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Raise the value of HSV, at most to 1; hue and saturation stay. No random draw."""
    del rng
    value = images.max(axis=1, keepdims=True)
    raised = np.minimum(value + added, 1)
    # Black has neither hue nor saturation: it becomes grey.
    scaled = images * np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    return np.where(value > 0, scaled, raised)


def luminance(images: NDArray[np.float64]) -> NDArray[np.float64]:
    """Grey values (n, 1, H, W) of images (n, C, H, W): ITU-R 601 for three channels, else the mean."""
    channels = images.shape[1]
    weights = np.array([0.299, 0.587, 0.114]) if channels == 3 else np.full(channels, 1 / channels)
    return np.tensordot(images, weights, axes=([1], [0]))[:, None]


def plasma(number: int, side: int, *, decay: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Height maps (number, side, side) in [0, 1], periodic, rougher for a smaller `decay`.

    Midpoints of successively halved squares are the mean of the corners plus noise whose range is divided by decay^2 at
    each step, as in the code that made CIFAR-10-C and ImageNet-C, where a factor and a range both fall by `decay`.
    Source: Fournier et al. 1982.
    """
    size = 1 << max(1, int(np.ceil(np.log2(side))))
    heights = np.zeros((number, size, size))
    # One number for each height but that of the corner, drawn at once.
    drawn, used = rng.uniform(-1, 1, (number, size * size - 1)), 0
    step, spread = size, 100.0
    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        shape = corners.shape

        def around(
            values: NDArray[np.float64], *, spread: float = spread, shape: tuple[int, ...] = shape
        ) -> NDArray[np.float64]:
            nonlocal used
            start, used = used, used + shape[1] * shape[2]
            return values / 4 + spread * drawn[:, start:used].reshape(shape)

        below, right = np.roll(corners, -1, axis=1), np.roll(corners, -1, axis=2)
        heights[:, half::step, half::step] = around(corners + below + right + np.roll(below, -1, axis=2))
        middles = heights[:, half::step, half::step]
        heights[:, ::step, half::step] = around(corners + right + middles + np.roll(middles, 1, axis=1))
        heights[:, half::step, ::step] = around(corners + below + middles + np.roll(middles, 1, axis=2))
        step, spread = half, spread / decay**2
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return (heights / heights.max(axis=(1, 2), keepdims=True))[:, :side, :side]
