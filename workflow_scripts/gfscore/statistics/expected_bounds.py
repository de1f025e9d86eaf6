"""Prediction of the confidence bounds that further samples would give.

No guarantee: it assumes that further samples of each class follow the empirical distribution of the present ones.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.betting import MOST_AT_STAKE, PRIOR_VARIANCE, SMALLEST, TRUNCATION, bets
from gfscore.statistics.class_bounds import HALF, ClassBounds, OneSidedBounds
from gfscore.statistics.classes import ClassSamples
from gfscore.statistics.intervals import empirical_bernstein_half_width, hoeffding_half_width, last_rejected
from gfscore.statistics.proportions import lower_mean_shares, lower_shares

ATOMS = 64
"""Number of values that represent the distribution of a class, each the mean of an equal share of its samples."""

HALVINGS = 24
"""Bisections of a predicted bound."""


@dataclass(frozen=True)
class _Expected:
    # Classes rescaled to [0, 1]: atoms (K, ATOMS), predicted numbers of samples n (K,), variance (K,), and standard
    # errors (K,) by which future means lie above the present ones.

    atoms: NDArray[np.float64]
    n: NDArray[np.int64]
    variance: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        """Future means (K,)."""
        error = np.sqrt(self.variance / np.maximum(self.n, 1))
        return np.clip(self.atoms.mean(axis=1) + self.deviation * error, 0, 1)

    def pooled(self) -> Self:
        """The samples of all classes as one class, whose quantile function gives its atoms."""
        n = self.n
        total = max(n.sum(), 1)
        weights = np.repeat(n / (total * ATOMS), ATOMS)
        order = np.argsort(self.atoms, axis=None)
        area = np.append(0, np.cumsum((self.atoms.ravel() * weights)[order]))
        shares = np.append(0, np.cumsum(weights[order]))
        pooled_atoms = np.diff(np.interp(np.linspace(0, 1, ATOMS + 1), shares, area)) * ATOMS

        between = n * (self.atoms.mean(axis=1) - pooled_atoms.mean()) ** 2
        squares = (np.maximum(n - 1, 0) * self.variance + between).sum()
        variance = squares / max(total - 1, 1)
        # The deviation of the sum of all samples, in standard errors of as many samples of one class.
        deviation = np.sqrt(n * self.variance) @ self.deviation / np.sqrt(max(total * variance, SMALLEST))
        return replace(
            self,
            atoms=pooled_atoms[None, :],
            n=n.sum(keepdims=True),
            variance=np.array([variance]),
            deviation=np.array([deviation]),
        )


@dataclass(frozen=True)
class ExpectedBounds(OneSidedBounds):
    """Predicted confidence bounds for a larger number of samples, returned by `expected_bounds`.

    Attributes
    ----------
    value_range, method, label_error_rates
        See ClassBounds.
    present : ndarray of shape (K,), int64
        Present samples per class.
    smallest_atoms, largest_atoms : ndarray of shape (K, ATOMS), float64
        Atoms of each class, rescaled to [0, 1]: for lower bounds, and for upper ones.
    variance : ndarray of shape (K,), float64
        Sample variances, rescaled.
    samples : int
        Samples per class to predict for.
    deviation : ndarray of shape (K,)
        Numbers of standard errors by which the future mean of each class is supposed to lie above the present one.
    """

    value_range: tuple[float, float]
    method: str
    label_error_rates: NDArray[np.float64] | None
    present: NDArray[np.int64]
    smallest_atoms: NDArray[np.float64]
    largest_atoms: NDArray[np.float64]
    variance: NDArray[np.float64]
    samples: int
    deviation: NDArray[np.float64]

    def of(self, samples: int) -> Self:
        """Prediction for another number of samples per class; a class that has more keeps its number."""
        return replace(self, samples=samples)

    @property
    def n(self) -> NDArray[np.int64]:
        """Samples per class, (K,); 0 for a class without present samples."""
        return np.where(self.present > 0, np.maximum(self.present, self.samples), 0)

    def _lower_means(self, alpha: float, *, mirrored: bool, pooled: bool = False) -> NDArray[np.float64]:
        if mirrored:
            expected = _Expected(1 - self.largest_atoms, self.n, self.variance, -self.deviation)
        else:
            expected = _Expected(self.smallest_atoms, self.n, self.variance, self.deviation)
        if pooled:
            expected = expected.pooled()
        return _expected_lower_means(self.method, expected, alpha, identical=not pooled)


def expected_bounds(observed: ClassBounds) -> ExpectedBounds:
    """Predict bounds as if further samples followed the present distribution of their class.

    Parameters
    ----------
    observed : ClassBounds
        Bounds from the present samples.

    Returns
    -------
    ExpectedBounds
        For the present numbers of samples, without deviations; its method `of(n)` predicts for n samples per class.
    """
    lowest, highest = observed.value_range
    width = highest - lowest
    # The variance of a single sample is unknown.
    variance = np.nan_to_num(observed.samples.summary.variance / width**2, nan=PRIOR_VARIANCE)
    return ExpectedBounds(
        value_range=observed.value_range,
        method=observed.method,
        label_error_rates=observed.label_error_rates,
        present=observed.n,
        smallest_atoms=np.clip((atoms(observed.samples) - lowest) / width, 0, 1),
        largest_atoms=np.clip((atoms(observed.largest) - lowest) / width, 0, 1),
        variance=variance,
        samples=0,
        deviation=np.zeros(len(observed.n)),
    )


def atoms(samples: ClassSamples) -> NDArray[np.float64]:
    """Means of equal shares of the sorted samples of each class.

    Parameters
    ----------
    samples : ClassSamples
        Values grouped by class.

    Returns
    -------
    ndarray of shape (K, ATOMS), float64
        Ascending in each class, with the class value as their mean; zeros for a class without samples.
    """
    result = np.zeros((len(samples.n), ATOMS))
    starts = np.cumsum(samples.n) - samples.n
    shares = np.linspace(0, 1, ATOMS + 1)
    for k in np.flatnonzero(samples.n):
        ordered = np.sort(samples.values[starts[k] : starts[k] + samples.n[k]])
        # Area under the quantile function up to each share.
        area = np.concatenate([[0.0], np.cumsum(ordered)]) / len(ordered)
        area_at_shares = np.interp(shares, np.linspace(0, 1, len(ordered) + 1), area)
        result[k] = np.diff(area_at_shares) * ATOMS
    return result


def _expected_lower_means(method: str, expected: _Expected, alpha: float, *, identical: bool) -> NDArray[np.float64]:
    # Predictions (K,) of lower_means of class_bounds.
    n = expected.n
    mean = expected.mean
    if method == "betting":
        low = _adaptive_betting(expected, alpha) if identical else _constant_betting(expected, alpha)
    elif method == "clopper_pearson":
        bounds_of_counts = lower_shares if identical else lower_mean_shares
        low = bounds_of_counts(mean * n, n, alpha=alpha)
    elif method == "empirical_bernstein":
        low = mean - empirical_bernstein_half_width(n, expected.variance, classes=1, alpha=2 * alpha, width=1)
    else:
        low = mean - hoeffding_half_width(n, classes=1, alpha=2 * alpha, width=1)
    return np.clip(np.where(n > 0, low, 0), 0, 1)


def _adaptive_betting(expected: _Expected, alpha: float) -> NDArray[np.float64]:
    # Log wealth against m after n values: n times its mean growth, plus `deviation` standard deviations.
    n = expected.n
    target = np.log(1 / alpha)
    fractions = np.sqrt(2 * target / (PRIOR_VARIANCE + n * expected.variance))

    def rejects(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        growth = np.log1p(np.minimum(fractions, TRUNCATION / m)[:, None] * (expected.atoms - m[:, None]))
        log_wealth = n * growth.mean(axis=1) + expected.deviation * np.sqrt(n * growth.var(axis=1))
        return log_wealth >= target

    return last_rejected(rejects, np.zeros(len(n)), np.ones(len(n)), halvings=HALVINGS)


def _constant_betting(expected: _Expected, alpha: float) -> NDArray[np.float64]:
    # Like `_adaptive_betting`, but for one class and constant bets, whose wealths are averaged.
    values = expected.atoms[0]
    n = expected.n[0]
    target = np.log(1 / alpha)
    fractions = bets(n, bound=HALF, alpha=alpha)

    def rejects(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        growth = np.log1p(np.minimum(fractions, MOST_AT_STAKE / np.maximum(m, SMALLEST))[:, None] * (values - m))
        log_wealth = n * growth.mean(axis=1) + expected.deviation * np.sqrt(n * growth.var(axis=1))
        return np.logaddexp.reduce(log_wealth) - np.log(len(fractions)) >= target

    return last_rejected(rejects, np.zeros(1), np.ones(1), halvings=HALVINGS)
