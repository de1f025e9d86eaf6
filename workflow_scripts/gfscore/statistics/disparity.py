"""How unequal a vector of class values is.

Every function takes class values (K,) where higher is better, ignores NaN (classes without samples) and raises
InputError when fewer than two classes remain.
"""

import numpy as np

from gfscore.core.errors import InputError

TIE_TOLERANCE = 1e-9
"""Values no further apart are tied: beyond it lies rounding, which must not decide who is worst or a rank."""


def rdi(values):
    """Robustness Disparity Index: the largest minus the smallest class value.

    In the unit of the values, 0 at perfect equality, lower is more equal; grows with the scale of the score.
    Source: GF-Score, Definition 2 (Eq. 4).
    """
    values = _present(values)
    return float(values.max() - values.min())


def wcr(values):
    """Worst-Case Class Robustness: the smallest class value, higher is better (GF-Score, Definition 4, Eq. 6)."""
    return float(_present(values).min())


def worst_classes(values):
    """Indices of every class that attains the minimum within TIE_TOLERANCE, int64, ascending: ties are all reported."""
    return np.flatnonzero(np.asarray(values, dtype=np.float64) <= wcr(values) + TIE_TOLERANCE)


def worst_class_set(low, high):
    """Classes that may be the worst one given class intervals: {k : L_k <= min_j U_j}.

    Contains a truly worst class with the simultaneous confidence of the intervals.
    """
    low, high = np.asarray(low), np.asarray(high)
    return np.flatnonzero(low <= high.min())


def nrgc(values):
    """Normalised Robustness Gini Coefficient: sum_ij |x_i - x_j| / (2 K^2 mean).

    Values must be >= 0. In [0, (K-1)/K], 0 at perfect equality, lower is more equal, invariant to scale.
    NaN when every value is 0, where the Gini is undefined. O(K log K).
    Source: GF-Score, Definition 3 (Eq. 5).
    """
    values = np.sort(_present(values))
    if values[0] < 0:
        raise InputError(f"the Gini coefficient needs values >= 0, got {values[0]}")
    k, total = len(values), values.sum()
    if total == 0:
        return float("nan")
    # Each gap between neighbours in rank parts every pair across it; a sum of gaps is never negative by rounding.
    pairs_across = np.arange(1, k) * np.arange(k - 1, 0, -1)
    return float(pairs_across @ np.diff(values) / (k * total))


def gini_unbiased(values):
    """Gini coefficient times K / (K - 1), so that its maximum is 1 for every K."""
    k = len(_present(values))
    return nrgc(values) * k / (k - 1)


def fp(values, lam):
    """Fairness-penalised mean: class mean minus lambda times RDI; may be negative (GF-Score, Definition 5, Eq. 7).

    Raises InputError for a lambda below 0, which would reward disparity.
    """
    if not lam >= 0:
        raise InputError(f"lambda of FP must be at least 0, got {lam!r}")
    return float(_present(values).mean() - lam * rdi(values))


def rdi_over_mean(values):
    """RDI divided by the class mean: the range without the scale of the score; NaN when every value is 0."""
    mean = _present(values).mean()
    return rdi(values) / float(mean) if mean > 0 else float("nan")


def ihdi(values):
    """Inequality-adjusted mean: class mean times (1 - NRGC), higher is better; 0 when every value is 0."""
    mean = float(_present(values).mean())
    return mean * (1 - nrgc(values)) if mean > 0 else 0.0


def pairwise_differences(values):
    """Absolute differences |x_i - x_j| of all pairs of classes, (K, K); NaN rows for classes without samples."""
    values = np.asarray(values, dtype=np.float64)
    return np.abs(values[:, None] - values[None, :])


def _present(values):
    values = np.asarray(values, dtype=np.float64)
    values = values[~np.isnan(values)]
    if len(values) < 2:
        raise InputError(f"disparity between classes needs at least 2 classes with samples, got {len(values)}")
    return values
