"""Intervals of the share of robust inputs, and error rates of the tests that decide it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom, binomtest, fisher_exact, multinomial

from gfscore.audit.agreement.decisions import share_frame
from gfscore.core.errors import InputError
from gfscore.measures import named_measures
from gfscore.statistics.error_rates import SequentialTest, warning_about_test
from gfscore.statistics.proportions import (
    class_shares,
    lower_differences,
    lower_paired_differences,
    lower_shares,
    printed_interval,
    robust_shares,
    share_interval,
)
from gfscore.statistics.sequential_tests import ROBUST, STATES, boundaries, wrong_call_rate

LEVELS = {"error_rate": 0.05, "alpha": 0.05}
REPEATED = {"kind": "probabilistic", "kappa": 0.02, "alpha": 0.05, "budget": 800, "test": "repeated_exact"}


def test_corrected_interval_by_hand():
    low, high = share_interval(70, 10, 100, **LEVELS)
    lower, upper = beta.ppf(0.025, 70, 31), beta.ppf(0.975, 81, 20)
    assert low == pytest.approx((lower - 0.05) / 0.95, rel=1e-9)
    assert high == pytest.approx(upper / 0.95, rel=1e-9)


def test_printed_interval_by_hand():
    low, high = printed_interval(70, 0, 100, test_level=0.05)
    assert (low, high) == pytest.approx((0.65 / 1.05, 0.7 / 0.95))


@pytest.mark.parametrize(("interval", "levels"), [(share_interval, LEVELS), (printed_interval, {"test_level": 0.05})])
def test_bounds_stay_within_the_unit_interval_and_without_decisions_say_nothing(interval, levels):
    assert interval(100, 0, 100, **levels)[1] == 1
    assert interval(0, 0, 100, **levels)[0] == 0
    assert interval(0, 50, 50, **levels) == interval(0, 0, 0, **levels) == (0, 1)


def test_corrected_interval_covers_with_wrong_calls_and_undecided_inputs():
    # The worst case that is allowed: both error rates at their bound, and many undecided inputs.
    rng, runs, n, robust_share, error = np.random.default_rng(1), 4000, 120, 0.5, 0.05
    robust = rng.random((runs, n)) < robust_share
    wrong = rng.random((runs, n)) < error
    called = robust ^ wrong
    undecided = ~wrong & (rng.random((runs, n)) < 0.1)
    counts = (called & ~undecided).sum(1), undecided.sum(1)
    low, high = share_interval(*counts, n, **LEVELS)
    covered = np.mean((low <= robust_share) & (robust_share <= high))
    assert covered >= 0.95
    # Without the correction for wrong calls, or for the drawing of inputs, it would not.
    low, high = printed_interval(called.sum(1), 0, n, test_level=0.05)
    assert np.mean((low <= robust_share) & (robust_share <= high)) < 0.9


def test_true_share_lies_between_the_bounds_whatever_the_error_rates():
    many = 10**7
    for share in (0, 0.2, 0.8, 1):
        for a in (0, 0.03, 0.05):
            for b in (0, 0.04, 0.05):
                called = round(many * ((1 - b) * share + a * (1 - share)))
                low, high = share_interval(called, 0, many, **LEVELS)
                assert low <= share + 1e-3 and high >= share - 1e-3


def decided(settings, p, count, rng):
    """States of `count` inputs with change probability p, by drawing neighbours until the test decides."""
    limits = boundaries(**{key: settings[key] for key in ("kappa", "alpha", "budget", "test")})
    calls = np.zeros(count, dtype=int)
    for rows in np.array_split(np.arange(count), max(1, count // 1000)):
        changes = np.cumsum(rng.random((len(rows), settings["budget"])) < p, axis=1)
        found = limits.decide(changes, np.broadcast_to(np.arange(1, settings["budget"] + 1), changes.shape))
        first = (found > 0).argmax(axis=1)
        calls[rows] = found[np.arange(len(rows)), first]
    return np.array(STATES, dtype=object)[calls]


@pytest.mark.parametrize(("p", "truth"), [(0.02, 1.0), (0.02 + 1e-9, 0.0)])
def test_bounds_hold_at_the_threshold_though_the_repeated_test_errs(p, truth):
    """Every input at p = kappa, robust, or just above, not robust: where the paper's test errs most."""
    rng, runs, n = np.random.default_rng(0), 150, 80
    states = decided(REPEATED, p, runs * n, rng).reshape(runs, n)
    missed = missed_at_alpha = 0
    measure = named_measures({"repeated": REPEATED})["repeated"]
    for own in states:
        samples = pd.DataFrame({"label": 0, "state": own})
        whole = share_frame(samples, ["a"], measure=measure, confidence=0.95).iloc[-1]
        missed += not whole["low"] <= truth <= whole["high"]
        low, high = share_interval((own == STATES[ROBUST]).sum(), (own == STATES[0]).sum(), n, **LEVELS)
        missed_at_alpha += not low <= truth <= high
        assert whole["error_rate"] == wrong_call_rate(kappa=0.02, alpha=0.05, budget=800, test="repeated_exact")
        assert whole["paper_high"] == pytest.approx(min(1, (n - (own == "not_robust").sum()) / n / 0.95))
    assert missed <= binom.ppf(0.999, runs, 0.05)
    # Taking the test at its level, most intervals would be wrong, on one side or the other.
    assert missed_at_alpha > 0.5 * runs


