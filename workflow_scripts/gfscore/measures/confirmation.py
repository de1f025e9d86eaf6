"""Adversarial examples that are kept: in the ball exactly, and misclassified in float32."""

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.gradient_ascent import misclassified
from gfscore.attacks.search import logits_of, on_device
from gfscore.networks.classifier import Classifier
from gfscore.proofs.counterexamples import moved_inside


def confirmed(
    classifier: Classifier,
    points: NDArray[np.float32],
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    norm: str,
    eps: float,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Points in the ball to the last bit, and whether they are misclassified in float32.

    Parameters
    ----------
    classifier : Classifier
    points, images : ndarray
        (n, C, H, W) float32; points in the balls around the images up to rounding.
    labels : ndarray
        (n,) int64.
    norm : str
        "linf" or "l2".
    eps : float
        Radius.
    """
    points = moved_inside(points, images, norm, eps)
    network, x, y = on_device(classifier, points, labels)
    return points, misclassified(logits_of(network, x), y).cpu().numpy()
