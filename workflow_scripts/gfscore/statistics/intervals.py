"""Half-widths of confidence intervals of class values, and intervals of the disparity made of those values.

All class intervals hold simultaneously: with probability at least 1 - alpha over the samples, every class's true
value lies in its interval.  # ASSUME: samples of a class are independent draws from that class's distribution.
"""

import math

import numpy as np

from gfscore.core.errors import InputError
from gfscore.statistics import disparity

DINKELBACH_STEPS = 100


def hoeffding_half_width(n, *, classes, alpha, width):
    """Half-width of simultaneous Hoeffding intervals, width * sqrt(log(2K/alpha) / (2 n)).

    `n` samples per class (scalar or (K,)), `classes` K, `width` the length of the measure's range; with
    width = sqrt(pi/2) this is GF-Score, Eq. 11. Infinite where n = 0.
    """
    with np.errstate(divide="ignore"):
        return width * np.sqrt(math.log(2 * classes / alpha) / (2 * np.asarray(n, dtype=np.float64)))


def rdi_bound(n_min, *, classes, alpha, width):
    """Largest distance of the measured RDI from the true one, with probability at least 1 - alpha (GF-Score, Eq. 12).

    Twice the class half-width at the smallest class.
    """
    return 2 * hoeffding_half_width(n_min, classes=classes, alpha=alpha, width=width)


