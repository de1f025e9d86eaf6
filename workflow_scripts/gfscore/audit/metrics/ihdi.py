"""IHDI, the inequality-adjusted mean: the class mean times (1 - NRGC)."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import Case, Metric
from gfscore.audit.metrics.nrgc import nrgc
from gfscore.core.lazy import np


def ihdi(values: np.ndarray) -> np.ndarray:
    """Class mean times (1 - NRGC), Sen's welfare function.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values, at least 0.

    Returns
    -------
    ndarray (...)
        In the unit of the measure, higher is better; 0 when every value is 0.

    References
    ----------
    Sen 1976.
    """
    mean = values.mean(axis=-1)
    return np.where(mean > 0, mean * (1 - nrgc(values)), 0.0)


METRIC = Metric(
    name="ihdi",
    title="IHDI",
    meaning="class mean (1 - NRGC)",
    explanation="The class mean times (1 − NRGC), in the unit of the measure. Higher is better.",
    source="Sen 1976, whose welfare function it is",
    kind="penalised",
    direction=1,
    value=ihdi,
    case=Case(values=(1.0, 2.0, 5.0), expected=16 / 9),
    order=7,
    columns="companion",
)
