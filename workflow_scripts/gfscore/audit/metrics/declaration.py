"""What a metric declares about itself, which is all that the rest of the package knows of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

Interval = tuple[float, float]

LAST = math.inf


class BoundsOfClasses(Protocol):
    """Bounds of the means of K classes, or of groups in their place, each with probability at least 1 - alpha.

    One side and one class at a time; `n` (K,) are the samples of each class.
    """

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
    """A case computed by hand: class values (K,), samples of each class (K,) and lambda make the number."""

    values: tuple[float, ...]
    number: float
    counts: tuple[int, ...] | None = None
    lam: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Metric:
    """How the K class values of a measure become one number, and what follows from that.

    What it is, how it is computed, how sure it is, and where it stands, in this order.
    """

    name: str
    """Its column in tables, and the name of its file."""

    title: str
    """What heads its columns on pages."""

    meaning: str
    """What it is in half a sentence, for tables."""

    explanation: str
    """What it is in whole sentences, for readers of the page."""

    source: str
    """Paper and equation."""

    kind: Literal["level", "disparity", "penalised"]
    """A mean of class values; how unequal classes are or how badly off the worst one is; a mean that these reduce."""

    direction: Literal[1, -1]
    """1 where the larger value is the better one, -1 where the smaller one is."""

    unitless: bool = False
    """Whether it does not depend on the scale of the measure; others are in its unit."""

    value: Callable[..., np.ndarray]
    """Takes class values (..., K) float64 of two classes or more (of one for a level), all with samples, and by keyword
    what it `needs`; returns one number for each K of them. NaN where it is undefined."""

    needs: tuple[Literal["counts", "lam"], ...] = ()
    """What its functions take beside class values: samples of each class (K,), weight lambda of the disparity."""

    value_range: Callable[..., Interval] = range_of_measure
    """Takes the ends of the measure's range and by keyword `classes` (K, infinite where unknown) and `lam`."""

    at_equality: float | None = None
    """Its value where all classes have the same one; None where it is that one."""

    case: Case
    """A case computed by hand."""

    over_box: Callable[..., Interval] | None = None
    """Takes bounds `low`, `high` (K,) of the class values and what it `needs`; returns the smallest and the largest
    value that class values between them give, or bounds of these. None: no interval, and no gate can judge it."""

    at_level: Callable[[BoundsOfClasses, float], Interval] | None = None
    """Better bounds at a gate than those over the box: takes BoundsOfClasses and alpha; returns a lower and an upper
    bound of which each holds with probability at least 1 - alpha, not both together."""

    against_chance: bool = False
    """Whether it is compared with its value under shuffled class membership."""

    gate_title: str | None = None
    """What it is called within a sentence, as in the rules of a gate; None: its title."""

    gate_demand: str | None = None
    """Clause of a gate's rule, a format of `measure` and `threshold`; None: made of the title."""

    order: float = LAST
    """Place among the metrics; equal ones stand by name."""

    columns: Literal["first", "companion", "appended"] = "appended"
    """Where it stands in model_summary: with its bounds before all others; its value alone, after what is known of the
    model; at the end with all that it has, so that a new metric moves no column."""

    ranks_models: bool = True
    """False for a metric that orders models as another one does."""

    def of(self, values: ArrayLike, *, counts: ArrayLike | None = None, lam: float | None = None) -> float:
        """The number that class values (K,) make, NaN where it is undefined.

        `values` are NaN for classes without samples, which are left out; `counts` (K,) and `lam` are for the metrics
        that need them. Raises InputError when fewer than two classes remain, or none for a level.
        """
        import numpy as np

        values = np.asarray(values, dtype=np.float64)
        known = ~np.isnan(values)
        if (found := np.count_nonzero(known)) < (least := 1 if self.kind == "level" else 2):
            raise InputError(f"{self.title} needs at least {least} classes with samples, got {found}")
        counts = None if counts is None else np.asarray(counts)[known]
        return self.of_present(values[known], counts=counts, lam=lam)

    def of_present(self, values: np.ndarray, *, counts: np.ndarray | None = None, lam: float | None = None) -> float:
        """The number that class values (K,) float64 make when all classes have samples, without a check of that."""
        return float(self.of_many(values, counts=counts, lam=lam))

    def of_many(self, values: np.ndarray, *, counts: np.ndarray | None = None, lam: float | None = None) -> np.ndarray:
        """The same of many class values (..., K) at once: (...)."""
        given = {"counts": counts, "lam": lam}
        return self.value(values, **{name: given[name] for name in self.needs})

    def interval(self, low: ArrayLike, high: ArrayLike, *, counts: ArrayLike, lam: float) -> Interval:
        """Smallest interval of the metric that follows from class intervals, the bounds `low`, `high` (K,).

        It holds with the joint confidence of the class intervals, also of classes without samples, whose interval is
        the whole range. (NaN, NaN) where the metric is undefined in the whole box. Raises InputError for a metric
        without interval.
        """
        import numpy as np

        if self.over_box is None:
            raise InputError(self.refusal)
        given = {"counts": counts, "lam": lam}
        low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
        lowest, highest = self.over_box(low, high, **{name: given[name] for name in self.needs})
        return float(lowest), float(highest)

    def bounds_at(self, classes: BoundsOfClasses, alpha: float, *, lam: float) -> Interval:
        """A lower and an upper bound, of which each holds with probability at least 1 - alpha, not both together.

        Raises InputError for a metric without any.
        """
        if self.at_level is not None:
            return self.at_level(classes, alpha)
        side = alpha / (2 * len(classes.n))
        return self.interval(classes.lower(side), classes.upper(side), counts=classes.n, lam=lam)

    def range(self, measure_range: Interval, *, classes: float, lam: float) -> Interval:
        """Smallest and largest possible value, for the range of a measure, K classes and lambda."""
        return self.value_range(*measure_range, classes=classes, lam=lam)

    @property
    def bounded(self) -> bool:
        """Whether it has an interval, and so a place at the gate."""
        return self.over_box is not None

    @property
    def refusal(self) -> str | None:
        """Why it has neither an interval nor a place at the gate, None where it has both."""
        return None if self.bounded else f"{self.name} has no bounds over intervals of the classes (over_box)"

    @property
    def title_at_gate(self) -> str:
        """What it is called in the rule of a gate and within a sentence."""
        return self.title if self.gate_title is None else self.gate_title

    @property
    def better(self) -> str:
        """Which of its values are better, in words."""
        return "higher is better" if self.direction > 0 else "lower is more equal"