def test_a_test_that_keeps_its_level_errs_by_alpha_and_another_with_a_caution():
    keeping = SequentialTest(kappa=0.02, alpha=0.05, name="anytime", budget=800)
    assert keeping.error_rate() == 0.05
    assert warning_about_test("p", keeping) is None
    assert warning_about_test("clean", None) is None
    repeated = SequentialTest(kappa="SIL2", alpha=0.05, name="repeated_exact", budget=3000)
    assert repeated.error_rate() == pytest.approx(0.277, abs=5e-4)
    words = warning_about_test("p", repeated)
    assert "does not keep its level" in words and "a probability of up to 0.277, not 0.05" in words


def test_a_test_that_errs_as_often_as_a_coin_is_refused():
    coin = SequentialTest(kappa=0.01, alpha=0.2, name="repeated_exact", budget=3000)
    with pytest.raises(InputError, match=r"decides wrongly with a probability of up to 0\.540, so its decisions"):
        coin.error_rate()


def test_shares_per_class_and_overall():
    labels = np.array([0] * 20 + [1] * 10)
    states = np.array(["robust"] * 15 + ["not_robust"] * 3 + ["undecided"] * 2 + ["robust"] * 10, dtype=object)
    table = pd.DataFrame(class_shares(states, labels, ["cat", "dog", "frog"], test_level=0.04, **LEVELS))
    assert table["class_name"].tolist() == ["cat", "dog", "frog", "all"]
    assert table["class_index"].tolist() == [0, 1, 2, -1]
    assert table[["n", "robust", "not_robust", "undecided"]].to_numpy().tolist() == [
        [20, 15, 3, 2],
        [10, 10, 0, 0],
        [0, 0, 0, 0],
        [30, 25, 3, 2],
    ]
    expected = share_interval(15, 2, 20, error_rate=0.05, alpha=0.05 / 3)
    assert tuple(table.loc[0, ["low", "high"]]) == pytest.approx(expected)
    assert tuple(table.loc[2, ["low", "high"]]) == (0, 1)
    assert tuple(table.loc[3, ["low", "high"]]) == pytest.approx(share_interval(25, 2, 30, **LEVELS))
    printed = printed_interval(25, 2, 30, test_level=0.04)
    assert tuple(table.loc[3, ["paper_low", "paper_high"]]) == pytest.approx(printed)


def test_shares_allow_for_wrong_labels():
    # Half of the correctly labelled samples of a class are robust; a share of the labels is wrong, all of them robust.
    rates = [0.2, 0.0, 0.1]
    labels = np.repeat([0, 1, 2], 5000)
    place = np.tile(np.arange(5000) / 5000, 3)
    wrong = place < np.take(rates, labels)
    robust = wrong | (place - np.take(rates, labels) < 0.5 * (1 - np.take(rates, labels)))
    measure = named_measures({"anytime": {**REPEATED, "test": "anytime"}})["anytime"]
    for turned in (False, True):
        samples = pd.DataFrame({"label": labels, "state": np.where(robust ^ (wrong & turned), "robust", "not_robust")})
        keywords = {"measure": measure, "confidence": 0.95}
        known, plain = (
            share_frame(samples, list("abc"), **keywords, **rate) for rate in ({"label_error_rates": rates}, {})
        )
        covered = [(frame["low"] <= 0.5) & (frame["high"] >= 0.5) for frame in (known, plain)]
        assert covered[0].all() and not covered[1][[0, 3]].any()
        assert (known["low"] <= plain["low"]).all() and (known["high"] >= plain["high"]).all()
        assert known.loc[1, ["low", "high"]].tolist() == plain.loc[1, ["low", "high"]].tolist()


