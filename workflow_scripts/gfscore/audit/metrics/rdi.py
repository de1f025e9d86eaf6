"""RDI, the robustness disparity index: the largest minus the smallest class value."""

from __future__ import annotations

from gfscore.audit.metrics.declaration import BoundsOfClasses, Case, Interval, Metric
from gfscore.core.errors import InputError
from gfscore.core.lazy import np


def rdi(values: np.ndarray) -> np.ndarray:
    """Largest minus smallest class value.

    Parameters
    ----------
    values : ndarray (..., K) of float64
        Class values.

    Returns
    -------
    ndarray (...)
        In the unit of the measure, at least 0; 0 for equal classes.

    References
    ----------
    GF-Score, Definition 2 (Eq. 4).
    """
    return values.max(axis=-1) - values.min(axis=-1)


def over_box(low: np.ndarray, high: np.ndarray) -> Interval:
    """Smallest and largest RDI over a box of class values (K,)."""
    return largest_gap(low, high), largest_gap(high, low)


def largest_gap(first: np.ndarray, second: np.ndarray) -> float:
    """Largest first_i - second_j over classes i != j, at least 0.

    Over class values in [low, high], the largest RDI is largest_gap(high, low), the smallest is largest_gap(low, high).
    """
    gap = first[:, None] - second[None, :]
    np.fill_diagonal(gap, -np.inf)
    return max(0.0, float(gap.max()))


def gate_bounds(class_bounds: BoundsOfClasses, alpha: float) -> Interval:
    """Bounds of RDI, each with confidence at least 1 - alpha, from one-sided bounds of the classes.

    The upper bound fails only if the upper bound of the true best class or the lower bound of the true worst class
    does: a union bound over two class bounds. The lower bound may be attained by any two classes: a union bound over
    both bounds of all K classes.
    """
    alpha_of_side = alpha / (2 * len(class_bounds.n))
    low = largest_gap(class_bounds.lower(alpha_of_side), class_bounds.upper(alpha_of_side))
    high = largest_gap(class_bounds.upper(alpha / 2), class_bounds.lower(alpha / 2))
    return low, high


def detectable_rdi(low: np.typing.ArrayLike, high: np.typing.ArrayLike) -> float:
    """RDI above which class intervals of these widths certainly give a lower bound above 0.

    Parameters
    ----------
    low, high : array-like (K,)
        Simultaneous bounds of the class values.

    Returns
    -------
    float
        Sum of the two largest widths, in the unit of the measure. If the bounds hold and the true RDI exceeds this sum,
        the lower bound of RDI is above 0, whichever two classes are the best and the worst. A smaller RDI may have a
        lower bound of 0. With Hoeffding's half-widths h the sum is 2 (h_i + h_j), so 4 h for classes of one size.

    Raises
    ------
    InputError
        For fewer than two classes.
    """
    widths = np.sort(np.asarray(high) - np.asarray(low))
    if len(widths) < 2:
        raise InputError(f"disparity between classes needs at least 2 classes, got {len(widths)}")
    return float(widths[-1] + widths[-2])


METRIC = Metric(
    name="rdi",
    title="RDI",
    meaning="RDI, best class minus worst",
    explanation=(
        "Robustness disparity index: best class minus worst class, in the unit of the measure. 0 means all classes are "
        "equal; lower is more equal. It grows with the scale of the measure."
    ),
    source="GF-Score, Definition 2 (Eq. 4)",
    kind="disparity",
    direction=-1,
    value=rdi,
    value_range=lambda lowest, highest, **_: (0.0, highest - lowest),
    at_equality=0.0,
    case=Case(values=(1.0, 2.0, 5.0), expected=4.0),
    over_box=over_box,
    gate_bounds=gate_bounds,
    order=3,
    columns="first",
)
