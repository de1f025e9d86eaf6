"""Sequential tests of whether a probability lies below or above a threshold.

The hypotheses are p <= kappa ("robust": changes are rare) and p > kappa ("not robust"), where p is the probability that
a draw is a change. After n draws with k changes a test decides robust or not robust, or continues; an input is
undecided when the budget is spent. Functions of counts only: no classifier, no images, no randomness.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.core.errors import InputError, unknown

STATES = ("undecided", "robust", "not_robust")
"""Outcomes of a test; their positions are the codes that `Boundaries.decide` returns."""

UNDECIDED, ROBUST, NOT_ROBUST = range(3)


@dataclass(frozen=True, eq=False)
class Boundaries:
    """Decision boundaries of a sequential test after n = 0..budget draws.

    `robust` (budget + 1,) int64: the test decides robust if there are at most this many changes, -1 where no number
    suffices; `not_robust` (budget + 1,) int64: it decides not robust if there are at least this many, n + 1 where none
    suffices. The two never overlap, and both are non-decreasing in n.
    """

    robust: NDArray[np.int64]
    not_robust: NDArray[np.int64]

    @property
    def budget(self) -> int:
        """Largest number of draws."""
        return len(self.robust) - 1

    def decide(self, changes: Any, draws: Any) -> Any:
        """Codes (positions in STATES) of tests with `changes` (..., n) among `draws`, (n,) or a slice."""
        return ROBUST * (changes <= self.robust[draws]) + NOT_ROBUST * (changes >= self.not_robust[draws])

    def robust_from(self, changes: int) -> int:
        """Smallest number of draws at which the test decides robust despite `changes`; budget + 1 if there is none."""
        return int(np.searchsorted(self.robust, changes))

    def on(self, device: Any) -> "Boundaries":
        """Boundaries as tensors on a device."""
        import torch

        robust, not_robust = (torch.from_numpy(limits).to(device) for limits in (self.robust, self.not_robust))
        return Boundaries(robust, not_robust)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Characteristics:
    """Operating characteristics of a test at one true probability: the probability of each outcome."""

    robust: float
    not_robust: float
    undecided: float


@lru_cache(maxsize=16)
def boundaries(*, kappa: float, alpha: float, budget: int, test: str = "anytime") -> Boundaries:
    """Decision boundaries of a sequential test for p <= `kappa`, evaluated after every draw.

    `test` is a key of TESTS. `anytime` decides robust with probability at most `alpha` for any p > kappa, and not
    robust with probability at most alpha for any p <= kappa, at any budget and under any stopping rule.
    `repeated_exact` is the paper's test and has no such guarantee: repeating a fixed-alpha test after every draw, it is
    wrong in 18.8% (robust) and 27.7% (not robust) of cases at p = kappa = 0.01, alpha = 0.05, budget 3,000.
    kappa in [0, 1]: at 0 one change decides and nothing can be robust; at 1 everything is robust without a draw.
    Raises InputError for an unknown test, kappa outside [0, 1], a negative budget, or alpha outside (0, 0.5).
    Source: exact-binomial paper, Eqs. 2 and 3; anytime: Ville's inequality for the likelihood ratio mixed over
    Beta(1/2, 1/2) truncated to the alternative.
    """
    require_level(kappa, alpha, test)
    if budget < 0:
        raise InputError(f"budget must not be negative, got {budget}")
    draws = np.arange(budget + 1)
    if kappa in (0, 1):
        never = np.full(budget + 1, -1)
        return Boundaries(never, np.ones_like(never)) if kappa == 0 else Boundaries(draws, draws + 1)
    says_robust, says_not_robust = TESTS[test]
    # For k changes the test decides robust from some number of draws on, and not robust up to some number: each
    # boundary is found by bisection for all k at once, which are few if kappa is small.
    few = np.arange(int(kappa * budget) + 1)
    from_draws = _first(lambda n, k: says_robust(n, k, kappa, alpha), few, budget)
    whole = np.array([budget])
    # The smallest number of changes that decides not robust after the whole budget, or the budget if none does.
    most = bisect_left(range(budget), True, key=lambda k: says_not_robust(whole, np.array([k]), kappa, alpha)[0])
    many = np.arange(1, most + 1)
    until_draws = _first(lambda n, k: ~says_not_robust(n, k, kappa, alpha), many, budget)
    robust = np.searchsorted(from_draws, draws, side="right") - 1
    not_robust = np.minimum(np.searchsorted(until_draws, draws, side="right"), draws) + 1
    return Boundaries(robust, not_robust)


def require_level(kappa: float, alpha: float, test: str = "anytime") -> None:
    """Raise InputError unless kappa is in [0, 1], alpha in (0, 0.5), and the test is a key of TESTS."""
    if test not in TESTS:
        raise InputError(unknown("test", test, TESTS))
    if not 0 <= kappa <= 1:
        raise InputError(f"kappa must lie in 0..1, got {kappa!r}")
    if not 0 < alpha < 0.5:
        raise InputError(
            f"alpha must lie strictly between 0 and 0.5, got {alpha!r}: from 0.5 on the two decisions would overlap"
        )


def clean_draws(*, kappa: float, alpha: float, test: str = "anytime") -> int:
    """Smallest number of draws, all without a change, after which a test decides robust: the smallest useful budget.

    At kappa = 0.01 and alpha = 0.05: 299 for `repeated_exact`, 377 for `anytime`. `kappa` in (0, 1].
    """
    require_level(kappa, alpha, test)
    if kappa == 0:
        raise InputError("kappa is 0: no number of draws shows that changes never happen; give a positive kappa")
    if kappa == 1:
        return 0
    most = zero_failure_draws(kappa, alpha)
    while not TESTS[test][0](np.array([most]), np.array([0]), kappa, alpha)[0]:
        most *= 2
    return int(_first(lambda n, k: TESTS[test][0](n, k, kappa, alpha), np.array([0]), most)[0])


def zero_failure_draws(kappa: float, alpha: float) -> int:
    """Smallest n with (1 - kappa)^n <= alpha: ceil(ln alpha / ln(1 - kappa)).

    The number of draws without a change that a test with a fixed number of draws needs: 29, 299, 2,995 and 29,956 for
    kappa = 1e-1 to 1e-4 at alpha = 0.05. `kappa` and `alpha` in (0, 1).
    """
    return math.ceil(math.log(alpha) / math.log1p(-kappa))


def characteristics(limits: Boundaries, probability: float) -> Characteristics:
    """Exact operating characteristics of a sequential test if each draw is a change with probability p.

    Takes Boundaries and p in [0, 1]. Computed by the distribution of the number of changes without a decision, draw by
    draw. For p > kappa, `robust` is the error rate; for p <= kappa, `not_robust` is.
    """
    # Probability of `first`, first + 1, ... changes and no decision: only counts between the boundaries are kept.
    undecided, first = np.ones(1), 0
    robust = not_robust = 0.0
    for n, (low, high) in enumerate(zip(limits.robust.tolist(), limits.not_robust.tolist(), strict=True)):
        if n:
            drawn = np.zeros(len(undecided) + 1)
            drawn[:-1] = (1 - probability) * undecided
            drawn[1:] += probability * undecided
            undecided = drawn
        below, above = max(low + 1 - first, 0), max(high - first, 0)
        if below > 0:
            robust += float(undecided[:below].sum())
        if above < len(undecided):
            not_robust += float(undecided[above:].sum())
        undecided, first = undecided[below:above], first + below
        if not len(undecided):
            break
    return Characteristics(robust, not_robust, float(undecided.sum()))


@lru_cache(maxsize=16)
def wrong_call_rate(*, kappa: float, alpha: float, budget: int, test: str = "anytime") -> float:
    """Largest probability, over all p, of a wrong decision; arguments as `boundaries` takes them.

    For `anytime` it is at most `alpha`, which is returned. For other tests it is exact for the budget: the larger error
    rate at p = kappa, since the probability of robust falls with p and that of not robust rises. 0 at kappa 0 or 1,
    where no decision can be wrong.
    """
    require_level(kappa, alpha, test)
    if test == "anytime":
        return float(alpha)
    if kappa in (0, 1):
        return 0.0
    worst = characteristics(boundaries(kappa=kappa, alpha=alpha, budget=budget, test=test), kappa)
    return max(worst.robust, worst.not_robust)


def log_evidence(n: ArrayLike, k: ArrayLike, kappa: float, *, side: str) -> NDArray[np.float64]:
    """Logarithm of the evidence for a `side`, "robust" or "not_robust", after `n` draws with `k` changes (int arrays).

    ln of E = integral of L(q) d pi(q) / L(kappa), L(q) = q^k (1 - q)^(n - k), pi = Beta(1/2, 1/2) restricted to
    q < kappa (robust) or q > kappa (not robust) and renormalised. Under every p on the other side E is at most a
    non-negative supermartingale with initial value 1, so P(E ever reaches 1/alpha) <= alpha. Never NaN; -inf where the
    posterior mass of the side underflows, which happens only where E is far below 1.
    """
    from scipy.special import betainc, betaincc, betaln

    mass = {"robust": betainc, "not_robust": betaincc}[side]
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    a, b = k + 0.5, n - k + 0.5
    with np.errstate(divide="ignore"):
        posterior = np.log(mass(a, b, kappa))
    prior = betaln(0.5, 0.5) + math.log(mass(0.5, 0.5, kappa))
    return betaln(a, b) + posterior - prior - k * math.log(kappa) - (n - k) * math.log1p(-kappa)


def _first(holds, changes, budget):
    # For each number of changes k, the smallest n in k..budget with holds(n, k), budget + 1 if there is none; holds is
    # monotone in n.
    low, high = np.minimum(changes, budget + 1), np.full(len(changes), budget + 1)
    while (open_ := low < high).any():
        middle = (low + high) // 2
        held = holds(middle, changes)
        high = np.where(open_ & held, middle, high)
        low = np.where(open_ & ~held, middle + 1, low)
    return low


def _tail_robust(n, k, kappa, alpha):
    from scipy.special import bdtr

    return bdtr(k, n, kappa) <= alpha


def _tail_not_robust(n, k, kappa, alpha):
    from scipy.special import bdtrc

    return bdtrc(k - 1, n, kappa) <= alpha


def _evidence_robust(n, k, kappa, alpha):
    return log_evidence(n, k, kappa, side="robust") >= -math.log(alpha)


def _evidence_not_robust(n, k, kappa, alpha):
    return log_evidence(n, k, kappa, side="not_robust") >= -math.log(alpha)


TESTS = {
    "anytime": (_evidence_robust, _evidence_not_robust),
    "repeated_exact": (_tail_robust, _tail_not_robust),
}
"""Tests by name: whether n draws with k changes decide robust, and whether they decide not robust."""
