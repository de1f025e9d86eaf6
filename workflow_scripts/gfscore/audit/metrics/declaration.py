"""Declaration of a metric. Its columns, intervals, gate rules and texts are derived from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from gfscore.core.errors import InputError
from gfscore.core.lazy import np
from gfscore.core.mappings import only
from gfscore.core.numbers import counted

Interval = tuple[float, float]


class BoundsOfClasses(Protocol):
    """One-sided bounds of the means of K classes (or groups), each with confidence at least 1 - alpha."""

    @property
    def n(self) -> np.ndarray:
        """Samples of each class (K,)."""

    def lower(self, alpha: float) -> np.ndarray:
        """Lower bound of each class (K,)."""

    def upper(self, alpha: float) -> np.ndarray:
        """Upper bound of each class (K,)."""

    def lower_aggregate(self, alpha: float) -> float:
        """Lower bound of the mean over all samples."""

    def upper_aggregate(self, alpha: float) -> float:
        """Upper bound of the mean over all samples."""


def range_of_measure(lowest: float, highest: float, *, classes: float, lam: float) -> Interval:
    """Range of a metric whose value lies between the smallest and the largest class value."""
    return lowest, highest


@dataclass(frozen=True, kw_only=True)
class Case:
    """A case computed by hand: the `expected` value for class values (K,), samples of each class (K,) and lambda."""

    values: tuple[float, ...]
    expected: float
    counts: tuple[int, ...] | None = None
    lam: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A function of the K class values of a measure, with its texts, bounds and place in tables.

    Every metric must state the fields without a default. A metric without `over_box` has a value, but no interval, and
    no gate can judge it.
    """

    # ---- names and texts ----

    name: str
    """Column in tables, and name of the module."""

    title: str
    """Heading of its columns on pages."""

    meaning: str
    """Phrase for the descriptions of columns."""

    explanation: str
    """Sentences for readers of the page."""

    source: str
    """Paper and equation."""

    gate_title: str | None = None
    """Name within a sentence, as in gate rules; None for the title."""

    gate_demand: str | None = None
    """Clause of a gate rule, a format string with `measure` and `threshold`; None to derive it from the title."""

    # ---- the number ----

    kind: Literal["level", "disparity", "penalised"]
    """level: a mean of class values; disparity: inequality of classes, or the worst class, which is compared with its
    value under permuted class membership (but for a companion, see `columns`); penalised: a mean reduced by a
    disparity."""

    direction: Literal[1, -1]
    """1 if larger values are better, -1 if smaller ones are."""

    value: Callable[..., np.ndarray]
    """Function of class values (..., K) float64 of at least two classes (one for a level), all with samples, and the
    keywords in `needs`; returns numbers (...), NaN where undefined."""

    needs: tuple[Literal["counts", "lam"], ...] = ()
    """Further arguments of its functions: samples of each class (K,), weight lambda of the disparity."""

    value_range: Callable[..., Interval] = range_of_measure
    """Smallest and largest possible value: function of the ends of the measure's range and the keywords `classes` (K,
    infinite if unknown) and `lam`."""

    at_equality: float | None = None
    """Value if all class values are equal; None for a metric that then has the value of the classes."""

    unitless: bool = False
    """Whether it is independent of the scale of the measure; otherwise it has the unit of the measure."""

    case: Case
    """A case computed by hand."""

    # ---- its bounds ----

    over_box: Callable[..., Interval] | None = None
    """Function of bounds `low`, `high` (K,) of the class values and the keywords in `needs`; returns bounds of the
    metric over all class values in this box. None: there is no interval, and no gate can judge the metric."""

    gate_bounds: Callable[[BoundsOfClasses, float], Interval] | None = None
    """Tighter bounds for gates: function of BoundsOfClasses and alpha; returns a lower and an upper bound, each with
    confidence at least 1 - alpha, not simultaneously. None: `over_box` at bounds of all class values."""

    # ---- its place in tables ----

    order: float = math.inf
    """Position among the metrics, by default the last; ties are sorted by name."""

    columns: Literal["first", "companion", "appended"] = "appended"
    """Position in model_summary: first, with bounds; companion, the value alone, after the columns on the model;
    appended, at the end, so that new metrics do not move other columns."""

    ranks_models: bool = True
    """False for a metric that always ranks models like another one."""

    def compute(
        self, values: np.typing.ArrayLike, *, counts: np.typing.ArrayLike | None = None, lam: float | None = None
    ) -> float:
        """Value of the metric for one set of class values.

        Parameters
        ----------
        values : array-like (K,)
            Class values; NaN for classes without samples, and these do not count.
        counts : array-like (K,), optional
            Samples of each class, for metrics that need them.
        lam : float, optional
            Weight lambda of the disparity, for metrics that need it.

        Returns
        -------
        float
            NaN where undefined.

        Raises
        ------
        InputError
            If fewer than two classes have samples, or none for a level.
        """
        values = np.asarray(values, dtype=np.float64)
        present = ~np.isnan(values)
        if present.sum() < self.fewest_classes:
            fewest = counted(self.fewest_classes, "class")
            raise InputError(f"{self.title} needs at least {fewest} with samples, got {present.sum()}")
        present_counts = None if counts is None else np.asarray(counts)[present]
        return float(self.compute_many(values[present], counts=present_counts, lam=lam))

    def compute_many(self, values: np.ndarray, *, counts: np.ndarray | None, lam: float | None = None) -> np.ndarray:
        """Values (...) for class values (..., K) that all have samples."""
        arguments = {"counts": counts, "lam": lam}
        return self.value(values, **only(arguments, self.needs))

    def interval(
        self, low: np.typing.ArrayLike, high: np.typing.ArrayLike, *, counts: np.typing.ArrayLike, lam: float
    ) -> Interval:
        """Interval of the metric from simultaneous bounds of the class values.

        Parameters
        ----------
        low, high : array-like (K,)
            Bounds of the class values; the whole range for classes without samples.
        counts : array-like (K,)
            Samples of each class.
        lam : float
            Weight lambda of the disparity.

        Returns
        -------
        low, high : float
            Bounds that hold, with the confidence of the class bounds, for the metric over all K classes and for the
            metric over the classes with samples; (NaN, NaN) if it is undefined in the whole box.

        Raises
        ------
        InputError
            For a metric without an interval.
        """
        if self.over_box is None:
            raise InputError(self.refusal)
        low = np.asarray(low, dtype=np.float64)
        high = np.asarray(high, dtype=np.float64)
        counts = np.asarray(counts)
        lowest, highest = self.over_box(low, high, **only({"counts": counts, "lam": lam}, self.needs))

        # The value of the metric counts the classes with samples alone. The others may make the classes more equal: if
        # the range of the measure begins above 0, NRGC over all K may lie below the value.
        present = counts > 0
        if not present.all() and present.sum() >= self.fewest_classes:
            arguments = only({"counts": counts[present], "lam": lam}, self.needs)
            lowest_of_present, highest_of_present = self.over_box(low[present], high[present], **arguments)
            lowest = np.fmin(lowest, lowest_of_present)
            highest = np.fmax(highest, highest_of_present)
        return float(lowest), float(highest)

    def bounds_at(self, class_bounds: BoundsOfClasses, alpha: float, *, lam: float) -> Interval:
        """Lower and upper bound, each with confidence at least 1 - alpha, not simultaneously.

        Parameters
        ----------
        class_bounds : BoundsOfClasses
            Bounds of the class values.
        alpha : float
            Error probability of each bound.
        lam : float
            Weight lambda of the disparity.

        Raises
        ------
        InputError
            For a metric without bounds.
        """
        if self.gate_bounds is not None:
            return self.gate_bounds(class_bounds, alpha)
        # Both bounds of all K classes hold with confidence 1 - alpha, by a union bound.
        alpha_of_side = alpha / (2 * len(class_bounds.n))
        low, high = class_bounds.lower(alpha_of_side), class_bounds.upper(alpha_of_side)
        return self.interval(low, high, counts=class_bounds.n, lam=lam)

    @property
    def fewest_classes(self) -> int:
        """Smallest number of classes with samples for which it is defined."""
        return 1 if self.kind == "level" else 2

    @property
    def bounded(self) -> bool:
        """Whether it has an interval, so that a gate can judge it."""
        return self.over_box is not None

    @property
    def refusal(self) -> str | None:
        """Reason why it has no interval and cannot be judged by a gate; None if it can."""
        return None if self.bounded else f"{self.name} has no bounds over intervals of the classes (over_box)"

    @property
    def better(self) -> str:
        """Direction in words."""
        return "higher is better" if self.direction > 0 else "lower is more equal"
