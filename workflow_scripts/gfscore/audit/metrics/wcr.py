"""WCR, worst-case class robustness: the smallest class value."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import BoundsOfClasses, Case, Interval, Metric
from gfscore.core.lazy import np


def wcr(values: np.ndarray) -> np.ndarray:
    """Smallest class value.

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
    GF-Score, Definition 4 (Eq. 6).
    """
    return values.min(axis=-1)


def over_box(low: np.ndarray, high: np.ndarray) -> Interval:
    """Smallest lower and smallest upper bound of classes (K,)."""
    return float(low.min()), float(high.min())


def gate_bounds(class_bounds: BoundsOfClasses, alpha: float) -> Interval:
    """Bounds of the smallest class value from those of single classes.

    The lower bound fails only if the bound of the true worst class fails, so that it needs no union bound; the upper
    bound fails if the bound of any class fails. Source: intersection-union test, Berger 1982.
    """
    return class_bounds.lower(alpha).min(), class_bounds.upper(alpha / len(class_bounds.n)).min()


METRIC = Metric(
    name="wcr",
    title="WCR",
    meaning="WCR, the worst class",
    explanation=(
        "Worst-case class robustness: the value of the weakest class. Higher is better; 0 means that no sample of the "
        "class has a value above 0."
    ),
    source="GF-Score, Definition 4 (Eq. 6)",
    kind="disparity",
    direction=1,
    value=wcr,
    case=Case(values=(1.0, 2.0, 5.0), expected=1.0),
    over_box=over_box,
    gate_bounds=gate_bounds,
    gate_title="worst-class mean",
    gate_demand="every class has a mean {measure} of at least {threshold}",
    order=8,
    columns="first",
)
