"""Blurs: defocus, frosted glass, motion and zoom."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from gfscore.core.errors import InputError
from gfscore.images.corruptions.parts import by_parts, parts_of
from gfscore.statistics.draws import RowGenerators

ALL_BUT_NOTHING = 0.99
"""Weight of a kernel's centre above which it does not blur."""

BAND = 32
"""Rows that are interpolated together; a side of fewer than four bands is not divided."""


@by_parts
def defocus_blur(
    images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators
) -> NDArray[np.float64]:
    """Convolve with a disk whose edge is softened: a lens out of focus. Not random.

    Raises InputError where the disk is smaller than a pixel, so that the corruption would change nothing.
    """
    del rng
    radius, softness = parameters
    kernel = _disk(radius, softness)[None, None]
    if kernel.max() > ALL_BUT_NOTHING:
        side = min(images.shape[2:])
        raise InputError(
            f"corruption defocus_blur changes nothing in images of {side} pixels (its radius there is {radius:.2g} of "
            "a pixel); leave it out of `corruptions` in config.yaml"
        )
    return ndimage.convolve(images, kernel, mode="mirror")


def glass_blur(
    images: NDArray[np.float32], parameters: tuple[float, float, int], rng: RowGenerators
) -> Iterator[NDArray[np.float64]]:
    """Blur, replace each pixel by a random pixel nearby, blur again: a view through frosted glass.

    Displacements are drawn from -delta to delta - 1, and values are copied, not swapped, as in the code that made the
    published sets.
    """
    deviation, delta, rounds = parameters
    # At least one pixel, since a displacement is a whole number.
    delta = max(1, round(delta))
    shape = len(images), *images.shape[2:]
    origins = [_origins(shape, delta, rng) for _ in range(rounds)]

    def blurred(part: NDArray[np.float64]) -> NDArray[np.float64]:
        return ndimage.gaussian_filter(part, (0, 0, deviation, deviation), mode="nearest")

    for rows, part in parts_of(images):
        values = blurred(part).reshape(*part.shape[:2], -1)
        for origin in origins:
            values = np.take_along_axis(values, _followed(origin[rows])[:, None], axis=2)
        yield blurred(values.reshape(part.shape))


@by_parts
def motion_blur(
    images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators
) -> NDArray[np.float64]:
    """Smear along a random direction within 45 degrees of the horizontal, drawn for each image."""
    radius, deviation = parameters
    return smear(images, radius, deviation, np.deg2rad(rng.uniform(-45, 45, (len(images),))))


@by_parts
def zoom_blur(images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators) -> NDArray[np.float64]:
    """Average the image with itself at growing zoom, about its centre. No random draw."""
    del rng
    end, step = parameters
    factors = np.arange(1, end, step)
    return (images + sum(zoom(images, factor) for factor in factors)) / (len(factors) + 1)


def smear(
    images: NDArray[np.float64], radius: float, deviation: float, angles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One-sided Gaussian smear of images (n, C, H, W) along `angles` (n,) in radians; border pixels are repeated."""
    reach = max(1, round(2 * radius))
    distances = np.arange(reach + 1)[:, None]
    weights = np.exp(-0.5 * (distances / max(deviation, 1e-6)) ** 2)
    weights /= weights.sum()
    down, right = (reach + np.rint(distances * along(angles)).astype(int) for along in (np.sin, np.cos))
    border = np.pad(images, [(0, 0), (0, 0), (reach, reach), (reach, reach)], mode="edge")
    windows, each = sliding_window_view(border, images.shape[2:], axis=(2, 3)), np.arange(len(images))
    result = np.zeros_like(images)
    for distance, weight in enumerate(weights):
        near = windows[each, :, down[distance], right[distance]]
        near *= weight
        result += near
    return result


def zoom(images: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Images (n, C, H, W) enlarged about their centre by a factor >= 1 and cropped, with linear interpolation."""
    for axis in (2, 3):
        enlarged = np.empty_like(images)
        for band, near, weights in _interpolation(images.shape[axis], factor):
            if axis == 2:
                np.matmul(weights, images[:, :, near], out=enlarged[:, :, band])
            else:
                np.matmul(images[..., near], weights.T, out=enlarged[..., band])
        images = enlarged
    return images


@lru_cache(maxsize=64)
def _interpolation(side, factor):
    # Row i of the weights interpolates pixel i of the enlarged image. All but two weights are zero, so the rows are
    # returned in bands, each with the input pixels that it needs.
    middle = (side - 1) / 2
    places = middle + (np.arange(side) - middle) / factor
    weights = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(side)[None, :]))
    if side < 4 * BAND:
        return [(slice(None), slice(None), weights)]
    bands = []
    for start in range(0, side, BAND):
        band = slice(start, start + BAND)
        needed = np.flatnonzero(weights[band].any(axis=0))
        near = slice(needed[0], needed[-1] + 1)
        bands.append((band, near, weights[band, near]))
    return bands


def _origins(shape, delta, rng):
    # Index of the pixel whose value each pixel of (n, H, W) takes, (n, H * W), in one round. They are drawn from the
    # lower right corner, in rows of pixels.
    number, height, width = shape
    origins = np.tile(np.arange(height * width, dtype=np.int32), (number, 1)).reshape(shape)
    moved = origins[:, delta + 1 : height - delta + 1, delta + 1 : width - delta + 1]
    down, right = np.moveaxis(rng.integers(-delta, delta, (*moved.shape, 2)), -1, 0)
    moved[:, ::-1, ::-1] += (width * down + right).astype(np.int32)
    return origins.reshape(number, -1)


def _followed(origins):
    # Resolves chains of copies: pixels of (n, H * W) are replaced from the last to the first, so a pixel that copies a
    # later one gets that one's new value. Every step doubles the length of the resolved chains.
    size, pixels = origins.size, origins.shape[1]
    first = pixels * np.arange(len(origins))[:, None]
    index, links = np.arange(size), (origins + first).ravel()
    # Links of at least `size` mean the value before the round, where a chain ends.
    links = np.where(links > index, links, links + size)
    waiting = np.flatnonzero(links < size)
    while waiting.size:
        links[waiting] = links[links[waiting]]
        waiting = waiting[links[waiting] < size]
    return (links - size).reshape(-1, pixels) - first


def _disk(radius, softness):
    reach = max(1, int(np.ceil(radius + 3 * softness)))
    squares = np.arange(-reach, reach + 1) ** 2
    disk = (squares[:, None] + squares[None, :] <= radius**2).astype(float)
    kernel = ndimage.gaussian_filter(disk, softness, mode="constant", radius=1 if radius <= 8 else 2)
    return kernel / kernel.sum()
