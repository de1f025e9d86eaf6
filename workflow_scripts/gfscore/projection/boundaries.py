"""Search for the smallest move of a latent dimension that changes a classifier's prediction.

Source: "Is the fairness metric truly fair?", section 5 and Algorithm 1, interpreted as follows. The perturbation
replaces dimension d by mu_d +- sigma_d m / M; the printed algorithm starts from z = mu, so mu is the code of the
sample. A dimension with limits, such as an attribute, is not moved beyond them: at a limit it can only be moved away
from it, and the other side is undefined. Every m = 1..M is tried; the printed loop ends before m = M. The prediction is
compared with that of the unperturbed reconstruction, f(U(z)), as in Eq. 1, not with f(x).
# ASSUME: the prediction does not change and change back between two neighbouring steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.networks.devices import out_of_memory
from gfscore.networks.passes import refusing_nan
from gfscore.projection.scores import tolerance

if TYPE_CHECKING:
    from gfscore.networks.classifier import Classifier
    from gfscore.projection.mappers.fitting import Mapper


@dataclass(frozen=True)
class Boundaries:
    """Boundaries of n samples along D latent dimensions, in units of sigma, or of the distance to a nearer limit.

    `reference` (n,) int64 is the prediction f(U(z)); `up` and `down` (n, D) float64 in [0, 1] are u+ and u-, the
    smallest moves that change it. Where no move does, they are 1 and `up_censored` or `down_censored` (n, D) bool is
    true. At a limit they are NaN and not censored. `evaluations` is the number of classified images.
    """

    reference: NDArray[np.int64]
    up: NDArray[np.float64]
    down: NDArray[np.float64]
    up_censored: NDArray[np.bool_]
    down_censored: NDArray[np.bool_]
    evaluations: int


def search_boundaries(
    decode: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    classify: Callable[[NDArray[np.float32]], NDArray[np.integer]],
    latents: NDArray[np.float32],
    sigma: ArrayLike,
    *,
    steps: int,
    bisections: int,
    batch_size: int,
    dimensions: NDArray[np.integer] | None = None,
    limits: tuple[float, float] | None = None,
) -> Boundaries:
    """Boundaries of all samples along all latent dimensions, by a scan in steps and bisection of the first change.

    `decode` maps codes (b, Z) to images, `classify` images to predictions (b,) int; `latents` (n, Z) are the codes, of
    which the columns `dimensions` (D,) are moved, by default all; `sigma` (D,) or (n, D) > 0 is the unit of each;
    `limits` (low, high) bound the values of a column: the distance to a limit nearer than sigma becomes the unit, and a
    side without any distance is not searched. `steps` is M; `bisections` halve the step of the first change, which
    makes a boundary exact to 1 / (M 2^bisections) of its unit. `batch_size` images are classified together; it is
    halved if memory runs out. Raises InputError for a sigma that is not positive and finite.
    """
    latents = np.asarray(latents)
    dimensions = np.arange(latents.shape[1]) if dimensions is None else np.asarray(dimensions)
    shape = len(latents), len(dimensions)
    sigma = np.broadcast_to(np.asarray(sigma, dtype=np.float64), shape)
    unusable = ~((sigma > 0) & np.isfinite(sigma)).all(axis=0)
    if unusable.any():
        raise InputError(
            f"sigma of latent dimension {int(dimensions[unusable][0])} is not positive and finite, so the mapper does "
            "not use it; train the mapper with fewer dimensions, a smaller beta or for more epochs"
        )
    predictor = _Predictor(decode, classify, batch_size)
    lines = _Lines(predictor, latents, sigma=sigma, dimensions=dimensions, limits=limits)
    first = _scan(lines, steps)
    reached = np.flatnonzero(first)
    moved = np.where(lines.possible, 1.0, np.nan)
    moved[reached] = _bisect(lines, reached, (first[reached] - 1) / steps, first[reached] / steps, bisections)
    up, down = moved.reshape(2, *shape)
    up_censored, down_censored = (lines.possible & (first == 0)).reshape(2, *shape)
    return Boundaries(lines.reference, up, down, up_censored, down_censored, predictor.evaluations)


class _Predictor:
    """Predictions on decoded codes, in batches that fit into memory."""

    def __init__(
        self,
        decode: Callable[[NDArray[np.float32]], NDArray[np.float32]],
        classify: Callable[[NDArray[np.float32]], NDArray[np.integer]],
        batch_size: int,
    ) -> None:
        self.decode, self.classify, self.batch_size, self.evaluations = decode, classify, batch_size, 0

    def __call__(self, codes_of: Callable[[slice], NDArray[np.float32]], count: int) -> NDArray[np.int64]:
        # `codes_of` returns the codes of a batch, so that not all are in memory.
        predicted, start = [], 0
        while start < count:
            stop = min(start + self.batch_size, count)
            try:
                predicted.append(np.asarray(self.classify(self.decode(codes_of(slice(start, stop)))), dtype=np.int64))
                start = stop
            # onnxruntime's errors derive from Exception alone.
            except Exception as error:
                if self.batch_size == 1 or not out_of_memory(error):
                    raise
                self.batch_size = (self.batch_size + 1) // 2
                print(f"out of memory: {self.batch_size} decoded images at a time from here")
        self.evaluations += count
        return np.concatenate(predicted) if predicted else np.zeros(0, dtype=np.int64)


class _Lines:
    """Directions of a search: upwards for every sample and dimension, then downwards."""

    def __init__(
        self,
        predictor: _Predictor,
        latents: NDArray[np.float32],
        *,
        sigma: NDArray[np.float64],
        dimensions: NDArray[np.integer],
        limits: tuple[float, float] | None,
    ) -> None:
        self.predictor, self.latents = predictor, latents
        n, d = sigma.shape
        self.count = 2 * n * d
        self.sample = np.tile(np.repeat(np.arange(n), d), 2)
        self.column = np.tile(dimensions, 2 * n)
        self.start = np.tile(latents[:, dimensions].ravel(), 2).astype(np.float64)
        self.reach = np.concatenate([sigma.ravel(), -sigma.ravel()])
        if limits is not None:
            self.reach = (self.start + self.reach).clip(*limits) - self.start
        self.possible = self.reach != 0
        self.reference = predictor(lambda rows: latents[rows], n)

    def changed(self, lines: NDArray[np.int64], shares: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether the prediction changes at a share (L,) of the distance along each of `lines` (L,): bool (L,)."""

        def codes(rows: slice) -> NDArray[np.float32]:
            part, moved = lines[rows], self.latents[self.sample[lines[rows]]].copy()
            moved[np.arange(len(part)), self.column[part]] = self.start[part] + self.reach[part] * shares[rows]
            return moved

        return self.predictor(codes, len(lines)) != self.reference[self.sample[lines]]


def _scan(lines, steps):
    # Number of the first step that changes the prediction, for each line; 0 if none does.
    first, active, done = np.zeros(lines.count, dtype=np.int64), np.flatnonzero(lines.possible), 0
    while len(active) and done < steps:
        block = min(steps - done, max(1, lines.predictor.batch_size // len(active)))
        tried = done + 1 + np.arange(block)
        changed = lines.changed(np.repeat(active, block), np.tile(tried / steps, len(active)))
        changed = changed.reshape(len(active), block)
        hit = changed.any(axis=1)
        first[active[hit]] = tried[changed[hit].argmax(axis=1)]
        active, done = active[~hit], done + block
    return first


def _bisect(lines, reached, low, high, bisections):
    # Invariant: the prediction is unchanged at `low` and changed at `high`.
    for _ in range(bisections):
        middle = (low + high) / 2
        changed = lines.changed(reached, middle)
        low, high = np.where(changed, low, middle), np.where(changed, middle, high)
    return high


# ---- Boundaries of a classifier along the latent dimensions of a mapper, for the job of a measure.


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

    `mapper` is a Mapper of gfscore.projection.mappers.fitting: images are resized to its height and width before it
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
