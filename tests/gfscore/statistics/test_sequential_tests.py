import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom

from gfscore.core.errors import InputError
from gfscore.statistics.error_rates import PRESETS, threshold
from gfscore.statistics.sequential_tests import (
    NOT_ROBUST,
    ROBUST,
    TESTS,
    UNDECIDED,
    boundaries,
    characteristics,
    clean_draws,
    log_evidence,
    wrong_call_rate,
    zero_failure_draws,
)
from studies.reproduction.exact_binomial import repeated_test_false_calls


def of(test, **changes):
    return boundaries(**{"kappa": 0.01, "alpha": 0.05, "budget": 3000, "test": test} | changes)


@pytest.mark.parametrize(("kappa", "draws"), [(1e-1, 29), (1e-2, 299), (1e-3, 2995), (1e-4, 29956)])
def test_zero_failure_draws(kappa, draws):
    assert zero_failure_draws(kappa, 0.05) == draws
    assert (1 - kappa) ** draws <= 0.05 < (1 - kappa) ** (draws - 1)
    assert clean_draws(kappa=kappa, alpha=0.05, test="repeated_exact") == draws


def test_the_anytime_test_needs_377_clean_draws():
    assert clean_draws(kappa=0.01, alpha=0.05) == 377
    limits = of("anytime")
    assert limits.decide([0, 0], [376, 377]).tolist() == [UNDECIDED, ROBUST]


def test_false_calls_of_the_anytime_test_are_within_alpha():
    exact = characteristics(of("anytime"), 0.01)
    assert exact.robust == pytest.approx(0.038, abs=5e-4)
    assert exact.not_robust == pytest.approx(0.018, abs=5e-4)


def test_the_repeated_test_is_not_of_its_level():
    exact = characteristics(of("repeated_exact"), 0.01)
    assert (exact.robust, exact.not_robust) == pytest.approx((0.188, 0.277), abs=5e-4)
    # Followed independently elsewhere, without boundaries.
    assert (exact.robust, exact.not_robust) == pytest.approx(repeated_test_false_calls(), abs=1e-12)


def test_the_worst_error_of_the_repeated_test_is_that_at_kappa_for_the_budget_in_use():
    settings = {"kappa": 0.1, "alpha": 0.05, "budget": 400, "test": "repeated_exact"}
    rate, limits = wrong_call_rate(**settings), boundaries(**settings)
    at_kappa = characteristics(limits, 0.1)
    assert rate == max(at_kappa.robust, at_kappa.not_robust) > 0.2
    for p in np.linspace(0, 1, 41):
        found = characteristics(limits, p)
        assert (found.robust if p > 0.1 else found.not_robust) <= rate + 1e-12
    assert wrong_call_rate(**settings | {"budget": 40}) < rate < wrong_call_rate(**settings | {"budget": 4000})
    assert wrong_call_rate(kappa=0.01, alpha=0.05, budget=3000, test="repeated_exact") == pytest.approx(0.277, abs=5e-4)
    assert wrong_call_rate(**settings | {"test": "anytime"}) == 0.05
    assert wrong_call_rate(**settings | {"kappa": 0}) == wrong_call_rate(**settings | {"kappa": 1}) == 0


def test_the_worst_error_of_a_large_budget_is_found_fast():
    started = time.process_time()
    assert 0.4 < wrong_call_rate(kappa=0.1, alpha=0.05, budget=100_000, test="repeated_exact") < 0.5
    # Below 2 s where this was written; counts beyond the boundaries, if followed, take minutes.
    assert time.process_time() - started < 20


