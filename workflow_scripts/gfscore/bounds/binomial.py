"""Exact statements about a share, from counts."""

import numpy as np


def clopper_pearson(successes, trials, *, alpha):
    """Exact two-sided confidence interval `(low, high)` of a binomial probability, confidence at least 1 - alpha.

    Takes 0 <= `successes` <= `trials`, trials >= 1. Source: Clopper and Pearson 1934.
    """
    low = lower_shares(successes, trials, alpha=alpha / 2)
    high = 1 - lower_shares(trials - successes, trials, alpha=alpha / 2)
    return float(low), float(high)


def lower_shares(successes, trials, *, alpha):
    """Exact lower confidence bounds of binomial probabilities, each with confidence at least 1 - alpha.

    Takes `successes` and `trials`, numbers or arrays of one shape; 0 without successes, and without trials. Counts need
    not be whole, so that a planner can ask about expected ones. Source: Clopper and Pearson 1934, one side.
    """
    from scipy.special import betaincinv

    successes, trials = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    some = successes > 0
    bound = betaincinv(np.where(some, successes, 1), np.where(some, trials - successes + 1, 1), alpha)
    return np.where(some, bound, 0.0)
