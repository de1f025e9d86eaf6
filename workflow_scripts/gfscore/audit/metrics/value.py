"""The aggregate: mean over the samples."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import BoundsOfClasses, Case, Interval, Metric
from gfscore.core.lazy import np


def aggregate(values: np.ndarray, *, counts: np.ndarray) -> np.ndarray:
    """Mean over all samples: class values weighted by the samples of each class.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values.
    counts : ndarray (K,) of int
        Samples of each class.

    Returns
    -------
    ndarray (...)
        In the unit of the measure, higher is better.

    References
    ----------
    GF-Score, Eq. 3.
    """
    return np.average(values, weights=counts, axis=-1)


def over_box(low: np.ndarray, high: np.ndarray, *, counts: np.ndarray) -> Interval:
    """Aggregate of the lower and of the upper bounds of classes (K,)."""
    weights = np.asarray(counts) / np.sum(counts)
    return float(weights @ low), float(weights @ high)


def gate_bounds(class_bounds: BoundsOfClasses, alpha: float) -> Interval:
    """Bounds of the aggregate without a union bound over the classes.

    If a class has no samples, its frequency and values are unknown, so the bounds are its bounds, the whole range.
    # ASSUME: classes are as frequent as in the samples.
    """
    if (class_bounds.n == 0).any():
        return class_bounds.lower(alpha).min(), class_bounds.upper(alpha).max()
    return class_bounds.lower_aggregate(alpha), class_bounds.upper_aggregate(alpha)


METRIC = Metric(
    name="value",
    title="Aggregate",
    meaning="aggregate: mean over the samples",
    explanation="Mean over all samples, so frequent classes count more. Higher is better.",
    source="GF-Score, Eq. 3",
    kind="level",
    direction=1,
    value=aggregate,
    needs=("counts",),
    case=Case(values=(1.0, 2.0, 5.0), counts=(3, 2, 1), expected=2.0),
    over_box=over_box,
    gate_bounds=gate_bounds,
    gate_title="aggregate",
    order=1,
    columns="first",
)
