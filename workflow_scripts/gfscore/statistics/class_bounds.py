"""Confidence bounds of class values, for one class and side or simultaneously.

# ASSUME: samples of a class are independent draws from that class's distribution.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics import betting
from gfscore.statistics.classes import ClassSamples, class_samples
from gfscore.statistics.intervals import (
    correct_for_label_errors,
    empirical_bernstein_half_width,
    hoeffding_half_width,
    least_mean,
    require_alpha,
    wrong_shares,
)
from gfscore.statistics.proportions import lower_mean_shares, lower_shares
from gfscore.statistics.tolerances import RANGE_TOLERANCE

HALF = 0.5
"""Centre of [0, 1]: values minus it lie in [-1/2, 1/2]."""

METHODS = ("betting", "clopper_pearson", "empirical_bernstein", "hoeffding")
"""Interval methods; see lower_means."""


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


class OneSidedBounds(ABC):
    """One-sided confidence bounds of the K class values of one measure and of their aggregate, at any level.

    They are made of lower bounds of means in [0, 1]: of the values rescaled to [0, 1], and for upper bounds of these
    values mirrored, 1 - x.

    Attributes
    ----------
    value_range : (float, float)
        Lowest and highest value of the measure.
    label_error_rates : ndarray of shape (K,) or None
        Share of wrong labels that the bounds allow for.
    """

    value_range: tuple[float, float]
    label_error_rates: NDArray[np.float64] | None

    @property
    @abstractmethod
    def n(self) -> NDArray[np.int64]:
        """Samples per class, (K,)."""

    @abstractmethod
    def _lower_means(self, alpha: float, *, mirrored: bool, pooled: bool = False) -> NDArray[np.float64]:
        """Lower bounds (K,) of the class means in [0, 1]; where `pooled`, (1,) of the mean over all samples."""

    def lower(self, alpha: float) -> NDArray[np.float64]:
        """Lower bounds (K,) of the class values, each with confidence at least 1 - alpha for its class alone."""
        lowest, highest = self.value_range
        low = lowest + (highest - lowest) * self._lower_means(alpha, mirrored=False)
        if self.label_error_rates is None:
            return low
        corrected, _ = correct_for_label_errors(low, low, self.label_error_rates, value_range=self.value_range)
        return corrected

    def upper(self, alpha: float) -> NDArray[np.float64]:
        """Upper bounds (K,) of the class values, each with confidence at least 1 - alpha for its class alone."""
        lowest, highest = self.value_range
        high = lowest + (highest - lowest) * (1 - self._lower_means(alpha, mirrored=True))
        if self.label_error_rates is None:
            return high
        _, corrected = correct_for_label_errors(high, high, self.label_error_rates, value_range=self.value_range)
        return corrected

    def lower_aggregate(self, alpha: float) -> float:
        """Lower bound of the aggregate, the mean over all samples, with confidence at least 1 - alpha.

        Computed from all samples together, without a union bound over classes. It is conditional on the numbers of
        samples per class, which may be fixed by design or random.
        """
        lowest, highest = self.value_range
        low = float(self._lower_means(alpha, mirrored=False, pooled=True)[0])
        if self.label_error_rates is not None and self.n.sum() > 0:
            low = float(least_mean(low, self.label_error_rates, n=self.n))
        return lowest + (highest - lowest) * low

    def upper_aggregate(self, alpha: float) -> float:
        """Upper bound of the aggregate, with confidence at least 1 - alpha, made as `lower_aggregate`."""
        lowest, highest = self.value_range
        high = 1 - float(self._lower_means(alpha, mirrored=True, pooled=True)[0])
        if self.label_error_rates is not None and self.n.sum() > 0:
            high = 1 - float(least_mean(1 - high, self.label_error_rates, n=self.n))
        return lowest + (highest - lowest) * high


@dataclass(frozen=True)
class ClassBounds(OneSidedBounds):
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
        values = np.concatenate([self.samples.values, self.largest.values])
        unit = self._unit(values)
        outside = (unit < -RANGE_TOLERANCE) | (unit > 1 + RANGE_TOLERANCE)
        if outside.any():
            value = values[outside.argmax()]
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

    def _unit(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        lowest, highest = self.value_range
        return (values - lowest) / (highest - lowest)

    def _lower_means(self, alpha: float, *, mirrored: bool, pooled: bool = False) -> NDArray[np.float64]:
        values = 1 - self._unit(self.largest.values) if mirrored else self._unit(self.samples.values)
        n = np.array([len(values)]) if pooled else self.n
        return lower_means(self.method, ClassSamples(values, n), alpha, identical=not pooled)


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


def lower_means(method: str, samples: ClassSamples, alpha: float, *, identical: bool) -> NDArray[np.float64]:
    """Lower confidence bounds of the means of samples in [0, 1].

    Parameters
    ----------
    method : {"betting", "clopper_pearson", "empirical_bernstein", "hoeffding"}
        How bounds are made; clopper_pearson is for values 0 and 1.
    samples : ClassSamples
        Values in [0, 1] up to rounding, in K classes.
    alpha : float
        Error probability of each bound.
    identical : bool
        Whether the samples of a class are identically distributed. Those of all classes together, as one class, are
        not: Hoeffding's bound, the empirical Bernstein bound and constant bets do not need it, bets that depend on
        earlier values do.

    Returns
    -------
    ndarray of shape (K,), float64
        Bounds in [0, 1], at most the mean; 0 for a class without samples.

    Raises
    ------
    InputError
        For an alpha outside (0, 1).
    """
    require_alpha(alpha)
    n = samples.n
    values = np.clip(samples.values, 0, 1)
    summary = ClassSamples(values, n).summary
    mean = np.where(n > 0, summary.mean, 0)

    if method == "betting" and identical:
        low = betting.lower_bounds(values, n, alpha=alpha)
    elif method == "betting":
        low = HALF + betting.lower_mean_bounds(values[:, None] - HALF, bound=HALF, alpha=alpha)
    elif method == "clopper_pearson":
        bounds_of_counts = lower_shares if identical else lower_mean_shares
        low = bounds_of_counts(np.round(mean * n), n, alpha=alpha)
    elif method == "empirical_bernstein":
        low = mean - empirical_bernstein_half_width(n, summary.variance, classes=1, alpha=2 * alpha, width=1)
    else:
        low = mean - hoeffding_half_width(n, classes=1, alpha=2 * alpha, width=1)
    # A bound that is computed sample by sample may exceed the mean; lowering it to the mean keeps the coverage.
    return np.clip(np.minimum(low, mean), 0, 1)
