"""Quality of a trained mapper: reconstruction error, and the effect of each dimension on traits of images."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.images.attributes.digits import measurements
from gfscore.projection.mappers.fitting import Mapper
from gfscore.projection.mappers.pictures import moved

Shown = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Images (N, C, H, W) with their conditions (N, A), or None."""

MOST_DESCRIBED = 512
"""Images of the test data set that a mapper is described on: large ones by the thousands take hours and gigabytes."""

LEAST_SPREAD = 1e-6
"""Standard deviation up to which a trait counts as constant."""

COLOURS = ("red", "green", "blue")

AT_A_TIME = 256
"""Images per batch, which bounds the memory of float64 pixels."""


def describe_mapper(mapper: Mapper, train: Shown, test: Shown) -> dict[str, Any]:
    """Quality of a mapper on images that it was not trained on, a mapping for JSON.

    `train` and `test` are pairs of images (N, C, H, W) and conditions (N, A) or None; all images of `test` are decoded
    several times per dimension, so a few hundred suffice. `reconstruction_error` is the mean squared error of a pixel,
    `explained` the explained share of the variance (1 for perfect); `divergence` that of each dimension from the prior
    in nats, near 0 if the decoder does not use the dimension, None without a prior; `effects` see `effects_of`.
    """
    images, conditions = test
    codes, spread = mapper.encode(images, conditions)
    error = float(np.mean((mapper.decode(codes) - images) ** 2))
    variance = float(np.mean((images - images.mean(axis=0)) ** 2))
    return {
        "reconstruction_error": error,
        "explained": 1 - error / variance,
        "dimensions": list(mapper.names),
        "sigma": mapper.sigma.tolist(),
        # Codes of conditions have no prior.
        "divergence": None if mapper.limits else _divergence(codes, spread).tolist(),
        "effects": effects_of(mapper, images, codes, train),
    }


def effects_of(
    mapper: Mapper, images: NDArray[np.float32], codes: NDArray[np.float32], train: Shown
) -> list[dict[str, Any]]:
    """Effect of moving each dimension from -sigma to +sigma on decoded images: one mapping per dimension and trait.

    Conditions are moved from their lowest to their highest value. `shift` is the mean change of the trait and
    `strength` the mean absolute change, both in standard deviations of the trait over the images; for an attribute,
    whose `trait` is its name, the change of its probability by a classifier fitted to the `train` images. None if the
    trait does not vary.
    """
    attributes = {} if train[1] is None else fitted_attributes(train[0], train[1], mapper.names)
    original = image_traits(images)
    effects = []
    for index, name in enumerate(mapper.names):
        low, high = (mapper.decode(moved(mapper, codes, index, side)) for side in (-1.0, 1.0))
        before, after = image_traits(low), image_traits(high)
        for trait, values in original.items():
            spread = np.nanstd(values) if np.isfinite(values).any() else 0.0
            change = (after[trait] - before[trait]) / spread if spread > LEAST_SPREAD else None
            effects.append(_effect(name, trait, "measured", change))
        for trait, probability in attributes.items():
            effects.append(_effect(name, trait, "classifier", probability(high) - probability(low)))
    return effects


def _divergence(codes, spread):
    return ((codes.astype(np.float64) ** 2 + spread**2 - 1 - 2 * np.log(spread)) / 2).mean(axis=0)


def _effect(dimension, trait, how, change):
    known: Any = None if change is None else change[~np.isnan(change)]
    empty = known is None or len(known) == 0
    return {
        "dimension": dimension,
        "trait": trait,
        "how": how,
        "shift": None if empty else float(known.mean()),
        "strength": None if empty else float(np.abs(known).mean()),
    }


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
