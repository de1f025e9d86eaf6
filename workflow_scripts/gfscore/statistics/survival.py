"""Survival analysis of minimal adversarial distances, and tests of whether classes differ.

A distance that an attack found is an event; a sample on which every attack failed up to the largest distance searched
is censored. A failed attack proves nothing, so the survival is an upper bound of that of the true distances.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError

BLOCK = 1024
"""Distances processed together, so that memory does not grow with N times K."""

RANK_TOLERANCE = 1e-9


@dataclass(frozen=True)
class LogRank:
    """Result of a log-rank test of equal survival of the classes.

    `statistic` >= 0, larger for more difference; `degrees_of_freedom`; p-values in [0, 1], NaN when there is nothing to
    compare, `p_chi_square`, and `p_permutation`, NaN too without permutations; `observed` and `expected` (K,): events
    per class, and their expectation under the null hypothesis.
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
    """Share of each class whose distance exceeds r, (K, R): an upper bound of the share that is robust at r.

    Takes `values` (N,) >= 0, `censored` (N,) bool, `labels` (N,) int, the number of classes and `radii` (R,) >= 0.
    Misclassified samples have distance 0. NaN for a class without samples, and from the class's smallest censored
    distance on.
    """
    values, censored, labels = _checked(values, censored, labels)
    radii = np.asarray(radii, dtype=np.float64)
    curves = np.full((classes, len(radii)), np.nan)
    for k in np.unique(labels):
        members = labels == k
        ordered = np.sort(values[members])
        curves[k] = 1 - np.searchsorted(ordered, radii, side="right") / len(ordered)
        curves[k, radii >= values[members & censored].min(initial=np.inf)] = np.nan
    return curves


