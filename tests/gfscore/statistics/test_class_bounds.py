import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binom

from gfscore import InputError
from gfscore.audit.settings import IntervalSettings
from gfscore.measures import measure_of
from gfscore.statistics import SCALE, classes
from gfscore.statistics.class_bounds import METHODS, ClassBounds, bounds_of
from gfscore.statistics.classes import class_samples
from gfscore.statistics.intervals import rdi_bound
from gfscore.statistics.margins import scores
from gfscore.statistics.proportions import lower_mean_shares, lower_shares
from helpers import definitions
from helpers.samples import intervals, logits_and_labels, metric

pytestmark = pytest.mark.seconds(20)

UNIT = (0.0, 1.0)
GRADED = sorted(set(METHODS) - {"clopper_pearson"})


def interval_of(values, labels, classes, *, method, alpha, value_range=UNIT, seed=0, **kwargs):
    samples = class_samples(values, labels, classes, seed=seed)
    return ClassBounds(samples, value_range, method, **kwargs).interval(alpha)


@pytest.mark.parametrize("method", GRADED)
@pytest.mark.parametrize("value_range", [(0.0, SCALE), UNIT, (-1.0, 3.0)])
def test_agrees_with_the_plain_implementation(method, value_range):
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(5), [400, 90, 30, 1, 0]))
    values = value_range[0] + (value_range[1] - value_range[0]) * rng.beta(0.4, 0.6, len(labels))
    low, high = interval_of(values, labels, 5, method=method, alpha=0.1, value_range=value_range)
    order = np.random.default_rng(0).permutation(len(labels))
    for k in range(5):
        group = [values[index] for index in order if labels[index] == k]
        expected = definitions.class_interval(group, method, 5, 0.1, value_range)
        assert (low[k], high[k]) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 2**32), st.sampled_from(GRADED), st.floats(0.001, 0.999))
def test_intervals_hold_the_measured_value_and_stay_in_the_range(seed, method, alpha):
    logits, labels = logits_and_labels(seed)
    samples = class_samples(scores(logits, labels, activation="softmax"), labels, 5, seed=0)
    low, high = ClassBounds(samples, (0, SCALE), method).interval(alpha)
    mean = samples.summary.mean
    assert ((low >= 0) & (low <= mean + 1e-12) & (mean - 1e-12 <= high) & (high <= SCALE)).all()


@pytest.mark.parametrize("method", GRADED)
def test_a_class_without_samples_gets_the_whole_range_so_that_it_never_passes_a_gate(method):
    low, high = interval_of(
        np.full(10_000, 0.9), np.zeros(10_000, int), 3, method=method, alpha=0.05, value_range=(0, SCALE)
    )
    assert low[1:].tolist() == [0, 0]
    assert high[1:].tolist() == [SCALE, SCALE]
    assert low[0] > 0.8
    assert intervals(low, high, n=np.array([10_000, 0, 0]), lam=0.5)["wcr"][0] == 0
    assert classes.worst_class_set(low, high).tolist() == [0, 1, 2]


def test_one_sample_gives_no_bernstein_interval_but_a_hoeffding_one():
    pair = np.array([0.0, 1.0]), np.array([0, 1])
    low, high = interval_of(*pair, 2, method="empirical_bernstein", alpha=0.9)
    assert (low.tolist(), high.tolist()) == ([0, 0], [1, 1])
    low, high = interval_of(*pair, 2, method="hoeffding", alpha=0.9)
    half = math.sqrt(math.log(4 / 0.9) / 2)
    assert (low.tolist(), high.tolist()) == (pytest.approx([0, 1 - half]), pytest.approx([half, 1]))


@pytest.mark.parametrize("method", GRADED)
def test_duplicating_every_sample_narrows_the_intervals(method):
    rng = np.random.default_rng(0)
    values, labels = rng.beta(0.5, 0.5, 400), rng.permutation(np.repeat(np.arange(4), 100))

    def widths(copies):
        low, high = interval_of(np.tile(values, copies), np.tile(labels, copies), 4, method=method, alpha=0.05)
        return high - low

    assert (widths(4) < 0.75 * widths(1)).all()


