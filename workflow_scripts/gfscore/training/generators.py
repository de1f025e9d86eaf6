"""A small class-conditional generative model: Gaussian mixtures in principal-component space."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

from gfscore.core.errors import InputError
from gfscore.core.settings import PlainSettings
from gfscore.images.datasets import load_all
from gfscore.images.manifests import open_described
from gfscore.images.sources.generated import Generator
from gfscore.statistics.proportions import clopper_pearson

NEIGHBOURS = 3
"""Number of nearest real images that vote on the class of a generated one."""

CONFIDENCE = 0.95
"""Simultaneous confidence of the upper bounds of all classes' label error rates."""


def draw(
    settings: PlainSettings, *, dataset: str, classes: Sequence[str] | None, path_to_train: Path | str
) -> tuple[NDArray[np.float32], NDArray[np.int32], dict[str, object]]:
    """Labelled images of mixtures fitted to a dataset, and the manifest of the generator: the same at every run.

    Parameters
    ----------
    settings : mapping
        Settings of the source generated (Generator).
    dataset, classes
        Not used: the classes are those of the training data.
    path_to_train : path or str
        Manifest of the dataset that the mixtures are fitted on.

    Returns
    -------
    images : ndarray of shape (K n, C, H, W), float32
    labels : ndarray of shape (K n,), int32
    manifest : dict
        The training data and `label_error_rate`, in label order.
    """
    del dataset, classes
    generator = Generator.model_validate(settings)
    train, described = open_described(path_to_train)
    train_images, train_labels = load_all(train)
    mixtures = fit_mixtures(
        train_images,
        train_labels,
        classes=len(described["classes"]),
        dimensions=generator.dimensions,
        mixture_components=generator.mixture_components,
        regularisation=generator.regularisation,
        seed=generator.seed,
    )
    images, labels = sample_images(mixtures, generator.samples_per_class, seed=generator.seed)
    # Another stream than the samples', so that the estimate does not lean on them.
    seed = [generator.seed, 1]
    rates = label_error_rates(mixtures, train_images, train_labels, draws=generator.label_error_draws, seed=seed)
    manifest = {key: described[key] for key in ("dataset", "digest", "classes")}
    return images, labels, {**manifest, "label_error_rate": rates.tolist()}


@dataclass(frozen=True)
class ClassMixtures:
    """One Gaussian mixture per class over the first D principal components of the images.

    Attributes
    ----------
    mean : ndarray of shape (P,), float64
        Mean image of P pixels.
    basis : ndarray of shape (D, P), float64
        Principal components, which map images to D coordinates.
    weights : ndarray of shape (K, G), float64
        Weights of the G Gaussians of each of K classes.
    centres : ndarray of shape (K, G, D), float64
        Their means.
    factors : ndarray of shape (K, G, D, D), float64
        Lower Cholesky factors of their covariances.
    image_shape : tuple of int
        (C, H, W).
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

    def draw(self, label: int, number: int, generator: np.random.Generator) -> NDArray[np.float64]:
        """Coordinates (number, D) of random images of a class."""
        gaussians = self.weights.shape[1]
        dimensions = self.basis.shape[0]
        chosen = generator.choice(gaussians, size=number, p=self.weights[label])
        noise = generator.standard_normal((number, dimensions))
        # A single einsum would need a (D, D) factor per draw.
        coordinates = np.empty_like(noise)
        for gaussian in range(gaussians):
            rows = chosen == gaussian
            moved = noise[rows] @ self.factors[label, gaussian].T
            coordinates[rows] = self.centres[label, gaussian] + moved
        return coordinates

    def pixels(self, coordinates: NDArray[np.float64]) -> NDArray[np.float32]:
        """Images (n, P) of coordinates (n, D), clipped to [0, 1]."""
        return np.clip(coordinates @ self.basis + self.mean, 0, 1).astype(np.float32)


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

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W), float32
        In [0, 1].
    labels : ndarray of shape (N,), int
        In 0..classes-1.
    classes : int
        Number of classes K.
    dimensions : int
        Number of principal components D.
    mixture_components : int
        Number of Gaussians per class.
    regularisation : float
        Variance (pixels squared) added to every coordinate.
    seed : int
        Seed of the fits.

    Raises
    ------
    InputError
        For a class with fewer samples than Gaussians, and for more dimensions than the data span.
    """
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
        components = PCA(dimensions, svd_solver="full").fit(flat)
        coordinates = components.transform(flat)
        fits = []
        for label in range(classes):
            mixture = GaussianMixture(mixture_components, reg_covar=regularisation, random_state=seed)
            fits.append(mixture.fit(coordinates[labels == label]))
        covariances = np.stack([fit.covariances_ for fit in fits])
        return ClassMixtures(
            mean=components.mean_,
            basis=components.components_,
            weights=np.stack([fit.weights_ for fit in fits]),
            centres=np.stack([fit.means_ for fit in fits]),
            factors=np.linalg.cholesky(covariances),
            image_shape=tuple(images.shape[1:]),
        )


