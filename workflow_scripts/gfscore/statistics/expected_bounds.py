"""Prediction of the confidence bounds that further samples would give.

No guarantee: it assumes that further samples of each class follow the empirical distribution of the present ones.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.betting import MOST_AT_STAKE, PRIOR_VARIANCE, TRUNCATION, bets
from gfscore.statistics.class_bounds import HALF, ClassBounds
from gfscore.statistics.classes import ClassSamples
from gfscore.statistics.intervals import empirical_bernstein_half_width, hoeffding_half_width
from gfscore.statistics.proportions import lower_mean_shares, lower_shares

ATOMS = 64
"""Number of values that represent the distribution of a class, each the mean of an equal share of its samples."""

HALVINGS = 24

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class ExpectedBounds:
    """Predicted confidence bounds for a larger number of samples, returned by expected_bounds.

    Has the methods and the `n` of ClassBounds, so that gate statistics accept either. `observed`: ClassBounds of the
    present samples. Rescaled to [0, 1]: `shown` (K, ATOMS), the atoms of each class; `largest` (K, ATOMS), those of the
    values for upper bounds; `variance` (K,). `samples`: number of samples per class to predict for; `reserve`: number
    of standard errors by which future means are assumed to be less favourable.
    """

    observed: ClassBounds
    shown: NDArray[np.float64]
    largest: NDArray[np.float64]
    variance: NDArray[np.float64]
    samples: int
    reserve: float

    def of(self, samples: int) -> Self:
        """Prediction for another number of samples per class; a class that has more keeps its number."""
        return replace(self, samples=samples)

    @property
    def n(self) -> NDArray[np.int64]:
        """Samples per class, (K,); 0 for a class without present samples."""
        present = self.observed.n
        return np.where(present > 0, np.maximum(present, self.samples), 0)

    def lower(self, alpha: float) -> NDArray[np.float64]:
        """Expected lower bounds (K,), each at level alpha for its own class."""
        return self.observed.ends(self._one_side(self.shown, alpha), np.ones(len(self.n)))[0]

    def upper(self, alpha: float) -> NDArray[np.float64]:
        """Expected upper bounds (K,), likewise."""
        return self.observed.ends(np.zeros(len(self.n)), 1 - self._one_side(1 - self.largest, alpha))[1]

    def lower_aggregate(self, alpha: float) -> float:
        """Expected lower bound of the aggregate, at level alpha."""
        return self.observed.aggregate_ends(self._together(self.shown, alpha), 1.0, n=self.n)[0]

    def upper_aggregate(self, alpha: float) -> float:
        """Expected upper bound of the aggregate, likewise."""
        return self.observed.aggregate_ends(0.0, 1 - self._together(1 - self.largest, alpha), n=self.n)[1]

    def _one_side(self, unit, alpha):
        return self._predicted(_PREDICTIONS, _Expected(unit, self.n, self.variance), alpha)

    def _together(self, unit, alpha):
        if self.n.sum() == 0:
            return 0.0
        return float(self._predicted(_PREDICTIONS_TOGETHER, _pooled(unit, self.n, self.variance), alpha)[0])

    def _predicted(self, predictions, expected, alpha):
        low = predictions[self.observed.method](expected, alpha, self.reserve)
        return np.clip(np.where(expected.n > 0, low, 0), 0, 1)


def expected_bounds(observed: ClassBounds, *, reserve: float = 0.0) -> ExpectedBounds:
    """Predicted bounds if further samples follow the present distribution of their class, as ExpectedBounds.

    Takes ClassBounds and the `reserve` (>= 0), a number of standard errors by which future means are assumed to be less
    favourable. `of(n)` of the result predicts for n samples per class.
    """
    lowest, highest = observed.value_range
    width = highest - lowest
    # The variance of a single sample is unknown.
    variance = np.nan_to_num(observed.samples.summary.variance / width**2, nan=PRIOR_VARIANCE)
    shown, largest = ((atoms(samples) - lowest) / width for samples in (observed.samples, observed.largest))
    return ExpectedBounds(observed, shown, largest, variance=variance, samples=0, reserve=reserve)


def atoms(samples: ClassSamples) -> NDArray[np.float64]:
    """Means of equal shares of the sorted samples of each class, (K, ATOMS).

    Their mean is the class value; a class without samples gets zeros.
    """
    result = np.zeros((len(samples.n), ATOMS))
    starts = np.cumsum(samples.n) - samples.n
    for k in np.flatnonzero(samples.n):
        ordered = np.sort(samples.values[starts[k] : starts[k] + samples.n[k]])
        # Area under the quantile function up to each share.
        area = np.concatenate([[0.0], np.cumsum(ordered)]) / len(ordered)
        shares = np.linspace(0, 1, ATOMS + 1)
        result[k] = np.diff(np.interp(shares, np.linspace(0, 1, len(ordered) + 1), area)) * ATOMS
    return result


@dataclass(frozen=True)
class _Expected:
    # Classes rescaled to [0, 1]: atoms (K, ATOMS), predicted numbers of samples n (K,), variance (K,).

    atoms: NDArray[np.float64]
    n: NDArray[np.int64]
    variance: NDArray[np.float64]

    @property
    def mean(self) -> NDArray[np.float64]:
        return self.atoms.mean(axis=1)

    @property
    def error(self) -> NDArray[np.float64]:
        return np.sqrt(self.variance / np.maximum(self.n, 1))


def _pooled(unit, n, variance):
    # Pools the samples of all classes into one class, whose quantile function gives the atoms.
    total, weights = n.sum(), np.repeat(n / (n.sum() * ATOMS), ATOMS)
    order = np.argsort(unit, axis=None)
    area, shares = (np.append(0, np.cumsum(part)) for part in ((unit.ravel() * weights)[order], weights[order]))
    atoms = np.diff(np.interp(np.linspace(0, 1, ATOMS + 1), shares, area)) * ATOMS
    apart = n * (unit.mean(axis=1) - atoms.mean()) ** 2
    squares = (np.maximum(n - 1, 0) * variance + apart).sum()
    return _Expected(atoms[None, :], np.array([total]), np.array([squares / max(total - 1, 1)]))


def _hoeffding(expected, alpha, reserve):
    half = hoeffding_half_width(expected.n, classes=1, alpha=2 * alpha, width=1)
    return expected.mean - reserve * expected.error - half


def _empirical_bernstein(expected, alpha, reserve):
    half = empirical_bernstein_half_width(expected.n, expected.variance, classes=1, alpha=2 * alpha, width=1)
    return expected.mean - reserve * expected.error - half


def _clopper_pearson(expected, alpha, reserve):
    share = np.clip(expected.mean - reserve * expected.error, 0, 1)
    return lower_shares(np.where(expected.n > 0, share * expected.n, 0), expected.n, alpha=alpha)


def _betting(expected, alpha, reserve):
    # Log capital against m after n values: n times its mean growth, minus `reserve` standard deviations.
    target, n = np.log(1 / alpha), expected.n
    bets = np.sqrt(2 * target / (PRIOR_VARIANCE + n * expected.variance))
    refuted, kept = np.zeros(len(n)), np.ones(len(n))
    for _ in range(HALVINGS):
        m = (refuted + kept) / 2
        growth = np.log1p(np.minimum(bets, TRUNCATION / m)[:, None] * (expected.atoms - m[:, None]))
        capital = n * growth.mean(axis=1) - reserve * np.sqrt(n * growth.var(axis=1))
        refuted, kept = np.where(capital >= target, m, refuted), np.where(capital >= target, kept, m)
    return refuted


def _constant_betting(expected, alpha, reserve):
    # Likewise for constant bets, whose wealths are averaged, and one class.
    values, n, target = expected.atoms[0], expected.n[0], np.log(1 / alpha)
    fractions = bets(n, bound=HALF, alpha=alpha)
    refuted, kept = 0.0, values.mean()
    for _ in range(HALVINGS):
        m = (refuted + kept) / 2
        growth = np.log1p(np.minimum(fractions, MOST_AT_STAKE / max(m, TINY))[:, None] * (values - m))
        capital = n * growth.mean(axis=1) - reserve * np.sqrt(n * growth.var(axis=1))
        refused = np.logaddexp.reduce(capital) - np.log(len(fractions)) >= target
        refuted, kept = (m, kept) if refused else (refuted, m)
    return np.array([refuted])


def _clopper_pearson_together(expected, alpha, reserve):
    share = np.clip(expected.mean - reserve * expected.error, 0, 1)
    return lower_mean_shares(share * expected.n, expected.n, alpha=alpha)


_PREDICTIONS = {
    "betting": _betting,
    "clopper_pearson": _clopper_pearson,
    "empirical_bernstein": _empirical_bernstein,
    "hoeffding": _hoeffding,
}

_PREDICTIONS_TOGETHER = _PREDICTIONS | {"betting": _constant_betting, "clopper_pearson": _clopper_pearson_together}
