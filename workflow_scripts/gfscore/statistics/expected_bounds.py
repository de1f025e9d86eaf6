"""Which confidence bounds samples to come may be expected to give.

A prediction, not a guarantee: it supposes that each class keeps the distribution it has shown so far.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.betting import PRIOR_VARIANCE, TRUNCATION
from gfscore.statistics.binomial import lower_mean_shares, lower_shares
from gfscore.statistics.bounded_means import MOST_AT_STAKE, bets
from gfscore.statistics.class_bounds import HALF, ClassBounds
from gfscore.statistics.classes import ClassSamples
from gfscore.statistics.intervals import empirical_bernstein_half_width, hoeffding_half_width

ATOMS = 64
"""Number of values that stand for the distribution of a class, each the mean of an equal share of its samples."""

HALVINGS = 24

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class ExpectedBounds:
    """Bounds that more samples would probably give; made by expected_bounds.

    Has the bounds and the `n` of ClassBounds, so that every statistic takes it too. `observed`: ClassBounds of
    the samples at hand. Rescaled to the range [0, 1]: `shown` (K, ATOMS), the atoms of each class; `largest`
    (K, ATOMS), those of the values that upper bounds use; `variance` (K,). `samples`: how many per class to expect;
    `reserve`: by how many standard errors the new means may lie on the unfavourable side.
    """

    observed: ClassBounds
    shown: NDArray[np.float64]
    largest: NDArray[np.float64]
    variance: NDArray[np.float64]
    samples: int
    reserve: float

    def of(self, samples: int) -> Self:
        """The same for another number of samples per class; a class keeps those that it has beyond it."""
        return replace(self, samples=samples)

    @property
    def n(self) -> NDArray[np.int64]:
        """Samples per class, (K,); 0 for a class that has shown no distribution."""
        present = self.observed.n
        return np.where(present > 0, np.maximum(present, self.samples), 0)

    def lower(self, alpha: float) -> NDArray[np.float64]:
        """Expected lower bounds (K,), each at level alpha for its own class."""
        return self.observed.ends(self._one_side(self.shown, alpha), np.ones(len(self.n)))[0]

    def upper(self, alpha: float) -> NDArray[np.float64]:
        """Expected upper bounds (K,), likewise."""
        return self.observed.ends(np.zeros(len(self.n)), 1 - self._one_side(1 - self.largest, alpha))[1]

    def lower_aggregate(self, alpha: float) -> float:
        """Expected lower bound of the aggregate alone, at level alpha."""
        return self.observed.aggregate_ends(self._together(self.shown, alpha), 1.0, n=self.n)[0]

    def upper_aggregate(self, alpha: float) -> float:
        """Expected upper bound of the aggregate alone, likewise."""
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
    """The bounds that more samples would give, if each class kept the distribution that it shows, as ExpectedBounds.

    Takes ClassBounds; `reserve` (>= 0): the means of the samples to come may lie this many standard errors on the
    unfavourable side. Ask `of(n)` for n samples per class.
    """
    lowest, highest = observed.value_range
    width = highest - lowest
    # One sample shows no variance.
    variance = np.nan_to_num(observed.samples.summary.variance / width**2, nan=PRIOR_VARIANCE)
    shown, largest = ((atoms(samples) - lowest) / width for samples in (observed.samples, observed.largest))
    return ExpectedBounds(observed, shown, largest, variance=variance, samples=0, reserve=reserve)


def atoms(samples: ClassSamples) -> NDArray[np.float64]:
    """ATOMS values per class that stand for ClassSamples, (K, ATOMS): means of equal shares of the sorted samples.

    Their mean is the class's own; a class without samples gets zeros.
    """
    found = np.zeros((len(samples.n), ATOMS))
    starts = np.cumsum(samples.n) - samples.n
    for k in np.flatnonzero(samples.n):
        ordered = np.sort(samples.values[starts[k] : starts[k] + samples.n[k]])
        # Area under the quantile function up to each share.
        area = np.concatenate([[0.0], np.cumsum(ordered)]) / len(ordered)
        shares = np.linspace(0, 1, ATOMS + 1)
        found[k] = np.diff(np.interp(shares, np.linspace(0, 1, len(ordered) + 1), area)) * ATOMS
    return found


@dataclass(frozen=True)
class _Expected:
    # Classes in a range of length 1: atoms (K, ATOMS), n (K,) samples to come, variance (K,).

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
    # The samples of all classes as those of one; the inverse of its distribution function, cut like that of a class.
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
    # Log capital against m after n values: n times its mean growth, less `reserve` standard deviations.
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
    # Likewise of constant bets, whose average counts, and of one class.
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