def test_bernstein_is_tighter_than_hoeffding_only_when_the_variance_is_small():
    def widths(values):
        both = (interval_of(values, np.repeat([0, 1], 1000), 2, method=m, alpha=0.05) for m in GRADED)
        return {method: (high - low)[0] for method, (low, high) in zip(GRADED, both, strict=True)}

    calm = widths(np.tile([0.45, 0.55], 1000))
    wild = widths(np.tile([0.0, 1.0], 1000))
    assert calm["empirical_bernstein"] < 0.5 * calm["hoeffding"]
    assert wild["empirical_bernstein"] > wild["hoeffding"]


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 1.5, math.nan])
def test_alpha_outside_zero_and_one_is_an_error(alpha):
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        interval_of(np.full(4, 0.5), np.array([0, 0, 1, 1]), 2, method="hoeffding", alpha=alpha)


def test_an_unknown_method_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InputError, match="'bootstrap' is unknown; choose one of betting, clopper_pearson"):
        interval_of(np.full(4, 0.5), np.array([0, 0, 1, 1]), 2, method="bootstrap", alpha=0.05)


def test_values_that_a_method_says_nothing_about_are_refused():
    labels = np.array([0, 0, 1, 1])
    with pytest.raises(InputError, match=r"value 1\.5 lies outside the range"):
        interval_of(np.array([0, 1, 1.5, 0.2]), labels, 2, method="betting", alpha=0.05)
    with pytest.raises(InputError, match="clopper_pearson needs a 0/1 measure; choose betting"):
        interval_of(np.array([0, 1, 0.5, 0.2]), labels, 2, method="clopper_pearson", alpha=0.05)


@pytest.mark.parametrize("value_range", [(1.0, 0.0), (0.0, 0.0), (0.0, math.nan)])
def test_a_range_without_values_is_refused(value_range):
    samples = class_samples([0.0, 0.0], [0, 1], 2, seed=0)
    with pytest.raises(InputError, match="value_range must be two numbers, the lowest first"):
        ClassBounds(samples, value_range, "hoeffding")


def test_clopper_pearson_by_hand():
    # No success in 10: upper bound 1 - (alpha / 4)^(1/10) with two classes; every trial a success mirrors it.
    values, labels = np.repeat([0.0, 1.0], 10), np.repeat([0, 1], 10)
    low, high = interval_of(values, labels, 2, method="clopper_pearson", alpha=0.05)
    assert (low[0], high[1]) == (0, 1)
    assert (high[0], low[1]) == pytest.approx((1 - 0.0125**0.1, 0.0125**0.1))


def test_one_side_of_one_class_is_tighter_than_both_sides_of_all():
    rng = np.random.default_rng(0)
    bounds = ClassBounds(class_samples(rng.random(500), np.repeat(np.arange(5), 100), 5, seed=0), UNIT, "betting")
    low, high = bounds.interval(0.05)
    assert (bounds.lower(0.05) > low).all()
    assert (bounds.upper(0.05) < high).all()
    np.testing.assert_array_equal(bounds.lower(0.005), low)


def test_wrong_labels_widen_both_sides():
    rng = np.random.default_rng(0)
    values, labels = rng.random(500), np.repeat(np.arange(5), 100)
    low, high = interval_of(values, labels, 5, method="betting", alpha=0.05)
    wider = interval_of(values, labels, 5, method="betting", alpha=0.05, label_error_rates=np.full(5, 0.1))
    np.testing.assert_allclose(wider, [(low - 0.1) / 0.9, np.minimum(high / 0.9, 1)])


def test_config_decides_by_the_measure_which_method_is_used():
    intervals = IntervalSettings(seed=3)
    for settings, expected in (
        ({"kind": "clean"}, "clopper_pearson"),
        ({"kind": "great", "activation": "softmax"}, "betting"),
        # A mean over several corrupted copies is no 0/1 value.
        ({"kind": "corruption"}, "betting"),
    ):
        found = bounds_of(np.array([0.0, 1.0]), np.array([0, 1]), 2, measure=measure_of(settings), intervals=intervals)
        assert found.method == expected, settings


# Widths


@pytest.mark.parametrize(
    ("n", "k", "narrowest", "widest"), [(1000, 10, 0.010, 0.090), (50, 1000, 0.244, 0.503)], ids=["1000", "50"]
)
def test_betting_has_the_widths_of_the_methods(n, k, narrowest, widest):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(k), n)
    widths = {}
    for name, values in {
        "constant": np.zeros(n * k),
        "skewed": rng.beta(0.3, 3, n * k),
        "uniform": rng.random(n * k),
        "U-shaped": rng.beta(0.35, 0.35, n * k),
    }.items():
        low, high = interval_of(values, labels, k, method="betting", alpha=0.05)
        widths[name] = float((high - low).mean())
    assert list(widths.values()) == sorted(widths.values())
    assert widths["constant"] <= narrowest
    assert 0.75 * widest <= widths["U-shaped"] <= widest


