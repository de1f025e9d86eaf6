"""Traits of images (brightness, position, strokes, attributes) that show the effect of a latent dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.images.attributes.digits import measurements

COLOURS = ("red", "green", "blue")

AT_A_TIME = 256
"""Images per batch, which bounds the memory of float64 pixels."""


def image_traits(images: NDArray[np.float32]) -> dict[str, NDArray[np.float64]]:
    """Traits of images (N, C, H, W) in [0, 1] by name, each (N,) float64; NaN where undefined.

    brightness (mean), contrast (standard deviation of the pixels), and the centre of brightness, horizontal_position
    and vertical_position, 0 at the left and upper edge, 1 at the right and lower one. In addition for grey images: the
    stroke measurements slant, aspect_ratio and loops; for three channels: the mean of each colour.
    """
    parts = [_traits(part) for part in _parts(images)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _traits(images):
    grey = images.mean(axis=1)
    _, height, width = grey.shape
    mass = grey.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        across = np.einsum("nij,j->n", grey, np.linspace(0, 1, width)) / mass
        down = np.einsum("nij,i->n", grey, np.linspace(0, 1, height)) / mass
    traits = {"brightness": grey.mean(axis=(1, 2)), "contrast": images.std(axis=(1, 2, 3))}
    traits |= {"horizontal_position": across, "vertical_position": down}
    if images.shape[1] == 1:
        strokes = measurements(grey)
        traits |= {name: np.asarray(strokes[name], dtype=np.float64) for name in ("slant", "aspect_ratio", "loops")}
    if images.shape[1] == len(COLOURS):
        traits |= {colour: images[:, channel].mean(axis=(1, 2)) for channel, colour in enumerate(COLOURS)}
    return traits


def fitted_attributes(
    images: NDArray[np.float32], conditions: NDArray[np.float32], names: Sequence[str]
) -> dict[str, Callable[[NDArray[np.float32]], NDArray[np.float64]]]:
    """Attribute classifiers: functions from images to the probability of each condition, by name.

    Logistic regressions of conditions (N, A), NaN where missing, on images (N, C, H, W) averaged to at most 16x16
    pixels; constant conditions are left out.
    """
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    flat = _shrunk(images)
    classifiers: dict[str, Any] = {}
    # The rounding of sums over several threads varies from run to run.
    with threadpool_limits(1):
        for column, name in enumerate(names):
            known = ~np.isnan(conditions[:, column])
            values = conditions[known, column] > 0.5
            if values.any() and not values.all():
                fit = LogisticRegression(max_iter=1000).fit(flat[known], values)
                classifiers[name] = lambda shown, fit=fit: fit.predict_proba(_shrunk(shown))[:, 1]
    return classifiers


def _parts(images):
    # At least one part, which is empty without images.
    for start in range(0, max(1, len(images)), AT_A_TIME):
        yield np.asarray(images[start : start + AT_A_TIME], dtype=np.float64)


def _shrunk(images):
    return np.concatenate([_averaged(part) for part in _parts(images)])


def _averaged(images, side=16):
    *_, height, width = images.shape
    down, across = -(-height // side), -(-width // side)
    images = images[..., : height - height % down, : width - width % across]
    shape = (*images.shape[:2], images.shape[2] // down, down, images.shape[3] // across, across)
    return images.reshape(shape).mean(axis=(3, 5)).reshape(len(images), -1)
