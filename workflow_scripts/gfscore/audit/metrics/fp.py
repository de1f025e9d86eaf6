"""FP, the fairness-penalised mean: class mean minus lambda times RDI."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import Case, Interval, Metric
from gfscore.audit.metrics.rdi import rdi
from gfscore.core.errors import InputError
from gfscore.core.lazy import np


def fp(values: np.ndarray, *, lam: float) -> np.ndarray:
    """Class mean minus lambda times RDI.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values.
    lam : float
        Weight lambda of RDI, at least 0.

    Returns
    -------
    ndarray (...)
        In the unit of the measure, higher is better; may be negative.

    Raises
    ------
    InputError
        For a lambda below 0, which would reward disparity.

    References
    ----------
    GF-Score, Definition 5 (Eq. 7).
    """
    if not lam >= 0:
        raise InputError(f"lambda of FP must be at least 0, got {lam!r}")
    return values.mean(axis=-1) - lam * rdi(values)


def over_box(low: np.ndarray, high: np.ndarray, *, lam: float) -> Interval:
    """Smallest and largest FP over a box of class values (K,)."""
    # FP is concave, so its minimum is at a vertex: all classes low, except perhaps the largest one, i.
    # Raising class i to its upper end changes the mean by +w/K and the penalised range by -lam * w.
    range_penalty = lam * (high[:, None] - low[None, :])
    mean_with_i_high = (low.sum() + high - low)[:, None] / len(low)
    with_i_high = mean_with_i_high - range_penalty
    np.fill_diagonal(with_i_high, np.inf)
    both_low = low.mean() - lam * (low[:, None] - low[None, :])
    np.fill_diagonal(both_low, np.inf)
    smallest = float(min(with_i_high.min(), both_low.min()))

    # For a given largest value u, FP is largest if every class is raised to min(U, u).
    floor = low.max()
    largest_values = np.unique(np.append(high[high >= floor], floor))
    points = np.minimum(high[None, :], largest_values[:, None])
    penalties = lam * (points.max(axis=1) - points.min(axis=1))
    return smallest, float((points.mean(axis=1) - penalties).max())


METRIC = Metric(
    name="fp",
    title="FP",
    meaning="FP, class mean minus lambda times RDI",
    explanation=(
        "Fairness-penalised mean: class mean minus lambda times RDI, in the unit of the measure. Higher is better; it "
        "may be negative."
    ),
    source="GF-Score, Definition 5 (Eq. 7)",
    kind="penalised",
    direction=1,
    value=fp,
    needs=("lam",),
    value_range=lambda lowest, highest, *, classes, lam: (lowest - lam * (highest - lowest), highest),
    case=Case(values=(1.0, 2.0, 6.0), lam=0.5, expected=0.5),
    over_box=over_box,
    order=9,
    columns="first",
)
