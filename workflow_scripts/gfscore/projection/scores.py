"""Tolerance, Deviation and Coupling of a classifier, from its boundaries along latent dimensions.

Source: "Is the fairness metric truly fair?", section 5.2. In its Tables 1 and 3 the Deviation is half the Tolerance in
every cell, which contradicts its formula; here the formula is computed.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def tolerance(up: ArrayLike, down: ArrayLike) -> NDArray[np.float64]:
    """Tolerance: mean of the largest moves to both sides without a change of the prediction, in units of sigma.

    Parameters
    ----------
    up, down : array_like of one shape
        u+ and u- in [0, 1]; NaN on one side (at a limit) leaves the other side alone.

    Returns
    -------
    ndarray of that shape, float64
        In [0, 1], higher is better. 1: no move up to sigma changes the prediction, as for a constant classifier; 0:
        every move does. It is the paper's (a+ - a-) / sigma divided by 2, which is in [0, 1] as in its tables; for an
        attribute it is (a+ - a-) divided by the range.
    """
    up = np.asarray(up, dtype=np.float64)
    down = np.asarray(down, dtype=np.float64)
    upwards = np.where(np.isnan(up), down, up)
    downwards = np.where(np.isnan(down), up, down)
    return (upwards + downwards) / 2


def deviation(up: ArrayLike, down: ArrayLike) -> NDArray[np.float64]:
    """Deviation: distance of the middle of the tolerated range from the start, in units of sigma.

    Parameters
    ----------
    up, down : array_like of one shape
        u+ and u- in [0, 1].

    Returns
    -------
    ndarray of that shape, float64
        0 if both sides are equal, censored ones included; at most 1 - tolerance; lower is better. NaN at a limit, where
        it would equal 1 - tolerance.
    """
    return np.abs(np.asarray(up, dtype=np.float64) - np.asarray(down, dtype=np.float64)) / 2


def coupling(tolerances: ArrayLike) -> float:
    """Coupling as printed: -sum P_d log P_d with P_d = 1 - Tol_d / max Tol, natural logarithm, 0 log 0 = 0.

    Parameters
    ----------
    tolerances : array_like of shape (D,)
        Tolerances in [0, 1].

    Returns
    -------
    float
        The P_d do not sum to 1, so the value has no fixed range: it is 0 if all Tolerances are equal, and also if all
        but one are 0. NaN if all are 0, and for D = 0.
    """
    tolerances = np.asarray(tolerances, dtype=np.float64)
    largest = tolerances.max(initial=0.0)
    if largest <= 0:
        return np.nan
    return _entropy(1 - tolerances / largest)


def coupling_entropy(tolerances: ArrayLike) -> float:
    """Normalised entropy of w_d = (1 - Tol_d) / sum: how evenly the dimensions influence the prediction.

    Parameters
    ----------
    tolerances : array_like of shape (D,)
        Tolerances in [0, 1].

    Returns
    -------
    float
        1: all equally; 0: only one. NaN if no dimension has any influence, and for D < 2.
    """
    weights = _influence(tolerances)
    if len(weights) < 2 or np.isnan(weights).any():
        return np.nan
    return _entropy(weights) / np.log(len(weights))


def effective_dimensions(tolerances: ArrayLike) -> float:
    """Effective number of latent dimensions that influence the prediction, exp of the entropy of w_d.

    Parameters
    ----------
    tolerances : array_like of shape (D,)
        Tolerances in [0, 1].

    Returns
    -------
    float
        Between 1 (only one dimension) and D (all equally); NaN if none has any influence.
    """
    weights = _influence(tolerances)
    if len(weights) == 0 or np.isnan(weights).any():
        return np.nan
    return float(np.exp(_entropy(weights)))


def is_constant(reference: ArrayLike, censored: ArrayLike) -> bool:
    """Whether a classifier predicts the same class for all decoded images, which makes its Tolerance meaningless.

    Parameters
    ----------
    reference : array_like of shape (n,)
        Its predictions on the reconstructions.
    censored : array_like
        Whether (bool) or how often (share) moves do not change the prediction, of any shape.
    """
    return len(np.unique(reference)) == 1 and bool(np.min(censored) == 1)


def _influence(tolerances: ArrayLike) -> NDArray[np.float64]:
    # Shares w_d (D,), which sum to 1; NaN if no dimension has any influence.
    influence = 1 - np.asarray(tolerances, dtype=np.float64)
    total = influence.sum()
    if total <= 0:
        return np.full(len(influence), np.nan)
    return influence / total


def _entropy(shares: NDArray[np.float64]) -> float:
    positive = shares[shares > 0]
    return float(np.maximum(-(positive * np.log(positive)).sum(), 0.0))
