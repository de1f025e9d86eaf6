"""What an adjusted model gains and loses against the original one, from paired outcomes on the same samples.

Offsets, strengths and the reference classes come from the choosing half of the samples. Intervals come from the judging
half alone, and hold for every number of samples. A remedy is said to help only if the lower bound of the worst class's
gain is above 0.
# ASSUME: labels are right but for the declared shares; samples of a class are independent draws from its distribution.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from gfscore.audit.metrics.wcr import METRIC as WCR
from gfscore.audit.settings import IntervalSettings
from gfscore.core.errors import InputError
from gfscore.statistics.betting import lower_mean_bounds
from gfscore.statistics.class_bounds import HALF, ClassBounds
from gfscore.statistics.classes import class_means, class_samples, normalised_weights, worst_class_trade
from gfscore.statistics.intervals import correct_for_label_errors, least_mean
from gfscore.statistics.proportions import lower_differences, lower_paired_differences


@dataclass(frozen=True, kw_only=True)
class PairedOutcomes:
    """Successes (1) and failures (0) of the original and of the adjusted model on the same N samples.

    Parameters
    ----------
    before_low, before_high, after_low, after_high : ndarray (N,) of float64
        Smallest and largest value that each sample may have before and after the adjustment: equal where it is known.
    labels : ndarray (N,) of int
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    label_error_rates : array-like (K,), optional
        Shares of wrong labels, which bounds of differences allow for: what wrongly labelled samples gain is unknown.

    Raises
    ------
    InputError
        For values other than 0 and 1.
    """

    before_low: NDArray[np.float64]
    before_high: NDArray[np.float64]
    after_low: NDArray[np.float64]
    after_high: NDArray[np.float64]
    labels: NDArray[np.integer]
    classes: int
    label_error_rates: ArrayLike | None = None

    def __post_init__(self) -> None:
        """Refuse values for which the bounds do not hold."""
        for values in (self.before_low, self.before_high, self.after_low, self.after_high):
            if not np.isin(values, (0, 1)).all():
                raise InputError("a remedy is judged by a measure that is 0 or 1 for every sample, such as adversarial")

    @classmethod
    def decided(
        cls,
        before: ArrayLike,
        after: ArrayLike,
        labels: ArrayLike,
        *,
        classes: int,
        label_error_rates: ArrayLike | None = None,
    ) -> Self:
        """Outcomes (N,) that are all known."""
        before_values = np.asarray(before, dtype=np.float64)
        after_values = np.asarray(after, dtype=np.float64)
        return cls(
            before_low=before_values,
            before_high=before_values,
            after_low=after_values,
            after_high=after_values,
            labels=np.asarray(labels),
            classes=classes,
            label_error_rates=label_error_rates,
        )

    @cached_property
    def n(self) -> NDArray[np.int64]:
        """Samples of each class, (K,)."""
        return self.counts(np.ones(len(self.labels)))

    @cached_property
    def wrong_shares(self) -> NDArray[np.float64]:
        """Share of wrong labels of each class, (K,)."""
        if self.label_error_rates is None:
            return np.zeros(self.classes)
        return np.asarray(self.label_error_rates, dtype=np.float64)

    @cached_property
    def before(self) -> NDArray[np.float64]:
        """Class values of the original model, (K,); NaN for a class without samples."""
        return class_means(self.before_low, self.labels, self.classes)

    @cached_property
    def after(self) -> NDArray[np.float64]:
        """Class values of the adjusted model, (K,)."""
        return class_means(self.after_low, self.labels, self.classes)

    def counts(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Number of ones (K,) among values (N,) of 0 and 1, class by class."""
        return np.bincount(self.labels, weights=values, minlength=self.classes).astype(np.int64)

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
    def failures(self) -> Self:
        """Failures in place of successes: the best class becomes the worst."""
        return replace(
            self,
            before_low=1 - self.before_high,
            before_high=1 - self.before_low,
            after_low=1 - self.after_high,
            after_high=1 - self.after_low,
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
    def failures(self) -> Self:
        """The references of failures."""
        return replace(self, before=1 - self.before, after=1 - self.after)


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


def class_gains(outcomes: PairedOutcomes, *, alpha: float) -> pd.DataFrame:
    """Gains and losses of all classes.

    Parameters
    ----------
    outcomes : PairedOutcomes
    alpha : float
        Error probability of all K intervals together, by the union bound over 2K sides.

    Returns
    -------
    DataFrame
        K rows: `n` samples, class values `before` and `after`, their difference `change`, and simultaneous bounds of
        the true one, `low` and `high`, by constant bets on paired differences, exact for every n; the whole range for
        a class without samples.

    References
    ----------
    Waudby-Smith and Ramdas 2024 (betting).
    """
    side = alpha / (2 * outcomes.classes)
    return pd.DataFrame(
        {
            "n": outcomes.n,
            "before": outcomes.before,
            "after": outcomes.after,
            "change": outcomes.after - outcomes.before,
            "low": _lower_changes(outcomes, side),
            "high": -_lower_changes(outcomes.swapped, side),
        }
    )


def _lower_changes(outcomes: PairedOutcomes, alpha: float) -> NDArray[np.float64]:
    # Bounds by betting (K,), narrower than exact ones where little changes; classes of one size are bounded at once.
    least = outcomes.after_low - outcomes.before_high
    low = np.full(outcomes.classes, -1.0)
    for size in np.unique(outcomes.n[outcomes.n > 0]):
        members = np.flatnonzero(outcomes.n == size)
        columns = np.stack([least[outcomes.labels == k] for k in members], axis=1)
        low[members] = lower_mean_bounds(columns, bound=1.0, alpha=alpha)
    return _least_true(low, outcomes.wrong_shares)


def _least_true(low: ArrayLike, wrong_shares: ArrayLike) -> NDArray[np.float64]:
    # Lower bounds of differences in [-1, 1] for right labels, from those for the labels as they are.
    low = np.asarray(low, dtype=np.float64)
    return correct_for_label_errors(low, low, wrong_shares, value_range=(-1.0, 1.0))[0]


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

    For parameters and confidence see worst_class_gain. The bounds are sums of bounds of the best and of the worst
    class's gain, each at half of alpha.
    """
    worst = worst_class_gain(outcomes, reference, alpha=alpha / 2)
    # The best class has the fewest failures: where these grow, it loses.
    best = worst_class_gain(outcomes.failures, reference.failures, alpha=alpha / 2)
    return Change(
        before=1 - best.before - worst.before,
        after=1 - best.after - worst.after,
        low=max(-best.high - worst.high, -1.0),
        high=min(-best.low - worst.low, 1.0),
    )


def _least_gain(outcomes: PairedOutcomes, reference: ReferenceClasses, alpha: float) -> float:
    # Lower bound of min_k after_k - min_j before_j.
    #
    # With k the worst class after, this is the maximum over j of after_k - before_j. It is bounded by the larger of two
    # terms: the paired gain of class k (j = k), and the distance from the reference class r (j = r), the worst class
    # before on other samples. Each term has half of alpha; for k = r they are one, with all of it.
    #
    # Class k is unknown, but it is one class. So each class is bounded at the level alpha, and the smallest of these
    # bounds holds at this level (intersection-union).
    worst = int(np.nanargmin(reference.before))
    gained = outcomes.counts((outcomes.after_low > outcomes.before_high).astype(np.float64))
    lost = outcomes.counts((outcomes.after_low < outcomes.before_high).astype(np.float64))
    successes_before = outcomes.counts(outcomes.before_high)[worst]
    distance = lower_differences(
        outcomes.counts(outcomes.after_low), outcomes.n, successes_before, outcomes.n[worst], alpha=alpha / 2
    )
    paired_gain = lower_paired_differences(gained, lost, outcomes.n, alpha=alpha / 2)
    # A distance is between two classes, and holds with the larger of their shares of wrong labels for both.
    wrong = outcomes.wrong_shares
    low = np.maximum(_least_true(paired_gain, wrong), _least_true(distance, np.maximum(wrong, wrong[worst])))
    gain_of_worst = lower_paired_differences(gained[worst], lost[worst], outcomes.n[worst], alpha=alpha)
    low[worst] = _least_true(gain_of_worst, wrong[worst])
    return float(low.min())


def _smallest(values: NDArray[np.float64]) -> float:
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
    shares = normalised_weights(weights, outcomes.classes)
    least = outcomes.after_low - outcomes.before_high
    most = outcomes.after_high - outcomes.before_low
    return Change(
        before=weighted_mean(outcomes.before, shares),
        after=weighted_mean(outcomes.after, shares),
        low=_lower_weighted_mean(least, outcomes, shares, reach=1.0, alpha=alpha / 2),
        high=-_lower_weighted_mean(-most, outcomes, shares, reach=1.0, alpha=alpha / 2),
    )


def weighted_mean(values: NDArray[np.float64], shares: NDArray[np.float64]) -> float:
    """Mean of class values (K,) by the shares (K,) of the classes that have samples; NaN where these have no share."""
    present = ~np.isnan(values)
    total = shares[present].sum()
    return float(values[present] @ shares[present] / total) if total > 0 else np.nan


def _lower_weighted_mean(
    deviations: NDArray[np.float64],
    outcomes: PairedOutcomes,
    shares: NDArray[np.float64],
    *,
    reach: float,
    alpha: float,
) -> float:
    # Lower bound of the mean of deviations (N,) of the outcomes within [-reach, reach], each class by its share.
    n = outcomes.n
    labels = outcomes.labels
    if np.any((n == 0) & (shares > 0)):
        return -reach
    # Samples of a class with a share of 0 do not enter the mean.
    counted = shares[labels] > 0
    weights = shares[labels[counted]] * counted.sum() / n[labels[counted]]
    weighted = (deviations[counted] * weights)[:, None]
    low = lower_mean_bounds(weighted, bound=reach * weights.max(), alpha=alpha)
    least = max(float(low[0]), -reach)
    if outcomes.label_error_rates is None:
        return least
    unit = (least + reach) / (2 * reach)
    return float(2 * reach * least_mean(unit, outcomes.wrong_shares, n=shares)) - reach


# ---- strengths ----


def strength_curve(
    outcomes: Mapping[float, PairedOutcomes],
    *,
    weights: ArrayLike | None,
    intervals: IntervalSettings,
    alpha: float,
) -> pd.DataFrame:
    """Mean and worst class over the strength of the offsets, from the original model at 0 on.

    Parameters
    ----------
    outcomes : mapping of float to PairedOutcomes
        Outcomes by strength, at least one; the original model is the same in all of them.
    weights : array-like (K,) or None
        Weights of the classes; None for equal ones.
    intervals : IntervalSettings
        Class bounds use the method for 0/1 measures.
    alpha : float
        Error probability of all intervals of all S + 1 points together: each of the 2 (S + 1) has alpha / (2 (S + 1)).

    Returns
    -------
    DataFrame
        A row for each `strength`, ascending: the `mean` and the value of the `worst` class with their bounds, `_low`
        and `_high`; the index of this class, `worst_class`; and `rho`, worst_class_trade against strength 0, relative
        to it; NaN where its worst class is 0.
    """
    original = next(iter(outcomes.values()))
    # The original model takes the place of the adjusted one.
    models = {0.0: original.swapped} | dict(sorted(outcomes.items()))
    side = alpha / (4 * len(models))
    shares = normalised_weights(weights, original.classes)
    baseline_worst = _smallest(original.before)
    baseline_mean = weighted_mean(original.before, shares)

    points = []
    for strength, paired in models.items():
        worst = _smallest(paired.after)
        mean = weighted_mean(paired.after, shares)
        mean_low = HALF + _lower_weighted_mean(paired.after_low - HALF, paired, shares, reach=HALF, alpha=side)
        mean_high = HALF - _lower_weighted_mean(HALF - paired.after_high, paired, shares, reach=HALF, alpha=side)
        class_bounds = ClassBounds(
            samples=class_samples(paired.after_low, paired.labels, paired.classes, seed=intervals.seed),
            value_range=(0.0, 1.0),
            method=intervals.binary,
            label_error_rates=paired.wrong_shares,
            upper_samples=class_samples(paired.after_high, paired.labels, paired.classes, seed=intervals.seed),
        )
        worst_low, worst_high = WCR.bounds_at(class_bounds, side, lam=0.0)
        points.append(
            {
                "strength": strength,
                "mean": mean,
                "mean_low": mean_low,
                "mean_high": mean_high,
                "worst": worst,
                "worst_low": float(worst_low),
                "worst_high": float(worst_high),
                "worst_class": int(np.nanargmin(paired.after)),
                "rho": worst_class_trade(
                    worst=worst, mean=mean, baseline_worst=baseline_worst, baseline_mean=baseline_mean
                ),
            }
        )
    return pd.DataFrame(points)
