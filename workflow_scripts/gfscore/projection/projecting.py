"""Boundaries of a classifier along the latent dimensions of a mapper, for the job of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""Kind of the settings in the samples tables of projections."""


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
    """Columns of the boundaries of n images, one row per image and latent dimension.

    `mapper` is a Mapper of gfscore.projection.mappers.stored: images are resized to its height and width before it
    encodes them, and what it decodes to those of the classifier's images, where they differ.
    `conditions` (n, A) are those of a conditional one; `settings` hold steps,
    bisections, batch_size and sigma: "aggregated" for the mapper's own unit, or "posterior" for each sample's
    posterior standard deviation; a condition goes to the other end of its range with either. Nothing is drawn, so
    `seeds` are not used. Neither are `labels`: elsewhere a tie at the top counts against the label, here it would make
    a classifier disagree with itself, so every prediction is the first of the largest logits.
    """
    del seeds, labels

    def classify(shown: NDArray[np.float32]) -> NDArray[np.int64]:
        return classifier.logits(resized(shown, images.shape[2:])).argmax(axis=1)

    codes, spread = mapper.encode(resized(images, mapper.image_shape[1:]), conditions)
    boundaries = search_boundaries(
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
        "prediction": boundaries.reference[rows],
        "clean_prediction": classify(images)[rows],
        "value": tolerance(boundaries.up, boundaries.down).ravel(),
        "censored": (boundaries.up_censored | boundaries.down_censored).ravel(),
        "dimension": np.tile(np.array(mapper.names, dtype=object), len(images)),
        **{name: getattr(boundaries, name).ravel() for name in ("up", "down", "up_censored", "down_censored")},
    }


def resized(images: NDArray[np.float32], size: Sequence[int]) -> NDArray[np.float32]:
    """Images (n, C, H, W) float32 in [0, 1] at another `size` (height, width); those of this size as they are.

    Bilinear, and antialiased where it shrinks; squashed where the proportions differ.
    """
    import torch
    from torch.nn.functional import interpolate

    if tuple(images.shape[2:]) == tuple(size):
        return images
    x = torch.from_numpy(np.ascontiguousarray(images))
    return interpolate(x, size=tuple(size), mode="bilinear", antialias=True, align_corners=False).clamp(0, 1).numpy()


def require_same_shape(
    manifest: Mapping[str, Any], dataset: Mapping[str, Any], *, source: object, axes: slice = slice(None)
) -> None:
    """Raise InputError, naming `source`, if the image shapes in the manifests of a mapper and a dataset differ.

    `axes` are those compared of (C, H, W), by default all; the first alone where images are resized.
    """
    if manifest["image_shape"][axes] != dataset["image_shape"][axes]:
        raise InputError(
            f"{source}: made for images of shape {manifest['image_shape']}, but {dataset['dataset']} has "
            f"{dataset['image_shape']}; use a mapper that was trained on images of the same "
            f"{'number of channels' if axes.stop == 1 else 'shape'}"
        )
