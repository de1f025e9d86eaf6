"""Survival analysis of minimal adversarial distances, and tests of whether classes differ.

A distance that an attack found is an event; a sample on which every attack failed up to the largest distance searched
is censored. A failed attack proves nothing, so the survival is an upper bound of that of the true distances.
"""

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from gfscore.core.errors import InputError

BLOCK = 1024
"""Distances processed together, so that memory does not grow with N times K."""

RANK_TOLERANCE = 1e-9
"""Eigenvalues of a covariance, relative to the largest, below which they count as 0."""

LEAST_SPREAD = 1e-300
"""Stands for the largest eigenvalue of a covariance that is 0."""


@dataclass(frozen=True)
class LogRank:
    """Result of a log-rank test of equal survival of the classes.

    Attributes
    ----------
    statistic : float
        At least 0, larger for more difference.
    degrees_of_freedom : int
        Rank of the covariance, K - 1 for classes that are at risk together.
    p_chi_square, p_permutation : float
        P-values in [0, 1]; NaN when there is nothing to compare, the second also without permutations.
    observed, expected : ndarray of shape (K,), float64
        Events per class, and their expectation under the null hypothesis.
    """

    statistic: float
    degrees_of_freedom: int
    p_chi_square: float
    p_permutation: float
    observed: NDArray[np.float64]
    expected: NDArray[np.float64]


def survival_curves(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike, classes: int, *, radii: ArrayLike
) -> NDArray[np.float64]:
    """Share of each class whose distance exceeds a radius: an upper bound of the share that is robust there.

    Parameters
    ----------
    values : array_like of shape (N,)
        Distances >= 0; 0 for misclassified samples, the largest distance searched for censored ones.
    censored : array_like of shape (N,), bool
        Whether every attack failed.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    radii : array_like of shape (R,)
        Radii >= 0.

    Returns
    -------
    ndarray of shape (K, R), float64
        Shares in [0, 1]; NaN for a class without samples, and from the class's smallest censored distance on.

    Raises
    ------
    InputError
        For a distance that is negative or NaN.
    """
    values, censored, labels = _checked(values, censored, labels)
    radii = np.asarray(radii, dtype=np.float64)
    curves = np.full((classes, len(radii)), np.nan)
    for k in np.unique(labels):
        members = labels == k
        ordered = np.sort(values[members])
        curves[k] = 1 - np.searchsorted(ordered, radii, side="right") / len(ordered)
        smallest_censored = values[members & censored].min(initial=np.inf)
        curves[k, radii >= smallest_censored] = np.nan
    return curves