@pytest.mark.parametrize(("models", "k", "n", "most"), [(17, 10, 1000, 2), (5, 1000, 50, 10)])
def test_betting_is_fast(models, k, n, most):
    values, labels = np.random.default_rng(0).beta(0.4, 0.6, n * k), np.repeat(np.arange(k), n)
    start = time.process_time()
    for _ in range(models):
        interval_of(values, labels, k, method="betting", alpha=0.05)
    assert time.process_time() - start < 3 * most


# Coverage by simulation

DISTRIBUTIONS = {
    # name: (draw n x K values in [0, 1], true means); the classes differ
    "skewed": (
        lambda rng, n, k: rng.beta(0.3, np.linspace(2, 6, k), size=(n, k)),
        lambda k: 0.3 / (0.3 + np.linspace(2, 6, k)),
    ),
    "zero-inflated": (
        lambda rng, n, k: (rng.random((n, k)) < np.linspace(0.02, 0.3, k)) * rng.uniform(0.5, 1, (n, k)),
        lambda k: 0.75 * np.linspace(0.02, 0.3, k),
    ),
    "binary": (
        lambda rng, n, k: (rng.random((n, k)) < np.linspace(0.05, 0.95, k)) * 1.0,
        lambda k: np.linspace(0.05, 0.95, k),
    ),
}
CLASSES = 5


def simulated(name, n, seed, trials, *, sort=False):
    draw, true_means = DISTRIBUTIONS[name]
    rng = np.random.default_rng(seed)
    labels = np.tile(np.arange(CLASSES), n)
    for _ in range(trials):
        values = draw(rng, n, CLASSES)
        if sort:
            values = np.sort(values, axis=0)[::-1]
        yield class_samples(values.ravel(), labels, CLASSES, seed=rng.integers(2**32)), true_means(CLASSES)


CASES = [(name, method) for name in DISTRIBUTIONS for method in GRADED] + [("binary", "clopper_pearson")]


@pytest.mark.parametrize("n", [20, 50, 1000])
@pytest.mark.parametrize(("name", "method"), CASES)
def test_class_intervals_cover_all_classes_at_least_as_often_as_stated(name, n, method):
    # A large alpha makes the statement a sharp one.
    trials, alpha = 100 if method == "betting" else 400, 0.5
    missed = 0
    for samples, truth in simulated(name, n, seed=n, trials=trials, sort=method == "betting"):
        low, high = ClassBounds(samples, UNIT, method).interval(alpha)
        missed += not ((low <= truth) & (truth <= high)).all()
    assert missed <= binom.ppf(0.999, trials, alpha)


def test_the_simulation_can_tell_a_wrong_interval_from_a_right_one():
    # Bernstein without its second term collapses when a rare event was not drawn.
    trials, alpha, missed = 300, 0.5, 0
    for samples, truth in simulated("zero-inflated", 20, seed=1, trials=trials):
        values = samples.summary
        half = np.sqrt(2 * values.variance * math.log(4 * CLASSES / alpha) / values.n)
        missed += not (np.abs(values.mean - truth) <= half).all()
    assert missed > binom.ppf(0.999, trials, alpha)


@pytest.mark.parametrize("method", ["betting", "hoeffding"])
@pytest.mark.parametrize("n", [20, 50, 1000])
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_disparity_intervals_cover_at_least_as_often_as_stated(name, n, method):
    trials, alpha = 50 if n == 1000 else 100, 0.5
    missed = 0
    for samples, truth in simulated(name, n, seed=10 + n, trials=trials):
        low, high = ClassBounds(samples, UNIT, method).interval(alpha)
        bounds = intervals(low, high, n=samples.n, lam=0.5)
        exact = {
            "value": truth.mean(),
            "class_mean": truth.mean(),
            "rdi": metric("rdi", truth),
            "nrgc": metric("nrgc", truth),
            "wcr": metric("wcr", truth),
            "fp": metric("fp", truth),
        }
        missed += not all(bounds[key][0] <= exact[key] <= bounds[key][1] for key in exact)
    assert missed <= binom.ppf(0.999, trials, alpha)


