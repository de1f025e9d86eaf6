"""A small class-conditional generative model: Gaussian mixtures in principal-component space."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.core.settings import HALF
from gfscore.networks.conditional_generators import Generate
from gfscore.networks.devices import require_device
from gfscore.networks.outputs import first_line
from gfscore.networks.precision import reproducible_arithmetic
from gfscore.statistics.draws import Draws, seeds_of_samples
from gfscore.statistics.proportions import clopper_pearson


@dataclass(frozen=True)
class ClassMixtures:
    """One Gaussian mixture per class over the first D principal components of the images.

    `mean` (P,) and `basis` (D, P) map images with P pixels to D coordinates; `weights` (K, G), `centres` (K, G, D) and
    `factors` (K, G, D, D), lower Cholesky factors of the covariances, describe G Gaussians for each of K classes.
    `image_shape` is (C, H, W).
    """

    mean: NDArray[np.float64]
    basis: NDArray[np.float64]
    weights: NDArray[np.float64]
    centres: NDArray[np.float64]
    factors: NDArray[np.float64]
    image_shape: tuple[int, int, int]

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return len(self.weights)


def fit_mixtures(
    images: NDArray[np.float32],
    labels: NDArray[np.integer],
    *,
    classes: int,
    dimensions: int,
    mixture_components: int,
    regularisation: float,
    seed: int,
) -> ClassMixtures:
    """Class-conditional Gaussian mixtures fitted by expectation-maximisation.

    Takes `images` (N, C, H, W) in [0, 1], `labels` (N,), `classes` K, the number `dimensions` of principal components,
    the number `mixture_components` of Gaussians per class, and `regularisation`, the variance (pixels squared) added to
    every coordinate. Raises InputError for a class with fewer samples than Gaussians, and for more dimensions than the
    data span.
    """
    from sklearn.decomposition import PCA
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    flat = images.reshape(len(images), -1).astype(np.float64)
    if not 1 <= dimensions <= min(flat.shape):
        raise InputError(f"dimensions {dimensions} must lie in 1..{min(flat.shape)}; lower it")
    counts = np.bincount(labels, minlength=classes)
    if counts.min() < max(2, mixture_components):
        raise InputError(
            f"class {counts.argmin()} has {counts.min()} training samples for {mixture_components} Gaussians; "
            "lower mixture_components"
        )
    # The rounding of sums over several threads varies from run to run.
    with threadpool_limits(1):
        pca = PCA(dimensions, svd_solver="full").fit(flat)
        coordinates = pca.transform(flat)
        fits = [
            GaussianMixture(mixture_components, reg_covar=regularisation, random_state=seed).fit(
                coordinates[labels == label]
            )
            for label in range(classes)
        ]
        return ClassMixtures(
            mean=pca.mean_,
            basis=pca.components_,
            weights=np.stack([fit.weights_ for fit in fits]),
            centres=np.stack([fit.means_ for fit in fits]),
            factors=np.linalg.cholesky(np.stack([fit.covariances_ for fit in fits])),
            image_shape=tuple(images.shape[1:]),
        )


def sample_images(
    mixtures: ClassMixtures, samples_per_class: int, *, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Generated images (K n, C, H, W) float32, clipped to [0, 1], and their intended labels (K n,) int32."""
    generator = np.random.default_rng(seed)
    images = []
    for label in range(mixtures.classes):
        coordinates = _draw(mixtures, label, samples_per_class, generator)
        images.append(_pixels(mixtures, coordinates))
    labels = np.repeat(np.arange(mixtures.classes, dtype=np.int32), samples_per_class)
    return np.concatenate(images).reshape(-1, *mixtures.image_shape), labels


def write_samples(path: Path | str, images: NDArray[np.float32], labels: NDArray[np.integer]) -> None:
    """Write generated images x and labels y to an .npz file, atomically; equal arguments give equal bytes."""
    # An open file, since numpy would append .npz to the temporary name.
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, x=images, y=labels)


