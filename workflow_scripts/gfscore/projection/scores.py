"""Tolerance, Deviation and Coupling of a classifier, from its boundaries along latent dimensions.

Source: "Is the fairness metric truly fair?", section 5.2. In its Tables 1 and 3 the Deviation is half the Tolerance in
every cell, which contradicts its formula; here the formula is computed.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def tolerance(up: ArrayLike, down: ArrayLike) -> NDArray[np.float64]:
    """Tolerance: mean of the largest moves to both sides without a change of the prediction, in units of sigma.

    Takes u+ and u- in [0, 1], arrays of one shape; NaN on one side (at a limit) leaves the other side alone. 1: no move
    up to sigma changes the prediction, as for a constant classifier; 0: every move does. Higher is better. It is the
    paper's (a+ - a-) / sigma divided by 2, which is in [0, 1] as in its tables; for an attribute it is (a+ - a-)
    divided by the range.
    """
    up, down = np.asarray(up, dtype=np.float64), np.asarray(down, dtype=np.float64)
    return (np.where(np.isnan(up), down, up) + np.where(np.isnan(down), up, down)) / 2


def deviation(up: ArrayLike, down: ArrayLike) -> NDArray[np.float64]:
    """Deviation: distance of the middle of the tolerated range from the start, in units of sigma.

    Arguments as `tolerance` takes them. 0 if both sides are equal, censored ones included; at most 1 - tolerance; lower
    is better. NaN at a limit, where it would equal 1 - tolerance.
    """
    return np.abs(np.asarray(up, dtype=np.float64) - np.asarray(down, dtype=np.float64)) / 2


def coupling(tolerances: ArrayLike) -> float:
    """Coupling as printed: -sum P_d log P_d with P_d = 1 - Tol_d / max Tol, natural logarithm, 0 log 0 = 0.

    Takes Tolerances (D,) in [0, 1]. The P_d do not sum to 1, so the value has no fixed range: it is 0 if all
    Tolerances are equal, and also if all but one are 0. NaN if all are 0.
    """
    tolerances = np.asarray(tolerances, dtype=np.float64)
    largest = tolerances.max()
    return _entropy(1 - tolerances / largest) if largest > 0 else np.nan


def coupling_entropy(tolerances: ArrayLike) -> float:
    """Normalised entropy of w_d = (1 - Tol_d) / sum: how evenly the dimensions influence the prediction.

    Takes Tolerances (D,) in [0, 1]. 1: all equally; 0: only one. NaN if no dimension has any influence, and for a
    single dimension.
    """
    tolerances = np.asarray(tolerances, dtype=np.float64)
    weights = _weights(tolerances)
    if weights is None or len(tolerances) == 1:
        return np.nan
    return _entropy(weights) / np.log(len(tolerances))


def effective_dimensions(tolerances: ArrayLike) -> float:
    """Effective number of latent dimensions that influence the prediction, exp of the entropy of w_d.

    Between 1 (only one dimension) and D (all equally); NaN if none has any influence.
    """
    weights = _weights(np.asarray(tolerances, dtype=np.float64))
    return np.nan if weights is None else float(np.exp(_entropy(weights)))


def is_constant(reference: ArrayLike, censored: ArrayLike) -> bool:
    """Whether a classifier predicts the same class for all decoded images, which makes its Tolerance meaningless.

    Takes its predictions (n,) on the reconstructions, and `censored`, whether (bool) or how often (share) moves do not
    change the prediction, of any shape.
    """
    return len(np.unique(reference)) == 1 and bool(np.min(censored) == 1)


def _weights(tolerances):
    influence = 1 - tolerances
    total = influence.sum()
    return influence / total if total > 0 else None


def _entropy(shares):
    positive = shares[shares > 0]
    return float(np.maximum(-(positive * np.log(positive)).sum(), 0.0))
