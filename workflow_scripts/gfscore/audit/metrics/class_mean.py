"""The class mean: unweighted mean over the classes."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import BoundsOfClasses, Case, Interval, Metric
from gfscore.audit.metrics.value import gate_bounds as gate_bounds_of_aggregate
from gfscore.core.lazy import np


def class_mean(values: np.ndarray) -> np.ndarray:
    """Unweighted mean of the class values.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values.

    Returns
    -------
    ndarray (...)
        In the unit of the measure, higher is better.

    References
    ----------
    GF-Score, Definition 5.
    """
    return values.mean(axis=-1)


def over_box(low: np.ndarray, high: np.ndarray) -> Interval:
    """Class mean of the lower and of the upper bounds of classes (K,)."""
    return float(low.mean()), float(high.mean())


def gate_bounds(class_bounds: BoundsOfClasses, alpha: float) -> Interval:
    """Bounds of the class mean, each with confidence at least 1 - alpha.

    With equal class sizes the class mean is the aggregate, whose bounds are tighter. Otherwise they are the means of
    the class bounds, each at alpha / K.
    """
    if (class_bounds.n == class_bounds.n[0]).all():
        return gate_bounds_of_aggregate(class_bounds, alpha)
    alpha_of_side = alpha / len(class_bounds.n)
    return class_bounds.lower(alpha_of_side).mean(), class_bounds.upper(alpha_of_side).mean()


METRIC = Metric(
    name="class_mean",
    title="Class mean",
    meaning="mean over the classes, each counted alike",
    explanation=(
        "Mean over classes, each counted once. Equal to the aggregate when classes have equally many samples. Higher "
        "is better."
    ),
    source="GF-Score, Definition 5",
    kind="level",
    direction=1,
    value=class_mean,
    case=Case(values=(1.0, 2.0, 6.0), expected=3.0),
    over_box=over_box,
    gate_bounds=gate_bounds,
    gate_title="class mean",
    order=2,
    columns="first",
)
