"""The rules of a gate: what a rule may judge, its settings, and its verdict from two bounds.

A rule judges a statistic, one number made of the class values of a measure: a metric (`gfscore.audit.metrics`) or one
of a few others, each a function here. Imports nothing heavy, because config.yaml is checked with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from gfscore.audit.metrics import BOUNDED, METRICS
from gfscore.audit.metrics.declaration import Interval, Metric
from gfscore.audit.metrics.rdi import METRIC as RDI
from gfscore.audit.metrics.wcr import METRIC as WCR
from gfscore.core.errors import InputError, unknown_name
from gfscore.core.numbers import percent, setting
from gfscore.core.settings import Closed, Confidence, Count, Name, Number, Sparse, first_fault, refusal

if TYPE_CHECKING:
    from gfscore.audit.metrics.declaration import BoundsOfClasses
    from gfscore.statistics.classes import ClassValues

PASS = "PASS"
FAIL = "FAIL"
INCONCLUSIVE = "INCONCLUSIVE"

AT_LEAST = "at_least"
AT_MOST = "at_most"

DIRECTIONS = (AT_LEAST, AT_MOST)
"""Keys of a rule that hold its threshold; each rule has exactly one of them."""

FALSIFICATION = "falsification_rate"
"""Statistic of a score against attack distances: the share of correct samples whose score exceeds a distance found."""

GROUP_GAP = "group_gap"
"""Statistic of the groups that an attribute makes: the largest difference between their values of a measure."""

ONE_CLASS = "class"
"""Statistic of the class that a rule names: its value."""

DECLINE = "decline"
"""Statistic of the paired differences from an earlier release: the largest decline of a class."""

STATISTICS = (*(metric.name for metric in BOUNDED), ONE_CLASS, FALSIFICATION, GROUP_GAP, DECLINE)
"""What a rule may judge."""

REFUSED_METRICS = {name: metric.refusal for name, metric in METRICS.items() if metric.refusal}
"""Metrics that no rule can judge -> why."""

CLASSES, ALL_SAMPLES = "classes", "all samples"
"""Partitions of the samples: by class, or all of them as one. A partition in groups has the name of its attribute."""

CLASS_VALUES = "class values"
"""What is bounded unless a statistic has bounds of its own."""


class BoundsKey(NamedTuple):
    """Key of the bounds that a rule is judged by.

    Parameters
    ----------
    measure : str
        Measure that they are made of.
    quantity : str
        What is bounded: CLASS_VALUES, or GROUP_GAP, FALSIFICATION or DECLINE for what these statistics judge.
    partition : str
        Partition of the samples: CLASSES, ALL_SAMPLES, or the name of an attribute.
    """

    measure: str
    quantity: str = CLASS_VALUES
    partition: str = CLASSES


# ---- statistics ----


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number made of K class values, which a rule judges.

    Parameters
    ----------
    title : str
        Its name in a sentence.
    direction : str
        AT_LEAST where more is better, AT_MOST where less is.
    value_range : callable
        Its smallest and largest possible value, from the range of the bounded values and the number of classes or
        groups, which is infinite where it is unknown.
    value : callable
        The number, from ClassValues; NaN where too few classes have samples.
    ends : callable
        Its smallest and largest value where samples are open, from ClassValues of their smallest and largest values.
    bounds : callable
        Its bounds `(low, high)`, from BoundsOfClasses and alpha. Each holds with probability at least 1 - alpha, not
        both together: a verdict can be wrong on one side only, the one that the truth is not on.
    one_class : int or None
        Index of the class that it rests on alone; None for all classes.
    quantity, partition : str
        What is bounded, in which partition of the samples; see BoundsKey.
    bounded_range : callable
        Range of the bounded values, from the range of the measure.
    demand : str
        Clause of a rule on it: a format string with title, measure, direction and threshold.
    """

    title: str
    direction: str
    value_range: Callable[[Interval, float], Interval]
    value: Callable[[ClassValues], float]
    ends: Callable[[ClassValues, ClassValues], Interval]
    bounds: Callable[[BoundsOfClasses, float], Interval]
    one_class: int | None = None
    quantity: str = CLASS_VALUES
    partition: str = CLASSES
    bounded_range: Callable[[Interval], Interval] = lambda measure_range: measure_range
    demand: str = "{title} of {measure} is {direction} {threshold}"


def statistic_of(
    name: str,
    *,
    class_name: str | None = None,
    attribute: str | None = None,
    class_names: Sequence[str] = (),
    lam: float = math.nan,
) -> Statistic:
    """Statistic of a gate by its name.

    Parameters
    ----------
    name : str
        One of STATISTICS.
    class_name : str, optional
        Class that ONE_CLASS or FALSIFICATION is about; FALSIFICATION without one is about all samples together.
    attribute : str, optional
        Attribute whose groups GROUP_GAP compares.
    class_names : sequence of str
        Names of the K classes, which values and bounds of one class need.
    lam : float, optional
        Weight lambda of RDI in FP, which its range, values and bounds need.

    Raises
    ------
    InputError
        For an unknown class.
    """
    if name == ONE_CLASS:
        return _class_mean(class_name, class_names)
    if name == FALSIFICATION:
        return _falsification_rate(class_name, class_names)
    if name == GROUP_GAP:
        return _group_gap(attribute)
    if name == DECLINE:
        return _decline()
    return _of_metric(METRICS[name], lam)


