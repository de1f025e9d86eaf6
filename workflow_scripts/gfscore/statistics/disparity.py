"""Worst classes, differences between classes, and the tolerance of ties.

All functions take class values (K,) where higher is better; NaN marks classes without samples.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError

TIE_TOLERANCE = 1e-9
"""Largest difference of tied values: rounding errors must not decide which class is worst, or a rank."""


def worst_classes(values: ArrayLike) -> NDArray[np.int64]:
    """Indices of all classes that attain the minimum within TIE_TOLERANCE, ascending.

    Raises InputError when no class has samples.
    """
    values = np.asarray(values, dtype=np.float64)
    if np.isnan(values).all():
        raise InputError("no class has samples, so there is no worst class; give at least one sample")
    return np.flatnonzero(values <= np.nanmin(values) + TIE_TOLERANCE)


def worst_class_set(low: ArrayLike, high: ArrayLike) -> NDArray[np.int64]:
    """Classes that may be the worst given class intervals: {k : L_k <= min_j U_j}.

    Contains a worst class with the simultaneous confidence of the intervals.
    """
    low, high = np.asarray(low), np.asarray(high)
    return np.flatnonzero(low <= high.min())


def pairwise_differences(values: ArrayLike) -> NDArray[np.float64]:
    """Absolute differences |x_i - x_j| of all pairs of classes, (K, K); NaN rows for classes without samples."""
    values = np.asarray(values, dtype=np.float64)
    return np.abs(values[:, None] - values[None, :])
