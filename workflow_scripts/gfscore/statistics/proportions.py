"""Exact confidence bounds of proportions: of successes, of certified samples, of robust inputs.

In probabilistic robustness an input is robust, z = 1, when at most a share kappa of its perturbed copies is classified
differently. A sequential test decides robust or not robust, or remains undecided; each decision is wrong with
a bounded probability, its error rate. `share_interval` bounds P(z = 1), per class and overall, allowing for wrong
decisions, undecided inputs and sampling.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, betaincinv, gammaln

from gfscore.core.errors import InputError
from gfscore.statistics.classes import ClassValues, class_values
from gfscore.statistics.intervals import last_rejected
from gfscore.statistics.sequential_tests import NOT_ROBUST, ROBUST, STATES

MOST_ALPHA = 1 / 4
"""Largest level at which bounds for trials of unequal probability are known to hold; larger ones are lowered to it."""

LEVEL_OF_DIRECTION = 0.9
"""Share of the error probability of a difference that is for its sign; the rest is for what its size depends on."""

LARGEST_LOG_ODDS = 40.0
HALVINGS = 60
"""Bisections of the logarithm of an odds ratio within its largest size."""

BUG_LEVEL = 0.999
"""Quantile of the number of wrong certificates; a larger number indicates an error of the code."""

UNDECIDED_STATE, ROBUST_STATE, NOT_ROBUST_STATE = STATES[0], STATES[ROBUST], STATES[NOT_ROBUST]

VALUES = {ROBUST_STATE: 1.0, NOT_ROBUST_STATE: 0.0, UNDECIDED_STATE: 0.0}
"""Value of the measure by state; undecided samples are censored."""

Shares = NDArray[np.float64] | np.float64
"""Bounds of one proportion, or of several."""


def clopper_pearson(successes: int, trials: int, *, alpha: float) -> tuple[float, float]:
    """Exact two-sided confidence interval of a binomial probability.

    Parameters
    ----------
    successes, trials : int
        0 <= successes <= trials, trials >= 1.
    alpha : float
        Error probability of the interval, half of it on each side.

    Returns
    -------
    low, high : float
        Bounds in [0, 1], with confidence at least 1 - alpha for every number of trials.

    References
    ----------
    Clopper and Pearson 1934.
    """
    low = lower_shares(successes, trials, alpha=alpha / 2)
    high = 1 - lower_shares(trials - successes, trials, alpha=alpha / 2)
    return float(low), float(high)


def lower_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Exact lower confidence bounds of binomial probabilities.

    Parameters
    ----------
    successes, trials : array_like of one shape
        Counts; they may be fractions, for the planning of samples.
    alpha : float
        Error probability of each bound.

    Returns
    -------
    ndarray of that shape, float64
        Bounds in [0, 1], each with confidence at least 1 - alpha; 0 without successes or trials.

    References
    ----------
    Clopper and Pearson 1934, one-sided.
    """
    successes = np.asarray(successes, dtype=np.float64)
    trials = np.asarray(trials, dtype=np.float64)
    positive = successes > 0
    failures_plus_one = np.where(positive, trials - successes + 1, 1)
    bound = betaincinv(np.where(positive, successes, 1), failures_plus_one, alpha)
    return np.where(positive, bound, 0.0)


def lower_mean_shares(successes: ArrayLike, trials: ArrayLike, *, alpha: float) -> NDArray[np.float64]:
    """Lower confidence bounds of the mean probability of trials that need not be identical.

    The bounds equal `lower_shares`, except for a single success. Trials with unequal probabilities reach a
    number of successes less often than identical trials of the same mean, if that number is at least one above its
    expectation (Hoeffding 1956). This holds for two or more successes that refute a mean at alpha <= 1/4, because
    identical trials reach an expectation above 1 with probability above 1/4 (Greenberg and Mohri 2014). For one success
    the bound is alpha / trials, since the probability of any success is at most the expectation.

    Parameters
    ----------
    successes, trials : array_like of one shape
        Counts; they may be fractions, for the planning of samples.
    alpha : float
        Error probability of each bound.

    Returns
    -------
    ndarray of that shape, float64
        Bounds in [0, 1], each with confidence at least 1 - alpha.
    """
    bound = lower_shares(successes, trials, alpha=min(alpha, MOST_ALPHA))
    single = np.minimum(bound, alpha / np.maximum(trials, 1))
    return np.where(np.asarray(successes) <= 1, single, bound)


# ---- differences of two proportions ----


