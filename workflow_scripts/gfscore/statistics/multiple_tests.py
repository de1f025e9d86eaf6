"""Tests of many hypotheses at once: adjusted p-values, and the studentised sign-flip test of paired differences."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.tolerances import LEVEL_TOLERANCE, SIGNIFICANT

METHODS: tuple[Literal["bh"], Literal["by"]] = ("bh", "by")
"""Adjustments for the false discovery rate: Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001."""

TOLERANCE = 1e-9
"""Relative tolerance: rounding must not decide whether a flipped statistic reaches the observed one."""

SMALLEST_VARIANCE = 1e-4
"""Smallest variance in units of the mean square, which keeps the statistic finite when all differences are equal."""

ENOUGH = 25
"""Effective number of samples of each sign from which the sign-flip test is valid.

Simulated: one model constant at q, the other 1 with probability q = .01, .05 or .2. With at least 25 samples of each
sign at most 6% of such pairs are rejected at level 5%; with one or five samples of the rarer sign 41% and 17%.
"""

ELEMENTS_AT_ONCE = 1 << 22
"""Elements of the sign vectors drawn at a time, to bound the memory."""


def is_significant(p_values: ArrayLike, *, level: ArrayLike = SIGNIFICANT) -> NDArray[np.bool_]:
    """Whether adjusted p-values are at most a level, up to LEVEL_TOLERANCE."""
    return np.asarray(p_values) <= np.asarray(level) + LEVEL_TOLERANCE


def holm(p_values: ArrayLike, *, family: int) -> NDArray[np.float64]:
    """Adjust p-values so that the family-wise error rate is controlled.

    Parameters
    ----------
    p_values : array_like of shape (H,)
        P-values in [0, 1].
    family : int
        Size of the family, at least H: hypotheses that were not tested count as never rejected.

    Returns
    -------
    ndarray of shape (H,), float64
        Adjusted p-values in [0, 1]. Rejecting where they are at most alpha has a family-wise error rate of at most
        alpha, under any dependence between the tests.

    Raises
    ------
    InputError
        For a family of fewer than H hypotheses, and p-values outside [0, 1].

    References
    ----------
    Holm 1979.
    """
    p_values = _require_family(p_values, family)
    order = np.argsort(p_values, kind="stable")
    stepped = p_values[order] * (family - np.arange(len(p_values)))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return adjusted


def false_discovery(p_values: ArrayLike, *, family: int, method: Literal["bh", "by"]) -> NDArray[np.float64]:
    """Adjust p-values so that the false discovery rate is controlled.

    Parameters
    ----------
    p_values, family
        Those of `holm`.
    method : {"bh", "by"}
        "by" is valid under any dependence, "bh" proven for independent or positively dependent tests only.

    Returns
    -------
    ndarray of shape (H,), float64
        Adjusted p-values in [0, 1].

    Raises
    ------
    InputError
        As `holm`.

    Notes
    -----
    # ASSUME: comparisons that share a model are positively dependent; simulations support this, no proof does.

    References
    ----------
    Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001, Theorem 1.3.
    """
    p_values = _require_family(p_values, family)
    untested = np.ones(family - len(p_values))
    every = np.concatenate([p_values, untested])

    order = np.argsort(every)
    position = np.arange(1, family + 1, dtype=np.float64)
    stepped = every[order] * (family / position)
    if method == "by":
        stepped *= np.sum(1 / position)

    adjusted = np.empty(family)
    adjusted[order] = np.minimum.accumulate(stepped[::-1])[::-1]
    return np.clip(adjusted, 0, 1)[: len(p_values)]


def _require_family(p_values: ArrayLike, family: int) -> NDArray[np.float64]:
    p_values = np.asarray(p_values, dtype=np.float64)
    if family < len(p_values):
        raise InputError(f"a family of {family} hypotheses cannot hold {len(p_values)} tests")
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise InputError("p-values must lie in [0, 1]")
    return p_values


class SignFlips:
    """Paired differences of M models under random signs, one sign per sample for all models.

    The test is exact where the differences are symmetric about 0 under the null hypothesis, as for 0/1 measures;
    otherwise asymptotic in the number of samples.

    Parameters
    ----------
    values : ndarray of shape (n, M), float64
        Values of the samples, model by model.
    flips : int
        Number of random sign vectors; a vector of +1 is put first.
    rng : numpy.random.Generator
        Source of the signs.

    Notes
    -----
    # ASSUME: enough samples differ for the central limit theorem to hold; betting does not need this.

    References
    ----------
    Hemerik, Goeman and Finos 2020; the adjustment is the single-step maxT of Westfall and Young 1993.
    """

    def __init__(self, values: NDArray[np.float64], *, flips: int, rng: np.random.Generator) -> None:
        """Draw the signs, and sum the values under each sign vector."""
        n = len(values)
        sums = [np.ones(n) @ values]
        step = max(1, ELEMENTS_AT_ONCE // max(1, n))
        for start in range(0, flips, step):
            signs = rng.choice(np.array([-1.0, 1.0]), size=(min(step, flips - start), n))
            sums.append(signs @ values)
        self._groups = [values]
        self._sums = np.vstack(sums)

    def joined(self, other: Self) -> Self:
        """Sign flips of the samples of both, each with its own signs."""
        joined = object.__new__(type(self))
        joined._groups = self._groups + other._groups
        joined._sums = self._sums + other._sums
        return joined

    def statistics(self, pairs: NDArray[np.integer]) -> NDArray[np.float64]:
        """Absolute values of Student's t of paired differences.

        Parameters
        ----------
        pairs : ndarray of shape (P, 2)
            Models to compare.

        Returns
        -------
        ndarray of shape (1 + flips, P), float64
            The observed statistics first; 0 where no sample differs and where there are fewer than 2 samples.
        """
        n = self._samples()
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
        """Largest statistic over the `pairs` (P, 2), ordered by first model, under each sign vector: (1 + flips,)."""
        # The statistic is monotone in (squared sum) / (sum of squares), which is far cheaper to compute.
        sums = np.ascontiguousarray(self._sums.T)
        greatest = np.zeros(len(self._sums))
        groups = [np.ascontiguousarray(values.T) for values in self._groups]
        starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1))
        for first, seconds in zip(pairs[starts, 0], np.split(pairs[:, 1], starts[1:]), strict=True):
            squares = sum(((values[seconds] - values[first]) ** 2).sum(axis=1) for values in groups)
            ratios = sums[seconds] - sums[first]
            ratios *= ratios
            ratios *= np.divide(1, squares, out=np.zeros(len(seconds)), where=squares > 0)[:, None]
            np.maximum(greatest, ratios.max(axis=0), out=greatest)
        n = self._samples()
        if n < 2:
            return np.zeros(len(greatest))
        return np.sqrt(greatest * (n - 1) / (n * np.maximum(1 - greatest / n, SMALLEST_VARIANCE)))

    def _samples(self):
        return sum(map(len, self._groups))


def trusted(differences: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the sign-flip test is valid for paired differences.

    Parameters
    ----------
    differences : ndarray of shape (n, H)
        Paired differences of H comparisons.

    Returns
    -------
    ndarray of shape (H,), bool
        True where all differences that are not 0 have the same size, as for 0/1 measures, which makes the test exact;
        and where the effective number of samples (Kish: sum^2 / sum of squares) of each sign is at least ENOUGH.
    """
    size = np.abs(differences)
    largest = size.max(axis=0, initial=0.0)
    exact = ((size == 0) | (size >= largest * (1 - TOLERANCE))).all(axis=0)
    enough = np.ones(len(largest), dtype=bool)
    for sign in (1, -1):
        one_sided = np.maximum(sign * differences, 0)
        enough &= one_sided.sum(axis=0) ** 2 >= ENOUGH * (one_sided**2).sum(axis=0)
        enough &= one_sided.any(axis=0)
    return exact | enough


def p_values(statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values (P,) of statistics (1 + flips, P), the observed one first; at least 1 / (1 + flips)."""
    return np.mean(statistics >= statistics[0] * (1 - TOLERANCE), axis=0)


def adjusted_p_values(observed: ArrayLike, largest: NDArray[np.float64]) -> NDArray[np.float64]:
    """P-values of observed statistics, adjusted for the family by the `largest` statistics (1 + flips,) under flips."""
    ordered = np.sort(largest)
    reached = len(ordered) - np.searchsorted(ordered, np.asarray(observed) * (1 - TOLERANCE), side="left")
    return reached / len(ordered)
