"""Search for the smallest move of a latent dimension that changes a classifier's prediction.

Source: "Is the fairness metric truly fair?", section 5 and Algorithm 1, interpreted as follows. The perturbation
replaces dimension d by mu_d +- sigma_d m / M; the printed algorithm starts from z = mu, so mu is the code of the
sample. A dimension with limits, such as an attribute, is not moved beyond them: at a limit it can only be moved away
from it, and the other side is undefined. Every m = 1..M is tried; the printed loop ends before m = M. The prediction is
compared with that of the unperturbed reconstruction, f(U(z)), as in Eq. 1, not with f(x).
# ASSUME: the prediction does not change and change back between two neighbouring steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch.nn.functional import interpolate

from gfscore.core.errors import InputError
from gfscore.images.manifests import Manifest
from gfscore.measures.declaration import NetworkSettings
from gfscore.measures.samples import SampleColumns
from gfscore.networks.classifier import Classifier
from gfscore.networks.devices import out_of_memory
from gfscore.networks.passes import refusing_nan
from gfscore.projection.mappers.declared import Search
from gfscore.projection.scores import tolerance

if TYPE_CHECKING:
    from gfscore.projection.mappers.fitting import Mapper


class MeasuredSearch(Search, NetworkSettings):
    """Search on one mapper, as the samples tables of projections record it.

    Nothing is drawn in a search; a seed is recorded, as for every measure.
    """

    absent = frozenset({"attributes_sha256"})

    kind: Literal["projection"] = "projection"
    mapper_sha256: str | None = None
    attributes_sha256: str | None = None


Images = NDArray[np.float32]
Codes = NDArray[np.float32]


# The job of a measure.


@refusing_nan
def measure_batch(
    classifier: Classifier,
    images: Images,
    labels: NDArray[np.integer],
    *,
    settings: Search,
    seeds: object,
    mapper: Mapper,
    conditions: NDArray[np.float32] | None = None,
) -> SampleColumns:
    """Columns of the boundaries of n images, one row per image and latent dimension.

    Parameters
    ----------
    classifier : Classifier
        Its prediction is the first of the largest logits: elsewhere a tie at the top counts against the label, here it
        would make a classifier disagree with itself.
    images : ndarray of shape (n, C, H, W), float32
        In [0, 1]. Where their size differs from the mapper's images, they are resized before they are encoded, and
        decoded images are resized back.
    labels, seeds
        Not used.
    settings : Search
        With the unit `sigma` "aggregated", the mapper's own, or "posterior", each sample's posterior standard
        deviation; a condition goes to the other end of its range with either.
    mapper : Mapper
        Its dimensions are moved.
    conditions : ndarray of shape (n, A), float32, or None
        Conditions of a conditional mapper.

    Returns
    -------
    dict
        Columns of the samples table of projections.
    """
    del seeds, labels
    size = images.shape[2:]

    def classify(decoded: Images) -> NDArray[np.int64]:
        return classifier.logits(resized(decoded, size)).argmax(axis=1)

    codes, spread = mapper.encode(resized(images, mapper.image_shape[1:]), conditions)
    dimensions = len(mapper.names)
    boundaries = search_boundaries(
        mapper.decode,
        classify,
        codes,
        spread if settings.sigma == "posterior" else mapper.sigma,
        steps=settings.steps,
        bisections=settings.bisections,
        batch_size=settings.batch_size,
        dimensions=np.arange(dimensions),
        limits=mapper.limits,
    )
    rows = np.repeat(np.arange(len(images)), dimensions)
    censored = boundaries.up_censored | boundaries.down_censored
    return {
        "row": rows,
        "prediction": boundaries.reference[rows],
        "clean_prediction": classify(images)[rows],
        "value": tolerance(boundaries.up, boundaries.down).ravel(),
        "censored": censored.ravel(),
        "dimension": np.tile(np.array(mapper.names, dtype=object), len(images)),
        "up": boundaries.up.ravel(),
        "down": boundaries.down.ravel(),
        "up_censored": boundaries.up_censored.ravel(),
        "down_censored": boundaries.down_censored.ravel(),
    }


def resized(images: Images, size: Sequence[int]) -> Images:
    """Images (n, C, H, W) float32 in [0, 1] at another `size` (height, width); images of this size are unchanged.

    Bilinear, and antialiased where it shrinks; squashed where the proportions differ.
    """
    if tuple(images.shape[2:]) == tuple(size):
        return images
    pixels = torch.from_numpy(np.ascontiguousarray(images))
    result = interpolate(pixels, size=tuple(size), mode="bilinear", antialias=True, align_corners=False)
    return result.clamp(0, 1).numpy()


def require_same_shape(manifest: Manifest, dataset: Manifest, *, source: object, axes: slice = slice(None)) -> None:
    """Raise InputError, naming `source`, if the image shapes in the manifests of a mapper and a dataset differ.

    `axes` are those compared of (C, H, W), by default all; the first alone where images are resized.
    """
    if manifest["image_shape"][axes] != dataset["image_shape"][axes]:
        requirement = "number of channels" if axes.stop == 1 else "shape"
        raise InputError(
            f"{source}: made for images of shape {manifest['image_shape']}, but {dataset['dataset']} has "
            f"{dataset['image_shape']}; use a mapper that was trained on images of the same {requirement}"
        )


# The search.


@dataclass(frozen=True)
class Boundaries:
    """Boundaries of n samples along D latent dimensions, in units of sigma, or of the distance to a nearer limit.

    Attributes
    ----------
    reference : ndarray of shape (n,), int64
        The prediction f(U(z)).
    up, down : ndarray of shape (n, D), float64
        u+ and u- in [0, 1], the smallest moves that change it; 1 where no move does, NaN at a limit.
    up_censored, down_censored : ndarray of shape (n, D), bool
        Whether no move changes the prediction; not so at a limit.
    evaluations : int
        Number of classified images.
    """

    reference: NDArray[np.int64]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    up_censored: NDArray[np.bool_]
    down_censored: NDArray[np.bool_]
    evaluations: int


def search_boundaries(
    decode: Callable[[Codes], Images],
    classify: Callable[[Images], NDArray[np.integer]],
    latents: Codes,
    sigma: ArrayLike,
    *,
    steps: int,
    bisections: int,
    batch_size: int,
    dimensions: NDArray[np.integer] | None = None,
    limits: tuple[float, float] | None = None,
) -> Boundaries:
    """Boundaries of all samples along all latent dimensions, by a scan in steps and bisection of the first change.

    Parameters
    ----------
    decode : callable
        Maps codes (b, Z) to images.
    classify : callable
        Maps images to predictions (b,) int.
    latents : ndarray of shape (n, Z)
        The codes.
    sigma : array_like of shape (D,) or (n, D)
        Unit of each dimension, > 0.
    steps : int
        M, number of moves to each side.
    bisections : int
        Halvings of the step of the first change, which make a boundary exact to 1 / (M 2^bisections) of its unit.
    batch_size : int
        Images that are classified together; it is halved if memory runs out.
    dimensions : ndarray of shape (D,), int, or None
        Columns of the codes that are moved; None for all.
    limits : tuple of float or None
        (low, high) of the values of a column: the distance to a limit nearer than sigma becomes the unit, and a side
        without any distance is not searched.

    Raises
    ------
    InputError
        For a sigma that is not positive and finite.
    """
    latents = np.asarray(latents)
    if dimensions is None:
        dimensions = np.arange(latents.shape[1])
    shape = (len(latents), len(dimensions))
    sigma = np.broadcast_to(np.asarray(sigma, dtype=np.float64), shape)
    unusable = ~((sigma > 0) & np.isfinite(sigma)).all(axis=0)
    if unusable.any():
        raise InputError(
            f"sigma of latent dimension {int(dimensions[unusable][0])} is not positive and finite, so the mapper does "
            "not use it; train the mapper with fewer dimensions, a smaller beta or for more epochs"
        )

    predictor = _Predictor(decode, classify, batch_size)
    lines = _Lines(predictor, latents, sigma=sigma, dimensions=dimensions, limits=limits)
    first_change = _scan(lines, steps)
    reached = np.flatnonzero(first_change)
    # The prediction is unchanged at `low` and changed at `high`.
    low = (first_change[reached] - 1) / steps
    high = first_change[reached] / steps
    for _ in range(bisections):
        middle = (low + high) / 2
        changed = lines.changed(reached, middle)
        low = np.where(changed, low, middle)
        high = np.where(changed, middle, high)
    moves = np.where(lines.possible, 1.0, np.nan)
    moves[reached] = high

    up, down = moves.reshape(2, *shape)
    censored = lines.possible & (first_change == 0)
    up_censored, down_censored = censored.reshape(2, *shape)
    return Boundaries(lines.reference, up, down, up_censored, down_censored, predictor.evaluations)


class _Predictor:
    """Predictions on decoded codes, in batches that fit into memory."""

    def __init__(
        self,
        decode: Callable[[Codes], Images],
        classify: Callable[[Images], NDArray[np.integer]],
        batch_size: int,
    ) -> None:
        self.decode = decode
        self.classify = classify
        self.batch_size = batch_size
        self.evaluations = 0

    def __call__(self, codes_of: Callable[[slice], Codes], count: int) -> NDArray[np.int64]:
        # `codes_of` returns the codes of a batch, so that not all are in memory.
        predicted = np.zeros(count, dtype=np.int64)
        start = 0
        while start < count:
            rows = slice(start, min(start + self.batch_size, count))
            try:
                images = self.decode(codes_of(rows))
                predicted[rows] = self.classify(images)
            # onnxruntime's errors derive from Exception alone.
            except Exception as error:
                if self.batch_size == 1 or not out_of_memory(error):
                    raise
                self.batch_size = (self.batch_size + 1) // 2
                print(f"out of memory: {self.batch_size} decoded images at a time from here")
                continue
            start = rows.stop
        self.evaluations += count
        return predicted


class _Lines:
    """Directions of a search: upwards for every sample and dimension, then downwards."""

    def __init__(
        self,
        predictor: _Predictor,
        latents: Codes,
        *,
        sigma: NDArray[np.float64],
        dimensions: NDArray[np.integer],
        limits: tuple[float, float] | None,
    ) -> None:
        samples, moved = sigma.shape
        self.predictor = predictor
        self.latents = latents
        self.count = 2 * samples * moved
        self.sample = np.tile(np.repeat(np.arange(samples), moved), 2)
        self.column = np.tile(dimensions, 2 * samples)
        self.start = np.tile(latents[:, dimensions].ravel(), 2).astype(np.float64)
        self.reach = np.concatenate([sigma.ravel(), -sigma.ravel()])
        if limits is not None:
            self.reach = (self.start + self.reach).clip(*limits) - self.start
        self.possible = self.reach != 0
        self.reference = predictor(lambda rows: latents[rows], samples)

    def changed(self, lines: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the prediction changes at a share (L,) of the distance along each of `lines` (L,): bool (L,)."""

        def codes_of(rows: slice) -> Codes:
            batch = lines[rows]
            codes = self.latents[self.sample[batch]].copy()
            codes[np.arange(len(batch)), self.column[batch]] = self.start[batch] + self.reach[batch] * shares[rows]
            return codes

        return self.predictor(codes_of, len(lines)) != self.reference[self.sample[lines]]


def _scan(lines: _Lines, steps: int) -> NDArray[np.int64]:
    # Number of the first step that changes the prediction, for each line; 0 if none does.
    first_change = np.zeros(lines.count, dtype=np.int64)
    active = np.flatnonzero(lines.possible)
    done = 0
    while len(active) and done < steps:
        block = min(steps - done, max(1, lines.predictor.batch_size // len(active)))
        numbers = done + 1 + np.arange(block)
        changed = lines.changed(np.repeat(active, block), np.tile(numbers / steps, len(active)))
        changed = changed.reshape(len(active), block)
        hit = changed.any(axis=1)
        first_change[active[hit]] = numbers[changed[hit].argmax(axis=1)]
        active = active[~hit]
        done += block
    return first_change
