"""Quality of a trained mapper: reconstruction error, and the effect of each dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.projection.mappers.pictures import moved
from gfscore.projection.mappers.traits import fitted_attributes, image_traits

if TYPE_CHECKING:
    from gfscore.projection.mappers.stored import Mapper

Shown = tuple[NDArray[np.float32], NDArray[np.float32] | None]
"""Images (N, C, H, W) with their conditions (N, A), or None."""

MOST_DESCRIBED = 512
"""Images of the test data set that a mapper is described on: large ones by the thousands take hours and gigabytes."""

LEAST_SPREAD = 1e-6
"""Standard deviation up to which a trait counts as constant."""


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
        "divergence": None if mapper.limits else (_divergence(codes, spread)).tolist(),
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
