"""Blurs: defocus, frosted glass, motion and zoom."""

from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import ndimage

from gfscore.core.errors import InputError
from gfscore.statistics.draws import RowGenerators

IDENTITY_WEIGHT = 0.99
"""Weight of a kernel's centre above which it does not blur."""

BAND = 32
"""Rows that are interpolated together; a side of fewer than four bands is not divided."""


def defocus_blur(
    images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators
) -> NDArray[np.float64]:
    """Convolve with a disk whose edge is softened: a lens out of focus. Not random.

    `parameters` are the radius of the disk and the standard deviation of its edge, in pixels. Raises InputError where
    the disk is smaller than a pixel, so that the corruption would change nothing.
    """
    del rng
    radius, softness = parameters
    reach = max(1, int(np.ceil(radius + 3 * softness)))
    squares = np.arange(-reach, reach + 1) ** 2
    disk = (squares[:, None] + squares[None, :] <= radius**2).astype(float)
    # A Gaussian of 3x3 or 5x5 pixels, as in the code that made the published sets.
    kernel_radius = 1 if radius <= 8 else 2
    kernel = ndimage.gaussian_filter(disk, softness, mode="constant", radius=kernel_radius)
    kernel /= kernel.sum()
    if kernel.max() > IDENTITY_WEIGHT:
        pixels = min(images.shape[2:])
        raise InputError(
            f"corruption defocus_blur changes nothing in images of {pixels} pixels (its radius there is {radius:.2g} "
            "of a pixel); leave it out of `corruptions`"
        )
    return ndimage.convolve(images, kernel[None, None], mode="mirror")


def glass_blur(
    images: NDArray[np.float64], parameters: tuple[float, float, int], rng: RowGenerators
) -> NDArray[np.float64]:
    """Blur, replace each pixel by a random pixel nearby, blur again: a view through frosted glass.

    `parameters` are the standard deviation of the blur and the largest displacement delta, in pixels, and the rounds.
    Displacements are drawn from -delta to delta - 1, and values are copied, not swapped, as in the code that made the
    published sets.
    """
    deviation, delta, rounds = parameters
    # At least one pixel, since a displacement is a whole number.
    reach = max(1, round(delta))
    number, channels, height, width = images.shape
    smoothing = (0, 0, deviation, deviation)

    blurred = ndimage.gaussian_filter(images, smoothing, mode="nearest")
    values = blurred.reshape(number, channels, height * width)
    # Index of the pixel whose value each pixel takes in one round, (n, H * W).
    identity = np.arange(height * width, dtype=np.int32)
    for _ in range(rounds):
        origins = np.tile(identity, (number, 1)).reshape(number, height, width)
        # A view of `origins`, without the border that displacements would leave.
        moved = origins[:, reach + 1 : height - reach + 1, reach + 1 : width - reach + 1]
        displacements = rng.integers(-reach, reach, (*moved.shape, 2))
        down = displacements[..., 0]
        right = displacements[..., 1]
        # Displacements are drawn from the lower right corner, in rows of pixels.
        moved[:, ::-1, ::-1] += (width * down + right).astype(np.int32)
        sources = _resolved_chains(origins.reshape(number, -1))
        values = np.take_along_axis(values, sources[:, None], axis=2)
    return ndimage.gaussian_filter(values.reshape(images.shape), smoothing, mode="nearest")


def motion_blur(
    images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators
) -> NDArray[np.float64]:
    """Smear along a random direction within 45 degrees of the horizontal, drawn for each image.

    `parameters` are radius and standard deviation of the smear, in pixels. At severity 1 it changes nothing in images
    of fewer than 10 pixels.
    """
    radius, deviation = parameters
    degrees = rng.uniform(-45, 45, (len(images),))
    return smear(images, radius, deviation, np.deg2rad(degrees))


