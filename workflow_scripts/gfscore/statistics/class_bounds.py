"""Confidence bounds of class values, for one class and side or simultaneously.

# ASSUME: samples of a class are independent draws from that class's distribution.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics import betting
from gfscore.statistics.classes import ClassSamples, class_samples
from gfscore.statistics.intervals import (
    correct_for_label_errors,
    correct_mean_for_label_errors,
    empirical_bernstein_half_width,
    hoeffding_half_width,
    require_alpha,
    wrong_shares,
)
from gfscore.statistics.proportions import lower_mean_shares, lower_shares
from gfscore.statistics.tolerances import RANGE_TOLERANCE

HALF = 0.5
"""Centre of [0, 1]: values minus it lie in [-1/2, 1/2]."""


class BoundedMeasure(Protocol):
    """Facts of a measure that its confidence bounds depend on."""

    @property
    def value_range(self) -> tuple[float, float]:
        """Lowest and highest value of a sample."""
        ...

    @property
    def binary(self) -> bool:
        """Whether every value is 0 or 1."""
        ...

    @property
    def error_rate(self) -> float:
        """Largest probability that a value is wrong."""
        ...


class IntervalMethods(Protocol):
    """Interval methods of an audit."""

    @property
    def method(self) -> str:
        """Interval method of measures with values between the ends of their range."""
        ...

    @property
    def binary(self) -> str:
        """Interval method of measures that are 0 or 1."""
        ...

    @property
    def seed(self) -> int:
        """Seed of the order of the samples in betting."""
        ...


@dataclass(frozen=True)
class ClassBounds:
    """Confidence bounds of the K class values of one measure, at any level.

    Parameters
    ----------
    samples : ClassSamples
        Values in `value_range`, grouped by class.
    value_range : (float, float)
        Lowest and highest value of the measure.
    method : {"betting", "clopper_pearson", "empirical_bernstein", "hoeffding"}
        How bounds are made; clopper_pearson is for 0/1 measures.
    label_error_rates : ndarray of shape (K,), optional
        Share of wrong labels that the bounds allow for; without it labels are assumed correct.
    upper_samples : ClassSamples, optional
        The same samples with their largest possible values, where some values are undecided; upper bounds are made of
        them.

    Raises
    ------
    InputError
        For an unknown method, an empty range, and values for which the method has no guarantee.

    References
    ----------
    Betting: Waudby-Smith and Ramdas 2024. Empirical Bernstein: Maurer and Pontil 2009. Hoeffding: GF-Score, Eqs. 10
    and 11. Clopper and Pearson 1934.
    """

    samples: ClassSamples
    value_range: tuple[float, float]
    method: str
    label_error_rates: NDArray[np.float64] | None = None
    upper_samples: ClassSamples | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown method, an empty range, and values for which the method has no guarantee."""
        if self.method not in METHODS:
            raise InputError(f"interval method {self.method!r} is unknown; choose one of {', '.join(METHODS)}")
        if not self.value_range[0] < self.value_range[1]:
            raise InputError(f"value_range must be two numbers, the lowest first, got {self.value_range}")
        unit = np.concatenate([self._unit(self.samples), self._unit(self.largest)])
        outside = (unit < -RANGE_TOLERANCE) | (unit > 1 + RANGE_TOLERANCE)
        if outside.any():
            value = np.concatenate([self.samples.values, self.largest.values])[outside.argmax()]
            raise InputError(f"value {value} lies outside the range {self.value_range}; no interval holds for it")
        if self.method == "clopper_pearson":
            at_an_end = (np.abs(unit) <= RANGE_TOLERANCE) | (np.abs(unit - 1) <= RANGE_TOLERANCE)
            if not at_an_end.all():
                raise InputError("clopper_pearson needs a 0/1 measure; choose betting for values between the ends")

    @property
    def n(self) -> NDArray[np.int64]:
        """Samples per class, (K,)."""
        return self.samples.n

    @property
    def largest(self) -> ClassSamples:
        """The samples with their largest possible values, for upper bounds."""
        return self.samples if self.upper_samples is None else self.upper_samples

    def lower(self, alpha: float) -> NDArray[np.float64]:
        """Lower bounds (K,) of the class values, each with confidence at least 1 - alpha for its class alone."""
        low, _ = self.ends(self._one_side(self._unit(self.samples), alpha), np.ones(len(self.n)))
        return low

    def upper(self, alpha: float) -> NDArray[np.float64]:
        """Upper bounds (K,) of the class values, each with confidence at least 1 - alpha for its class alone."""
        _, high = self.ends(np.zeros(len(self.n)), 1 - self._one_side(1 - self._unit(self.largest), alpha))
        return high

    def interval(self, alpha: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Simultaneous confidence intervals of all class values.

        Parameters
        ----------
        alpha : float
            Error probability of all K intervals together, by the union bound over 2K sides.

        Returns
        -------
        low, high : ndarray of shape (K,), float64
            Bounds in `value_range`. A class without samples gets the whole range, so that it passes no gate. The
            observed class value always lies between its bounds.

        Raises
        ------
        InputError
            For an alpha outside (0, 1).
        """
        require_alpha(alpha)
        alpha_of_side = alpha / (2 * len(self.n))
        return self.lower(alpha_of_side), self.upper(alpha_of_side)

    def lower_aggregate(self, alpha: float) -> float:
        """Lower bound of the aggregate, the mean over all samples, with confidence at least 1 - alpha.

        Computed from all samples together, without a union bound over classes. It is conditional on the numbers of
        samples per class, which may be fixed by design or random.
        """
        low, _ = self.aggregate_ends(self._together(self._unit(self.samples), alpha), 1.0, n=self.n)
        return low

    def upper_aggregate(self, alpha: float) -> float:
        """Upper bound of the aggregate, with confidence at least 1 - alpha, made as `lower_aggregate`."""
        _, high = self.aggregate_ends(0.0, 1 - self._together(1 - self._unit(self.largest), alpha), n=self.n)
        return high

    def ends(
        self, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds of the class values, from bounds `low` and `high` (K,) of the means rescaled to [0, 1]."""
        lowest, highest = self.value_range
        low = lowest + (highest - lowest) * low
        high = lowest + (highest - lowest) * high
        if self.label_error_rates is None:
            return low, high
        return correct_for_label_errors(low, high, self.label_error_rates, value_range=self.value_range)

    def aggregate_ends(self, low: float, high: float, *, n: NDArray[np.integer]) -> tuple[float, float]:
        """Bounds of the aggregate, from bounds of the mean over `n` (K,) samples rescaled to [0, 1]."""
        if self.label_error_rates is not None and n.sum() > 0:
            low, high = map(float, correct_mean_for_label_errors(low, high, self.label_error_rates, n=n))
        lowest, highest = self.value_range
        return lowest + (highest - lowest) * low, lowest + (highest - lowest) * high

    def _unit(self, samples):
        lowest, highest = self.value_range
        return (samples.values - lowest) / (highest - lowest)

    def _one_side(self, unit, alpha):
        return _lower_means(METHODS[self.method], unit, self.n, alpha)

    def _together(self, unit, alpha):
        return float(_lower_means(METHODS_TOGETHER[self.method], unit, np.array([len(unit)]), alpha)[0])


def bounds_of(
    values: ArrayLike,
    labels: ArrayLike,
    classes: int,
    *,
    measure: BoundedMeasure,
    intervals: IntervalMethods,
    label_error_rates: ArrayLike | None = None,
    upper_values: ArrayLike | None = None,
) -> ClassBounds:
    """Confidence bounds of the class values of a measure, by the settings of an audit.

    Parameters
    ----------
    values : array_like of shape (N,)
        One number per sample; the smallest possible one where samples are undecided.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    measure : BoundedMeasure
        Its range, whether it is 0/1, and the largest probability of a wrong value, which the bounds allow for whatever
        the true values are.
    intervals : IntervalMethods
    label_error_rates : array_like of shape (K,), optional
        Share of wrong labels that the bounds allow for.
    upper_values : array_like of shape (N,), optional
        Largest possible values, where samples are undecided.

    Returns
    -------
    ClassBounds
        Bounds at any level.

    Raises
    ------
    InputError
        See ClassBounds; also for a NaN among the values.
    """
    seed = intervals.seed
    method = intervals.binary if measure.binary else intervals.method
    upper_samples = None
    if upper_values is not None:
        upper_samples = class_samples(upper_values, labels, classes, seed=seed)
    wrong = None
    if label_error_rates is not None or measure.error_rate != 0:
        wrong = wrong_shares(np.zeros(classes) if label_error_rates is None else label_error_rates, measure.error_rate)
    return ClassBounds(
        samples=class_samples(values, labels, classes, seed=seed),
        value_range=measure.value_range,
        method=method,
        label_error_rates=wrong,
        upper_samples=upper_samples,
    )


# ---- methods: lower bounds of the means of samples in [0, 1] ----


def _lower_means(method, unit, n, alpha):
    require_alpha(alpha)
    samples = ClassSamples(values=np.clip(unit, 0, 1), n=n)
    mean = np.where(n > 0, samples.summary.mean, 0)
    # A bound that is computed sample by sample may exceed the mean; lowering it to the mean keeps the coverage.
    return np.clip(np.minimum(method(samples, alpha), mean), 0, 1)


def _betting(samples, alpha):
    return betting.lower_bounds(samples.values, samples.n, alpha=alpha)


def _clopper_pearson(samples, alpha):
    successes = np.where(samples.n > 0, np.round(samples.summary.mean * samples.n), 0)
    return lower_shares(successes, samples.n, alpha=alpha)


def _empirical_bernstein(samples, alpha):
    summary = samples.summary
    half_width = empirical_bernstein_half_width(summary.n, summary.variance, classes=1, alpha=2 * alpha, width=1)
    return _below(summary, half_width)


def _hoeffding(samples, alpha):
    return _below(samples.summary, hoeffding_half_width(samples.n, classes=1, alpha=2 * alpha, width=1))


def _below(summary, half_width):
    # A class without samples has mean NaN and an infinite half-width.
    return np.where(summary.n > 0, summary.mean, 0) - half_width


def _constant_betting(samples, alpha):
    return HALF + betting.lower_mean_bounds(samples.values[:, None] - HALF, bound=HALF, alpha=alpha)


def _clopper_pearson_together(samples, alpha):
    return lower_mean_shares(np.round(samples.values.sum()), samples.n, alpha=alpha)


METHODS = {
    "betting": _betting,
    "clopper_pearson": _clopper_pearson,
    "empirical_bernstein": _empirical_bernstein,
    "hoeffding": _hoeffding,
}
"""Interval methods by name: lower bounds (K,) of the means of ClassSamples in [0, 1], each at level alpha."""

METHODS_TOGETHER = METHODS | {"betting": _constant_betting, "clopper_pearson": _clopper_pearson_together}
"""Interval methods for the samples of all classes together, which are independent but not identically distributed.

Hoeffding's bound, the empirical Bernstein bound and constant bets do not need identical distributions; bets that depend
on earlier values do.
"""
