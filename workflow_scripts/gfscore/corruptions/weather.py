"""Weather: snow, frost, fog and light over the image."""

import numpy as np

from gfscore.corruptions.blur import smear, zoom
from gfscore.corruptions.plasma import plasma

ICE_DECAY = 1.6**0.5
"""Of the ice's relief; chosen here, as the published frost has none."""


def snow(images, parameters, rng):
    """Cover with flakes that fall steeply, on a brightened image."""
    mean, spread, size, threshold, radius, deviation, weight = parameters
    number, _, height, width = images.shape
    flakes = np.clip(zoom(rng.normal(mean, spread, (number, 1, height, width)), size), 0, 1)
    flakes = np.where(flakes < threshold, 0, flakes)
    flakes = smear(flakes, radius, deviation, np.deg2rad(rng.uniform(-135, -45, number)))
    grey = luminance(images) * 1.5 + 0.5
    brightened = weight * images + (1 - weight) * np.maximum(images, grey)
    return brightened + flakes + flakes[:, :, ::-1, ::-1]


def frost(images, parameters, rng):
    """Lay ice over the image.

    The published sets cut it from six photographs that may not be passed on. Here the ice is a random texture of
    feathered ridges, so the numbers are not those of CIFAR-10-C or ImageNet-C; evaluate those sets themselves to
    compare with others.
    """
    of_image, of_ice = parameters
    number, _, height, width = images.shape
    ridges = 1 - np.abs(2 * plasma(number, max(height, width), decay=ICE_DECAY, rng=rng) - 1)
    ice = ridges[:, None, :height, :width] ** 2
    return of_image * images + of_ice * ice


def fog(images, parameters, rng):
    """Add a cloud of diamond-square noise, and darken so that the brightest value stays."""
    weight, decay = parameters
    number, _, height, width = images.shape
    cloud = plasma(number, max(height, width), decay=decay, rng=rng)[:, None, :height, :width]
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    return (images + weight * cloud) * brightest / (brightest + weight)


def brightness(images, added, rng):
    """Raise the value of HSV, at most to 1; hue and saturation stay. No random draw."""
    del rng
    value = images.max(axis=1, keepdims=True)
    raised = np.minimum(value + added, 1)
    # Black has neither hue nor saturation: it becomes grey.
    scaled = images * np.divide(raised, value, out=np.zeros_like(value), where=value > 0)
    return np.where(value > 0, scaled, raised)


def luminance(images):
    """Grey value of images (n, C, H, W), (n, 1, H, W): ITU-R 601 for three channels, else the mean."""
    channels = images.shape[1]
    weights = np.array([0.299, 0.587, 0.114]) if channels == 3 else np.full(channels, 1 / channels)
    return np.tensordot(images, weights, axes=([1], [0]))[:, None]
