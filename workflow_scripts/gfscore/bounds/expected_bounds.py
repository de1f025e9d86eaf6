"""Which confidence bounds samples to come may be expected to give.

A prediction, not a guarantee: it supposes that each class keeps the distribution it has shown so far.
"""

from dataclasses import dataclass, replace

import numpy as np

from gfscore.bounds.betting import PRIOR_VARIANCE, TRUNCATION
from gfscore.bounds.binomial import lower_shares
from gfscore.bounds.intervals import empirical_bernstein_half_width, hoeffding_half_width

ATOMS = 64
"""Number of values that stand for the distribution of a class, each the mean of an equal share of its samples."""

HALVINGS = 24


@dataclass(frozen=True)
class ExpectedBounds:
    """Bounds that more samples would probably give; made by expected_bounds.

    Has the `lower`, `upper` and `n` of ClassBounds, so that every statistic takes it too. `observed`: ClassBounds of
    the samples at hand. Rescaled to the range [0, 1]: `shown` (K, ATOMS), the atoms of each class; `largest`
    (K, ATOMS), those of the values that upper bounds use; `variance` (K,). `samples`: how many per class to expect;
    `reserve`: by how many standard errors the new means may lie on the unfavourable side.
    """

    observed: object
    shown: np.ndarray
    largest: np.ndarray
    variance: np.ndarray
    samples: int
    reserve: float

    def of(self, samples):
        """The same for another number of samples per class; a class keeps those that it has beyond it."""
        return replace(self, samples=samples)

    @property
    def n(self):
        """Samples per class, (K,); 0 for a class that has shown no distribution."""
        present = self.observed.n
        return np.where(present > 0, np.maximum(present, self.samples), 0)

    def lower(self, alpha):
        """Expected lower bounds (K,), each at level alpha for its own class."""
        return self.observed.ends(self._one_side(self.shown, alpha), np.ones(len(self.n)))[0]

    def upper(self, alpha):
        """Expected upper bounds (K,), likewise."""
        return self.observed.ends(np.zeros(len(self.n)), 1 - self._one_side(1 - self.largest, alpha))[1]

    def _one_side(self, unit, alpha):
        expected = _Expected(unit, self.n, self.variance)
        low = _PREDICTIONS[self.observed.method](expected, alpha, self.reserve)
        return np.clip(np.where(self.n > 0, low, 0), 0, 1)


def expected_bounds(observed, *, reserve=0.0):
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


def atoms(samples):
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

    atoms: np.ndarray
    n: np.ndarray
    variance: np.ndarray

    @property
    def mean(self):
        return self.atoms.mean(axis=1)

    @property
    def error(self):
        return np.sqrt(self.variance / np.maximum(self.n, 1))


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


_PREDICTIONS = {
    "betting": _betting,
    "clopper_pearson": _clopper_pearson,
    "empirical_bernstein": _empirical_bernstein,
    "hoeffding": _hoeffding,
}
