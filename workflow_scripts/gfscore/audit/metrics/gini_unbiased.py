"""The Gini coefficient times K / (K - 1), so that its maximum is 1 for every number of classes."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import Case, Metric
from gfscore.audit.metrics.nrgc import nrgc
from gfscore.core.lazy import np


def gini_unbiased(values: np.ndarray) -> np.ndarray:
    """NRGC times K / (K - 1), so that its maximum is 1 for every number of classes.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values, at least 0.

    Returns
    -------
    ndarray (...)
        In [0, 1], 0 for equal classes; NaN when every value is 0.

    References
    ----------
    Deltas 2003.
    """
    k = values.shape[-1]
    return nrgc(values) * k / (k - 1)


METRIC = Metric(
    name="gini_unbiased",
    title="Gini, unbiased",
    meaning="NRGC K/(K-1)",
    explanation=(
        "NRGC times K/(K − 1), so that 1 is the maximum for every number of classes K. 0 means all equal; lower is "
        "more equal. Undefined when every class is at 0."
    ),
    source="Deltas 2003",
    kind="disparity",
    direction=-1,
    value=gini_unbiased,
    value_range=lambda lowest, highest, **_: (0.0, 1.0),
    at_equality=0.0,
    unitless=True,
    case=Case(values=(1.0, 2.0, 5.0), expected=0.5),
    order=6,
    columns="companion",
    # For a fixed number of classes it ranks models like NRGC.
    ranks_models=False,
)