def sample_images(
    mixtures: ClassMixtures, samples_per_class: int, *, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Generated images (K n, C, H, W) float32 in [0, 1], class after class, and their intended labels (K n,) int32."""
    generator = np.random.default_rng(seed)
    images = []
    for label in range(mixtures.classes):
        coordinates = mixtures.draw(label, samples_per_class, generator)
        images.append(mixtures.pixels(coordinates))
    labels = np.repeat(np.arange(mixtures.classes, dtype=np.int32), samples_per_class)
    return np.concatenate(images).reshape(-1, *mixtures.image_shape), labels


def label_error_rates(
    mixtures: ClassMixtures,
    images: NDArray[np.float32],
    labels: NDArray[np.integer],
    *,
    draws: int,
    seed: int | Sequence[int],
) -> NDArray[np.float64]:
    """Upper bounds of the share of generated images that show another class than intended.

    An image counts as wrong if either of two classifiers disagrees with the intended class: Bayes' rule for the fitted
    mixtures with equal class weights, or the majority of its nearest neighbours among real images.

    Parameters
    ----------
    mixtures : ClassMixtures
        The generator.
    images : ndarray of shape (N, C, H, W), float32
        Real images in [0, 1].
    labels : ndarray of shape (N,), int
        Their classes.
    draws : int
        New images per class.
    seed : int or sequence of int
        Seed of the draws.

    Returns
    -------
    ndarray of shape (K,), float64
        Clopper-Pearson bounds in [0, 1], which hold simultaneously for all classes with probability CONFIDENCE over the
        draws.
    """
    # ASSUME: a human would disagree no more often than at least one of the two classifiers does. Both are fitted to
    # the images that the generator was fitted to; the second does not use the form of the generator.
    neighbours = KNeighborsClassifier(NEIGHBOURS).fit(images.reshape(len(images), -1), labels)
    generator = np.random.default_rng(seed)
    # The upper end of a two-sided interval at 2 alpha is a one-sided bound at alpha.
    alpha = 2 * (1 - CONFIDENCE) / mixtures.classes
    bounds = []
    for label in range(mixtures.classes):
        coordinates = mixtures.draw(label, draws, generator)
        wrong_by_density = log_densities(mixtures, coordinates).argmax(axis=1) != label
        wrong_by_neighbours = neighbours.predict(mixtures.pixels(coordinates)) != label
        errors = int(np.sum(wrong_by_density | wrong_by_neighbours))
        bounds.append(clopper_pearson(errors, draws, alpha=alpha)[1])
    return np.array(bounds)


def log_densities(mixtures: ClassMixtures, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-density of points (n, D) under each class's mixture, (n, K) float64."""
    classes, gaussians, dimensions = mixtures.centres.shape
    result = np.empty((len(coordinates), classes, gaussians))
    for k in range(classes):
        for g in range(gaussians):
            factor = mixtures.factors[k, g]
            centred = coordinates - mixtures.centres[k, g]
            standard = solve_triangular(factor, centred.T, lower=True)
            log_determinant = np.log(np.diag(factor)).sum()
            result[:, k, g] = -0.5 * np.sum(standard**2, axis=0) - log_determinant
    result += np.log(mixtures.weights) - 0.5 * dimensions * np.log(2 * np.pi)
    return logsumexp(result, axis=2)