@pytest.mark.parametrize("kappa", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_wrong_calls_of_the_anytime_test_are_rare_at_every_probability(kappa, alpha):
    limits = boundaries(kappa=kappa, alpha=alpha, budget=1500)
    for p in (kappa / 4, kappa / 2, kappa):
        assert characteristics(limits, p).not_robust <= alpha
    for p in (kappa, (1 + 3 * kappa) / 4, (1 + kappa) / 2):
        assert characteristics(limits, p).robust <= alpha


@settings(max_examples=30)
@given(
    kappa=st.floats(0.001, 0.999),
    alpha=st.floats(0.001, 0.49),
    budget=st.integers(0, 90),
    test=st.sampled_from(sorted(TESTS)),
)
def test_boundaries_say_what_the_test_says(kappa, alpha, budget, test):
    limits = boundaries(kappa=kappa, alpha=alpha, budget=budget, test=test)
    says_robust, says_not_robust = TESTS[test]
    assert limits.budget == budget
    for n in range(budget + 1):
        k = np.arange(n + 1)
        draws = np.full(n + 1, n)
        robust, not_robust = says_robust(draws, k, kappa, alpha), says_not_robust(draws, k, kappa, alpha)
        assert not (robust & not_robust).any()
        expected = ROBUST * robust + NOT_ROBUST * not_robust
        np.testing.assert_array_equal(limits.decide(k, draws), expected)
    for k in range(budget + 1):
        calls = limits.decide(np.full(budget + 1, k), np.arange(budget + 1)) == ROBUST
        assert limits.robust_from(k) == (calls.argmax() if calls.any() else budget + 1)


def test_repeated_test_is_the_exact_binomial_test():
    n, k = np.meshgrid(np.arange(1, 60), np.arange(0, 60))
    n, k = n[k <= n], k[k <= n]
    says_robust, says_not_robust = TESTS["repeated_exact"]
    np.testing.assert_array_equal(says_robust(n, k, 0.2, 0.05), binom.cdf(k, n, 0.2) <= 0.05)
    np.testing.assert_array_equal(says_not_robust(n, k, 0.2, 0.05), binom.sf(k - 1, n, 0.2) <= 0.05)


@pytest.mark.parametrize(("n", "k"), [(0, 0), (1, 0), (1, 1), (20, 3), (60, 30), (200, 1)])
def test_evidence_is_the_mixed_likelihood_ratio(n, k):
    kappa, prior = 0.1, beta(0.5, 0.5)

    def ratio(q):
        return (q / kappa) ** k * ((1 - q) / (1 - kappa)) ** (n - k) * prior.pdf(q)

    # q = sin^2 turns the prior's endpoints, where its density is infinite, into ordinary ones.
    def smooth(angle):
        return ratio(np.sin(angle) ** 2) * 2 * np.sin(angle) * np.cos(angle)

    edge = np.arcsin(np.sqrt(kappa))
    below = quad(smooth, 1e-12, edge)[0] / prior.cdf(kappa)
    above = quad(smooth, edge, np.pi / 2 - 1e-12)[0] / prior.sf(kappa)
    assert np.exp(log_evidence(n, k, kappa, side="robust")) == pytest.approx(below, rel=1e-6)
    assert np.exp(log_evidence(n, k, kappa, side="not_robust")) == pytest.approx(above, rel=1e-6)


def test_evidence_is_a_martingale_at_kappa():
    n, k = np.meshgrid(np.arange(80), np.arange(80))
    n, k = n[k <= n], k[k <= n]
    for side in ("robust", "not_robust"):
        now = np.exp(log_evidence(n, k, 0.3, side=side))
        then = 0.3 * np.exp(log_evidence(n + 1, k + 1, 0.3, side=side))
        then += 0.7 * np.exp(log_evidence(n + 1, k, 0.3, side=side))
        np.testing.assert_allclose(then, now, rtol=1e-9)


def test_evidence_survives_underflow():
    n = np.array([10**6, 10**6, 10**6])
    k = np.array([0, 10**6, 100])
    robust = log_evidence(n, k, 1e-4, side="robust")
    not_robust = log_evidence(n, k, 1e-4, side="not_robust")
    # Near k = n kappa both are moderate; far off, one side is certain and the other impossible.
    assert robust[0] > 50 and robust[1] < 0
    assert not_robust[1] > 50 and not_robust[0] < 0
    assert np.abs([robust[2], not_robust[2]]).max() < 10


def test_boundaries_of_a_small_threshold_are_found_fast():
    limits = boundaries(kappa=1e-4, alpha=0.05, budget=200_000)
    assert limits.decide(0, 37_882) == UNDECIDED
    assert limits.decide(0, 37_883) == ROBUST
    assert (np.diff(limits.robust) >= 0).all() and (np.diff(limits.not_robust) >= 0).all()


def test_characteristics_agree_with_simulation():
    limits = boundaries(kappa=0.1, alpha=0.05, budget=400)
    exact = characteristics(limits, 0.15)
    rng = np.random.default_rng(0)
    n = np.arange(1, 401)
    calls = limits.decide((rng.random((4000, 400)) < 0.15).cumsum(1), np.broadcast_to(n, (4000, 400)))
    stopped = np.where((calls > 0).any(1), (calls > 0).argmax(1), 399)
    final = calls[np.arange(4000), stopped]
    simulated = [np.mean(final == code) for code in (ROBUST, NOT_ROBUST, UNDECIDED)]
    # Four standard deviations of a share of 4,000.
    assert simulated == pytest.approx([exact.robust, exact.not_robust, exact.undecided], abs=0.032)
    assert exact.robust + exact.not_robust + exact.undecided == pytest.approx(1, abs=1e-12)


def test_thresholds_of_zero_and_one():
    nothing = boundaries(kappa=0, alpha=0.05, budget=3)
    assert nothing.decide([0, 0, 1, 3], [0, 3, 1, 3]).tolist() == [UNDECIDED, UNDECIDED, NOT_ROBUST, NOT_ROBUST]
    everything = boundaries(kappa=1, alpha=0.05, budget=3)
    assert everything.decide([0, 3], [0, 3]).tolist() == [ROBUST, ROBUST]
    assert clean_draws(kappa=1, alpha=0.05) == 0
    with pytest.raises(InputError, match="kappa is 0"):
        clean_draws(kappa=0, alpha=0.05)


@pytest.mark.parametrize("test", sorted(TESTS))
def test_nothing_is_decided_without_a_draw(test):
    empty = of(test, budget=0)
    assert empty.decide(0, 0) == UNDECIDED
    assert characteristics(empty, 0.5).undecided == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"alpha": 0.5}, "between 0 and 0.5"),
        ({"alpha": 0}, "between 0 and 0.5"),
        ({"kappa": -0.1}, "kappa must lie in 0..1"),
        ({"budget": -1}, "must not be negative"),
        ({"test": "anytim"}, "did you mean 'anytime'"),
    ],
)
def test_bad_settings_are_named(changes, words):
    with pytest.raises(InputError, match=words):
        of(**{"test": "anytime"} | changes)


def test_presets_are_thresholds_by_name():
    assert [threshold(name) for name in sorted(PRESETS)] == [1e-1, 1e-2, 1e-3, 1e-4]
    assert threshold(0.02) == 0.02
    with pytest.raises(InputError, match="did you mean 'SIL2'"):
        threshold("SIL22")
    with pytest.raises(InputError, match=r"0\.\.1"):
        threshold(1.5)