def _of_metric(metric: Metric, lam: float) -> Statistic:
    def value(values: ClassValues) -> float:
        if (values.n > 0).sum() < metric.fewest_classes:
            return math.nan
        return metric.compute(values.mean, counts=values.n, lam=lam)

    def ends(smallest: ClassValues, largest: ClassValues) -> Interval:
        present = smallest.n > 0
        if present.sum() < metric.fewest_classes:
            return math.nan, math.nan
        return metric.interval(smallest.mean[present], largest.mean[present], counts=smallest.n[present], lam=lam)

    return Statistic(
        title=metric.gate_title or metric.title,
        direction=AT_LEAST if metric.direction > 0 else AT_MOST,
        value_range=lambda bounded_range, classes: metric.value_range(*bounded_range, classes=classes, lam=lam),
        value=value,
        ends=ends,
        bounds=lambda class_bounds, alpha: metric.bounds_at(class_bounds, alpha, lam=lam),
        demand=metric.gate_demand or Statistic.demand,
    )


def _group_gap(attribute: str | None) -> Statistic:
    return replace(
        _of_metric(RDI, lam=0.0),
        title=f"largest difference between the groups by {attribute}",
        quantity=GROUP_GAP,
        partition=str(attribute),
    )


def _class_mean(class_name: str | None, class_names: Sequence[str]) -> Statistic:
    def index() -> int:
        if class_name not in class_names:
            raise InputError(f"gate: {unknown_name('class', class_name, class_names)}")
        return class_names.index(class_name)

    return Statistic(
        title=f"mean of class {class_name}",
        direction=AT_LEAST,
        value_range=lambda bounded_range, classes: bounded_range,
        value=lambda values: values.mean[index()],
        ends=lambda smallest, largest: (smallest.mean[index()], largest.mean[index()]),
        bounds=lambda class_bounds, alpha: (class_bounds.lower(alpha)[index()], class_bounds.upper(alpha)[index()]),
        one_class=index() if class_names else None,
    )


def _falsification_rate(class_name: str | None, class_names: Sequence[str]) -> Statistic:
    title = "falsification rate, a lower bound on the share of violations,"
    if class_name is None:
        # All samples are one class, so that no union over classes widens the bounds.
        class_mean = replace(_class_mean(ALL_SAMPLES, [ALL_SAMPLES]), partition=ALL_SAMPLES)
    else:
        class_mean = _class_mean(class_name, class_names)
        title += f" of class {class_name}"
    return replace(
        class_mean,
        title=title,
        direction=AT_MOST,
        quantity=FALSIFICATION,
        bounded_range=lambda measure_range: (0.0, 1.0),
    )


def _decline() -> Statistic:
    # Class values are differences, later less earlier: the class that declined most has the smallest one.
    def value(values: ClassValues) -> float:
        if not values.n.any():
            return math.nan
        # Subtracted, so that no change is 0 and not -0.
        return 0.0 - float(WCR.value(values.mean[values.n > 0]))

    def bounds(class_bounds: BoundsOfClasses, alpha: float) -> Interval:
        low, high = WCR.bounds_at(class_bounds, alpha, lam=0.0)
        return -high, -low

    return Statistic(
        title="largest decline of a class",
        direction=AT_MOST,
        value_range=lambda bounded_range, classes: bounded_range,
        value=value,
        # The largest changes are the smallest declines.
        ends=lambda smallest, largest: (value(largest), value(smallest)),
        bounds=bounds,
        quantity=DECLINE,
        bounded_range=lambda measure_range: (measure_range[0] - measure_range[1], measure_range[1] - measure_range[0]),
        demand="no class declines in {measure} by more than {threshold} since the last release",
    )


# ---- settings ----


