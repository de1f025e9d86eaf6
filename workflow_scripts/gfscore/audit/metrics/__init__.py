"""Metrics: each makes one number of the class values of a measure. One file per metric, found by itself.

A file of this folder holds METRIC, a Metric (see gfscore.audit.metrics.declaration) of the file's name. Tables,
intervals, noise floor, gate, pages and docs follow from it. Importing them imports nothing heavy, because
config.yaml is checked with them: numpy stands inside the functions.
"""

import pkgutil
from importlib import import_module

from gfscore.audit.metrics.declaration import Interval, Metric
from gfscore.core.errors import InputError

DECLARATION = "declaration"
"""The one module of this folder that is no metric."""


def _metric_of(name: str) -> Metric:
    module = import_module(f"{__name__}.{name}")
    metric = getattr(module, "METRIC", None)
    if not isinstance(metric, Metric) or metric.name != name:
        raise InputError(f"{module.__file__}: holds no metric of its name; declare METRIC = Metric(name={name!r}, ...)")
    return metric


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in sorted(
        (_metric_of(module.name) for module in pkgutil.iter_modules(__path__) if module.name != DECLARATION),
        key=lambda metric: (metric.order, metric.name),
    )
}
"""Every metric by its name, in the order in which they stand wherever they stand together."""

FIRST = tuple(metric for metric in METRICS.values() if metric.columns == "first")
"""Those whose columns come first in model_summary."""

COMPANIONS = tuple(metric for metric in METRICS.values() if metric.columns == "companion")
"""Those whose value stands there without bounds."""

APPENDED = tuple(metric for metric in METRICS.values() if metric.columns == "appended")
"""Those whose columns stand at its end."""

MAIN = tuple(metric for metric in METRICS.values() if metric.columns != "companion")
"""Those that every table of models shows: all but the companions."""

BOUNDED = tuple(metric for metric in METRICS.values() if metric.bounded)
"""Those with an interval, which a gate can judge."""

AGAINST_CHANCE = tuple(metric for metric in METRICS.values() if metric.against_chance)
"""Those that are compared with chance."""


def highest_values(measure_range: Interval, *, classes: int) -> dict[str, float]:
    """Largest possible value of each metric, beyond which no bound is printed."""
    return {name: metric.range(measure_range, classes=classes, lam=0)[1] for name, metric in METRICS.items()}