NEIGHBOURS = 3
"""Number of nearest real images that vote on the class of a generated one."""

CONFIDENCE = 0.95
"""Simultaneous confidence of the upper bounds of all classes' label error rates."""


def label_error_rates(
    mixtures: ClassMixtures,
    images: NDArray[np.float32],
    labels: NDArray[np.integer],
    *,
    draws: int,
    seed: int | Sequence[int],
) -> NDArray[np.float64]:
    """Upper bounds of the share of generated images that show another class than intended, (K,) float64 in [0, 1].

    Estimated on `draws` new images per class. An image counts as wrong if either of two classifiers disagrees with the
    intended class: Bayes' rule for the fitted mixtures with equal class weights, or the majority of its nearest
    neighbours among the real `images` (N, C, H, W) with `labels` (N,). The Clopper-Pearson bounds hold simultaneously
    for all classes with probability CONFIDENCE over the draws.
    """
    # ASSUME: a human would disagree no more often than at least one of the two classifiers does. Both are fitted to
    # the images that the generator was fitted to; the second does not use the form of the generator.
    from sklearn.neighbors import KNeighborsClassifier

    neighbours = KNeighborsClassifier(NEIGHBOURS).fit(images.reshape(len(images), -1), labels)
    generator = np.random.default_rng(seed)
    alpha = 2 * (1 - CONFIDENCE) / mixtures.classes
    bounds = []
    for label in range(mixtures.classes):
        coordinates = _draw(mixtures, label, draws, generator)
        by_density = log_densities(mixtures, coordinates).argmax(axis=1) != label
        by_neighbours = neighbours.predict(_pixels(mixtures, coordinates)) != label
        # The upper end of a two-sided interval at 2 alpha is a one-sided bound at alpha.
        bounds.append(clopper_pearson(int(np.sum(by_density | by_neighbours)), draws, alpha=alpha)[1])
    return np.array(bounds)


def _pixels(mixtures, coordinates):
    return np.clip(coordinates @ mixtures.basis + mixtures.mean, 0, 1).astype(np.float32)


