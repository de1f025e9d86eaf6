"""The rules of a gate as config.yaml writes them: threshold, what they rest on, share of alpha, verdict.

Imports nothing heavy, because config.yaml is checked with it. What they judge stands in gate_statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gfscore.audit.metrics import BOUNDED, METRICS
from gfscore.audit.metrics.declaration import Interval
from gfscore.audit.metrics.rdi import METRIC as RDI
from gfscore.core.errors import InputError, unknown

if TYPE_CHECKING:
    from gfscore.audit.metrics.declaration import BoundsOfClasses
    from gfscore.statistics.classes import ClassValues
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gfscore.core.settings import Closed, Confidence, Count, Name, Number, Sparse, refusal

DIRECTIONS = ("at_least", "at_most")
"""Keys of a rule that hold its threshold; exactly one of them stands in each rule."""

FALSIFICATION = "falsification_rate"
"""Statistic of a score against attack distances: the share of correct samples whose score exceeds a distance found."""

GROUP_GAP = "group_gap"
"""Statistic of the groups that an attribute makes: the largest difference between their values of a measure."""

ONE_CLASS = "class"
"""Statistic of the class that a rule names: its value."""


def threshold_of(rule: Mapping[str, Any]) -> tuple[str, float]:
    """Direction and threshold of a rule: ("at_least", 0.4)."""
    return next((direction, rule[direction]) for direction in DIRECTIONS if rule.get(direction) is not None)


def evidence_of(rule: Mapping[str, Any]) -> str | tuple[str, str, str]:
    """Key of the bounds that a rule is judged by.

    The name of the measure; for GROUP_GAP a triple with the attribute; for FALSIFICATION a triple that says whether
    bounds of each class are meant or of all classes together.
    """
    if rule["statistic"] == GROUP_GAP:
        return rule["measure"], GROUP_GAP, rule["attribute"]
    if rule["statistic"] != FALSIFICATION:
        return rule["measure"]
    return rule["measure"], FALSIFICATION, "classes" if rule.get("class") is not None else "together"


def verdict_of(rule: Mapping[str, Any], low: float, high: float) -> str:
    """PASS, FAIL or INCONCLUSIVE, from the lower and the upper bound of the statistic that a rule judges.

    PASS when the bound on the safe side reaches the threshold, FAIL when the other bound misses it.
    """
    direction, threshold = threshold_of(rule)
    if direction == "at_most":
        low, high, threshold = -high, -low, -threshold
    if low >= threshold:
        return "PASS"
    return "FAIL" if high < threshold else "INCONCLUSIVE"


def alpha_of(rule: Mapping[str, Any], *, rules: int, models: int) -> float:
    """Probability of a wrong verdict that one model gets under one rule at one look.

    1 - confidence in equal shares over the rules of the gate, the models and the looks at growing samples that were
    planned; so over all of them together no verdict is wrong, with probability at least the confidence.
    """
    return (1 - rule["confidence"]) / (rules * models * rule["looks"]["planned"])


def combine(verdicts: Collection[str]) -> str:
    """FAIL if anything fails, PASS if everything passes, INCONCLUSIVE otherwise."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "PASS" if verdicts and all(verdict == "PASS" for verdict in verdicts) else "INCONCLUSIVE"


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


def _known(statistic: str) -> str:
    if statistic in REFUSED:
        raise refusal(REFUSED[statistic])
    if statistic not in STATISTICS:
        raise refusal(unknown("statistic", statistic, STATISTICS))
    return statistic


class Looks(Closed):
    """Looks at growing samples; each gets its share of 1 - confidence."""

    planned: Count = Field(1, description="How many times the gate will be asked in all, fixed before the first.")
    this: Count = Field(1, description="Which of them this is, from 1.")

    @model_validator(mode="after")
    def _this_was_planned(self) -> Self:
        if self.this > self.planned:
            raise refusal(f"this is {self.this}, but {self.planned} were planned; a further look needs fresh samples")
        return self


class RuleSettings(Sparse):
    """One rule of a gate: a statistic of a measure, and the threshold that every model must reach."""

    absent = frozenset({"class", "attribute", "at_least", "at_most"})

    measure: Name = Field(description="Measure that is judged, a score at T = 1.")
    statistic: Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": list(STATISTICS)})] = Field(
        "wcr",
        description="Number made of the class values: worst class (wcr), disparity (rdi, nrgc), fairness-penalised "
        "mean (fp), aggregate (value), mean over classes (class_mean), or one class. Or falsification_rate, of a "
        "measure of kind great: share of the correct samples whose score exceeds an attack distance found. Or "
        "group_gap: largest difference between the groups of an attribute.",
    )
    class_: str | None = Field(
        None,
        alias="class",
        description="Name of the class that the statistic class judges, or falsification_rate; without, the latter "
        "judges all samples together.",
    )
    attribute: str | None = Field(None, description="Attribute whose groups the statistic group_gap compares.")
    at_least: Number | None = Field(
        None,
        description="tau: smallest acceptable value of a statistic of which more is better (wcr, fp, value, "
        "class_mean, class), in its unit.",
    )
    at_most: Number | None = Field(
        None,
        description="tau: largest acceptable value of a statistic of which less is better (rdi, nrgc, group_gap, "
        "falsification_rate).",
    )
    confidence: Confidence = Field(0.95, description="Confidence for all models, rules and looks together.")
    looks: Looks = Field(default_factory=Looks)
    on_inconclusive: Literal["stop", "pass"] = Field(
        "stop", description="Whether the target gate stops when this rule is undecided: stop or pass."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        given = [direction for direction in DIRECTIONS if getattr(self, direction) is not None]
        if len(given) != 1:
            raise refusal(f"a rule needs one threshold, either {' or '.join(DIRECTIONS)}; give one")
        # The other direction would pass the worst classifiers and fail the best.
        direction = direction_of(self.statistic)
        if given != [direction]:
            better = "more" if direction == "at_least" else "less"
            what = f"{self.statistic} of {self.measure}"
            raise refusal(f"{what}: {better} is better; give its threshold as {direction}", *given)
        if (self.attribute is not None) != (self.statistic == GROUP_GAP):
            raise refusal(f"the statistic {GROUP_GAP}, and no other, names an attribute", "attribute")
        if self.statistic != FALSIFICATION and (self.class_ is not None) != (self.statistic == ONE_CLASS):
            raise refusal(f"the statistics class and {FALSIFICATION}, and no other, name a class", "class")
        return self
