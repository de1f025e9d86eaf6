"""What an adjusted model gains and loses against the original one, from paired outcomes on the same samples.

Offsets, strengths and the classes of reference come from other samples, the choosing half; intervals are of the judging
half alone and hold for every number of samples. That a remedy helps is said only where the lower bound of the gain of
the worst class is above 0.
# ASSUME: labels are right; samples of a class are independent draws from that class's distribution.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.metrics.wcr import METRIC as WCR
from gfscore.core.errors import InputError
from gfscore.statistics import betting
from gfscore.statistics.class_bounds import BoundedMeasure, ClassBounds, bounds_of
from gfscore.statistics.classes import class_means, worst_class_trade


@dataclass(frozen=True)
class Outcome:
    """Kind of numbers that outcomes are: those of bounds_of."""

    value_range: tuple[float, float] = (0.0, 1.0)
    binary: bool = True
    error_rate: float = 0.0

    @classmethod
    def of(cls, measure: BoundedMeasure) -> Self:
        """Range of a measure, whether it is 0/1, and the largest probability of a wrong value."""
        return cls(measure.value_range, measure.binary, measure.error_rate)

    @property
    def length(self) -> float:
        """Length of the range."""
        return self.value_range[1] - self.value_range[0]

    @property
    def centre(self) -> float:
        """Centre of the range."""
        return (self.value_range[0] + self.value_range[1]) / 2

    def lower_means(
        self, deviations: NDArray[np.float64], *, reach: float, alpha: float, scale: float = 1.0
    ) -> NDArray[np.float64]:
        """Lower bounds of the true means of columns of deviations.

        Parameters
        ----------
        deviations : ndarray (n, H) of float64
            Differences of two outcomes, or outcomes less the centre of their range, each times its weight.
        reach : float
            Largest size of a deviation without its weight.
        alpha : float
            Error probability of each bound.
        scale : float
            Largest weight; the weights have the mean 1.

        Returns
        -------
        ndarray (H,) of float64
            In [-reach, reach], by constant bets, allowing for wrong values.
        """
        low = betting.lower_mean_bounds(deviations, bound=reach * scale, alpha=alpha)
        # A value that is wrong with probability e moves the mean by at most e times the largest deviation, each way.
        return np.maximum((low - self.error_rate * reach) / (1 - self.error_rate), -reach)


@dataclass(frozen=True, kw_only=True)
class PairedOutcomes:
    """Outcomes of the original and of the adjusted model on the same N samples, higher is better.

    Parameters
    ----------
    before_low, before_high, after_low, after_high : ndarray (N,) of float64
        Smallest and largest value that each sample may have before and after the adjustment: equal where it is known.
    labels : ndarray (N,) of int
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    outcome : Outcome
        Range of the values.
    intervals : mapping
        Settings `intervals` of the configuration: method, binary and seed.
    """

    before_low: NDArray[np.float64]
    before_high: NDArray[np.float64]
    after_low: NDArray[np.float64]
    after_high: NDArray[np.float64]
    labels: NDArray[np.integer]
    classes: int
    outcome: Outcome
    intervals: Mapping[str, Any]

    @classmethod
    def decided(
        cls, before: ArrayLike, after: ArrayLike, labels: ArrayLike, *, classes: int, intervals: Mapping[str, Any]
    ) -> Self:
        """Outcomes (N,) that are all known, 1 for a success and 0 for a failure."""
        before_values = np.asarray(before, dtype=np.float64)
        after_values = np.asarray(after, dtype=np.float64)
        return cls(
            before_low=before_values,
            before_high=before_values,
            after_low=after_values,
            after_high=after_values,
            labels=np.asarray(labels),
            classes=classes,
            outcome=Outcome(),
            intervals=intervals,
        )

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """Samples of each class, (K,)."""
        return np.bincount(self.labels, minlength=self.classes)

    @cached_property
    def before(self) -> NDArray[np.float64]:
        """Class values of the original model, (K,); NaN for a class without samples."""
        return class_means(self.before_low, self.labels, self.classes)

    @cached_property
    def after(self) -> NDArray[np.float64]:
        """Class values of the adjusted model, (K,)."""
        return class_means(self.after_low, self.labels, self.classes)

    @cached_property
    def bounds_before(self) -> ClassBounds:
        """Bounds of the class values of the original model."""
        return self._bounds(self.before_low, self.before_high)

    @cached_property
    def bounds_after(self) -> ClassBounds:
        """Bounds of the class values of the adjusted model."""
        return self._bounds(self.after_low, self.after_high)

    def _bounds(self, low, high):
        return bounds_of(
            low,
            self.labels,
            self.classes,
            measure=self.outcome,
            intervals=self.intervals,
            upper_values=None if np.array_equal(low, high) else high,
        )

    def lower_differences(self, alpha: float) -> NDArray[np.float64]:
        """Lower bounds (K,) of the gains of the classes, after less before, each with confidence 1 - alpha alone."""
        least = self.after_low - self.before_high
        low = np.full(self.classes, -self.outcome.length)
        for size in np.unique(self.n[self.n > 0]):
            members = np.flatnonzero(self.n == size)
            columns = np.stack([least[self.labels == k] for k in members], axis=1)
            low[members] = self.outcome.lower_means(columns, reach=self.outcome.length, alpha=alpha)
        return low

    def only(self, class_index: int) -> Self:
        """The outcomes of one class."""
        chosen = self.labels == class_index
        return replace(
            self,
            before_low=self.before_low[chosen],
            before_high=self.before_high[chosen],
            after_low=self.after_low[chosen],
            after_high=self.after_high[chosen],
            labels=self.labels[chosen],
        )

    @property
    def swapped(self) -> Self:
        """The two models in each other's place: gains become losses."""
        return replace(
            self,
            before_low=self.after_low,
            before_high=self.after_high,
            after_low=self.before_low,
            after_high=self.before_high,
        )

    @property
    def negated(self) -> Self:
        """The same outcomes with the opposite sign: the best class becomes the worst."""
        lowest, highest = self.outcome.value_range
        return replace(
            self,
            before_low=-self.before_high,
            before_high=-self.before_low,
            after_low=-self.after_high,
            after_high=-self.after_low,
            outcome=replace(self.outcome, value_range=(-highest, -lowest)),
        )


