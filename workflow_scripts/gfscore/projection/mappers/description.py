"""Quality of a trained mapper: reconstruction error, and the effect of each dimension on traits of images."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from gfscore.core.errors import InputError
from gfscore.images.attributes.digits import measurements
from gfscore.projection.mappers.fitting import Mapper
from gfscore.projection.mappers.pictures import moved

LabelledImages = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Images (N, C, H, W) with their conditions (N, A), or None."""

Classifier = Callable[[NDArray[np.float32]], NDArray[np.float64]]
"""Function of images (n, C, H, W), which gives the probability (n,) of an attribute."""

Effect = dict[str, str | float | None]
"""Effect of a dimension on a trait, a mapping for JSON."""

MOST_DESCRIBED = 512
"""Images of the test data set that a mapper is described on: large ones by the thousands take hours and gigabytes."""

LEAST_SPREAD = 1e-6
"""Standard deviation up to which a trait counts as constant."""

COLOURS = ("red", "green", "blue")

STROKES = ("slant", "aspect_ratio", "loops")
"""Measurements of grey images that are traits."""

AT_A_TIME = 256
"""Images per batch, which bounds the memory of float64 pixels."""

SHRUNK_SIDE = 16
"""Largest side of the images that attribute classifiers see."""


def describe_mapper(mapper: Mapper, train: LabelledImages, test: LabelledImages) -> dict[str, object]:
    """Quality of a mapper on images of its `evaluate_on`.

    Parameters
    ----------
    mapper : Mapper
        The mapper.
    train : tuple
        Images and conditions that it was trained on, to which classifiers of attributes are fitted.
    test : tuple
        Images and conditions. All are decoded several times per dimension, so a few hundred suffice.

    Returns
    -------
    dict
        A mapping for JSON. `reconstruction_error` is the mean squared error of a pixel, `explained` the explained share
        of the variance (1 for perfect); `divergence` the divergence of each dimension from the prior in nats, near 0 if
        the decoder does not use the dimension, None without a prior; `effects` see `effects_of`.

    Raises
    ------
    InputError
        Where decoded images are not finite.
    """
    images, conditions = test
    codes, spread = mapper.encode(images, conditions)
    error = float(np.mean((mapper.decode(codes) - images) ** 2))
    # Losses are of the weights before each step, so that those after the last one show here alone.
    if not math.isfinite(error):
        raise InputError("the training diverged in its last epoch: decoded images are not finite; lower learning_rate")
    variance = float(np.mean((images - images.mean(axis=0)) ** 2))
    # Codes of conditions have no prior.
    divergence = None
    if not mapper.limits:
        nats = (codes.astype(np.float64) ** 2 + spread**2 - 1 - 2 * np.log(spread)) / 2
        divergence = nats.mean(axis=0).tolist()
    return {
        "reconstruction_error": error,
        "explained": 1 - error / variance,
        "dimensions": list(mapper.names),
        "sigma": mapper.sigma.tolist(),
        "divergence": divergence,
        "effects": effects_of(mapper, images, codes, train),
    }


def effects_of(
    mapper: Mapper, images: NDArray[np.float32], codes: NDArray[np.float32], train: LabelledImages
) -> list[Effect]:
    """Effect of moving each dimension from -sigma to +sigma on decoded images: one mapping per dimension and trait.

    Conditions are moved from their lowest to their highest value. `shift` is the mean change of the trait and
    `strength` the mean absolute change, both in standard deviations of the trait over the images; for an attribute,
    whose `trait` is its name, the change of its probability by a classifier fitted to the `train` images. None if the
    trait does not vary.
    """
    train_images, train_conditions = train
    classifiers: dict[str, Classifier] = {}
    if train_conditions is not None:
        classifiers = fitted_attributes(train_images, train_conditions, mapper.names)
    spreads = {}
    for trait, values in image_traits(images).items():
        spreads[trait] = float(np.nanstd(values)) if np.isfinite(values).any() else 0.0

    effects = []
    for dimension, name in enumerate(mapper.names):
        low = mapper.decode(moved(mapper, codes, dimension, -1.0))
        high = mapper.decode(moved(mapper, codes, dimension, 1.0))
        before = image_traits(low)
        after = image_traits(high)
        for trait, spread in spreads.items():
            changes = np.zeros(0)
            if spread > LEAST_SPREAD:
                changes = (after[trait] - before[trait]) / spread
            effects.append(_effect(name, trait, "measured", changes))
        for trait, probability in classifiers.items():
            changes = probability(high) - probability(low)
            effects.append(_effect(name, trait, "classifier", changes))
    return effects


