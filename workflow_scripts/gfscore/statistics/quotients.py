"""Quotients and means that are NaN where they are undefined. Imports nothing heavy."""

from __future__ import annotations

from gfscore.core.lazy import np


def ratio(numerator: np.typing.ArrayLike, denominator: np.typing.ArrayLike) -> np.typing.NDArray[np.float64]:
    """Quotients of arrays that broadcast against each other; NaN where the denominator is not above 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    return np.divide(numerator, denominator, out=np.full(denominator.shape, np.nan), where=denominator > 0)


def mean_of_defined(values: np.typing.NDArray[np.float64], *, axis: int) -> np.typing.NDArray[np.float64]:
    """Mean over an axis of the values that are not NaN; NaN where all are."""
    defined = ~np.isnan(values)
    return ratio(np.where(defined, values, 0).sum(axis=axis), defined.sum(axis=axis))
