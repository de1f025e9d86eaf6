"""Tolerance, Deviation and Coupling: what boundaries along latent dimensions say about a classifier.

Source: "Is the fairness metric truly fair?", section 5.2. Its printed Deviation is half its Tolerance in every cell of
its Tables 1 and 3, which contradicts its formula; the formula is what is computed here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def tolerance(up: ArrayLike, down: ArrayLike) -> NDArray[np.float64]:
    """Tolerance: mean reach of a latent dimension to either side before the prediction changes, in units of sigma.

    Takes u+ and u- in [0, 1], arrays of one shape, NaN for a side without room to move: then the other one counts
    alone. 1: no move up to sigma changes the prediction, as for a constant classifier; 0: every move does. Higher is
    better. It is the paper's (a+ - a-) / sigma divided by 2, so that it lies in [0, 1] like its tables; of an attribute
    it is (a+ - a-) divided by its whole range, the share of it that is tolerated.
    """
    up, down = np.asarray(up, dtype=np.float64), np.asarray(down, dtype=np.float64)
    return (np.where(np.isnan(up), down, up) + np.where(np.isnan(down), up, down)) / 2


def deviation(up: ArrayLike, down: ArrayLike) -> NDArray[np.float64]:
    """Deviation: distance of the middle of the tolerated range from where it started, in units of sigma.

    Takes what `tolerance` takes. 0: both sides alike, censored ones included; at most 1 - tolerance; lower is better.
    NaN where one side has no room to move: its middle would be 1 - tolerance under another name.
    """
    return np.abs(np.asarray(up, dtype=np.float64) - np.asarray(down, dtype=np.float64)) / 2


def coupling(tolerances: ArrayLike) -> float:
    """Coupling as printed: -sum P_d log P_d with P_d = 1 - Tol_d / max Tol, natural logarithm, 0 log 0 = 0.

    Takes Tolerances (D,) in [0, 1]. The P_d are no distribution, so the number has no fixed range: it is 0 when all
    dimensions are tolerated alike, and 0 too when one is tolerated and all others not at all. NaN when every Tolerance
    is 0.
    """
    tolerances = np.asarray(tolerances, dtype=np.float64)
    largest = tolerances.max()
    return _entropy(1 - tolerances / largest) if largest > 0 else np.nan


def coupling_entropy(tolerances: ArrayLike) -> float:
    """Normalised entropy of w_d = (1 - Tol_d) / sum: how evenly the dimensions influence the prediction.

    Takes Tolerances (D,) in [0, 1]. 1: all alike; 0: one alone. NaN when no dimension has any influence, and for a
    single dimension.
    """
    tolerances = np.asarray(tolerances, dtype=np.float64)
    weights = _weights(tolerances)
    if weights is None or len(tolerances) == 1:
        return np.nan
    return _entropy(weights) / np.log(len(tolerances))


def effective_dimensions(tolerances: ArrayLike) -> float:
    """Effective number of latent dimensions that influence the prediction, exp of the entropy of w_d.

    Between 1, one dimension alone, and D, all alike; NaN when none has any influence.
    """
    weights = _weights(np.asarray(tolerances, dtype=np.float64))
    return np.nan if weights is None else float(np.exp(_entropy(weights)))


def is_constant(reference: ArrayLike, censored: ArrayLike) -> bool:
    """Whether a classifier gives every decoded image the same class: then its Tolerance is 1 and says nothing.

    Takes its predictions (n,) on the reconstructions, made without a look at labels so that a tie is no difference, and
    which moves change none of them, bool or a share, of any shape.
    """
    return len(np.unique(reference)) == 1 and bool(np.min(censored) == 1)


def _weights(tolerances):
    influence = 1 - tolerances
    total = influence.sum()
    return influence / total if total > 0 else None


def _entropy(shares):
    positive = shares[shares > 0]
    return float(np.maximum(-(positive * np.log(positive)).sum(), 0.0))