def test_levels_out_of_range_are_refused():
    with pytest.raises(InputError, match=r"error_rate < 0\.5"):
        share_interval(1, 0, 2, error_rate=0.5, alpha=0.05)


def test_robust_shares_of_a_training_method():
    states = np.repeat(STATES, [5, 40, 5])
    row = robust_shares(states, test_level=0.05, **LEVELS)
    assert (row["robust"], row["undecided"]) == (0.8, 0.1)
    assert row["observation"] == pytest.approx(0.75 / 1.05)
    assert (row["robust_low"], row["robust_high"]) == pytest.approx(share_interval(40, 5, 50, **LEVELS))
    # The paper takes a test at its level, the interval by what it errs in truth.
    erring = robust_shares(states, test_level=0.05, error_rate=0.3, alpha=0.05)
    assert erring["observation"] == row["observation"]
    assert erring["robust_low"] == pytest.approx(share_interval(40, 5, 50, error_rate=0.3, alpha=0.05)[0])


# Differences of two proportions


def test_lower_bounds_of_paired_differences_by_hand():
    # Ten gains and no loss: the share of gains is above (alpha .9)^(1/10), that of changes above Clopper and Pearson's.
    alpha = 0.04
    share = (0.9 * alpha) ** 0.1
    changed = lower_shares(10, 20, alpha=0.1 * alpha / 2)
    assert lower_paired_differences(10, 0, 20, alpha=alpha) == pytest.approx(changed * (2 * share - 1))
    # Ten losses: the share of gains is above 0, and that of changes below its upper bound.
    most = 1 - lower_shares(10, 20, alpha=0.1 * alpha / 2)
    assert lower_paired_differences(0, 10, 20, alpha=alpha) == pytest.approx(-most)
    assert lower_paired_differences(0, 0, 0, alpha=alpha) == -1


def test_the_sign_of_a_bound_is_the_verdict_of_the_conditional_test():
    alpha = 0.05
    for gains, losses in itertools.product(range(13), range(6)):
        found = binomtest(gains, gains + losses, alternative="greater").pvalue <= 0.9 * alpha if gains else False
        assert (lower_paired_differences(gains, losses, 40, alpha=alpha) > 0) == found, (gains, losses)
    for first, second in itertools.product(range(16), range(12)):
        found = fisher_exact([[first, 15 - first], [second, 11 - second]], "greater").pvalue <= 0.9 * alpha
        assert (lower_differences([first], [15], second, 11, alpha=alpha)[0] > 0) == found, (first, second)


def test_bounds_of_differences_fail_with_probability_alpha_at_most():
    alpha, n, m = 0.1, 9, 7
    first, second = np.meshgrid(range(n + 1), range(m + 1), indexing="ij")
    low = np.stack([lower_differences(np.arange(n + 1), np.full(n + 1, n), k, m, alpha=alpha) for k in range(m + 1)], 1)
    for p, other in itertools.product(np.linspace(0, 1, 21), repeat=2):
        probability = binom.pmf(first, n, p) * binom.pmf(second, m, other)
        assert probability[low > p - other + 1e-12].sum() <= alpha

    gains, losses = np.nonzero(np.add.outer(np.arange(n + 1), np.arange(n + 1)) <= n)
    low = lower_paired_differences(gains, losses, n, alpha=alpha)
    for p, q in itertools.product(np.linspace(0, 1, 21), repeat=2):
        gain, loss = p * q, p * (1 - q)
        counts = np.stack([gains, losses, n - gains - losses], axis=1)
        probability = multinomial.pmf(counts, n, [gain, loss, 1 - gain - loss])
        assert probability[low > gain - loss + 1e-12].sum() <= alpha


def test_bounds_of_differences_of_nothing_and_everything():
    low = lower_differences([0, 5, 0], [5, 5, 0], 5, 5, alpha=0.05)
    assert low[0] == -1 and low[1] < 0 and low[2] == -1
    assert lower_differences([500], [500], 0, 500, alpha=0.05)[0] > 0.9
    assert lower_differences([5], [5], 0, 0, alpha=0.05)[0] <= 0
