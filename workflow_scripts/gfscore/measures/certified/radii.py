"""Certificates of randomized smoothing: from counts of noisy predictions to radii.

The smoothed classifier g(x) is the class that the base classifier f predicts most often under Gaussian noise of
standard deviation sigma. A certificate says that g is constant within an l2 radius; it speaks of g, not of f, and each
one holds with probability at least 1 - alpha over its own noise. Source: Cohen et al. 2019.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.measures.certified import HALF
from gfscore.statistics.proportions import lower_shares
from gfscore.tables.radius_files import ABSTAINED


def radii(lower_bounds: ArrayLike, *, sigma: float) -> NDArray[np.float64]:
    """Certified l2 radii sigma Phi^-1(p), in the unit of sigma, from lower bounds p of the top class's probability.

    Takes `lower_bounds` (N,) in [0, 1]; 0 where the bound is at most 1/2, which means abstention.
    Source: Cohen et al. 2019, Theorem 1 with p_B = 1 - p_A.
    """
    from scipy.special import ndtri

    bounds = np.asarray(lower_bounds, dtype=np.float64)
    return np.where(bounds > HALF, sigma * ndtri(np.maximum(bounds, HALF)), 0.0)


def largest_certificate(smoothing: Mapping[str, Any]) -> float:
    """Radius that a smoothing certifies when all its draws agree, to the last digit as `radii` gives it.

    Takes settings with sigma, estimation_samples and alpha; `provable_radius` lies above it by a margin for rounding.
    """
    draws = smoothing["estimation_samples"]
    return float(radii(lower_shares(draws, draws, alpha=smoothing["alpha"]), sigma=smoothing["sigma"]))


def fewest_votes(draws: int, *, alpha: float) -> int:
    """Fewest votes for one class among `draws` that prove its probability above 1/2; draws + 1 where none suffice.

    A sample that can no longer reach them will abstain, whatever the remaining draws say.
    """
    votes = np.arange(draws + 2)
    proven = lower_shares(votes[:-1], draws, alpha=alpha) > HALF
    return int(votes[np.append(proven, True)][0])


def import_radii(
    label: NDArray[np.int32], prediction: NDArray[np.int32], radius: NDArray[np.float64]
) -> dict[str, NDArray[Any] | None]:
    """Columns of N samples whose certified prediction and radius are known: the radius where the prediction is right.

    What is not known about the certification, and about the classifier before smoothing, stays null.
    """
    unknown = dict.fromkeys(("clean_prediction", "draws", "lower_bound", "attacked", "refuted"))
    return unknown | {
        "value": (prediction == label) * radius,
        "radius": radius,
        "abstained": prediction == ABSTAINED,
    }