def class_distances(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike, classes: int
) -> dict[str, NDArray[np.int64] | NDArray[np.float64]]:
    """Results of minimal-norm attacks per class, (K,) by column; arguments as `survival_curves` takes them.

    `n` samples; `misclassified`, at distance 0; `found` and `censored`, which with `misclassified` sum to n;
    `success_rate`, the share found among the correctly classified, NaN if there are none; `median` distance over all
    samples, NaN if it is censored or the class is empty; `mean`, NaN if it is empty (mean_distance).
    """
    values, censored, labels = _checked(values, censored, labels)

    def count(chosen: slice | NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(labels[chosen], minlength=classes)

    n, misclassified, unfound = count(slice(None)), count((values == 0) & ~censored), count(censored)
    right = n - misclassified
    own = [labels == k for k in range(classes)]
    return {
        "n": n,
        "misclassified": misclassified,
        "found": right - unfound,
        "censored": unfound,
        "success_rate": np.divide(right - unfound, right, out=np.full(classes, np.nan), where=right > 0),
        "median": np.array([median_distance(values[members], censored[members]) for members in own]),
        "mean": np.array([mean_distance(values[members]) for members in own]),
    }


def median_distance(values: NDArray[np.float64], censored: NDArray[np.bool_]) -> float:
    """Median distance, 0 for misclassified samples; NaN if it is censored or there are no samples."""
    if len(values) == 0:
        return math.nan
    beyond = np.where(censored, np.inf, values)
    low, high = np.sort(beyond)[[(len(beyond) - 1) // 2, len(beyond) // 2]]
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

    Arguments as `survival_curves` takes them, and the number of permutations with a numpy Generator. Classes without
    samples are left out. The chi-square p-value has K - 1 degrees of freedom and is valid for large classes. That by
    permutation is valid for every N and K, P(p <= alpha) <= alpha, if samples are exchangeable between classes; it uses
    the statistic sum_k (O_k - E_k)^2 / n_k, which needs no covariance. Censoring must not depend on the class, which a
    common largest distance ensures. NaN when fewer than two classes have samples or no distance was found. Source:
    Mantel 1966; Peto and Peto 1972; variance with ties after Kalbfleisch and Prentice 2002, Eq. 1.18; Phipson and Smyth
    2010 for the +1 of the permutations.
    """
    from scipy.special import chdtrc

    values, censored, labels = _checked(values, censored, labels)
    present, compact = np.unique(labels, return_inverse=True)
    statistic, observed, expected, rank = _statistic(values, censored, compact, len(present))
    every = np.zeros((2, classes))
    every[:, present] = observed, expected
    p_chi_square = p_permutation = math.nan
    if rank:
        p_chi_square = float(chdtrc(rank, statistic))
        if permutations:
            p_permutation = _permutation_p_value(_log_rank_scores(values, censored), labels, permutations, rng)
    return LogRank(statistic, rank, p_chi_square, p_permutation, *every)


def _permutation_p_value(scores, labels, permutations, rng):
    n = np.bincount(labels)
    scale = np.sum(scores**2) / (len(scores) - 1)

    def statistic(membership: NDArray[np.integer]) -> float:
        excess = np.bincount(membership, weights=scores)
        return float(np.sum(excess[n > 0] ** 2 / n[n > 0]) / scale)

    # Tolerance for equal statistics that differ by rounding.
    least = statistic(labels) * (1 - 1e-9) - 1e-12
    reached = sum(statistic(rng.permutation(labels)) >= least for _ in range(permutations))
    return (1 + reached) / (1 + permutations)


def _log_rank_scores(values, censored):
    # Event indicator of each sample minus its cumulative hazard; the sum over a class is O_k - E_k.
    times, place = np.unique(values, return_inverse=True)
    events = np.bincount(place, weights=~censored, minlength=len(times))
    at_risk = len(values) - np.concatenate([[0], np.cumsum(np.bincount(place))[:-1]])
    return ~censored - np.cumsum(events / at_risk)[place]


def _statistic(values, censored, labels, classes):
    # Chi-square, events observed and expected per class (K,), and the rank of their covariance.
    order = np.argsort(values, kind="stable")
    values, event, labels = values[order], ~censored[order], labels[order]
    observed = np.bincount(labels[event], minlength=classes).astype(np.float64)
    times, first = np.unique(values, return_index=True)
    deaths = np.add.reduceat(event.astype(np.float64), first) if len(first) else np.zeros(0)
    expected, covariance = np.zeros(classes), np.zeros((classes, classes))
    # Samples at risk just before each time.
    remaining = np.bincount(labels, minlength=classes).astype(np.float64)
    for start in range(0, len(times), BLOCK):
        block = slice(start, start + BLOCK)
        stop = first[start + BLOCK] if start + BLOCK < len(first) else len(values)
        rows = np.searchsorted(first[block], np.arange(first[start], stop), side="right") - 1
        leaving = np.zeros((len(times[block]), classes))
        np.add.at(leaving, (rows, labels[first[start] : stop]), 1)
        gone = np.cumsum(leaving, axis=0)
        at_risk = remaining - gone + leaving
        remaining = remaining - gone[-1]
        total = at_risk.sum(axis=1)
        share, lost = at_risk / total[:, None], deaths[block]
        expected += lost @ share
        weight = lost * (total - lost) / np.maximum(total - 1, 1)
        covariance += np.diag(weight @ share) - (share * weight[:, None]).T @ share
    # The rows sum to 0, so the rank is at most K - 1, and less if classes are never at risk together.
    spread, directions = np.linalg.eigh(covariance)
    chosen = spread > RANK_TOLERANCE * max(spread[-1], 1e-300)
    rank = int(chosen.sum())
    if rank == 0:
        return math.nan, observed, expected, 0
    along = directions[:, chosen].T @ (observed - expected)
    return float(np.sum(along**2 / spread[chosen])), observed, expected, rank


def _checked(
    values: ArrayLike, censored: ArrayLike, labels: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.integer]]:
    values, censored = np.asarray(values, dtype=np.float64), np.asarray(censored, dtype=bool)
    if not (values >= 0).all():
        raise InputError(f"distances must be numbers of at least 0; {int((~(values >= 0)).sum())} are not")
    return values, censored, np.asarray(labels)
