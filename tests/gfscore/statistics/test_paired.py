import itertools
from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest, norm, ttest_1samp

from gfscore import InputError
from gfscore.statistics import betting
from gfscore.statistics.betting import MOST_AT_STAKE, bets, mean_bounds, one_sided_p_values
from gfscore.statistics.multiple_tests import METHODS, false_discovery, holm
from gfscore.statistics.paired import compare, rank_intervals

ALPHA = 0.1
ADJUSTED = {"holm": holm, **{name: partial(false_discovery, method=name) for name in METHODS}}
SETTINGS = {"value_range": (0.0, 1.0), "alpha": ALPHA, "most": 10_000}


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def most_errors(trials, rate=ALPHA):
    """Errors that a test at its nominal rate exceeds in one run of a million only."""
    return next(count for count in range(trials + 1) if binomtest(count, trials, rate, "greater").pvalue < 1e-6)


# Betting


def test_wealth_of_one_bet_by_hand():
    # One sample: the average over the bets of 1 + lambda d, whose inverse is the p-value.
    grid = bets(1, bound=2.0, alpha=0.05)
    above, below = one_sided_p_values([[1.5]], bound=2.0, alpha=0.05)
    assert above[0] == pytest.approx(1 / np.mean(1 + grid * 1.5))
    assert below[0] == 1
    assert grid.max() == pytest.approx(MOST_AT_STAKE / 2)