def class_distances(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike, classes: int
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """Results of minimal-norm attacks per class.

    Parameters
    ----------
    values, censored, labels, classes
        Those of `survival_curves`.

    Returns
    -------
    dict of str to ndarray of shape (K,)
        `n` samples; `misclassified`, at distance 0; `found` and `censored`, which with `misclassified` sum to n;
        `success_rate`, the share found among the correctly classified, NaN if there are none; `median` distance over
        all samples, NaN if it is censored or the class is empty; `mean`, NaN if it is empty (mean_distance).

    Raises
    ------
    InputError
        For a distance that is negative or NaN.
    """
    values, censored, labels = _checked(values, censored, labels)
    n = np.bincount(labels, minlength=classes)
    misclassified = np.bincount(labels[(values == 0) & ~censored], minlength=classes)
    failed = np.bincount(labels[censored], minlength=classes)
    correct = n - misclassified
    succeeded = correct - failed

    median = np.empty(classes)
    mean = np.empty(classes)
    for k in range(classes):
        members = labels == k
        median[k] = median_distance(values[members], censored[members])
        mean[k] = mean_distance(values[members])
    return {
        "n": n,
        "misclassified": misclassified,
        "found": succeeded,
        "censored": failed,
        "success_rate": np.divide(succeeded, correct, out=np.full(classes, np.nan), where=correct > 0),
        "median": median,
        "mean": mean,
    }


def median_distance(values: NDArray[np.float64], censored: NDArray[np.bool_]) -> float:
    """Median distance, 0 for misclassified samples; NaN if it is censored or there are no samples."""
    if len(values) == 0:
        return math.nan
    ordered = np.sort(np.where(censored, np.inf, values))
    low = ordered[(len(ordered) - 1) // 2]
    high = ordered[len(ordered) // 2]
    return float((low + high) / 2) if math.isfinite(high) else math.nan


def mean_distance(values: NDArray[np.float64]) -> float:
    """Restricted mean distance: the largest distance searched for censored samples, 0 for misclassified ones.

    Comparable only between models with the same largest distance. NaN without samples.
    """
    return float(np.mean(values)) if len(values) else math.nan


def log_rank(
    values: ArrayLike,
    censored: ArrayLike,
    labels: ArrayLike,
    classes: int,
    *,
    permutations: int = 0,
    rng: np.random.Generator | None = None,
) -> LogRank:
    """Log-rank test that all classes have the same survival, with p-values by chi-square and by permutation.

    The chi-square p-value has K - 1 degrees of freedom and is valid for large classes. That by permutation is valid for
    every N and K, P(p <= alpha) <= alpha, if samples are exchangeable between classes; it uses the statistic
    sum_k (O_k - E_k)^2 / n_k, which needs no covariance. Censoring must not depend on the class, which a common largest
    distance ensures.

    Parameters
    ----------
    values, censored, labels, classes
        Those of `survival_curves`; classes without samples do not count.
    permutations : int
        Number of random permutations.
    rng : numpy.random.Generator, optional
        Source of the permutations; needed where there are any.

    Returns
    -------
    LogRank
        NaN in place of p-values when fewer than two classes have samples or no distance was found.

    Raises
    ------
    InputError
        For a distance that is negative or NaN.

    References
    ----------
    Mantel 1966; Peto and Peto 1972; variance with ties after Kalbfleisch and Prentice 2002, Eq. 1.18; Phipson and Smyth
    2010 for the +1 of the permutations.
    """
    values, censored, labels = _checked(values, censored, labels)
    present, compact = np.unique(labels, return_inverse=True)
    statistic, present_observed, present_expected, rank = _statistic(values, censored, compact, len(present))

    observed = np.zeros(classes)
    expected = np.zeros(classes)
    observed[present] = present_observed
    expected[present] = present_expected

    p_chi_square = math.nan
    p_permutation = math.nan
    if rank:
        p_chi_square = float(chdtrc(rank, statistic))
        if permutations:
            p_permutation = _permutation_p_value(
                _log_rank_scores(values, censored), labels, permutations, cast(np.random.Generator, rng)
            )
    return LogRank(statistic, rank, p_chi_square, p_permutation, observed, expected)


def _permutation_p_value(
    scores: NDArray[np.float64], labels: NDArray[np.integer], permutations: int, rng: np.random.Generator
) -> float:
    n = np.bincount(labels)
    scale = np.sum(scores**2) / (len(scores) - 1)

    def statistic(membership: NDArray[np.integer]) -> float:
        excess = np.bincount(membership, weights=scores)
        return float(np.sum(excess[n > 0] ** 2 / n[n > 0]) / scale)

    # Tolerance for equal statistics that differ by rounding.
    least = statistic(labels) * (1 - 1e-9) - 1e-12
    reached = 0
    for _ in range(permutations):
        reached += statistic(rng.permutation(labels)) >= least
    return (1 + reached) / (1 + permutations)


def _log_rank_scores(values: NDArray[np.float64], censored: NDArray[np.bool_]) -> NDArray[np.float64]:
    # Event indicator of each sample minus its cumulative hazard; the sum over a class is O_k - E_k.
    times, position = np.unique(values, return_inverse=True)
    events = np.bincount(position, weights=~censored, minlength=len(times))
    nearer = np.concatenate([[0], np.cumsum(np.bincount(position))[:-1]])
    hazard = events / (len(values) - nearer)
    return ~censored - np.cumsum(hazard)[position]


def _statistic(
    values: NDArray[np.float64], censored: NDArray[np.bool_], labels: NDArray[np.integer], classes: int
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], int]:
    # Chi-square, events observed and expected per class (K,), and the rank of their covariance.
    order = np.argsort(values, kind="stable")
    values = values[order]
    event = ~censored[order]
    labels = labels[order]
    observed = np.bincount(labels[event], minlength=classes).astype(np.float64)
    expected, covariance = _expected_events(values, event, labels, classes)

    # The rows sum to 0, so the rank is at most K - 1, and less if classes are never at risk together.
    spread, directions = np.linalg.eigh(covariance)
    chosen = spread > RANK_TOLERANCE * max(spread[-1], LEAST_SPREAD)
    rank = int(chosen.sum())
    if rank == 0:
        return math.nan, observed, expected, 0
    excess = directions[:, chosen].T @ (observed - expected)
    return float(np.sum(excess**2 / spread[chosen])), observed, expected, rank


def _expected_events(
    values: NDArray[np.float64], event: NDArray[np.bool_], labels: NDArray[np.integer], classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    # Expectation (K,) and covariance (K, K) of the events per class under the null hypothesis; samples by distance.
    # At a distance with d events among n at risk, of shares s_k: E_k = d s_k, and
    # V_kl = d (n - d) / (n - 1) (s_k [k = l] - s_k s_l), the covariance of a hypergeometric draw.
    times, first = np.unique(values, return_index=True)
    deaths = np.add.reduceat(event.astype(np.float64), first) if len(first) else np.zeros(0)
    expected = np.zeros(classes)
    covariance = np.zeros((classes, classes))
    # Samples at risk at the first distance of a block.
    remaining = np.bincount(labels, minlength=classes).astype(np.float64)
    for start in range(0, len(times), BLOCK):
        block = slice(start, start + BLOCK)
        stop = first[start + BLOCK] if start + BLOCK < len(first) else len(values)
        rows = np.searchsorted(first[block], np.arange(first[start], stop), side="right") - 1
        leaving = np.zeros((len(times[block]), classes))
        np.add.at(leaving, (rows, labels[first[start] : stop]), 1)
        left_by_then = np.cumsum(leaving, axis=0)
        at_risk = remaining - left_by_then + leaving
        remaining = remaining - left_by_then[-1]

        total = at_risk.sum(axis=1)
        share = at_risk / total[:, None]
        expected += deaths[block] @ share
        weight = deaths[block] * (total - deaths[block]) / np.maximum(total - 1, 1)
        covariance += np.diag(weight @ share) - (share * weight[:, None]).T @ share
    return expected, covariance


def _checked(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.integer]]:
    values = np.asarray(values, dtype=np.float64)
    valid = values >= 0
    if not valid.all():
        raise InputError(f"distances must be numbers of at least 0; {int((~valid).sum())} are not")
    return values, np.asarray(censored, dtype=bool), np.asarray(labels)
