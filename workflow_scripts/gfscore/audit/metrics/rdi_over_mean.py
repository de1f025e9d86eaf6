"""RDI divided by the class mean: the range without the scale of the measure."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import Case, Metric
from gfscore.audit.metrics.rdi import rdi
from gfscore.core.lazy import np
from gfscore.statistics.quotients import ratio


def rdi_over_mean(values: np.ndarray) -> np.ndarray:
    """RDI over the class mean: the range without the scale of the measure.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values, at least 0.

    Returns
    -------
    ndarray (...)
        In [0, K], 0 for equal classes; NaN when every value is 0.
    """
    return ratio(rdi(values), values.mean(axis=-1))


METRIC = Metric(
    name="rdi_over_mean",
    title="RDI / mean",
    meaning="RDI / class mean: without the scale of the score",
    explanation=(
        "RDI divided by the class mean, which takes the scale of the measure out of it. 0 means all classes are equal; "
        "at most K for K classes; lower is more equal. Undefined when every class is at 0."
    ),
    source="relative range; companion of RDI that shows whether a conclusion rests on the scale",
    kind="disparity",
    direction=-1,
    value=rdi_over_mean,
    value_range=lambda lowest, highest, *, classes, lam: (0.0, classes),
    at_equality=0.0,
    unitless=True,
    case=Case(values=(1.0, 2.0, 5.0), expected=1.5),
    order=5,
    columns="companion",
)