def zoom_blur(images: NDArray[np.float64], parameters: tuple[float, float], rng: RowGenerators) -> NDArray[np.float64]:
    """Average the image with itself at growing zoom, about its centre. No random draw.

    `parameters` are the end (excluded) and the step of the zoom factors, which begin at 1. The code that made the
    published sets crops whole pixels before it enlarges them, which moves small images off their centre: CIFAR-10-C
    changes about twice as much at severity 1, and a tenth more at severity 5.
    """
    del rng
    end, step = parameters
    factors = np.arange(1, end, step)
    zoomed = sum(zoom(images, factor) for factor in factors)
    return (images + zoomed) / (len(factors) + 1)


def smear(
    images: NDArray[np.float64], radius: float, deviation: float, angles: NDArray[np.float64]
) -> NDArray[np.float64]:
    """One-sided Gaussian smear, as of a moving camera.

    Parameters
    ----------
    images : ndarray of shape (n, C, H, W), float64
        Border pixels are repeated beyond the border.
    radius : float
        Half of the length of the smear, in pixels.
    deviation : float
        Standard deviation of the weights along it, in pixels.
    angles : ndarray of shape (n,), float64
        Direction of each image's smear, in radians.

    Returns
    -------
    ndarray of shape (n, C, H, W), float64
    """
    reach = max(1, round(2 * radius))
    distances = np.arange(reach + 1)[:, None]
    weights = np.exp(-0.5 * (distances / max(deviation, 1e-6)) ** 2)
    weights /= weights.sum()
    down = reach + np.rint(distances * np.sin(angles)).astype(int)
    right = reach + np.rint(distances * np.cos(angles)).astype(int)

    padded = np.pad(images, [(0, 0), (0, 0), (reach, reach), (reach, reach)], mode="edge")
    windows = sliding_window_view(padded, images.shape[2:], axis=(2, 3))
    positions = np.arange(len(images))
    result = np.zeros_like(images)
    for distance, weight in enumerate(weights):
        shifted = windows[positions, :, down[distance], right[distance]]
        shifted *= weight
        result += shifted
    return result


def zoom(images: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Images (n, C, H, W) enlarged about their centre by a factor >= 1 and cropped, with linear interpolation."""
    for axis in (2, 3):
        enlarged = np.empty_like(images)
        for band, sources, weights in _interpolation(images.shape[axis], factor):
            if axis == 2:
                np.matmul(weights, images[:, :, sources], out=enlarged[:, :, band])
            else:
                np.matmul(images[..., sources], weights.T, out=enlarged[..., band])
        images = enlarged
    return images


@lru_cache(maxsize=64)
def _interpolation(size: int, factor: float) -> list[tuple[slice, slice, NDArray[np.float64]]]:
    # Row i of the weights interpolates pixel i of the enlarged image. All but two weights are zero, so the rows are
    # returned in bands, each with the input pixels that it needs.
    middle = (size - 1) / 2
    positions = middle + (np.arange(size) - middle) / factor
    distances = np.abs(positions[:, None] - np.arange(size)[None, :])
    weights = np.maximum(0, 1 - distances)
    if size < 4 * BAND:
        return [(slice(None), slice(None), weights)]

    bands = []
    for start in range(0, size, BAND):
        band = slice(start, start + BAND)
        needed = np.flatnonzero(weights[band].any(axis=0))
        sources = slice(int(needed[0]), int(needed[-1]) + 1)
        bands.append((band, sources, weights[band, sources]))
    return bands


def _resolved_chains(origins: NDArray[np.int32]) -> NDArray[np.int64]:
    # Pixels of (n, H * W) are replaced from the last to the first, so a pixel that copies a later one gets that one's
    # new value. Every step doubles the length of the resolved chains.
    size = origins.size
    number, pixels = origins.shape
    first = pixels * np.arange(number)[:, None]
    links = (origins + first).ravel()
    # Links of at least `size` mean the value before the round, where a chain ends.
    links = np.where(links > np.arange(size), links, links + size)
    unresolved = np.flatnonzero(links < size)
    while unresolved.size:
        links[unresolved] = links[links[unresolved]]
        unresolved = unresolved[links[unresolved] < size]
    return (links - size).reshape(number, pixels) - first