@dataclass(frozen=True)
class ReferenceClasses:
    """Class values (K,) of both models on other samples, of which only the order matters.

    Bounds of extremes refer to the classes that are weakest or strongest there. A poor reference widens them; it never
    voids them, because it does not depend on the samples that are judged.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]

    @property
    def swapped(self) -> Self:
        """The references of swapped outcomes."""
        return replace(self, before=self.after, after=self.before)

    @property
    def negated(self) -> Self:
        """The references of negated outcomes."""
        return replace(self, before=-self.before, after=-self.after)


@dataclass(frozen=True)
class Change:
    """A number before and after the adjustment, their difference, and bounds of the true difference."""

    before: float
    after: float
    low: float
    high: float

    @property
    def difference(self) -> float:
        """After less before."""
        return self.after - self.before


@dataclass(frozen=True)
class ClassChanges:
    """Class values (K,) before and after the adjustment, and simultaneous bounds of their true differences."""

    n: NDArray[np.int64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def difference(self) -> NDArray[np.float64]:
        """After less before, (K,)."""
        return self.after - self.before

    @property
    def gains(self) -> NDArray[np.bool_]:
        """Classes that surely gain, (K,)."""
        return self.low > 0

    @property
    def loses(self) -> NDArray[np.bool_]:
        """Classes that surely lose, (K,)."""
        return self.high < 0


def class_changes(outcomes: PairedOutcomes, *, alpha: float) -> ClassChanges:
    """Gains and losses of all classes.

    Parameters
    ----------
    outcomes : PairedOutcomes
    alpha : float
        Error probability of all K intervals together, by the union bound over 2K sides.

    Returns
    -------
    ClassChanges
        Bounds by constant bets on paired differences, exact for every n; the whole range for a class without samples.

    References
    ----------
    Waudby-Smith and Ramdas 2024 (betting).
    """
    side = alpha / (2 * outcomes.classes)
    return ClassChanges(
        n=outcomes.n,
        before=outcomes.before,
        after=outcomes.after,
        low=outcomes.lower_differences(side),
        high=-outcomes.swapped.lower_differences(side),
    )


def worst_class_gain(outcomes: PairedOutcomes, reference: ReferenceClasses, *, alpha: float) -> Change:
    """Gain of the worst class: the smallest class value after, less the smallest before, whichever classes these are.

    Parameters
    ----------
    outcomes : PairedOutcomes
    reference : ReferenceClasses
        Class values on other samples.
    alpha : float
        Error probability of the interval, half of it on each side.

    Returns
    -------
    Change
        The remedy helps where `low` is above 0.
    """
    return Change(
        before=_smallest(outcomes.before),
        after=_smallest(outcomes.after),
        low=_least_gain(outcomes, reference, alpha / 2),
        high=-_least_gain(outcomes.swapped, reference.swapped, alpha / 2),
    )


def rdi_change(outcomes: PairedOutcomes, reference: ReferenceClasses, *, alpha: float) -> Change:
    """Change of RDI, the largest less the smallest class value; below 0 the classes have become more equal.

    Parameters and the level are those of worst_class_gain. The bounds are those of the gains of the best and of the
    worst class, each at half of alpha.
    """
    worst = worst_class_gain(outcomes, reference, alpha=alpha / 2)
    # With the opposite sign the best class is the smallest value, and its gain a loss.
    best = worst_class_gain(outcomes.negated, reference.negated, alpha=alpha / 2)
    return Change(
        before=-best.before - worst.before,
        after=-best.after - worst.after,
        low=max(-best.high - worst.high, -outcomes.outcome.length),
        high=min(-best.low - worst.low, outcomes.outcome.length),
    )


def _least_gain(outcomes, reference, alpha):
    # Lower bound of min_k after_k - min_j before_j, which is max_j (after_k - before_j) at the worst class k after: at
    # least its paired gain (j = k), and its distance from the class r that was the worst before on other samples. The
    # worst class k after is unknown, but it is one class: each class is bounded at the level alpha, and the smallest
    # bound holds (intersection-union). Half of alpha is for the paired gain, half for the two ends of the distance.
    worst = int(np.nanargmin(reference.before))
    from_worst = outcomes.bounds_after.lower(alpha / 4) - outcomes.bounds_before.upper(alpha / 4)[worst]
    low = np.maximum(outcomes.lower_differences(alpha / 2), from_worst)
    low[worst] = outcomes.only(worst).lower_differences(alpha)[worst]
    return float(low.min())


def _smallest(values):
    return float(np.nanmin(values))


def mean_change(outcomes: PairedOutcomes, *, weights: ArrayLike | None, alpha: float) -> Change:
    """Change of the mean of the class values, weighted by the shares of the classes where the model is used.

    Parameters
    ----------
    outcomes : PairedOutcomes
    weights : array-like (K,) or None
        Weights of the classes; None for equal ones.
    alpha : float
        Error probability of the interval, half of it on each side.

    Returns
    -------
    Change
        Bounds by constant bets on weighted paired differences, without a union bound over classes; the whole range
        where a class of some weight has no samples.
    """
    shares = class_shares(weights, outcomes.classes)
    least = outcomes.after_low - outcomes.before_high
    most = outcomes.after_high - outcomes.before_low
    setting = {"shares": shares, "outcome": outcomes.outcome, "reach": outcomes.outcome.length, "alpha": alpha / 2}
    return Change(
        before=weighted_mean(outcomes.before, shares),
        after=weighted_mean(outcomes.after, shares),
        low=_lower_weighted_mean(least, outcomes.labels, **setting),
        high=-_lower_weighted_mean(-most, outcomes.labels, **setting),
    )


def class_shares(weights: ArrayLike | None, classes: int) -> NDArray[np.float64]:
    """Shares (K,) of the classes where a model is used, with the sum 1.

    Parameters
    ----------
    weights : array-like (K,) or None
        None for equal shares.
    classes : int
        Number of classes K.

    Raises
    ------
    InputError
        For weights that are not K numbers of at least 0 with a positive sum.
    """
    if weights is None:
        return np.full(classes, 1 / classes)
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (classes,) or not np.all(numbers >= 0) or not 0 < numbers.sum() < np.inf:
        raise InputError(
            f"class_weights {weights} are no weights of {classes} classes; give one number of at least 0 for each "
            "class, not all of them 0"
        )
    return numbers / numbers.sum()


def weighted_mean(values: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """Mean of class values (K,) by the shares (K,) of the classes that have samples; NaN where these have no share."""
    present = ~np.isnan(values)
    total = shares[present].sum()
    return float(values[present] @ shares[present] / total) if total > 0 else np.nan


def _lower_weighted_mean(deviations, labels, *, shares, outcome, reach, alpha):
    n = np.bincount(labels, minlength=len(shares))
    if np.any((n == 0) & (shares > 0)):
        return -reach
    # Samples of a class with a share of 0 say nothing.
    counted = shares[labels] > 0
    weights = shares[labels[counted]] * counted.sum() / n[labels[counted]]
    weighted = (deviations[counted] * weights)[:, None]
    return float(outcome.lower_means(weighted, reach=reach, alpha=alpha, scale=weights.max())[0])


# ---- strengths ----


@dataclass(frozen=True)
class CurvePoint:
    """Mean and worst class at one strength, with bounds that hold together with those of all other points.

    `rho` is worst_class_trade against strength 0, relative to it; NaN where its worst class is 0.
    """

    strength: float
    mean: float
    mean_low: float
    mean_high: float
    worst: float
    worst_low: float
    worst_high: float
    worst_class: int
    rho: float


def strength_curve(
    outcomes: Mapping[float, PairedOutcomes], *, weights: ArrayLike | None, alpha: float
) -> list[CurvePoint]:
    """Mean and worst class over the strength of the offsets, from the original model at 0 on.

    Parameters
    ----------
    outcomes : mapping of float to PairedOutcomes
        Outcomes by strength, at least one; the original model is the same in all of them.
    weights : array-like (K,) or None
        Weights of the classes; None for equal ones.
    alpha : float
        Error probability of all intervals of all S + 1 points together: each of the 2 (S + 1) has alpha / (2 (S + 1)).

    Returns
    -------
    list of CurvePoint
        By ascending strength.
    """
    original = next(iter(outcomes.values()))
    # The original model takes the place of the adjusted one.
    models = {0.0: original.swapped} | dict(sorted(outcomes.items()))
    side = alpha / (4 * len(models))
    shares = class_shares(weights, original.classes)
    baseline_worst = _smallest(original.before)
    baseline_mean = weighted_mean(original.before, shares)

    points = []
    for strength, paired in models.items():
        worst = _smallest(paired.after)
        mean = weighted_mean(paired.after, shares)
        mean_low, mean_high = _mean_bounds(paired, shares, side)
        worst_low, worst_high = WCR.bounds_at(paired.bounds_after, side, lam=0.0)
        points.append(
            CurvePoint(
                strength=strength,
                mean=mean,
                mean_low=mean_low,
                mean_high=mean_high,
                worst=worst,
                worst_low=float(worst_low),
                worst_high=float(worst_high),
                worst_class=int(np.nanargmin(paired.after)),
                rho=worst_class_trade(
                    worst=worst, mean=mean, baseline_worst=baseline_worst, baseline_mean=baseline_mean
                ),
            )
        )
    return points


def _mean_bounds(paired, shares, side):
    # Bounds of the adjusted model's mean.
    outcome = paired.outcome
    setting = {"shares": shares, "outcome": outcome, "reach": outcome.length / 2, "alpha": side}
    low = outcome.centre + _lower_weighted_mean(paired.after_low - outcome.centre, paired.labels, **setting)
    high = outcome.centre - _lower_weighted_mean(outcome.centre - paired.after_high, paired.labels, **setting)
    return low, high
