"""The points where attacks led, and which images survive them under class offsets."""

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.classes import class_means


class SeenPoints:
    """Logits of points of the balls around N images: the images themselves, and where attacks ended.

    Offsets need no new pass through the network: a point with logits z is misclassified under offsets b where
    z_j + b_j >= z_y + b_y for a class j other than the label y. An image with such a point is not robust under b; one
    without may be, so shares of survivors are upper bounds of the robust accuracy.

    Parameters
    ----------
    clean_logits : ndarray of shape (N, K)
        Logits of the images, without offsets.
    labels : ndarray of shape (N,), int
        True classes, each of 0..K-1 present.

    Attributes
    ----------
    values_without_offsets : ndarray of shape (K,)
        Share of each class that stands without offsets, on the points found so far.
    """

    def __init__(self, clean_logits: NDArray[np.floating], labels: NDArray[np.integer]) -> None:
        """Begin with the images themselves."""
        self.labels = labels
        self.classes = clean_logits.shape[1]
        self.counts = np.bincount(labels, minlength=self.classes)
        self._points: list[tuple[NDArray[np.int64], NDArray[np.float32]]] = []
        self.add(np.arange(len(labels)), clean_logits)

    def add(self, rows: NDArray[np.int64], logits: NDArray[np.floating]) -> None:
        """Add a point of each of some images: their rows (m,), and logits (m, K) without offsets."""
        labels = self.labels[rows]
        position = np.arange(len(rows))
        leads = logits - logits[position, labels][:, None]
        leads[position, labels] = -np.inf
        self._points.append((rows, leads.astype(np.float32)))
        self.values_without_offsets = self.values(np.zeros(self.classes))

    def standing(self, offsets: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Images (N,) that no point misclassifies under offsets (K,)."""
        standing = np.ones(len(self.labels), dtype=bool)
        for rows, leads in self._points:
            standing[rows] &= _right(leads, self.labels[rows], offsets)
        return standing

    def values(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Share of each class that stands under offsets, (K,)."""
        return class_means(self.standing(offsets), self.labels, self.classes)

    def clean_accuracy(self, offsets: NDArray[np.float64]) -> NDArray[np.float64]:
        """Accuracy of each class on the undisturbed images under offsets, (K,)."""
        _, leads = self._points[0]
        return class_means(_right(leads, self.labels, offsets), self.labels, self.classes)

    def typical_margin(self) -> float:
        """Median distance of a label's logit from the largest other one, of undisturbed images; 1 where it is 0."""
        _, leads = self._points[0]
        return float(np.median(np.abs(leads.max(axis=1)))) or 1.0


def _right(leads: NDArray[np.float32], labels: NDArray[np.integer], offsets: NDArray[np.float64]) -> NDArray[np.bool_]:
    shift = offsets.astype(np.float32)
    return (leads + shift).max(axis=1) < shift[labels]
