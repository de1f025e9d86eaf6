"""Certificates of randomized smoothing: from counts of noisy predictions to radii.

The smoothed classifier g(x) is the class that the base classifier f predicts most often under Gaussian noise of
standard deviation sigma. A certificate says that g is constant within an l2 radius; it speaks of g, not of f, and each
one holds with probability at least 1 - alpha over its own noise. Source: Cohen et al. 2019.
"""

from bisect import bisect_left
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from gfscore.measures.certified import HALF, Smoothing
from gfscore.statistics.proportions import lower_shares
from gfscore.tables.radius_files import ABSTAINED


def radii(lower_bounds: ArrayLike, *, sigma: float) -> NDArray[np.float64]:
    """Certified l2 radii sigma Phi^-1(p) from lower bounds p of the top class's probability.

    Parameters
    ----------
    lower_bounds : array_like
        (N,) in [0, 1].
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    ndarray
        (N,) float64 in the unit of sigma; 0 where the bound is at most 1/2, which means abstention.

    References
    ----------
    Cohen et al. 2019, Theorem 1 with p_B = 1 - p_A.
    """
    bounds = np.asarray(lower_bounds, dtype=np.float64)
    return np.where(bounds > HALF, sigma * ndtri(np.maximum(bounds, HALF)), 0.0)


def largest_certificate(smoothing: Smoothing) -> float:
    """Largest radius that a smoothing can certify: that of a sample on which all draws agree.

    It equals the result of `radii` in every digit; `provable_radius` is larger by a margin for rounding.
    """
    draws = smoothing.estimation_samples
    bound = lower_shares(draws, draws, alpha=smoothing.alpha)
    return float(radii(bound, sigma=smoothing.sigma))


def fewest_votes(draws: int, *, alpha: float) -> int:
    """Fewest votes for one class among `draws` that prove its probability above 1/2; draws + 1 where none suffice.

    A sample that can no longer reach them will abstain, whatever the remaining draws say.
    """

    def proves(votes: int) -> bool:
        return bool(lower_shares(votes, draws, alpha=alpha) > HALF)

    return bisect_left(range(draws + 1), True, key=proves)


def import_radii(
    label: NDArray[np.int32], prediction: NDArray[np.int32], radius: NDArray[np.float64]
) -> dict[str, NDArray[Any] | None]:
    """Columns of N samples of which a file has the certified prediction and radius.

    The value is the radius where the prediction is right, else 0. Columns about the draws, and about the classifier
    before smoothing, stay null.
    """
    return {
        "clean_prediction": None,
        "draws": None,
        "lower_bound": None,
        "drift": None,
        "attacked": None,
        "refuted": None,
        "value": (prediction == label) * radius,
        "radius": radius,
        "abstained": prediction == ABSTAINED,
    }
