"""What a rule of the gate may judge: a number made of class values, with a bound on each side at a stated level.

Most are metrics (gfscore.audit.metrics); the few that are not stand here. Each takes BoundsOfClasses and gives
`(low, high)`, of which each holds with probability at least 1 - alpha, not both together: a rule's
verdict can only be wrong on one side, the one that the truth is not on.

Imports nothing heavy, because config.yaml is checked with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gfscore.audit.metrics import BOUNDED, METRICS
from gfscore.audit.metrics.declaration import Interval
from gfscore.audit.metrics.rdi import METRIC as RDI
from gfscore.audit.verdicts.gate_rules import DIRECTIONS, FALSIFICATION, GROUP_GAP, ONE_CLASS, threshold_of
from gfscore.core.errors import InputError, unknown

if TYPE_CHECKING:
    from gfscore.audit.metrics.declaration import BoundsOfClasses
    from gfscore.statistics.classes import ClassValues

NO_METRICS = {ONE_CLASS: 1, FALSIFICATION: -1, GROUP_GAP: -1}
"""Statistics that are no metrics of the class values -> 1 where more is better, -1 where less is."""

STATISTICS = (*(metric.name for metric in BOUNDED), *NO_METRICS)
"""What a rule may judge."""

REFUSED = {name: metric.refusal for name, metric in METRICS.items() if metric.refusal}
"""Metrics that no rule can judge -> why."""


@dataclass(frozen=True)
class Statistic:
    """A number made of K class values.

    `title` names it in a sentence; `value` takes ClassValues; `bounds` takes BoundsOfClasses and alpha; `only` is
    the index of the one class that it rests on, or None.
    """

    title: str
    value: Callable[[ClassValues], float]
    bounds: Callable[[BoundsOfClasses, float], Interval]
    only: int | None = None


def statistic_of(rule: Mapping[str, Any], *, class_names: Sequence[Any], lam: float) -> Statistic:
    """Statistic that a rule of the gate names; `class_names` (K) and `lam` of FP complete it.

    Raises InputError for a class that is not there, a metric without bounds, and what is no statistic at all.
    """
    name = rule["statistic"]
    if name == ONE_CLASS:
        return _one_class(rule["class"], list(class_names), "mean")
    if name == FALSIFICATION:
        return ALL_SAMPLES if rule.get("class") is None else _one_class(rule["class"], list(class_names), CONTRADICTED)
    if name == GROUP_GAP:
        gap = f"largest difference between the groups by {rule['attribute']}"
        return replace(_of_metric(RDI, lam), title=gap)
    if name in METRICS:
        return _of_metric(METRICS[name], lam)
    raise InputError(f"gate: {unknown('statistic', name, STATISTICS)}")


def _of_metric(metric, lam):
    if metric.refusal:
        raise InputError(f"gate: {metric.refusal}")
    return Statistic(
        title=metric.title_at_gate,
        value=lambda values: metric.of(values.mean, counts=values.n, lam=lam),
        bounds=lambda classes, alpha: metric.bounds_at(classes, alpha, lam=lam),
    )


CONTRADICTED = "falsification rate, a lower bound on the share of violations,"

# All classes together are one class here, so that no union over classes widens the bounds.
ALL_SAMPLES = Statistic(
    title=CONTRADICTED,
    value=lambda values: values.mean[0],
    bounds=lambda classes, alpha: (classes.lower(alpha)[0], classes.upper(alpha)[0]),
)


def _one_class(name, class_names, what):
    if name not in class_names:
        raise InputError(f"gate: {unknown('class', name, class_names)}")
    k = class_names.index(name)
    return Statistic(
        title=f"{what} of class {name}",
        value=lambda values: values.mean[k],
        bounds=lambda classes, alpha: (classes.lower(alpha)[k], classes.upper(alpha)[k]),
        only=k,
    )


def direction_of(statistic: str) -> str:
    """Key that holds the threshold of a statistic: at_least where more is better, at_most where less is."""
    better = METRICS[statistic].direction if statistic in METRICS else NO_METRICS[statistic]
    return DIRECTIONS[0] if better > 0 else DIRECTIONS[1]


def range_of(statistic: str, value_range: Interval, *, classes: float, lam: float) -> Interval:
    """Smallest and largest possible value of a statistic, for a measure's range, K classes or groups, lambda of FP."""
    if statistic == ONE_CLASS:
        return value_range
    if statistic == FALSIFICATION:
        return 0.0, 1.0
    metric = RDI if statistic == GROUP_GAP else METRICS[statistic]
    return metric.range(value_range, classes=classes, lam=lam)


def words_of(rule: Mapping[str, Any], title: str) -> str:
    """A rule as a clause: what every model must show, at which confidence, and at which look."""
    direction, threshold = threshold_of(rule)
    metric = METRICS.get(rule["statistic"])
    if metric and metric.gate_demand and direction == direction_of(metric.name):
        demand = metric.gate_demand.format(measure=rule["measure"], threshold=threshold)
    else:
        demand = f"{title} of {rule['measure']} is {direction.replace('_', ' ')} {threshold:g}"
    looks = rule["looks"]
    planned = f", at look {looks['this']} of {looks['planned']}" if looks["planned"] > 1 else ""
    return f"{demand}, judged for all models together with {100 * rule['confidence']:g}% confidence{planned}"