def log_densities(mixtures: ClassMixtures, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-density of points (n, D) under each class's mixture, (n, K) float64."""
    from scipy.linalg import solve_triangular
    from scipy.special import logsumexp

    classes, gaussians, dimensions = mixtures.centres.shape
    result = np.empty((len(coordinates), classes, gaussians))
    for k in range(classes):
        for g in range(gaussians):
            factor = mixtures.factors[k, g]
            standard = solve_triangular(factor, (coordinates - mixtures.centres[k, g]).T, lower=True)
            result[:, k, g] = -0.5 * np.sum(standard**2, axis=0) - np.log(np.diag(factor)).sum()
    result += np.log(mixtures.weights) - 0.5 * dimensions * np.log(2 * np.pi)
    return logsumexp(result, axis=2)


def _draw(mixtures, label, n, generator):
    gaussian = generator.choice(mixtures.weights.shape[1], size=n, p=mixtures.weights[label])
    noise = generator.standard_normal((n, mixtures.basis.shape[0]))
    # A single einsum would need a (D, D) factor per draw.
    result = np.empty_like(noise)
    for g in range(mixtures.weights.shape[1]):
        rows = gaussian == g
        result[rows] = mixtures.centres[label, g] + noise[rows] @ mixtures.factors[label, g].T
    return result


# ---- Seeded samples of a user's generator of images conditional on the class.


BEYOND = 0.001
"""How far outputs may lie beyond their range, as a share of it, and are clipped: rounding."""

MOST_CHANNELS = 4


def draw_images(
    generate: Generate, settings: Mapping[str, Any], *, classes: int, where: Path | str
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Images (K n, C, H, W) float32 in [0, 1] of a generator, n of each of K `classes`, and labels (K n,) int32.

    The classes take turns, and a sample's latent belongs to its row, so more samples per class begin with those of
    fewer: whole batches are drawn, and their rest is dropped. `settings` are those of the source generator_file, and
    `where` names the file in errors. Raises InputError for a generator that fails, that gives other images the second
    time, other shapes than (n, C, H, W), numbers that are not finite, or others than `output_range` says.
    """
    import torch

    require_device(settings["device"])
    count, size = classes * settings["samples_per_class"], settings["batch_size"]
    batches: list[NDArray[np.float32]] = []
    with reproducible_arithmetic(), torch.inference_mode():
        for start in range(0, count, size):
            rows = np.arange(start, start + size)
            images = _batch(generate, settings, rows, classes, where)
            if not batches and not torch.equal(images, _batch(generate, settings, rows, classes, where)):
                raise InputError(
                    f"{where}: gives other images for the same latents and classes; take the chance out of it, so that "
                    "they depend on its inputs alone"
                )
            if batches and images.shape[1:] != batches[0].shape[1:]:
                raise InputError(f"{where}: gives images of several shapes; make them all {batches[0].shape[1:]}")
            batches.append(images.cpu().numpy())
    drawn = np.concatenate(batches)[:count]
    (black, white), (low, high) = settings["output_range"], (drawn.min(), drawn.max())
    if high - low <= HALF:
        found = [black + (white - black) * end for end in (low, high)]
        raise InputError(
            f"{where}: all values lie between {found[0]:.3g} and {found[1]:.3g}, within half of output_range "
            f"{settings['output_range']}; correct that, or the generator"
        )
    return drawn, (np.arange(count) % classes).astype(np.int32)


def _batch(generate, settings, rows, classes, where):
    # Images in [0, 1] of one batch, on the device.
    import torch

    draws = Draws.of(seeds_of_samples(settings["seed"], "generator", rows), settings["device"])
    latents = getattr(draws, settings["distribution"])(settings["latent"])
    labels = torch.from_numpy(rows % classes).to(latents.device)
    if settings["class_input"] == "one_hot":
        labels = torch.nn.functional.one_hot(labels, classes).float()
    # Noise that a generator adds on its own comes from the global generators, which are seeded by the batch.
    with torch.random.fork_rng():
        torch.manual_seed(int(seeds_of_samples(settings["seed"], "noise", rows[:1])[0] >> np.uint64(1)))
        try:
            output = generate(latents, labels)
        # Code of others may fail in any way.
        except Exception as error:
            raise InputError(
                f"{where}: fails on latents {tuple(latents.shape)} and classes {tuple(labels.shape)} "
                f"({first_line(error)}); correct latent, class_input or batch_size, or the generator"
            ) from error
    return _pixels_drawing(output, settings["output_range"], rows, where)


def _pixels_drawing(output, output_range, rows, where):
    import torch

    shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    fits = isinstance(output, torch.Tensor) and output.ndim == 4 and len(output) == len(rows) and output.numel() > 0
    if not fits or output.shape[1] > MOST_CHANNELS:
        raise InputError(
            f"{where}: returns {shape} for {len(rows)} latents; make it return images (n, C, H, W) with at most "
            f"{MOST_CHANNELS} channels"
        )
    low, high = output_range
    pixels = (output.float() - low) / (high - low)
    ends = torch.stack([pixels.amin(dim=(1, 2, 3)), pixels.amax(dim=(1, 2, 3))], dim=1)
    # Negated, so that NaN, for which every comparison is false, is refused too.
    wrong = (~((ends[:, 0] >= -BEYOND) & (ends[:, 1] <= 1 + BEYOND))).nonzero()
    if len(wrong):
        row = int(wrong[0])
        least, most = (low + (high - low) * ends[row]).tolist()
        raise InputError(
            f"{where}: sample {rows[row]} has values from {least:.6g} to {most:.6g}, outside output_range "
            f"{output_range}; correct that, or the generator"
        )
    return pixels.clamp(0, 1)
