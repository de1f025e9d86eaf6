"""Corrections for testing many hypotheses at once."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError

SIGNIFICANT = 0.05
"""Level of adjusted p-values at which text and figures call a difference significant.

Gates and intervals have their own levels in the configuration.
"""


METHODS: tuple[Literal["bh"], Literal["by"]] = ("bh", "by")
"""Adjustments for the false discovery rate: Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001."""


def holm(p_values: ArrayLike, *, family: int) -> NDArray[np.float64]:
    """P-values adjusted by Holm 1979, which control the family-wise error rate.

    Takes `p_values` (H,) and the size of the `family`, at least H: hypotheses of the family that were not tested count
    as never rejected. Valid under any dependence between the tests. Returns (H,) float64 in [0, 1].
    """
    p_values = _require_family(p_values, family)
    order = np.argsort(p_values, kind="stable")
    stepped = p_values[order] * (family - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def false_discovery(p_values: ArrayLike, *, family: int, method: Literal["bh", "by"]) -> NDArray[np.float64]:
    """P-values adjusted by one of METHODS, which control the false discovery rate.

    Arguments as holm takes them. "by" is valid under any dependence, "bh" proven for independent or positively
    dependent tests only.
    # ASSUME: comparisons that share a model are positively dependent; simulations support this, no proof does.
    """
    from scipy.stats import false_discovery_control

    p_values = _require_family(p_values, family)
    untested = np.ones(family - len(p_values))
    return false_discovery_control(np.concatenate([p_values, untested]), method=method)[: len(p_values)]


def _require_family(p_values: ArrayLike, family: int) -> NDArray[np.float64]:
    p_values = np.asarray(p_values, dtype=np.float64)
    if family < len(p_values):
        raise InputError(f"a family of {family} hypotheses cannot hold {len(p_values)} tests")
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise InputError("p-values must lie in [0, 1]")
    return p_values


# ---- The studentised sign-flip test of paired differences, for all pairs of models at once.


# Rounding must not decide whether a flipped statistic reaches the observed one.
TOLERANCE = 1e-9

SMALLEST_VARIANCE = 1e-4
"""Smallest variance in units of the mean square, which keeps the statistic finite when all differences are equal."""

ENOUGH = 25
"""Effective number of samples of each sign from which the test is valid.

Simulated: one model constant at q, the other 1 with probability q = .01, .05 or .2. With at least 25 samples of each
sign at most 6% of such pairs are rejected at level 5%; with one or five samples of the rarer sign 41% and 17%.
"""

ELEMENTS_AT_ONCE = 1 << 22


class SignFlips:
    """Paired differences of M models under random signs, one sign per sample for all models.

    Exact where the differences are symmetric about 0 under the null, as for 0/1 measures; otherwise asymptotic in the
    number of samples. Source: Hemerik, Goeman and Finos 2020; the adjustment is the single-step maxT of Westfall and
    Young 1993.
    # ASSUME: enough samples differ for the central limit theorem to hold; betting does not need this.
    """

    def __init__(self, values: NDArray[np.float64], *, flips: int, rng: np.random.Generator) -> None:
        """`values` (n, M), the number of random sign vectors, and a numpy Generator; a vector of +1 is put first."""
        self._groups = [values]
        # A few sign vectors at a time, to bound the memory.
        step = max(1, ELEMENTS_AT_ONCE // max(1, len(values)))
        counts = (min(step, flips - start) for start in range(0, flips, step))
        signs = (rng.choice(np.array([-1.0, 1.0]), size=(count, len(values))) for count in counts)
        self._sums = np.vstack([np.ones(len(values)) @ values, *(drawn @ values for drawn in signs)])

    def joined(self, other: "SignFlips") -> "SignFlips":
        """Sign flips of the samples of both, each with its own signs."""
        joined = object.__new__(SignFlips)
        joined._groups = self._groups + other._groups
        joined._sums = self._sums + other._sums
        return joined

    def statistics(self, pairs: NDArray[np.integer]) -> NDArray[np.float64]:
        """Absolute value of Student's t of the pairs (P, 2) of models: (1 + flips, P), the observed one first.

        0 where no sample differs and where there are fewer than 2 samples.
        """
        n = sum(map(len, self._groups))
        sums = self._sums[:, pairs[:, 0]] - self._sums[:, pairs[:, 1]]
        if n < 2:
            return np.zeros(sums.shape)
        # The sum of squares does not depend on the signs.
        squares = np.zeros(len(pairs))
        for values in self._groups:
            differences = values[:, pairs[:, 0]] - values[:, pairs[:, 1]]
            squares += np.einsum("ij,ij->j", differences, differences)
        variance = np.maximum(squares - sums**2 / n, SMALLEST_VARIANCE * squares) / (n - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(squares > 0, np.abs(sums) / np.sqrt(n * variance), 0.0)

    def largest(self, pairs: NDArray[np.integer]) -> NDArray[np.float64]:
        """Largest statistic over the pairs under each sign vector, (1 + flips,)."""
        n = sum(map(len, self._groups))
        # The statistic is monotone in (squared sum) / (sum of squares), which is far cheaper to compute.
        sums, greatest = np.ascontiguousarray(self._sums.T), np.zeros(len(self._sums))
        groups = [np.ascontiguousarray(values.T) for values in self._groups]
        starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
        for first, others in zip(pairs[starts, 0], np.split(pairs[:, 1], starts[1:]), strict=True):
            squares = sum(((values[others] - values[first]) ** 2).sum(axis=1) for values in groups)
            ratios = sums[others] - sums[first]
            ratios *= ratios
            ratios *= np.divide(1, squares, out=np.zeros(len(others)), where=squares > 0)[:, None]
            np.maximum(greatest, ratios.max(axis=0), out=greatest)
        if n < 2:
            return np.zeros(len(greatest))
        return np.sqrt(greatest * (n - 1) / (n * np.maximum(1 - greatest / n, SMALLEST_VARIANCE)))


def trusted(differences: NDArray[np.float64]) -> tuple[NDArray[np.bool_]]:
    """Whether the test is valid, for each column of paired `differences` (n, H): `(trusted,)`, (H,) bool.

    True where all differences that are not 0 have the same size, as for 0/1 measures, which makes the test exact; and
    where the effective number of samples (Kish: sum^2 / sum of squares) of each sign is at least ENOUGH.
    """
    size = np.abs(differences)
    largest = size.max(axis=0, initial=0.0)
    exact = ((size == 0) | (size >= largest * (1 - TOLERANCE))).all(axis=0)
    enough = np.ones(len(largest), dtype=bool)
    for side in (1, -1):
        of_side = np.maximum(side * differences, 0)
        enough &= of_side.sum(axis=0) ** 2 >= ENOUGH * (of_side**2).sum(axis=0)
        enough &= of_side.any(axis=0)
    return (exact | enough,)


def p_values(statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values (P,) of statistics (1 + flips, P), the observed one first; at least 1 / (1 + flips)."""
    return np.mean(statistics >= statistics[0] * (1 - TOLERANCE), axis=0)


def adjusted_p_values(observed: ArrayLike, largest: NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values of observed statistics, adjusted for the family by the `largest` statistics (1 + flips,) under flips."""
    ordered = np.sort(largest)
    reached = len(ordered) - np.searchsorted(ordered, np.asarray(observed) * (1 - TOLERANCE), side="left")
    return reached / len(ordered)
