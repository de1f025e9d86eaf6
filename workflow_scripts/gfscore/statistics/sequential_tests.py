"""Sequential tests of whether a probability lies below or above a threshold.

The hypotheses are p <= kappa ("robust": changes are rare) and p > kappa ("not robust"), where p is the probability that
a draw is a change. After n draws with k changes a test decides robust or not robust, or continues; an input is
undecided when the budget is spent. Functions of counts only: no classifier, no images, no randomness.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrc, betainc, betaincc, betaln

from gfscore.core.errors import InputError, unknown_name

STATES = ("undecided", "robust", "not_robust")
"""Outcomes of a test; their positions are the codes that `Boundaries.decide` returns."""

UNDECIDED, ROBUST, NOT_ROBUST = range(3)

Decision = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.bool_]]
"""Whether n draws with k changes lead to a decision: a function of arrays (n, k), monotone in n."""


@dataclass(frozen=True, eq=False)
class Boundaries:
    """Decision boundaries of a sequential test after n = 0..budget draws.

    Attributes
    ----------
    robust : ndarray of shape (budget + 1,), int64
        The test decides robust if there are at most this many changes; -1 where no number suffices.
    not_robust : ndarray of shape (budget + 1,), int64
        It decides not robust if there are at least this many; n + 1 where none suffices.

    Notes
    -----
    The two never overlap, and both are non-decreasing in n.
    """

    robust: NDArray[np.int64]
    not_robust: NDArray[np.int64]

    @property
    def budget(self) -> int:
        """Largest number of draws."""
        return len(self.robust) - 1

    def decide(self, changes: Any, draws: Any) -> Any:
        """Codes (positions in STATES) of tests with `changes` (..., n) among `draws`, (n,) or a slice.

        Arrays of numpy, or tensors where the boundaries are on a device.
        """
        return ROBUST * (changes <= self.robust[draws]) + NOT_ROBUST * (changes >= self.not_robust[draws])

    def robust_from(self, changes: int) -> int:
        """Smallest number of draws at which the test decides robust despite `changes`; budget + 1 if there is none."""
        return int(np.searchsorted(self.robust, changes))

    def on(self, device: Any) -> "Boundaries":
        """Boundaries as tensors on a device of torch."""
        # Steps without a network plan with boundaries too, and do not load torch.
        import torch

        robust = torch.from_numpy(self.robust).to(device)
        not_robust = torch.from_numpy(self.not_robust).to(device)
        return Boundaries(robust, not_robust)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Characteristics:
    """Operating characteristics of a test at one true probability: the probability of each outcome."""

    robust: float
    not_robust: float
    undecided: float


@lru_cache(maxsize=16)
def boundaries(*, kappa: float, alpha: float, budget: int, test: str = "anytime") -> Boundaries:
    """Decision boundaries of a sequential test for p <= kappa that is evaluated after every draw.

    Parameters
    ----------
    kappa : float
        Threshold in [0, 1]. At 0 one change decides and nothing can be robust; at 1 everything is robust without a
        draw.
    alpha : float
        Level in (0, 0.5).
    budget : int
        Largest number of draws.
    test : {"anytime", "repeated_exact"}
        `anytime` decides robust with probability at most alpha for any p > kappa, and not robust with probability at
        most alpha for any p <= kappa, at any budget and under any stopping rule. `repeated_exact` is the paper's test
        and has no such guarantee: repeating a fixed-alpha test after every draw, it is wrong in 18.8% (robust) and
        27.7% (not robust) of cases at p = kappa = 0.01, alpha = 0.05, budget 3,000.

    Returns
    -------
    Boundaries
        For 0..budget draws.

    Raises
    ------
    InputError
        For an unknown test, kappa outside [0, 1], a negative budget, or alpha outside (0, 0.5).

    References
    ----------
    Exact-binomial paper, Eqs. 2 and 3. anytime: Ville's inequality for the likelihood ratio mixed over Beta(1/2, 1/2)
    truncated to the alternative.
    """
    require_level(kappa, alpha, test)
    if budget < 0:
        raise InputError(f"budget must not be negative, got {budget}")
    draws = np.arange(budget + 1)
    if kappa == 0:
        return Boundaries(np.full(budget + 1, -1), np.ones(budget + 1, dtype=draws.dtype))
    if kappa == 1:
        return Boundaries(draws, draws + 1)
    decides_robust, decides_not_robust = TESTS[test]

    # For k changes the test decides robust from some number of draws on, and not robust up to some number: each
    # boundary is found by bisection for all k at once, which are few if kappa is small.
    few = np.arange(int(kappa * budget) + 1)
    from_draws = _first(lambda n, k: decides_robust(n, k, kappa, alpha), few, budget)
    robust = np.searchsorted(from_draws, draws, side="right") - 1

    # The smallest number of changes that decides not robust after the whole budget, or the budget if none does.
    end = np.array([budget])
    most = bisect_left(range(budget), True, key=lambda k: decides_not_robust(end, np.array([k]), kappa, alpha)[0])
    many = np.arange(1, most + 1)
    until_draws = _first(lambda n, k: ~decides_not_robust(n, k, kappa, alpha), many, budget)
    not_robust = np.minimum(np.searchsorted(until_draws, draws, side="right"), draws) + 1
    return Boundaries(robust, not_robust)


def require_level(kappa: float, alpha: float, test: str) -> None:
    """Raise InputError unless kappa is in [0, 1], alpha in (0, 0.5), and the test is a key of TESTS."""
    if test not in TESTS:
        raise InputError(unknown_name("test", test, TESTS))
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, got {kappa!r}")
    if not 0 < alpha < 0.5:
        raise InputError(
            f"alpha must lie strictly between 0 and 0.5, got {alpha!r}: from 0.5 on the two decisions would overlap"
        )


def clean_draws(*, kappa: float, alpha: float, test: str = "anytime") -> int:
    """Smallest number of draws, all without a change, after which a test decides robust: the smallest useful budget.

    Parameters
    ----------
    kappa : float
        Threshold in (0, 1].
    alpha : float
        Level in (0, 0.5).
    test : {"anytime", "repeated_exact"}
        A key of TESTS.

    Returns
    -------
    int
        At kappa = 0.01 and alpha = 0.05: 377 for `anytime`, 299 for `repeated_exact`.

    Raises
    ------
    InputError
        For kappa = 0, which no number of draws can show, and as `boundaries`.
    """
    require_level(kappa, alpha, test)
    if kappa == 0:
        raise InputError("kappa is 0: no number of draws shows that changes never happen; give a positive kappa")
    if kappa == 1:
        return 0
    decides_robust, _ = TESTS[test]
    none = np.array([0])
    most = zero_failure_draws(kappa, alpha)
    while not decides_robust(np.array([most]), none, kappa, alpha)[0]:
        most *= 2
    return int(_first(lambda n, k: decides_robust(n, k, kappa, alpha), none, most)[0])


def zero_failure_draws(kappa: float, alpha: float) -> int:
    """Smallest n with (1 - kappa)^n <= alpha: ceil(ln alpha / ln(1 - kappa)).

    The number of draws without a change that a test with a fixed number of draws needs: 29, 299, 2,995 and 29,956 for
    kappa = 1e-1 to 1e-4 at alpha = 0.05. `kappa` and `alpha` in (0, 1).
    """
    return math.ceil(math.log(alpha) / math.log1p(-kappa))


def characteristics(limits: Boundaries, probability: float) -> Characteristics:
    """Exact operating characteristics of a sequential test, by the distribution of changes, draw by draw.

    Parameters
    ----------
    limits : Boundaries
        The test.
    probability : float
        Probability p in [0, 1] that a draw is a change.

    Returns
    -------
    Characteristics
        For p > kappa, `robust` is the error rate; for p <= kappa, `not_robust` is.
    """
    # Probability of `first`, first + 1, ... changes and no decision: only counts between the boundaries matter.
    undecided = np.ones(1)
    first = 0
    robust = 0.0
    not_robust = 0.0
    for n, (low, high) in enumerate(zip(limits.robust.tolist(), limits.not_robust.tolist(), strict=True)):
        if n:
            after_draw = np.zeros(len(undecided) + 1)
            after_draw[:-1] = (1 - probability) * undecided
            after_draw[1:] += probability * undecided
            undecided = after_draw
        below = max(low + 1 - first, 0)
        above = max(high - first, 0)
        if below > 0:
            robust += float(undecided[:below].sum())
        if above < len(undecided):
            not_robust += float(undecided[above:].sum())
        undecided = undecided[below:above]
        first += below
        if not len(undecided):
            break
    return Characteristics(robust, not_robust, float(undecided.sum()))


@lru_cache(maxsize=16)
def wrong_call_rate(*, kappa: float, alpha: float, budget: int, test: str = "anytime") -> float:
    """Largest probability, over all p, of a wrong decision of a sequential test.

    Parameters
    ----------
    kappa, alpha, budget, test
        See `boundaries`.

    Returns
    -------
    float
        `alpha` for `anytime`. For other tests exact for the budget: the larger error rate at p = kappa, since the
        probability of robust falls with p and the probability of not robust rises. 0 at kappa 0 or 1, where no decision
        can be wrong.

    Raises
    ------
    InputError
        See `boundaries`.
    """
    require_level(kappa, alpha, test)
    if test == "anytime":
        return float(alpha)
    if kappa in (0, 1):
        return 0.0
    worst = characteristics(boundaries(kappa=kappa, alpha=alpha, budget=budget, test=test), kappa)
    return max(worst.robust, worst.not_robust)


def log_evidence(n: ArrayLike, k: ArrayLike, kappa: float, *, side: str) -> NDArray[np.float64]:
    """Logarithm of the evidence for one hypothesis: ln of E = integral of L(q) d pi(q) / L(kappa).

    L(q) = q^k (1 - q)^(n - k), pi = Beta(1/2, 1/2) restricted to q < kappa (robust) or q > kappa (not robust) and
    renormalised. Under every p of the other hypothesis E is at most a non-negative supermartingale with initial value
    1, so P(E ever reaches 1/alpha) <= alpha (Ville).

    Parameters
    ----------
    n, k : array_like of int
        Draws, and changes among them.
    kappa : float
        Threshold in (0, 1).
    side : {"robust", "not_robust"}
        The hypothesis.

    Returns
    -------
    ndarray, float64
        Never NaN; -inf where the posterior mass underflows, which happens only where E is far below 1.
    """
    mass = betainc if side == "robust" else betaincc
    n = np.asarray(n, dtype=np.float64)
    k = np.asarray(k, dtype=np.float64)
    a = k + 0.5
    b = n - k + 0.5
    with np.errstate(divide="ignore"):
        posterior = np.log(mass(a, b, kappa))
    prior = betaln(0.5, 0.5) + math.log(mass(0.5, 0.5, kappa))
    return betaln(a, b) + posterior - prior - k * math.log(kappa) - (n - k) * math.log1p(-kappa)


def _first(holds: Decision, changes: NDArray[np.int64], budget: int) -> NDArray[np.int64]:
    # For each number of changes k, the smallest n in k..budget with holds(n, k), budget + 1 if there is none.
    low = np.minimum(changes, budget + 1)
    high = np.full(len(changes), budget + 1)
    while True:
        searched = low < high
        if not searched.any():
            return low
        middle = (low + high) // 2
        holding = holds(middle, changes)
        high = np.where(searched & holding, middle, high)
        low = np.where(searched & ~holding, middle + 1, low)


TESTS = {
    "anytime": (
        lambda n, k, kappa, alpha: log_evidence(n, k, kappa, side="robust") >= -math.log(alpha),
        lambda n, k, kappa, alpha: log_evidence(n, k, kappa, side="not_robust") >= -math.log(alpha),
    ),
    "repeated_exact": (
        lambda n, k, kappa, alpha: bdtr(k, n, kappa) <= alpha,
        lambda n, k, kappa, alpha: bdtrc(k - 1, n, kappa) <= alpha,
    ),
}
"""Tests by name: whether n draws with k changes decide robust, and whether they decide not robust."""
