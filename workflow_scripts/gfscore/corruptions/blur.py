"""Blurs: values mixed with those nearby."""

import numpy as np
from scipy import ndimage

from gfscore.errors import InputError

ALL_BUT_NOTHING = 0.99
"""Weight of a kernel's centre above which it is no blur."""


def defocus_blur(images, parameters, rng):
    """Convolve with a disk whose edge is softened: a lens out of focus. No random draw.

    Raises InputError where the disk is smaller than a pixel: a corruption that changes nothing would only flatter.
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


def glass_blur(images, parameters, rng):
    """Blur, give each pixel the value of a near one, blur again: a view through frosted glass.

    Displacements are drawn from -delta to delta - 1 and values copied, not swapped, as in the code that made the
    published sets.
    """
    deviation, delta, rounds = parameters
    # A displacement is a whole number of pixels; below one nothing would move.
    delta = max(1, round(delta))
    blurred = ndimage.gaussian_filter(images, (0, 0, deviation, deviation), mode="nearest")
    number, _, height, width = images.shape
    each = np.arange(number)
    for _ in range(rounds):
        # From the lower right corner, so that a value may travel several times when delta is above 1.
        for row in range(height - delta, delta, -1):
            for column in range(width - delta, delta, -1):
                down, right = rng.integers(-delta, delta, (2, number))
                blurred[:, :, row, column] = blurred[each, :, row + down, column + right]
    return ndimage.gaussian_filter(blurred, (0, 0, deviation, deviation), mode="nearest")


def motion_blur(images, parameters, rng):
    """Smear along one direction within 45 degrees of the horizontal, another for each image."""
    radius, deviation = parameters
    return smear(images, radius, deviation, np.deg2rad(rng.uniform(-45, 45, len(images))))


def zoom_blur(images, parameters, rng):
    """Average the image with itself at growing zoom, about its centre. No random draw."""
    del rng
    end, step = parameters
    factors = np.arange(1, end, step)
    return (images + sum(zoom(images, factor) for factor in factors)) / (len(factors) + 1)


def smear(images, radius, deviation, angles):
    """One-sided Gaussian smear of images (n, C, H, W) along `angles` (n,) in radians; borders are continued."""
    reach = max(1, round(2 * radius))
    weights = np.exp(-0.5 * (np.arange(reach + 1) / max(deviation, 1e-6)) ** 2)
    weights /= weights.sum()
    number, _, height, width = images.shape
    rows, columns = np.arange(height)[:, None], np.arange(width)[None, :]
    each = np.arange(number)[:, None, None]
    result = np.zeros_like(images)
    for distance, weight in enumerate(weights):
        down = np.rint(distance * np.sin(angles)).astype(int)[:, None, None]
        right = np.rint(distance * np.cos(angles)).astype(int)[:, None, None]
        near = images[each, :, np.clip(rows + down, 0, height - 1), np.clip(columns + right, 0, width - 1)]
        result += weight * np.moveaxis(near, -1, 1)
    return result


def zoom(images, factor):
    """Images (n, C, H, W) enlarged by a factor of at least 1 about their centre, same size, linear interpolation."""
    rows, columns = (_interpolation(side, factor) for side in images.shape[2:])
    return rows @ images @ columns.T


def _interpolation(side, factor):
    # Row i holds the weights of the pixels that pixel i of the enlarged image lies between.
    middle = (side - 1) / 2
    places = middle + (np.arange(side) - middle) / factor
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(side)[None, :]))


def _disk(radius, softness):
    reach = max(1, int(np.ceil(radius + 3 * softness)))
    squares = np.arange(-reach, reach + 1) ** 2
    disk = (squares[:, None] + squares[None, :] <= radius**2).astype(float)
    kernel = ndimage.gaussian_filter(disk, softness, mode="constant", radius=1 if radius <= 8 else 2)
    return kernel / kernel.sum()
