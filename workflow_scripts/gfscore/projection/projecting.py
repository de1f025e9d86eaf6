"""Boundaries of one classifier along the latent dimensions of a mapper, batch by batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.logit_watch import refusing_nan
from gfscore.projection.boundaries import search_boundaries
from gfscore.projection.scores import tolerance

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier
    from gfscore.projection.mappers.stored import Mapper

KIND = "projection"
"""Kind that the settings of a projection name in its samples tables."""


@refusing_nan
def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.integer],
    *,
    settings: Mapping[str, Any],
    seeds: object,
    mapper: Mapper,
    conditions: NDArray[np.float32] | None = None,
) -> dict[str, NDArray[Any]]:
    """Boundaries of n images, one row per image and latent dimension, as measure_in_batches takes them.

    `mapper` is a Mapper of gfscore.projection.mappers.stored,
    `conditions` (n, A) those of a conditional one; `settings` hold steps,
    bisections, batch_size and sigma: "aggregated" for the mapper's own unit, or "posterior" for each sample's
    posterior standard deviation; a condition goes to the other end of its range with either. Nothing is drawn, so
    `seeds` are not used. Neither are `labels`: elsewhere a tie at the top counts against the label, here it would make
    a classifier disagree with itself, so every prediction is the first of the largest logits.
    """
    del seeds, labels

    def classify(shown: NDArray[np.float32]) -> NDArray[np.int64]:
        return classifier.logits(shown).argmax(axis=1)

    codes, spread = mapper.encode(images, conditions)
    found = search_boundaries(
        mapper.decode,
        classify,
        codes,
        spread if settings["sigma"] == "posterior" else mapper.sigma,
        **{key: settings[key] for key in ("steps", "bisections", "batch_size")},
        dimensions=np.arange(len(mapper.names)),
        limits=mapper.limits,
    )
    rows = np.repeat(np.arange(len(images)), len(mapper.names))
    return {
        "row": rows,
        "prediction": found.reference[rows],
        "clean_prediction": classify(images)[rows],
        "value": tolerance(found.up, found.down).ravel(),
        "censored": (found.up_censored | found.down_censored).ravel(),
        "dimension": np.tile(np.array(mapper.names, dtype=object), len(images)),
        **{name: getattr(found, name).ravel() for name in ("up", "down", "up_censored", "down_censored")},
    }


def require_same_shape(manifest: Mapping[str, Any], dataset: Mapping[str, Any], *, source: object) -> None:
    """Refuse a mapper made for images of another shape than a dataset's, by InputError; takes their manifests."""
    if manifest["image_shape"] != dataset["image_shape"]:
        raise InputError(
            f"{source}: made for images of shape {manifest['image_shape']}, but {dataset['dataset']} has "
            f"{dataset['image_shape']}; project on a mapper that was trained on images of the same shape"
        )
