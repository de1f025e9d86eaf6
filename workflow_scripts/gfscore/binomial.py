"""Exact statements about a share, from counts."""


def clopper_pearson(successes, trials, *, alpha):
    """Exact two-sided confidence interval `(low, high)` of a binomial probability, confidence at least 1 - alpha.

    Takes 0 <= `successes` <= `trials`, trials >= 1. Source: Clopper and Pearson 1934.
    """
    from scipy.stats import beta

    low = 0.0 if successes == 0 else float(beta.ppf(alpha / 2, successes, trials - successes + 1))
    high = 1.0 if successes == trials else float(beta.ppf(1 - alpha / 2, successes + 1, trials - successes))
    return low, high