def lower_paired_differences(
    gains: ArrayLike, losses: ArrayLike, trials: ArrayLike, *, alpha: float
) -> NDArray[np.float64]:
    """Exact lower bounds of P(gain) - P(loss) of paired trials, each of which is a gain, a loss or neither.

    Given the number of gains and losses together, the gains are binomial with a share q, so that the difference is
    positive exactly where q is above one half: the bound is above 0 only where McNemar's exact test finds gains at the
    level LEVEL_OF_DIRECTION alpha. The rest of alpha is for the share of trials that are a gain or a loss.

    Parameters
    ----------
    gains, losses, trials : array_like of one shape
        Counts, gains + losses <= trials.
    alpha : float
        Error probability of each bound.

    Returns
    -------
    ndarray of that shape, float64
        Bounds in [-1, 1], each with confidence at least 1 - alpha for every number of trials; -1 without any.

    References
    ----------
    McNemar 1947; Clopper and Pearson 1934; Berger and Boos 1994 (a confidence set for what else is unknown).
    """
    gains = np.asarray(gains, dtype=np.float64)
    trials = np.asarray(trials, dtype=np.float64)
    changed = gains + np.asarray(losses, dtype=np.float64)
    direction = 2 * lower_shares(gains, changed, alpha=LEVEL_OF_DIRECTION * alpha) - 1

    side = (1 - LEVEL_OF_DIRECTION) * alpha / 2
    least = lower_shares(changed, trials, alpha=side)
    most = 1 - lower_shares(trials - changed, trials, alpha=side)
    return np.where(direction > 0, least, most) * direction


def lower_differences(
    successes: ArrayLike, trials: ArrayLike, other_successes: int, other_trials: int, *, alpha: float
) -> NDArray[np.float64]:
    """Exact lower bounds of p - p', of proportions p and one other p' of independent trials.

    Given the total number of successes, the successes of p have a distribution that depends on the odds ratio alone,
    which is above 1 exactly where p > p'. Its bound is by Fisher's exact test at the level LEVEL_OF_DIRECTION
    alpha; the rest of alpha is for p and p', on which the difference at an odds ratio depends.

    Parameters
    ----------
    successes, trials : array_like of shape (H,)
        Counts of each p.
    other_successes, other_trials : int
        Counts of p'.
    alpha : float
        Error probability of each bound.

    Returns
    -------
    ndarray of shape (H,), float64
        Bounds in [-1, 1], each with confidence at least 1 - alpha for every number of trials.

    References
    ----------
    Fisher 1935 (conditional test); Berger and Boos 1994 (a confidence set for what else is unknown).
    """
    successes = np.asarray(successes, dtype=np.int64)
    trials = np.asarray(trials, dtype=np.int64)
    odds = _lower_odds_ratios(successes, trials, other_successes, other_trials, alpha=LEVEL_OF_DIRECTION * alpha)
    side = (1 - LEVEL_OF_DIRECTION) * alpha / 4
    low, high = _ends(successes, trials, side)
    other_low, other_high = _ends(np.array(other_successes), np.array(other_trials), side)

    # p - p' is also the difference of the shares of failures, with the same odds ratio: either form is a bound.
    within_other = _least_difference(odds, other_low, other_high)
    within_first = _least_difference(odds, 1 - high, 1 - low)
    return np.maximum(np.maximum(within_other, within_first), low - other_high)


def _ends(successes, trials, side):
    return lower_shares(successes, trials, alpha=side), 1 - lower_shares(trials - successes, trials, alpha=side)


def _least_difference(odds, low, high):
    # At one odds ratio the difference is concave in p' above 1, so smallest at an end; below 1 it is convex.
    lowest = np.clip(1 / (1 + np.sqrt(odds)), low, high)
    at_ends = np.minimum(_difference_at(odds, low), _difference_at(odds, high))
    return np.where(odds >= 1, at_ends, _difference_at(odds, lowest))


def _difference_at(odds: NDArray[np.float64], other: ArrayLike) -> NDArray[np.float64]:
    # p - p' for an odds ratio and p'; where p' is 1, p is too.
    other = np.asarray(other, dtype=np.float64)
    scaled = odds * other
    total = 1 - other + scaled
    return np.divide(scaled, total, out=np.zeros(np.broadcast(odds, other).shape), where=total > 0) - other


def _lower_odds_ratios(successes, trials, other_successes, other_trials, *, alpha):
    # Smallest odds ratio at which so many successes or more, given their sum, have a probability above alpha.
    total = successes + other_successes
    counts = np.arange(trials.max(initial=0) + 1)
    possible = (counts >= (total - other_trials)[:, None]) & (counts <= np.minimum(trials, total)[:, None])
    other_counts = np.where(possible, total[:, None] - counts, 0)
    first_counts = np.where(possible, counts, 0)
    weights = _log_binomial(trials[:, None], first_counts) + _log_binomial(other_trials, other_counts)
    weights = np.where(possible, weights, -np.inf)
    reached = possible & (counts >= successes[:, None])

    def rejects(log_odds: NDArray[np.float64]) -> NDArray[np.bool_]:
        terms = weights + log_odds[:, None] * counts
        terms -= terms.max(axis=1, keepdims=True)
        probabilities = np.exp(terms)
        tail = np.where(reached, probabilities, 0).sum(axis=1) / probabilities.sum(axis=1)
        return tail <= alpha

    largest = np.full(len(trials), LARGEST_LOG_ODDS)
    low = last_rejected(rejects, -largest, largest, halvings=HALVINGS)
    # Without a refuted odds ratio there is no bound.
    return np.where(low > -LARGEST_LOG_ODDS, np.exp(low), 0.0)