def test_rdi_bound_covers():
    trials, alpha, n = 300, 0.5, 50
    bound = rdi_bound(n, classes=CLASSES, alpha=alpha, width=1)
    missed = sum(
        abs(metric("rdi", samples.summary.mean) - metric("rdi", truth)) > bound
        for samples, truth in simulated("binary", n, seed=3, trials=trials)
    )
    assert missed <= binom.ppf(0.999, trials, alpha)


def test_decisions_left_open_and_decisions_that_may_be_wrong_widen_the_bounds():
    """Of a probabilistic measure: undecided is 0 below and 1 above, and [(L - a) / (1 - a), U / (1 - a)]."""
    measure = measure_of({"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05})
    labels = np.repeat([0, 1, 2], [40, 40, 0])
    values = np.array([1.0] * 20 + [0.0] * 20 + [1.0] * 40)
    upper = values.copy()
    upper[20:30] = 1
    intervals = IntervalSettings()
    bounds = bounds_of(values, labels, 3, measure=measure, intervals=intervals, upper_values=upper)
    low, high = bounds.interval(0.06)
    side = 0.06 / 6
    assert low[0] == pytest.approx((float(beta.ppf(side, 20, 21)) - 0.05) / 0.95)
    assert high[0] == pytest.approx(float(beta.ppf(1 - side, 31, 10)) / 0.95)
    assert (low[2], high[2]) == (0, 1)
    # The paper's repeated test errs far more often than its level says.
    repeated = {"kind": "probabilistic", "kappa": 0.01, "alpha": 0.05, "test": "repeated_exact", "budget": 3000}
    erring = bounds_of(values, labels, 3, measure=measure_of(repeated), intervals=intervals)
    assert erring.label_error_rates == pytest.approx(np.full(3, 0.277), abs=5e-4)
    # A rate of wrong labels comes on top: a share (1 - .1)(1 - .05) of the values is right.
    both = bounds_of(values, labels, 3, measure=measure, intervals=intervals, label_error_rates=[0.1] * 3)
    assert both.label_error_rates == pytest.approx(np.full(3, 1 - 0.9 * 0.95))


def test_bounds_of_certified_radii_allow_for_wrong_certificates():
    """The mean of what is truly certified is covered, though a fifth of the radii are as large as any can be."""
    smoothing = {"sigma": 0.25, "selection_samples": 100, "estimation_samples": 1000, "alpha": 0.2}
    computed = measure_of({"kind": "certified", "smoothing": smoothing})
    imported = measure_of({"kind": "certified", "largest_radius": computed.value_range[1]})
    rng, n, trials, missed = np.random.default_rng(4), 300, 200, {"computed": 0, "imported": 0}
    intervals = IntervalSettings()
    for _ in range(trials):
        true = rng.uniform(0, 0.4, n)
        wrong = rng.random(n) < smoothing["alpha"]
        found = np.where(wrong, computed.value_range[1], true)
        for name, measure in (("computed", computed), ("imported", imported)):
            low, _ = bounds_of(found, np.zeros(n, int), 1, measure=measure, intervals=intervals).interval(0.1)
            missed[name] += low[0] > 0.2
    assert missed["computed"] <= binom.ppf(0.999, trials, 0.1)
    # Radii of elsewhere are taken as right, so that this is what their bounds cannot see.
    assert missed["imported"] > trials / 2


# The aggregate alone

SIZES = np.array([300, 80, 15, 4, 1])
"""Samples of five classes that are far from equally frequent."""


def aggregate_of(bounds, alpha):
    return bounds.lower_aggregate(alpha / 2), bounds.upper_aggregate(alpha / 2)


@pytest.mark.parametrize(("name", "method"), CASES)
def test_the_interval_of_the_aggregate_covers_it_as_often_as_stated_for_unequal_classes(name, method):
    trials, alpha = 100 if method == "betting" else 300, 0.4
    draw, true_means = DISTRIBUTIONS[name]
    rng, labels, missed = np.random.default_rng(5), np.repeat(np.arange(CLASSES), SIZES), {"low": 0, "high": 0}
    truth = SIZES @ true_means(CLASSES) / SIZES.sum()
    for _ in range(trials):
        values = draw(rng, len(labels), CLASSES)[np.arange(len(labels)), labels]
        low, high = aggregate_of(ClassBounds(class_samples(values, labels, CLASSES, seed=0), UNIT, method), alpha)
        missed["low"] += low > truth
        missed["high"] += high < truth
    assert max(missed.values()) <= binom.ppf(0.999, trials, alpha / 2)


def test_bounds_of_unlike_trials_use_up_alpha_where_the_trials_are_alike():
    alpha = 0.2
    found = np.random.default_rng(6).binomial(300, 0.5, 2000)
    low = lower_mean_shares(found, np.full(2000, 300), alpha=alpha)
    assert 0.7 * alpha < (low > 0.5).mean() <= binom.ppf(0.999, 2000, alpha) / 2000


def missed_probability(bound, probabilities, alpha):
    """Exact probability that a lower bound of the mean of unlike trials exceeds it."""
    n, distribution = len(probabilities), np.ones(1)
    for p in probabilities:
        distribution = np.convolve(distribution, [1 - p, p])
    low = bound(np.arange(n + 1), np.full(n + 1, n), alpha=alpha)
    return distribution[low > np.mean(probabilities) * (1 + 1e-12)].sum()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=25), st.sampled_from([0.01, 0.05, 0.25, 0.6]))