def _effect(dimension: str, trait: str, method: str, changes: NDArray[np.float64]) -> Effect:
    defined = changes[~np.isnan(changes)]
    return {
        "dimension": dimension,
        "trait": trait,
        "how": method,
        "shift": float(defined.mean()) if len(defined) else None,
        "strength": float(np.abs(defined).mean()) if len(defined) else None,
    }


def image_traits(images: NDArray[np.float32]) -> dict[str, NDArray[np.float64]]:
    """Traits of images.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W)
        In [0, 1].

    Returns
    -------
    dict
        Each (N,) float64, NaN where undefined: `brightness` (mean), `contrast` (standard deviation of the pixels), and
        the centre of brightness, `horizontal_position` and `vertical_position`, 0 at the left and upper edge, 1 at the
        right and lower one. In addition for grey images the stroke measurements `slant`, `aspect_ratio` and `loops`;
        for three channels the mean of each colour.
    """
    batches = [_traits_of_batch(batch) for batch in _in_batches(images)]
    traits = {}
    for name in batches[0]:
        traits[name] = np.concatenate([values[name] for values in batches])
    return traits


def _traits_of_batch(images: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    grey = images.mean(axis=1)
    _, height, width = grey.shape
    mass = grey.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        across = np.einsum("nij,j->n", grey, np.linspace(0, 1, width)) / mass
        down = np.einsum("nij,i->n", grey, np.linspace(0, 1, height)) / mass
    traits = {
        "brightness": grey.mean(axis=(1, 2)),
        "contrast": images.std(axis=(1, 2, 3)),
        "horizontal_position": across,
        "vertical_position": down,
    }
    if images.shape[1] == 1:
        strokes = measurements(grey)
        for name in STROKES:
            traits[name] = strokes[name]
    elif images.shape[1] == len(COLOURS):
        for channel, colour in enumerate(COLOURS):
            traits[colour] = images[:, channel].mean(axis=(1, 2))
    return traits


def fitted_attributes(
    images: NDArray[np.float32], conditions: NDArray[np.float32], names: Sequence[str]
) -> dict[str, Classifier]:
    """Attribute classifiers, which give the probability of each condition, by name.

    Logistic regressions of conditions (N, A), NaN where missing, on images (N, C, H, W) averaged to at most 16x16
    pixels; constant conditions are left out.
    """
    features = _shrunk(images)
    classifiers: dict[str, Classifier] = {}
    # The rounding of sums over several threads varies from run to run.
    with threadpool_limits(1):
        for column, name in enumerate(names):
            present = ~np.isnan(conditions[:, column])
            values = conditions[present, column] > 0.5
            if values.any() and not values.all():
                fit = LogisticRegression(max_iter=1000).fit(features[present], values)
                classifiers[name] = _probability_of(fit)
    return classifiers


def _probability_of(fit: LogisticRegression) -> Classifier:
    def probability(images: NDArray[np.float32]) -> NDArray[np.float64]:
        return fit.predict_proba(_shrunk(images))[:, 1]

    return probability


def _in_batches(images: NDArray[np.float32]) -> Iterator[NDArray[np.float64]]:
    # At least one batch, which is empty without images.
    for start in range(0, max(1, len(images)), AT_A_TIME):
        yield np.asarray(images[start : start + AT_A_TIME], dtype=np.float64)


def _shrunk(images: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.concatenate([_block_means(batch) for batch in _in_batches(images)])


def _block_means(images: NDArray[np.float64]) -> NDArray[np.float64]:
    # Means over blocks of pixels, (n, P); incomplete blocks at the border are cut off. A function of its own, so that
    # one batch in float64 is released before the next is made.
    number, channels, height, width = images.shape
    block_height = -(-height // SHRUNK_SIDE)
    block_width = -(-width // SHRUNK_SIDE)
    rows = height // block_height
    columns = width // block_width
    whole_blocks = images[..., : rows * block_height, : columns * block_width]
    blocks = whole_blocks.reshape(number, channels, rows, block_height, columns, block_width)
    return blocks.mean(axis=(3, 5)).reshape(number, -1)