def _log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


# ---- certificates ----


def certified_accuracy(values: ArrayLike, labels: ArrayLike, classes: int, *, radius: float) -> ClassValues:
    """Share of each class that is classified correctly with a certified radius of at least `radius`.

    Parameters
    ----------
    values : array_like of shape (N,)
        Certified radii where the prediction is correct, else 0.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    classes : int
        Number of classes K.
    radius : float
        At 0: correct, and no abstention.

    Returns
    -------
    ClassValues
        Shares in [0, 1].

    Notes
    -----
    # ASSUME: no certificate is wrong; `corrected_certified_accuracy` allows for a share alpha of wrong ones.
    """
    values = np.asarray(values, dtype=np.float64)
    return class_values((values > 0) & (values >= radius), labels, classes)


def corrected_certified_accuracy(
    certified: ArrayLike, samples: ArrayLike, *, alpha: float, confidence: float
) -> NDArray[np.float64]:
    """Lower bound of the true share of samples on which the smoothed classifier is correct and constant in a radius.

    (L - alpha) / (1 - alpha), with L the one-sided Clopper-Pearson bound of the certified share: a share alpha of the
    other samples may be certified wrongly.

    Parameters
    ----------
    certified, samples : array_like, scalars or of shape (K,)
        Samples certified at the radius, and all samples.
    alpha : float
        Error probability of one certificate.
    confidence : float
        Confidence of the bound, over samples and noise.

    Returns
    -------
    ndarray of that shape, float64
        Bounds in [0, 1]; 0 without samples.

    Notes
    -----
    # ASSUME: the samples are independent draws from the data of interest.
    """
    low = lower_shares(certified, samples, alpha=1 - confidence)
    return np.maximum((low - alpha) / (1 - alpha), 0.0)


def allowed_refutations(samples: int, *, alpha: float) -> int:
    """Largest number of wrong certificates to be expected: the 99.9% quantile of Binomial(`samples`, `alpha`).

    `samples` includes abstentions: given that a certificate was issued, it may be wrong with a probability far above
    alpha.
    """
    probabilities = bdtr(np.arange(samples + 1), samples, alpha)
    return int(np.argmax(probabilities >= BUG_LEVEL))


# ---- probabilistic robustness ----


def share_interval(
    robust: ArrayLike, undecided: ArrayLike, n: ArrayLike, *, error_rate: float, alpha: float
) -> tuple[Shares, Shares]:
    """Confidence interval of the share of robust inputs, P(z = 1).

    [(L - error_rate) / (1 - error_rate), U / (1 - error_rate)], clipped to [0, 1], with L and U Clopper-Pearson bounds
    of the share that is decided as robust.

    Parameters
    ----------
    robust, undecided, n : array_like of one shape
        Inputs decided as robust, undecided ones, and all of them. An undecided input counts as not robust in the lower
        bound and as robust in the upper.
    error_rate : float
        Bound of both error rates of the test, in [0, 0.5).
    alpha : float
        Error probability of the interval, over inputs and perturbations.

    Returns
    -------
    low, high : float64 of that shape
        (0, 1) where n = 0.

    Raises
    ------
    InputError
        For an error rate or alpha outside its range.

    Notes
    -----
    # ASSUME: the inputs are independent draws from the data of interest.

    References
    ----------
    Exact-binomial paper, Eqs. 5 to 7, with the sign of Eq. 5 corrected and bounds in place of the estimated P(w).
    """
    if not (0 <= error_rate < 0.5 and 0 < alpha < 1):
        raise InputError(f"0 <= error_rate < 0.5 and 0 < alpha < 1 are needed, got {error_rate} and {alpha}")
    robust = np.asarray(robust, dtype=np.float64)
    undecided = np.asarray(undecided, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)

    low = lower_shares(robust, n, alpha=alpha / 2)
    high = 1 - lower_shares(n - (robust + undecided), n, alpha=alpha / 2)
    return _within_unit((low - error_rate) / (1 - error_rate), high / (1 - error_rate), n)