def test_p_values_do_not_depend_on_the_order_of_the_samples(rng):
    differences = rng.uniform(-1, 1, size=(130, 4))
    ordered = np.sort(differences, axis=0)
    for one, other in zip(*(one_sided_p_values(d, bound=1, alpha=0.01) for d in (differences, ordered)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_bounds_and_p_values_agree_about_zero(rng):
    differences = rng.uniform(-1, 1, size=(60, 300)) * 0.5 + rng.uniform(-0.4, 0.4, size=300)
    low, high = mean_bounds(differences, bound=1, alpha=ALPHA)
    above, below = one_sided_p_values(differences, bound=1, alpha=ALPHA / 2)
    np.testing.assert_array_equal(low > 0, above <= ALPHA / 2)
    np.testing.assert_array_equal(high < 0, below <= ALPHA / 2)
    assert 0.2 < np.mean((low > 0) | (high < 0)) < 0.9


def test_bounds_turn_round_with_the_sign_and_scale_with_the_unit(rng):
    differences = rng.uniform(-1, 1, size=(40, 5)) ** 3
    low, high = mean_bounds(differences, bound=1, alpha=0.05)
    turned_low, turned_high = mean_bounds(-3 * differences, bound=3, alpha=0.05)
    np.testing.assert_allclose([-3 * high, -3 * low], [turned_low, turned_high], atol=1e-8)


def test_bounds_of_equal_and_of_extreme_differences():
    low, high = mean_bounds(np.column_stack([np.zeros(200), np.ones(200), -np.ones(200)]), bound=1, alpha=0.05)
    assert low[0] == pytest.approx(-high[0]) and 0 < high[0] < 0.05
    assert low[1] > 0.95 and high[1] == 1
    assert low[2] == -1 and high[2] < -0.95


def test_no_sample_says_nothing():
    low, high = mean_bounds(np.empty((0, 2)), bound=1, alpha=0.05)
    np.testing.assert_array_equal([low, high], [[-1, -1], [1, 1]])
    assert all((p == 1).all() for p in one_sided_p_values(np.empty((0, 2)), bound=1, alpha=0.05))


@pytest.mark.parametrize("values", [(0.0, 1.0, -1.0), (-0.01, -1.01, 0.99)])
@pytest.mark.parametrize("n", [1, 30, 2000])
def test_counts_of_few_values_give_the_bounds_of_all_differences(values, n, rng, monkeypatch):
    drawn = rng.choice(values, size=(n, 40), p=[0.8, 0.15, 0.05])
    # Columns of one and of two values among them.
    drawn[:, 0], drawn[:, 1] = values[0], np.where(drawn[:, 1] == values[0], values[1], values[0])
    upper = np.minimum(drawn + 0.02, 1.01)

    def results():
        tested = one_sided_p_values(drawn, bound=1.01, alpha=1e-3, upper=upper)
        return np.concatenate([*mean_bounds(drawn, bound=1.01, alpha=1e-3, upper=upper), *np.log(tested)])

    assert betting._counted(drawn)[1].sum() == drawn.size
    by_counts = results()
    monkeypatch.setattr(betting, "_counted", lambda differences: (differences, None))
    np.testing.assert_allclose(by_counts, results(), rtol=1e-9, atol=4e-9)


def test_only_few_values_are_counted(rng):
    few = rng.choice([-1.0, 0.0, 1.0], size=(2000, 3))
    rows, counts = betting._counted(few)
    np.testing.assert_array_equal(rows, np.repeat([[-1.0], [0.0], [1.0]], 3, axis=1))
    np.testing.assert_array_equal(counts, [(few == value).sum(axis=0) for value in (-1, 0, 1)])
    # A fourth value, far behind those that are looked at first.
    few[-1, -1] = 0.5
    for many in (few, rng.random((2000, 3))):
        rows, counts = betting._counted(many)
        assert rows is many and counts is None


@pytest.mark.parametrize("wrong", [1.01, np.nan])
def test_differences_beyond_the_range_are_refused(wrong):
    with pytest.raises(InputError, match="beyond 1"):
        mean_bounds([[wrong]], bound=1, alpha=0.05)


def skewed(rng, shape):
    # Mean 0: rarely far above, mostly a little below.
    return np.where(rng.random(shape) < 0.02, 0.98, -0.02)


def two_kinds(rng, shape):
    # Half of the samples have mean +.3 and half -.3, always in this order: a fixed composition, as of classes.
    means = np.where(np.arange(shape[0]) % 2 == 0, 0.3, -0.3)[:, None]
    return means + rng.choice([-0.6, 0.6], size=shape)


def lattice(rng, shape):
    return rng.choice([-1, 0, 1], p=[0.05, 0.9, 0.05], size=shape)


def sorted_kinds(rng, shape):
    return np.sort(two_kinds(rng, shape), axis=0)


@pytest.mark.parametrize("draw", [skewed, two_kinds, lattice, sorted_kinds])
@pytest.mark.parametrize("n", [20, 50, 1000])
def test_level_and_coverage_where_the_mean_is_zero(draw, n, rng):
    trials = 800
    differences = draw(rng, (n, trials))
    above, below = one_sided_p_values(differences, bound=1, alpha=ALPHA)
    low, high = mean_bounds(differences, bound=1, alpha=ALPHA)
    allowed = most_errors(trials)
    assert max(np.sum(above <= ALPHA), np.sum(below <= ALPHA), np.sum((low > 0) | (high < 0))) <= allowed


@pytest.mark.filterwarnings("ignore:Precision loss")
def test_the_t_test_fails_where_betting_holds(rng):
    # What the guarantee is for: skewed differences at n = 20.
    differences = skewed(rng, (20, 4000))
    assert np.mean(ttest_1samp(differences, 0).pvalue <= 0.05) > 0.3
    low, high = mean_bounds(differences, bound=1, alpha=0.05)
    assert np.mean((low > 0) | (high < 0)) <= 0.05


# Several hypotheses


@pytest.mark.parametrize(
    ("p", "refused"), [([], 0), ([0.05], 1), ([0.051], 0), ([0.04, 0.025], 2), ([0.001, 0.04, 0.03], 1)]
)
def test_holm_refuses_until_a_threshold_is_missed(p, refused):
    assert (holm(p, family=len(p)) <= 0.05).sum() == refused


def test_adjusted_p_values_by_hand():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p, family=4), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(ADJUSTED["bh"](p, family=4), [0.02, 0.04, 0.04, 0.02])
    np.testing.assert_allclose(ADJUSTED["by"](p, family=4), np.array([0.02, 0.04, 0.04, 0.02]) * 25 / 12)
    # Hypotheses that nobody tested count.
    np.testing.assert_allclose(holm(p, family=6), [0.05, 0.12, 0.12, 0.03])
    np.testing.assert_allclose(ADJUSTED["bh"](p, family=8), np.minimum(2 * np.array([0.02, 0.04, 0.04, 0.02]), 1))


def normal_pairs(rng, truth, trials):
    """One-sided p-values (trials, 2, P) of all pairs of models whose estimates are normal around `truth`, at the edge."""
    pairs = np.array(list(itertools.combinations(range(len(truth)), 2)))
    estimates = truth + rng.normal(size=(trials, len(truth)))
    z = (estimates[:, pairs[:, 0]] - estimates[:, pairs[:, 1]]) / np.sqrt(2)
    return pairs, np.stack([norm.sf(z), norm.cdf(z)], axis=1)


@pytest.mark.parametrize("truth", [np.zeros(6), np.array([0, 0, 0, 1.5, 3, 3.0])], ids=["full null", "partial null"])
def test_corrections_hold_where_tests_use_up_their_level(truth, rng):
    trials = 2000
    pairs, p_values = normal_pairs(rng, truth, trials)
    gap = truth[pairs[:, 0]] - truth[pairs[:, 1]]
    # "first is better" is wrong where it is not, and the other way round.
    null = np.stack([gap <= 0, gap >= 0]).ravel()
    flat = p_values.reshape(trials, -1)
    adjusted = {name: np.array([method(p, family=30) for p in flat]) for name, method in ADJUSTED.items()}
    any_wrong = {name: int((p[:, null] <= ALPHA).any(axis=1).sum()) for name, p in adjusted.items()}
    share = {name: np.mean((p[:, null] <= ALPHA).sum(axis=1) / np.maximum(1, (p <= ALPHA).sum(axis=1)))
             for name, p in adjusted.items()}  # fmt: skip
    assert any_wrong["holm"] <= most_errors(trials)
    assert share["by"] <= share["bh"] <= ALPHA
    assert (flat[:, null] <= ALPHA).any(axis=1).mean() > 0.3
    better, worse = (np.array([(sign * (truth - own) > 0).sum() for own in truth]) for sign in (1, -1))
    missed = 0
    for p in p_values:
        best, worst = rank_intervals(p, pairs, models=6, alpha=ALPHA)
        missed += ((best > 1 + better) | (worst < 6 - worse)).any()
    # Uncorrected intervals miss in at least a third; these use up a good part of what they may.
    assert 0.02 * trials <= missed <= most_errors(trials)


# Ranks


def test_rank_intervals_by_hand():
    pairs = np.array(list(itertools.combinations(range(4), 2)))
    # Model 0 beats 2 and 3, nothing else is sure.
    first = np.where(np.isin(pairs, [2, 3]).any(axis=1) & (pairs[:, 0] == 0), 1e-6, 0.5)
    best, worst = rank_intervals((first, np.full(6, 0.9)), pairs, models=4, alpha=0.05)
    np.testing.assert_array_equal(best, [1, 1, 2, 2])
    np.testing.assert_array_equal(worst, [2, 4, 4, 4])


# Whole comparisons


def made_values(rng, means, n, *, noise=0.1):
    """Values (M, K n) in [0, 1] of models whose class means are `means` (M, K), and labels; samples are shared."""
    means = np.asarray(means, dtype=float)
    labels = np.repeat(np.arange(means.shape[1]), n)
    shared = rng.beta(0.3, 0.9, size=labels.size) - 0.25
    own = noise * (rng.exponential(size=(len(means), labels.size)).clip(max=5) - 1)
    return np.clip(means[:, labels] + 0.2 * shared + own, 0, 1), labels


def test_differences_and_ranks_by_hand(rng):
    values, labels = made_values(rng, [[0.3, 0.3], [0.6, 0.6], [0.6, 0.3]], 400, noise=0.02)
    result = compare(values, labels, **SETTINGS)
    np.testing.assert_array_equal(result.order, [1, 2, 0])
    np.testing.assert_array_equal(result.pairs, [[1, 2], [1, 0], [2, 0]])
    of_class = [values[:, labels == k].mean(axis=1) for k in (0, 1)]
    expected = [means[a] - means[b] for means in of_class for a, b in result.pairs]
    np.testing.assert_allclose(result.by_class["difference"], expected, atol=1e-12)
    np.testing.assert_allclose(result.overall["difference"], values.mean(axis=1)[result.pairs] @ [1, -1], atol=1e-12)
    # Models 1 and 2 are alike on class 0, 2 and 0 on class 1.
    np.testing.assert_array_equal(result.by_class["p_holm"] <= ALPHA, [False, True, True, True, True, False])
    np.testing.assert_array_equal(result.best, [3, 1, 2])
    np.testing.assert_array_equal(result.worst, [3, 1, 2])
    for family in (result.by_class, result.overall):
        assert (family["low"] <= family["difference"]).all() and (family["difference"] <= family["high"]).all()
        assert (family["p"] <= family["p_holm"] + 1e-12).all() and (family["p_bh"] <= family["p_by"] + 1e-12).all()
        assert (family["p_bh"] <= family["p_holm"] + 1e-12).all()


def test_too_many_comparisons_leave_the_pairs_with_the_best_but_correct_for_all(rng):
    values, labels = made_values(rng, rng.uniform(0.2, 0.7, size=(6, 3)), 60)
    whole = compare(values, labels, **SETTINGS)
    part = compare(values, labels, **SETTINGS | {"most": 44})
    assert (whole.every_pair, part.every_pair) == (True, False)
    np.testing.assert_array_equal(part.pairs, whole.pairs[:5])
    listed = np.concatenate([15 * k + np.arange(5) for k in range(3)])
    for name in ("difference", "low", "high", "p"):
        np.testing.assert_allclose(part.by_class[name], whole.by_class[name][listed])
    assert (part.by_class["p_holm"].to_numpy() >= whole.by_class["p_holm"][listed].to_numpy() - 1e-12).all()
    np.testing.assert_array_equal([part.best, part.worst], [whole.best, whole.worst])


def test_corrections_count_models_that_were_left_out(rng):
    values, labels = made_values(rng, [[0.3, 0.3], [0.36, 0.36], [0.4, 0.4]], 150)
    result = compare(values, labels, **SETTINGS, family_models=5)
    strict = compare(values, labels, **SETTINGS | {"alpha": ALPHA * 3 / 10})
    for counted, alone in ((result.by_class, strict.by_class), (result.overall, strict.overall)):
        for bound in ("low", "high"):
            np.testing.assert_allclose(counted[bound], alone[bound], atol=1e-9)
    plain = compare(values, labels, **SETTINGS)
    for name in ("p_holm", "p_bh", "p_by"):
        assert (result.overall[name] >= plain.overall[name] - 1e-12).all()
    assert (result.overall["p_holm"] > plain.overall["p_holm"]).any()
    # Twenty hypotheses in place of six.
    one_sided = (np.array([0.006, 1, 1]), np.ones(3))
    pairs = [[0, 1], [0, 2], [1, 2]]
    assert rank_intervals(one_sided, pairs, models=3, alpha=0.05)[0].max() == 2
    assert rank_intervals(one_sided, pairs, models=3, alpha=0.05, family=10)[0].max() == 1


def test_one_model_cannot_be_compared():
    with pytest.raises(InputError, match="at least 2 models"):
        compare(np.ones((1, 4)), np.array([0, 0, 1, 1]), **SETTINGS)


def errors_of(draw, truth, trials, rng, n):
    """How often each procedure is wrong about anything: holm, bounds, ranks, and false discoveries by BY."""
    wrong = dict.fromkeys(("holm", "bounds", "ranks", "overall", "by"), 0.0)
    truth = np.asarray(truth)
    overall = truth.mean(axis=1)
    for _ in range(trials):
        values, labels = draw(rng, n)
        result = compare(values, labels, **SETTINGS)
        first, second = result.pairs.T
        true = (truth[first] - truth[second]).T.ravel()
        found = result.by_class

        def wrongly(p, found=found, true=true):
            # A refusal that names the wrong direction, or any where there is none.
            return (p <= ALPHA) & (np.sign(found["difference"]) != np.sign(np.round(true, 12)))

        wrong["holm"] += wrongly(found["p_holm"]).any()
        wrong["bounds"] += ((found["low"] > true + 1e-9) | (found["high"] < true - 1e-9)).any()
        wrong["by"] += wrongly(found["p_by"]).sum() / max(1, (found["p_by"] <= ALPHA).sum())
        gap = overall[first] - overall[second]
        wrong["overall"] += ((result.overall["low"] > gap + 1e-9) | (result.overall["high"] < gap - 1e-9)).any()
        better = (overall[None, :] > overall[:, None] + 1e-9).sum(axis=1)
        worse = (overall[None, :] < overall[:, None] - 1e-9).sum(axis=1)
        wrong["ranks"] += ((result.best > 1 + better) | (result.worst < len(overall) - worse)).any()
    return wrong


def exchangeable(means):
    """Zero-inflated, skewed values with exactly these means (M, K): a share is 0, the rest exponential-like."""
    means = np.asarray(means, dtype=float)

    def draw(rng, n):
        labels = np.repeat(np.arange(means.shape[1]), n)
        easy = rng.random(labels.size)
        # Right with a probability, shared between models through the sample's difficulty; value then skewed.
        share = 0.5 * (easy < 0.8) + 0.5 * (rng.random((len(means), labels.size)) < 0.8)
        positive = rng.choice([0.25, 1.0], p=[0.8, 0.2], size=share.shape) / 0.4
        return np.clip(share * positive * means[:, labels] / 0.8, 0, 1), labels

    return draw


@pytest.mark.parametrize(
    ("means", "n"),
    [
        ([[0.2, 0.2]] * 4, 25),
        ([[0.2, 0.2], [0.2, 0.32], [0.32, 0.2], [0.2, 0.2]], 25),
        ([[0.1, 0.3], [0.1, 0.3], [0.3, 0.3], [0.3, 0.1]], 150),
    ],
    ids=["full null", "partial null, few samples", "partial null"],
)
def test_error_rates_of_whole_comparisons(means, n, rng):
    trials = 100
    wrong = errors_of(exchangeable(means), means, trials, rng, n)
    allowed = most_errors(trials)
    assert max(wrong.values()) <= allowed, wrong


def test_comparisons_find_what_is_there(rng):
    # Bars that fail only in silence would pass any test of errors.
    means = [[0.1, 0.3], [0.1, 0.3], [0.3, 0.3]]
    values, labels = exchangeable(means)(rng, 1000)
    result = compare(values, labels, **SETTINGS)
    assert result.order[0] == 2 and result.best[2] == result.worst[2] == 1
    assert (result.by_class["p_holm"][:2] <= ALPHA).all()


# Values that a test decides


def test_a_model_is_not_better_than_one_whose_samples_are_undecided():
    labels = np.repeat([0, 1, 2], 200)
    values = np.stack([(np.arange(600) % 5 != 0) * 1.0, np.zeros(600)])
    upper = np.stack([values[0], np.ones(600)])
    known, found = (compare(values, labels, **SETTINGS, **changes) for changes in ({}, {"upper_values": upper}))
    assert known.best.tolist() == [1, 2] and known.by_class["p_holm"].max() < ALPHA
    assert found.best.tolist() == [1, 1] and found.worst.tolist() == [2, 2]
    for differences in (found.by_class, found.overall):
        assert (
            (differences["p_holm"] == 1).all()
            and (differences["low"] < -0.2).all()
            and (differences["high"] > 0.8).all()
        )


def test_what_undecided_samples_cannot_change_stays_significant():
    values = np.stack([np.ones(600), (np.arange(600) % 2) * 1.0])
    upper = np.maximum(values, np.arange(600) % 20 == 0)
    found = compare(values, np.zeros(600, int), **SETTINGS, upper_values=upper, error_rate=0.05)
    assert found.best.tolist() == [1, 2]
    assert 0.2 < found.overall["low"][0] < found.overall["difference"][0] < found.overall["high"][0] < 0.7


@pytest.mark.parametrize("error_rate", [0.0, 0.1])
def test_errors_of_the_test_make_no_difference_significant(rng, error_rate):
    # Equal true shares of 1/2: all errors of the one model raise its values, all of the other one lower them.
    truth = np.repeat([[0.0, 1.0]], 1000, axis=1)
    wrong = rng.random((2, 2000)) < 0.1
    values = np.concatenate([np.maximum(truth, wrong[:1]), np.minimum(truth, 1 - wrong[1:])])
    found = compare(values, np.zeros(2000, int), **SETTINGS, error_rate=error_rate)
    assert (found.overall["p_holm"][0] > ALPHA) == (error_rate > 0)
    assert (found.overall["low"][0] <= 0 <= found.overall["high"][0]) == (error_rate > 0)


def test_wrong_labels_make_no_difference_significant():
    # The models differ in the wrongly labelled samples alone, a tenth of the first class.
    labels = np.repeat([0, 1], 2000)
    place = np.tile(np.arange(2000) / 2000, 2)
    first = (place < 0.5) * 1.0
    second = np.where((labels == 0) & (place < 0.1), 0.0, first)
    plain, allowing = (compare([first, second], labels, **SETTINGS, error_rate=rate) for rate in (0.0, [0.1, 0.0]))
    assert plain.by_class["p_holm"][0] <= ALPHA and plain.best.tolist() == [1, 2]
    assert allowing.by_class["p_holm"][0] > ALPHA and allowing.best.tolist() == [1, 1]
    assert allowing.by_class["low"][0] <= 0
    for name, numbers in plain.by_class.items():
        if name in ("difference", "low", "high", "p"):
            assert allowing.by_class[name][1] == numbers[1]
