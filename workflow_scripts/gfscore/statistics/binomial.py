"""Exact statements about a share, from counts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_ALPHA = 1 / 4
"""Largest level at which bounds of unlike trials are known to hold; larger ones get it."""


def clopper_pearson(successes: int, trials: int, *, alpha: float) -> tuple[float, float]:
    """Exact two-sided confidence interval `(low, high)` of a binomial probability, confidence at least 1 - alpha.

    Takes 0 <= `successes` <= `trials`, trials >= 1. Source: Clopper and Pearson 1934.
    """
    low = lower_shares(successes, trials, alpha=alpha / 2)
    high = 1 - lower_shares(trials - successes, trials, alpha=alpha / 2)
    return float(low), float(high)


def lower_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Exact lower confidence bounds of binomial probabilities, each with confidence at least 1 - alpha.

    Takes `successes` and `trials`, numbers or arrays of one shape; 0 without successes, and without trials. Counts need
    not be whole, so that a planner can ask about expected ones. Source: Clopper and Pearson 1934, one side.
    """
    from scipy.special import betaincinv

    successes, trials = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    some = successes > 0
    bound = betaincinv(np.where(some, successes, 1), np.where(some, trials - successes + 1, 1), alpha)
    return np.where(some, bound, 0.0)


def lower_mean_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bounds of the mean probability of independent trials, alike or not, each at level alpha.

    Takes what lower_shares takes, whose bounds these are but for one success. Unlike trials reach a number of successes
    less often than alike ones of the same mean, if it is at least one above the expected number (Hoeffding 1956). Two
    successes or more that refute a mean at alpha <= 1/4 are so many, since alike trials reach an expected number above
    1 with probability above 1/4 (Greenberg and Mohri 2014). One success may not be: its bound is alpha / trials, as the
    probability of any success is at most the expected number.
    """
    bound = lower_shares(successes, trials, alpha=min(alpha, MOST_ALPHA))
    single = np.minimum(bound, alpha / np.maximum(trials, 1))
    return np.where(np.asarray(successes) <= 1, single, bound)
