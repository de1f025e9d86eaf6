"""Prediction of the confidence bounds that further samples would give.

No guarantee: it assumes that further samples of each class follow the empirical distribution of the present ones.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.betting import MOST_AT_STAKE, PRIOR_VARIANCE, SMALLEST, TRUNCATION, bets
from gfscore.statistics.class_bounds import HALF, ClassBounds
from gfscore.statistics.classes import ClassSamples
from gfscore.statistics.intervals import empirical_bernstein_half_width, hoeffding_half_width, last_rejected
from gfscore.statistics.proportions import lower_mean_shares, lower_shares

ATOMS = 64
"""Number of values that represent the distribution of a class, each the mean of an equal share of its samples."""

HALVINGS = 24
"""Bisections of a predicted bound."""


@dataclass(frozen=True)
class ExpectedBounds:
    """Predicted confidence bounds for a larger number of samples, returned by `expected_bounds`.

    Has the methods and the `n` of ClassBounds, so that gate statistics accept either.

    Attributes
    ----------
    observed : ClassBounds
        Bounds from the present samples.
    smallest_atoms, largest_atoms : ndarray of shape (K, ATOMS), float64
        Atoms of each class, rescaled to [0, 1]: for lower bounds, and for upper ones.
    variance : ndarray of shape (K,), float64
        Sample variances, rescaled.
    samples : int
        Samples per class to predict for.
    deviation : ndarray of shape (K,)
        Numbers of standard errors by which the future mean of each class is supposed to lie above the present one.
    """

    observed: ClassBounds
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
        present = self.observed.n
        return np.where(present > 0, np.maximum(present, self.samples), 0)

    def lower(self, alpha: float) -> NDArray[np.float64]:
        """Expected lower bounds (K,) of the class values, each at level alpha for its class alone."""
        low, _ = self.observed.ends(self._one_side(self.smallest_atoms, alpha, self.deviation), np.ones(len(self.n)))
        return low

    def upper(self, alpha: float) -> NDArray[np.float64]:
        """Expected upper bounds (K,) of the class values, each at level alpha for its class alone."""
        low_of_complement = self._one_side(1 - self.largest_atoms, alpha, -self.deviation)
        _, high = self.observed.ends(np.zeros(len(self.n)), 1 - low_of_complement)
        return high

    def lower_aggregate(self, alpha: float) -> float:
        """Expected lower bound of the aggregate, at level alpha."""
        low, _ = self.observed.aggregate_ends(self._together(self.smallest_atoms, alpha, self.deviation), 1.0, n=self.n)
        return low

    def upper_aggregate(self, alpha: float) -> float:
        """Expected upper bound of the aggregate, at level alpha."""
        low_of_complement = self._together(1 - self.largest_atoms, alpha, -self.deviation)
        _, high = self.observed.aggregate_ends(0.0, 1 - low_of_complement, n=self.n)
        return high

    def _one_side(self, atoms, alpha, deviation):
        return self._predicted(_PREDICTIONS, _Expected(atoms, self.n, self.variance, deviation), alpha)

    def _together(self, atoms, alpha, deviation):
        n = self.n
        total = n.sum()
        if total == 0:
            return 0.0
        # The samples of all classes as one class, whose quantile function gives its atoms.
        weights = np.repeat(n / (total * ATOMS), ATOMS)
        order = np.argsort(atoms, axis=None)
        area = np.append(0, np.cumsum((atoms.ravel() * weights)[order]))
        shares = np.append(0, np.cumsum(weights[order]))
        pooled = np.diff(np.interp(np.linspace(0, 1, ATOMS + 1), shares, area)) * ATOMS

        between = n * (atoms.mean(axis=1) - pooled.mean()) ** 2
        squares = (np.maximum(n - 1, 0) * self.variance + between).sum()
        variance = squares / max(total - 1, 1)
        # The deviation of the sum of all samples, in standard errors of as many samples of one class.
        deviation_of_sum = np.sqrt(n * self.variance) @ deviation / np.sqrt(max(total * variance, SMALLEST))
        one_class = _Expected(pooled[None, :], np.array([total]), np.array([variance]), np.array([deviation_of_sum]))
        return float(self._predicted(_PREDICTIONS_TOGETHER, one_class, alpha)[0])

    def _predicted(self, predictions, expected, alpha):
        low = predictions[self.observed.method](expected, alpha)
        return np.clip(np.where(expected.n > 0, low, 0), 0, 1)


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
        observed,
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


def _hoeffding(expected, alpha):
    half_width = hoeffding_half_width(expected.n, classes=1, alpha=2 * alpha, width=1)
    return expected.mean - half_width


def _empirical_bernstein(expected, alpha):
    half_width = empirical_bernstein_half_width(expected.n, expected.variance, classes=1, alpha=2 * alpha, width=1)
    return expected.mean - half_width


def _clopper_pearson(expected, alpha):
    return lower_shares(np.where(expected.n > 0, expected.mean * expected.n, 0), expected.n, alpha=alpha)


def _clopper_pearson_together(expected, alpha):
    return lower_mean_shares(expected.mean * expected.n, expected.n, alpha=alpha)


def _betting(expected, alpha):
    # Log wealth against m after n values: n times its mean growth, plus `deviation` standard deviations.
    n = expected.n
    target = np.log(1 / alpha)
    fractions = np.sqrt(2 * target / (PRIOR_VARIANCE + n * expected.variance))

    def rejects(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        growth = np.log1p(np.minimum(fractions, TRUNCATION / m)[:, None] * (expected.atoms - m[:, None]))
        log_wealth = n * growth.mean(axis=1) + expected.deviation * np.sqrt(n * growth.var(axis=1))
        return log_wealth >= target

    return last_rejected(rejects, np.zeros(len(n)), np.ones(len(n)), halvings=HALVINGS)


def _constant_betting(expected, alpha):
    # Like `_betting`, but for one class and constant bets, whose wealths are averaged.
    values = expected.atoms[0]
    n = expected.n[0]
    target = np.log(1 / alpha)
    fractions = bets(n, bound=HALF, alpha=alpha)

    def rejects(m: NDArray[np.float64]) -> NDArray[np.bool_]:
        growth = np.log1p(np.minimum(fractions, MOST_AT_STAKE / np.maximum(m, SMALLEST))[:, None] * (values - m))
        log_wealth = n * growth.mean(axis=1) + expected.deviation * np.sqrt(n * growth.var(axis=1))
        return np.logaddexp.reduce(log_wealth) - np.log(len(fractions)) >= target

    return last_rejected(rejects, np.zeros(1), np.ones(1), halvings=HALVINGS)


_PREDICTIONS = {
    "betting": _betting,
    "clopper_pearson": _clopper_pearson,
    "empirical_bernstein": _empirical_bernstein,
    "hoeffding": _hoeffding,
}

_PREDICTIONS_TOGETHER = _PREDICTIONS | {"betting": _constant_betting, "clopper_pearson": _clopper_pearson_together}
