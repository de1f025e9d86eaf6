"""Images at chosen distances from the decision boundary of the brightest-band classifier.

An image (3, 10, 10) has a band of m = 30 values, one row of pixels, for each of K <= 10 classes; the other rows no
logit sees. The classifier predicts the brightest band: its logit z_k is the sum over band k of (value - 1/2) / sqrt(m),
so z = W (x - 1/2) with orthonormal rows. With the gaps z_y - z_j >= 0 everything below is exact, as long as the range
[0, 1] of pixels does not bind.
"""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import ndtr
from scipy.stats import irwinhall, norm

SHAPE = (3, 10, 10)

BAND = SHAPE[0] * SHAPE[2]
"""Values m of a band."""

WEAK, WEAKEST_OTHER, STRONGEST = 0.06, 0.15, 0.35
"""Mean l2 distances of the weak class, and the range of the other classes'."""

SPREAD = 0.5
"""Distances of a class reach from 1 - SPREAD to 1 + SPREAD times its mean."""

TEXTURE = 0.04
"""Largest change of a pixel that no logit sees."""

_NODES = 501
"""Points of a quadrature."""


@dataclass(frozen=True)
class Planted:
    """Images whose true class is the brightest band, K classes of equal size.

    Attributes
    ----------
    images : ndarray of shape (N, 3, 10, 10), float32
        Values in [0, 1].
    labels : ndarray of shape (N,), int64
        True classes.
    gaps : ndarray of shape (N, K), float64
        z_y - z_j, infinite for j = y.
    radii : ndarray of shape (K,)
        Mean l2 distance of each class.
    weak : int
        The class with the smallest.
    """

    images: np.ndarray
    labels: np.ndarray
    gaps: np.ndarray
    radii: np.ndarray
    weak: int

    @property
    def classes(self):
        """Number of classes K."""
        return len(self.radii)


def plant(classes, *, samples, seed=0):
    """Planted images of K `classes`, `samples` of each, their distances evenly spread around the class's radius.

    The nearest rival of class y is y + 1, the other gaps grow up to twice the smallest. All are classified correctly.
    """
    rng = np.random.default_rng(seed)
    weak = classes // 2
    radii = np.insert(np.linspace(STRONGEST, WEAKEST_OTHER, classes - 1), weak, WEAK)
    labels = np.repeat(np.arange(classes), samples)
    distances = np.outer(radii, np.linspace(1 - SPREAD, 1 + SPREAD, samples)).ravel()
    gaps = np.full((len(labels), classes), np.inf)
    for step, growth in enumerate(np.linspace(1, 2, classes - 1), start=1):
        gaps[np.arange(len(labels)), (labels + step) % classes] = np.sqrt(2) * growth * distances
    logits = np.where(np.isinf(gaps), 0, -gaps)
    logits -= (logits.max(axis=1, keepdims=True) + logits.min(axis=1, keepdims=True)) / 2
    channels, height, width = SHAPE
    texture = rng.uniform(-TEXTURE / 2, TEXTURE / 2, (len(labels), 1, height, width))
    # Of mean zero in each band and the same in all channels, so that images are grey.
    grey = 0.5 + texture - texture.mean(axis=3, keepdims=True)
    grey[:, :, :classes] += (logits / np.sqrt(BAND))[:, None, :, None]
    return Planted(np.repeat(grey, channels, axis=1).astype(np.float32), labels, gaps, radii, weak)


def l2_distances(planted):
    """Exact l2 distance of each image to the decision boundary, (N,): the smallest gap / sqrt(2).

    It is the exact radius of the classifier smoothed with unclipped Gaussian noise, too: the noise of the logits is
    independent and of equal variance, so the likeliest class is that of the largest logit, for every sigma.
    """
    return planted.gaps.min(axis=1) / np.sqrt(2)


def linf_distances(planted):
    """Exact l_inf distance of each image to the decision boundary, (N,): l2 distance / sqrt(2 m)."""
    return linf_to_targets(planted).min(axis=1)


def linf_to_targets(planted):
    """Smallest l_inf perturbation that makes the classifier predict each other class, (N, K); infinite for the own.

    Darkening the bands of all rivals of the target costs nothing extra in l_inf, so the largest gap to close is that
    between target and true class: (z_y - z_t) / (2 sqrt(m)).
    """
    return planted.gaps / (2 * np.sqrt(BAND))


def gaussian_changes(planted, *, sigma):
    """Exact probability that unclipped Gaussian noise changes the prediction, (N,), by quadrature to about 1e-12."""
    nodes = np.linspace(-9, 9, _NODES)
    return _changes(nodes, norm.pdf(nodes), ndtr, planted.gaps / sigma)


def uniform_changes(planted, *, eps):
    """Exact probability that a uniform draw from the unclipped l_inf ball changes the prediction, (N,).

    The noise of a logit is a scaled sum of m uniform variables (Irwin-Hall), integrated by quadrature to about 1e-8.
    """
    total = irwinhall(BAND)
    nodes = np.linspace(0, BAND, _NODES)
    # The distribution itself is a spline, but slow to evaluate.
    spline = CubicSpline(nodes, total.cdf(nodes))
    gaps = planted.gaps * np.sqrt(BAND) / (2 * eps)

    def distribution(points):
        return spline(np.minimum(points, BAND))

    return _changes(nodes, total.pdf(nodes), distribution, gaps)


def _changes(nodes, density, distribution, gaps):
    # 1 - integral of f(t) prod_j F(t + gap_j) dt; both densities vanish smoothly at the ends.
    unchanged = np.empty((len(gaps), len(nodes)))
    for row, gaps_of_image in enumerate(gaps):
        rivals = gaps_of_image[np.isfinite(gaps_of_image), None]
        unchanged[row] = np.prod(distribution(nodes + rivals), axis=0)
    integral = (density * unchanged).sum(axis=1) * (nodes[1] - nodes[0])
    return np.clip(1 - integral, 0, 1)