def printed_interval(
    robust: ArrayLike, undecided: ArrayLike, n: ArrayLike, *, test_level: float
) -> tuple[Shares, Shares]:
    """The exact-binomial paper's Eq. 7 as printed: [(k/n - alpha) / (1 + alpha), k / (n (1 - alpha))].

    No confidence interval: k/n stands in place of P(w), so the sampling of inputs is ignored. Its lower end is loose.

    Parameters
    ----------
    robust, undecided, n : array_like of one shape
        Counts of inputs, see `share_interval`.
    test_level : float
        Level alpha of the test; the paper takes it for the error rate.

    Returns
    -------
    low, high : float64 of that shape
        Within [0, 1]; (0, 1) where n = 0.
    """
    robust = np.asarray(robust, dtype=np.float64)
    undecided = np.asarray(undecided, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)

    divisor = np.maximum(n, 1)
    low = (robust / divisor - test_level) / (1 + test_level)
    high = (robust + undecided) / (divisor * (1 - test_level))
    return _within_unit(low, high, n)


def _within_unit(low, high, n):
    low = np.where(n > 0, np.clip(low, 0, 1), 0.0)
    high = np.where(n > 0, np.clip(high, 0, 1), 1.0)
    return low[()], high[()]


def class_shares(
    states: ArrayLike,
    labels: ArrayLike,
    class_names: Sequence[str],
    *,
    test_level: float,
    error_rate: float,
    alpha: float,
) -> pd.DataFrame:
    """Robust inputs of each class, and of all together.

    Parameters
    ----------
    states : array_like of shape (N,)
        Outcomes of the test, each one of STATES.
    labels : array_like of shape (N,)
        True classes, 0..K-1.
    class_names : sequence of str
        The K names.
    test_level : float
        Level of the test, for the paper's interval.
    error_rate : float
        Bound of the error rates of the test.
    alpha : float
        Error probability of the intervals: the K class intervals hold jointly with probability at least 1 - alpha (each
        at alpha / K), the interval of all inputs on its own.

    Returns
    -------
    DataFrame
        K + 1 rows: the classes, then all inputs (class_index -1, class_name "all"). Columns class_index, class_name,
        n, robust, not_robust, undecided, low, high (share_interval), paper_low, paper_high (printed_interval).
    """
    states = np.asarray(states)
    labels = np.asarray(labels)
    classes = len(class_names)
    by_class = _shares(states, labels, classes, test_level=test_level, error_rate=error_rate, alpha=alpha / classes)
    by_class.insert(0, "class_index", np.arange(classes))
    by_class.insert(1, "class_name", list(class_names))

    overall = _shares(states, np.zeros_like(labels), 1, test_level=test_level, error_rate=error_rate, alpha=alpha)
    overall.insert(0, "class_index", -1)
    overall.insert(1, "class_name", "all")
    return pd.concat([by_class, overall], ignore_index=True)


def _shares(states, groups, number, *, test_level, error_rate, alpha):
    robust = np.bincount(groups[states == ROBUST_STATE], minlength=number)
    not_robust = np.bincount(groups[states == NOT_ROBUST_STATE], minlength=number)
    undecided = np.bincount(groups[states == UNDECIDED_STATE], minlength=number)
    n = undecided + robust + not_robust

    low, high = share_interval(robust, undecided, n, error_rate=error_rate, alpha=alpha)
    paper_low, paper_high = printed_interval(robust, undecided, n, test_level=test_level)
    return pd.DataFrame(
        {
            "n": n,
            "robust": robust,
            "not_robust": not_robust,
            "undecided": undecided,
            "low": low,
            "high": high,
            "paper_low": paper_low,
            "paper_high": paper_high,
        }
    )


def robust_shares(states: ArrayLike, *, test_level: float, error_rate: float, alpha: float) -> dict[str, float]:
    """Share of robust inputs, as Table 1 of the exact-binomial paper has it.

    Parameters
    ----------
    states : array_like of shape (n,)
        Outcomes of the test, each one of STATES; n >= 1.
    test_level, error_rate, alpha : float
        Level of the test, bound of its error rates, error probability of the interval.

    Returns
    -------
    dict
        Shares of the inputs: robust (decided as robust), undecided; observation, the lower bound of P(z = 1) as the
        paper prints it (Eq. 7); robust_low, robust_high (share_interval).
    """
    states = np.asarray(states)
    n = len(states)
    robust = int((states == ROBUST_STATE).sum())
    undecided = int((states == UNDECIDED_STATE).sum())
    low, high = share_interval(robust, undecided, n, error_rate=error_rate, alpha=alpha)
    printed_low, _ = printed_interval(robust, undecided, n, test_level=test_level)
    return {
        "robust": robust / n,
        "undecided": undecided / n,
        "observation": float(printed_low),
        "robust_low": float(low),
        "robust_high": float(high),
    }