def empirical_bernstein_half_width(n, variance, *, classes, alpha, width):
    """Half-width of simultaneous empirical Bernstein intervals: tighter than Hoeffding when the variance is small.

    sqrt(2 V log(4K/alpha) / n) + 7 width log(4K/alpha) / (3 (n - 1)), V the unbiased sample variance (K,).
    Infinite where n < 2. Source: Maurer and Pontil 2009, Theorem 4, both sides, union over K classes.
    """
    n, variance = np.asarray(n, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    log = math.log(4 * classes / alpha)
    half = np.full(np.broadcast(n, variance).shape, np.inf)
    known = n > 1
    half[known] = np.sqrt(2 * variance[known] * log / n[known]) + 7 * width * log / (3 * (n[known] - 1))
    return half


def require_alpha(alpha):
    """Raise InputError unless 0 < alpha < 1."""
    if not 0 < alpha < 1:
        raise InputError(f"alpha must lie strictly between 0 and 1, got {alpha!r}")


def correct_for_label_errors(low, high, error_rate, *, value_range):
    """Bounds of the class values when a share of the labels may be wrong.

    If the measured mean m mixes right labels (share 1 - eta) with wrong ones whose values lie anywhere in
    [a, b], the class value lies in [(m - eta b)/(1 - eta), (m - eta a)/(1 - eta)], clipped to [a, b].
    Takes bounds `low`, `high` (K,) of m and `error_rate` eta (scalar or (K,)) in [0, 1). Derived here.
    # ASSUME: the rightly labelled samples of a class are drawn from that class, and eta is the share of wrong labels.
    """
    lowest, highest = value_range
    eta = _require_rate(error_rate)
    corrected_low = np.maximum((low - eta * highest) / (1 - eta), lowest)
    corrected_high = np.minimum((high - eta * lowest) / (1 - eta), highest)
    return corrected_low, corrected_high


def _require_rate(error_rate):
    eta = np.asarray(error_rate, dtype=np.float64)
    if not np.all((eta >= 0) & (eta < 1)):
        raise InputError(f"label error rate must lie in [0, 1), got {error_rate}")
    return eta


def least_mean(low, error_rate, *, n):
    """Smallest mean over the samples of classes, of values in [0, 1], when a share of each class's labels may be wrong.

    Takes a lower bound `low` of the mean as labelled, rates eta (K,) in [0, 1) and samples per class `n` (K,). A class
    that lacks d to 1 may truly lack d / (1 - eta), at most 1: most is lost if the wrongest classes lack all they can.
    With one rate for all classes it is correct_for_label_errors.
    """
    eta = _require_rate(error_rate)
    order = np.argsort(-eta)
    right = 1 - eta[order]
    room = n[order] / n.sum() * right
    lacking = np.clip(1 - low - (np.cumsum(room) - room), 0, room)
    return float(np.clip(1 - (lacking / right).sum(), 0, 1))


def disparity_intervals(low, high, *, n, lam):
    """Smallest intervals of aggregate, class mean, RDI, NRGC, WCR and FP that follow from class intervals.

    Takes bounds `low`, `high` (K,), all >= 0, samples per class `n` (K,) and `lam` of FP. Returns a mapping name ->
    (low, high): exact extremes over the box, so each holds with the joint confidence of the class intervals.
    NRGC is (NaN, NaN) when the whole box is 0. Derived here; the GF-Score paper leaves it open.
    """
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    weights = np.asarray(n) / np.sum(n)
    return {
        "value": (float(weights @ low), float(weights @ high)),
        "class_mean": (float(low.mean()), float(high.mean())),
        "rdi": (largest_gap(low, high), largest_gap(high, low)),
        "nrgc": nrgc_interval(low, high),
        "wcr": (float(low.min()), float(high.min())),
        "fp": fp_interval(low, high, lam),
    }


def largest_gap(upper, lower):
    """Largest upper_i - lower_j over classes i != j, at least 0: the upper end of RDI over a box, or the lower one."""
    gap = upper[:, None] - lower[None, :]
    np.fill_diagonal(gap, -np.inf)
    return max(0.0, float(gap.max()))


def fp_interval(low, high, lam):
    """Smallest and largest FP over a box of class values."""
    return _lowest_fp(low, high, lam), _highest_fp(low, high, lam)


def _lowest_fp(low, high, lam):
    # FP is concave, so its minimum is at a vertex: all classes low, except perhaps the largest one, i.
    # Raising class i to its upper end changes the mean by +w/K and the penalised range by -lam * w.
    k = len(low)
    range_penalty = lam * (high[:, None] - low[None, :])
    mean_with_i_high = (low.sum() + high - low)[:, None] / k
    candidate = mean_with_i_high - range_penalty
    np.fill_diagonal(candidate, np.inf)
    both_low = low.mean() - lam * (low[:, None] - low[None, :])
    np.fill_diagonal(both_low, np.inf)
    return float(min(candidate.min(), both_low.min()))


def _highest_fp(low, high, lam):
    # For a given largest value u the best point raises every class as far as min(U, u).
    floor = low.max()
    candidates = np.unique(np.append(high[high >= floor], floor))
    points = np.minimum(high[None, :], candidates[:, None])
    return float((points.mean(axis=1) - lam * (points.max(axis=1) - points.min(axis=1))).max())


def nrgc_interval(low, high):
    """Smallest and largest NRGC over a box of class values >= 0; (NaN, NaN) when the whole box is 0."""
    if high.max() == 0:
        return float("nan"), float("nan")
    flattest = (np.clip(t, low, high) for t in np.unique(np.concatenate([low, high])))
    smallest = min(disparity.nrgc(point) for point in flattest if point.sum() > 0)
    return smallest, _largest_nrgc(low, high)


def _largest_nrgc(low, high):
    # Dinkelbach: for a trial Gini theta, maximise sum_i (c_rank(i) - K theta) x_i over ranks and vertices. The sum of
    # |x_i - x_j| is the largest such sum over all rankings, so an assignment problem solves each step exactly.
    k = len(low)
    coefficients = 2.0 * np.arange(1, k + 1) - k - 1
    point = np.where(np.arange(k) == high.argmax(), high, low)
    theta = disparity.nrgc(point)
    for _ in range(DINKELBACH_STEPS):
        slope = coefficients - k * theta
        classes = _heaviest_ranking(low, high, slope)
        point = np.where(slope > 0, high[classes], low[classes])
        improved = disparity.nrgc(point) if point.sum() > 0 else theta
        if improved <= theta * (1 + 1e-12):
            return theta
        theta = improved
    raise RuntimeError(f"the largest NRGC over the class intervals did not settle in {DINKELBACH_STEPS} steps")


def _heaviest_ranking(low, high, slope):
    # Class at each rank such that sum_i slope_rank(i) x_i is largest, with x_i low at ranks of negative slope, else
    # high. The assignment starts from a ranking that is nearly right, whose prices of the ranks leave only costs near 0
    # to the solver: a thirtieth of its time at K = 1,000, the same solution.
    from scipy.optimize import linear_sum_assignment

    below = np.count_nonzero(slope <= 0)
    guess = np.argsort(low + high)
    guess = np.concatenate([half[np.argsort(x[half])] for half, x in ((guess[:below], low), (guess[below:], high))])
    x = np.where(slope > 0, high[guess], low[guess])
    prices = np.append(0, np.cumsum(np.diff(slope) * (x[:-1] + x[1:]) / 2))
    worth = np.where(slope > 0, np.multiply.outer(high[guess], slope), np.multiply.outer(low[guess], slope)) - prices
    rows, ranks = linear_sum_assignment(worth.max(axis=1, keepdims=True) - worth)
    return guess[rows[np.argsort(ranks)]]


def samples_for_half_width(half_width, *, classes, alpha, width):
    """Fewest samples per class for Hoeffding intervals of a half-width: 1,883 at .05, K = 10, alpha = .05, width B.

    Raises InputError for a half-width that is not positive and an alpha outside (0, 1).
    """
    require_alpha(alpha)
    if half_width <= 0:
        raise InputError(f"half-width must be positive, got {half_width}")
    # From one below, since the ceiling of a rounded quotient may be one off on either side.
    n = max(1, math.ceil(width**2 * math.log(2 * classes / alpha) / (2 * half_width**2)) - 1)
    while hoeffding_half_width(n, classes=classes, alpha=alpha, width=width) > half_width:
        n += 1
    return n
