"""Metrics, which reduce the class values of a measure to one number: one file per metric.

A module of this folder defines METRIC, a Metric (see gfscore.audit.metrics.declaration) with the name of the module.
Tables, intervals, noise floor, gate, pages and docs are derived from it. Modules import nothing heavy at the top,
because they validate config.yaml.
"""

from __future__ import annotations

from pkgutil import iter_modules
from typing import TYPE_CHECKING

from gfscore.audit.metrics.declaration import Interval, Metric
from gfscore.core.discovery import required_declarations
from gfscore.core.mappings import by_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gfscore.statistics.classes import ClassValues

_declared = required_declarations(__name__, iter_modules(__path__), Metric)
_declared.sort(key=lambda metric: (metric.order, metric.name))

METRICS: dict[str, Metric] = by_name(_declared)
"""All metrics by name, in the order of tables and pages."""

FIRST = tuple(metric for metric in METRICS.values() if metric.columns == "first")
"""Metrics whose columns come first in model_summary."""

COMPANIONS = tuple(metric for metric in METRICS.values() if metric.columns == "companion")
"""Metrics with a value but no bounds in model_summary."""

APPENDED = tuple(metric for metric in METRICS.values() if metric.columns == "appended")
"""Metrics whose columns come last in model_summary."""

MAIN = tuple(metric for metric in METRICS.values() if metric.columns != "companion")
"""Metrics in all tables of models."""

BOUNDED = tuple(metric for metric in METRICS.values() if metric.bounded)
"""Metrics with an interval, which a gate can judge."""

AGAINST_CHANCE = tuple(metric for metric in MAIN if metric.kind == "disparity")
"""Metrics with a noise floor and a permutation p-value."""


def metric_values(values: ClassValues, *, lam: float) -> dict[str, float]:
    """Every metric of class values by its name, NaN where undefined; `lam` is lambda of FP."""
    return {name: metric.compute(values.mean, counts=values.n, lam=lam) for name, metric in METRICS.items()}


def metric_intervals(
    values: ClassValues, low: NDArray[np.float64], high: NDArray[np.float64], *, lam: float
) -> dict[str, Interval]:
    """Intervals of the metrics that have one, by name.

    Parameters
    ----------
    values : ClassValues
        Class values, of which the numbers of samples are used.
    low, high : ndarray (K,) of float64
        Simultaneous bounds of the class values.
    lam : float
        Lambda of FP.

    Returns
    -------
    dict
        (low, high) by metric, which hold together with the confidence of the bounds.
    """
    return {metric.name: metric.interval(low, high, counts=values.n, lam=lam) for metric in BOUNDED}


def highest_values(measure_range: Interval, *, classes: int) -> dict[str, float]:
    """Largest possible value of each metric, above which no bound is printed."""
    return {name: metric.value_range(*measure_range, classes=classes, lam=0)[1] for name, metric in METRICS.items()}