def _statistic_name(statistic: str) -> str:
    if statistic in REFUSED_METRICS:
        raise refusal(REFUSED_METRICS[statistic])
    if statistic not in STATISTICS:
        raise refusal(unknown_name("statistic", statistic, STATISTICS))
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
    statistic: Annotated[str, AfterValidator(_statistic_name), Field(json_schema_extra={"enum": list(STATISTICS)})] = (
        Field(
            "wcr",
            description="Number made of the class values: worst class (wcr), disparity (rdi, nrgc), fairness-penalised "
            "mean (fp), aggregate (value), mean over classes (class_mean), or one class. Or falsification_rate, of a "
            "measure of kind great: share of the correct samples whose score exceeds an attack distance found. Or "
            "group_gap: largest difference between the groups of an attribute. Or decline: largest decline of a class "
            "since the release that `last_release` of the audit names.",
        )
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
        "falsification_rate, decline).",
    )
    confidence: Confidence = Field(0.95, description="Confidence for all models, rules and looks together.")
    looks: Looks = Field(default_factory=Looks)
    on_inconclusive: Literal["stop", "pass"] = Field(
        "stop", description="Whether the target gate stops when this rule is undecided: stop or pass."
    )

    @model_validator(mode="after")
    def _one_threshold_and_its_names(self) -> Self:
        thresholds = [direction for direction in DIRECTIONS if getattr(self, direction) is not None]
        if len(thresholds) != 1:
            raise refusal(f"a rule needs one threshold, either {' or '.join(DIRECTIONS)}; give one")

        # The other direction would pass the worst classifiers and fail the best.
        direction = self.statistic_of().direction
        if thresholds != [direction]:
            better = "more" if direction == AT_LEAST else "less"
            statistic = f"{self.statistic} of {self.measure}"
            raise refusal(f"{statistic}: {better} is better; give its threshold as {direction}", *thresholds)

        if (self.attribute is not None) != (self.statistic == GROUP_GAP):
            raise refusal(f"the statistic {GROUP_GAP}, and no other, names an attribute", "attribute")
        if self.statistic != FALSIFICATION and (self.class_ is not None) != (self.statistic == ONE_CLASS):
            raise refusal(f"the statistics class and {FALSIFICATION}, and no other, name a class", "class")
        return self

    @property
    def direction(self) -> str:
        """Key that holds the threshold: AT_LEAST or AT_MOST."""
        return AT_LEAST if self.at_least is not None else AT_MOST

    @property
    def threshold(self) -> int | float:
        """Value that the statistic must reach, in its unit."""
        if self.at_least is not None:
            return self.at_least
        if self.at_most is not None:
            return self.at_most
        raise AssertionError("a rule has a threshold")

    @property
    def bounds_key(self) -> BoundsKey:
        """Bounds that the rule is judged by."""
        statistic = self.statistic_of()
        return BoundsKey(self.measure, statistic.quantity, statistic.partition)

    def statistic_of(self, class_names: Sequence[str] = (), *, lam: float = math.nan) -> Statistic:
        """Statistic that the rule names; see the function of this name."""
        return statistic_of(
            self.statistic, class_name=self.class_, attribute=self.attribute, class_names=class_names, lam=lam
        )

    def alpha(self, *, rules: int, models: int) -> float:
        """Probability of a wrong verdict that one model gets under this rule at one look.

        Parameters
        ----------
        rules, models : int
            Number of rules of the gate, and of models that it judges.

        Returns
        -------
        float
            1 - confidence in equal shares over rules, models and planned looks, so that over all of them together no
            verdict is wrong, with probability at least the confidence.
        """
        return (1 - self.confidence) / (rules * models * self.looks.planned)

    def verdict(self, low: float, high: float) -> str:
        """PASS, FAIL or INCONCLUSIVE, from a lower and an upper bound of the statistic; see verdict_of."""
        return verdict_of(self.direction, self.threshold, low, high)

    @property
    def words(self) -> str:
        """The rule as a clause: what every model must show, at which confidence, and at which look."""
        statistic = self.statistic_of()
        demand = statistic.demand.format(
            title=statistic.title,
            measure=self.measure,
            direction=self.direction.replace("_", " "),
            threshold=setting(self.threshold),
        )
        look = ""
        if self.looks.planned > 1:
            look = f", at look {self.looks.this} of {self.looks.planned}"
        return f"{demand}, judged for all models together with {percent(self.confidence)} confidence{look}"


def parsed_rules(rules: Sequence[Mapping[str, Any]]) -> list[RuleSettings]:
    """Rules of a gate from their entries in config.yaml."""
    return [RuleSettings.model_validate(rule) for rule in rules]


def rule_on(measure: str, entry: Mapping[str, Any]) -> RuleSettings:
    """Rule on a measure from the rest of its entry in config.yaml; InputError for settings that a rule cannot have."""
    try:
        return RuleSettings.model_validate({"measure": measure, **entry})
    except ValidationError as error:
        raise InputError(f"rule: {first_fault(error)}") from error


# ---- verdicts ----


def verdict_of(direction: str, threshold: float, low: float, high: float) -> str:
    """PASS, FAIL or INCONCLUSIVE, from a lower and an upper bound of a statistic.

    PASS when the bound on the safe side reaches the threshold, FAIL when the other bound misses it.
    """
    if direction == AT_MOST:
        low, high, threshold = -high, -low, -threshold
    if low >= threshold:
        return PASS
    if high < threshold:
        return FAIL
    return INCONCLUSIVE


def combine(verdicts: Collection[str]) -> str:
    """FAIL if anything fails, PASS if everything passes, INCONCLUSIVE otherwise; INCONCLUSIVE of nothing."""
    if FAIL in verdicts:
        return FAIL
    if verdicts and set(verdicts) == {PASS}:
        return PASS
    return INCONCLUSIVE
