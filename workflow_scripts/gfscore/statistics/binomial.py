"""Exact confidence bounds of proportions."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

MOST_ALPHA = 1 / 4
"""Largest level at which bounds for trials of unequal probability are known to hold; larger ones are lowered to it."""


def clopper_pearson(successes: int, trials: int, *, alpha: float) -> tuple[float, float]:
    """Exact two-sided confidence interval `(low, high)` of a binomial probability, confidence at least 1 - alpha.

    Takes 0 <= `successes` <= `trials`, trials >= 1. Source: Clopper and Pearson 1934.
    """
    low = lower_shares(successes, trials, alpha=alpha / 2)
    high = 1 - lower_shares(trials - successes, trials, alpha=alpha / 2)
    return float(low), float(high)


def lower_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Exact lower confidence bounds of binomial probabilities, each with confidence at least 1 - alpha.

    Takes `successes` and `trials`, numbers or arrays of one shape; the bound is 0 without successes or trials. Counts
    may be fractions, for the planning of samples. Source: Clopper and Pearson 1934, one-sided.
    """
    from scipy.special import betaincinv

    successes, trials = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    positive = successes > 0
    bound = betaincinv(np.where(positive, successes, 1), np.where(positive, trials - successes + 1, 1), alpha)
    return np.where(positive, bound, 0.0)


def lower_mean_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bounds, each at level alpha, of the mean probability of trials that need not be identical.

    Arguments as lower_shares takes them; the bounds are the same except for a single success. Trials with unequal
    probabilities reach a number of successes less often than identical trials of the same mean, if that number is at
    least one above its expectation (Hoeffding 1956). This holds for two or more successes that refute a mean at
    alpha <= 1/4, because identical trials reach an expectation above 1 with probability above 1/4 (Greenberg and Mohri
    2014). For one success the bound is alpha / trials, since the probability of any success is at most the expectation.
    """
    bound = lower_shares(successes, trials, alpha=min(alpha, MOST_ALPHA))
    single = np.minimum(bound, alpha / np.maximum(trials, 1))
    return np.where(np.asarray(successes) <= 1, single, bound)
