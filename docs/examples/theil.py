"""Theil index: how far the shares of the classes in the total are from equal ones, by their entropy."""

from __future__ import annotations

import math

from gfscore.audit.metrics.declaration import Case, Interval, Metric
from gfscore.core.lazy import np


def theil(values: np.ndarray) -> np.ndarray:
    """Theil's T of class values (..., K) >= 0, mean of (x / mean) ln(x / mean); NaN when every value is 0."""
    from scipy.special import xlogy

    mean = values.mean(axis=-1, keepdims=True)
    relative = np.divide(values, mean, out=np.full(values.shape, np.nan), where=mean > 0)
    return xlogy(relative, relative).mean(axis=-1)


def over_box(low: np.ndarray, high: np.ndarray) -> Interval:
    """Bounds over a box of class values (K,), by those of each class's share y: T = ln K + sum of y ln y.

    (NaN, NaN) when the whole box is 0. Each share is bounded by itself, so these are not the extremes.
    """
    from scipy.special import xlogy

    if high.max() == 0:
        return float("nan"), float("nan")
    least, most = low + high.sum() - high, high + low.sum() - low
    # A class beside which nothing can be has the whole total; one that is 0 has nothing of it.
    smallest = np.divide(low, least, out=np.ones(len(low)), where=least > 0)
    largest = np.divide(high, most, out=np.zeros(len(high)), where=most > 0)
    flattest = np.clip(1 / math.e, smallest, largest)
    steepest = np.maximum(xlogy(smallest, smallest), xlogy(largest, largest))
    equal = math.log(len(low))
    return max(0.0, equal + xlogy(flattest, flattest).sum()), min(equal, equal + steepest.sum())


METRIC = Metric(
    name="theil",
    title="Theil index",
    meaning="Theil index of the classes",
    explanation=(
        "How far the shares of the classes in the total are from equal ones, by their entropy. 0 means all equal; at "
        "most ln K for K classes; lower is more equal. Undefined when every class is at 0."
    ),
    source="Theil 1967",
    kind="disparity",
    direction=-1,
    unitless=True,
    value=theil,
    value_range=lambda lowest, highest, *, classes, lam: (0.0, math.log(classes)),
    at_equality=0.0,
    # Shares 1/4 and 3/4: (1/2 ln 1/2 + 3/2 ln 3/2) / 2.
    case=Case(values=(1.0, 3.0), expected=(0.5 * math.log(0.5) + 1.5 * math.log(1.5)) / 2),
    over_box=over_box,
)