def test_lower_bounds_of_unlike_trials_are_exact_whatever_the_probabilities(probabilities, alpha):
    assert missed_probability(lower_mean_shares, probabilities, alpha) <= alpha * (1 + 1e-9)


def test_one_success_among_unlike_trials_is_worth_less_than_clopper_and_pearson_say():
    # One class of one sample has all the probability: Clopper and Pearson's bound for alike trials is missed too often.
    probabilities = [0.0512] + [0.0] * 999
    assert missed_probability(lower_shares, probabilities, 0.05) > 0.05
    assert missed_probability(lower_mean_shares, probabilities, 0.05) == 0
    successes = np.array([0, 2, 30, 1000])
    alike = lower_shares(successes, 1000, alpha=0.05)
    np.testing.assert_array_equal(lower_mean_shares(successes, 1000, alpha=0.05), alike)


@pytest.mark.parametrize("n", [30, 1000])
@pytest.mark.parametrize("method", METHODS)
def test_the_interval_of_the_aggregate_is_narrower_than_the_one_from_the_classes(n, method):
    """Ten classes alike: the union over them costs 2 to 4 times the width."""
    rng, alpha = np.random.default_rng(0), 0.05
    values = (rng.random(10 * n) < 0.75) * 1.0
    bounds = ClassBounds(class_samples(values, np.repeat(np.arange(10), n), 10, seed=0), UNIT, method)
    low, high = intervals(*bounds.interval(alpha), n=bounds.n, lam=0.5)["value"]
    own = aggregate_of(bounds, alpha)
    assert own[0] < values.mean() < own[1]
    assert own[1] - own[0] < (high - low) / 2
    if method == "clopper_pearson":
        successes = int(values.sum())
        exact = beta.ppf(alpha / 2, successes, 10 * n - successes + 1)
        assert own[0] == pytest.approx(float(exact), rel=1e-9)


def test_the_interval_of_the_aggregate_lies_in_the_measures_range_and_needs_samples():
    values, labels = np.full(40, SCALE), np.zeros(40, int)
    for method in GRADED:
        bounds = ClassBounds(class_samples(values, labels, 2, seed=0), (0.0, SCALE), method)
        assert bounds.upper_aggregate(0.05) == SCALE and 0 < bounds.lower_aggregate(0.05) < SCALE
    for method in METHODS:
        nothing = ClassBounds(class_samples(np.zeros(0), np.zeros(0, int), 2, seed=0), (0.0, SCALE), method)
        assert aggregate_of(nothing, 0.05) == (0, SCALE)


def test_the_interval_of_the_aggregate_allows_for_wrong_labels_and_open_decisions():
    values, labels = np.repeat([1.0, 0.0, 1.0, 0.0], [60, 20, 30, 10]), np.repeat([0, 1], [80, 40])
    samples = class_samples(values, labels, 2, seed=0)
    low, high = aggregate_of(ClassBounds(samples, UNIT, "clopper_pearson"), 0.05)
    rates = ClassBounds(samples, UNIT, "clopper_pearson", np.full(2, 0.1))
    assert aggregate_of(rates, 0.05) == pytest.approx(((low - 0.1) / 0.9, high / 0.9))
    settled = class_samples(np.ones(120), labels, 2, seed=0)
    opened = ClassBounds(samples, UNIT, "clopper_pearson", upper_samples=settled)
    assert aggregate_of(opened, 0.05) == (low, 1)
