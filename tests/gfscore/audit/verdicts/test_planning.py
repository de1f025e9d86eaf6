import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gfscore import InputError
from gfscore.audit.metrics.rdi import detectable_rdi
from gfscore.audit.verdicts.gate_rules import statistic_of, verdict_of
from gfscore.audit.verdicts.planning import fewest_samples, samples_for_interval, samples_for_rule
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import class_samples
from gfscore.statistics.expected_bounds import ATOMS, atoms, expected_bounds
from gfscore.statistics.intervals import hoeffding_half_width, samples_for_half_width
from helpers.configurations import gate_rule
from helpers.samples import intervals

UNIT = (0.0, 1.0)
DRAWS = {
    "U-shaped": lambda rng, size: rng.beta(0.4, 0.6, size),
    "skewed": lambda rng, size: rng.beta(0.3, 3, size),
    "zero-inflated": lambda rng, size: (rng.random(size) < 0.2) * rng.uniform(0.5, 1, size),
}


def bounds(values, classes, method="betting"):
    labels = np.repeat(np.arange(classes), len(values) // classes)
    return ClassBounds(class_samples(values, labels, classes, seed=0), UNIT, method)


def test_atoms_by_hand():
    samples = class_samples(np.append(np.arange(2 * ATOMS), 7.0), np.repeat([0, 2], [2 * ATOMS, 1]), 3, seed=0)
    found = atoms(samples)
    np.testing.assert_allclose(found[0], 0.5 + 2 * np.arange(ATOMS))
    np.testing.assert_allclose(found[1:], [[0.0] * ATOMS, [7.0] * ATOMS])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=200))
def test_atoms_keep_the_mean_and_the_range(values):
    found = atoms(class_samples(np.array(values), np.zeros(len(values), int), 2, seed=0))[0]
    assert found.mean() == pytest.approx(np.mean(values), abs=1e-9)
    assert (np.diff(found) >= -1e-9).all()
    assert min(values) - 1e-9 <= found.min() <= found.max() <= max(values) + 1e-9


@pytest.mark.parametrize("method", ["hoeffding", "empirical_bernstein", "clopper_pearson"])
def test_expected_bounds_of_the_samples_at_hand_are_their_bounds(method):
    rng = np.random.default_rng(0)
    values = (rng.random(300) < 0.4) * 1.0
    found = bounds(values, 3, method)
    expected = expected_bounds(found)
    assert expected.n.tolist() == [100, 100, 100]
    np.testing.assert_allclose(expected.lower(0.01), found.lower(0.01), atol=1e-9)
    np.testing.assert_allclose(expected.upper(0.01), found.upper(0.01), atol=1e-9)


@pytest.mark.parametrize("method", ["hoeffding", "empirical_bernstein", "clopper_pearson"])
def test_expected_bounds_of_the_aggregate_at_hand_are_its_bounds(method):
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 3], [200, 60, 5])
    values = (rng.random(265) < np.array([0.2, 0.7, 0.5, 0.9])[labels]) * 1.0
    found = ClassBounds(class_samples(values, labels, 4, seed=0), UNIT, method, np.array([0.1, 0.02, 0.0, 0.3]))
    expected = expected_bounds(found)
    assert expected.lower_aggregate(0.01) == pytest.approx(found.lower_aggregate(0.01), abs=1e-9)
    assert expected.upper_aggregate(0.01) == pytest.approx(found.upper_aggregate(0.01), abs=1e-9)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("factor", [1, 4, 16])
@pytest.mark.parametrize(
    ("of", "classes", "ratios"),
    # Of classes a little to the careful side: bounds profit from the best moment of the stream, plans do not.
    [("aggregate", 10, (0.9, 1.1)), ("mean", 40, (0.97, 1.15))],
)
def test_expected_betting_bounds_are_near_those_that_come(of, classes, ratios, name, factor):
    rng = np.random.default_rng(0)
    seen = bounds(DRAWS[name](rng, classes * 250), classes)
    come = bounds(DRAWS[name](rng, classes * 250 * factor), classes)
    expected = expected_bounds(seen).of(250 * factor)
    for side in ("lower", "upper") if of == "mean" else ("lower_aggregate", "upper_aggregate"):
        planned, found = (
            np.abs(getattr(made, side)(0.001) - getattr(data.samples.summary, of)).mean()
            for made, data in ((expected, seen), (come, come))
        )
        assert ratios[0] * found <= planned <= ratios[1] * found


def test_hoeffding_plans_are_the_closed_form():
    found = bounds(np.full(100, 0.3), 10, "hoeffding")
    planned = samples_for_interval(found, half_width=0.05, alpha=0.05)
    exact = samples_for_half_width(0.05, classes=10, alpha=0.05, width=1)
    assert exact <= planned <= 1.001 * exact + 1


@pytest.mark.parametrize("name", DRAWS)
def test_planned_samples_give_the_wanted_half_width(name):
    rng, classes = np.random.default_rng(1), 10
    seen = bounds(DRAWS[name](rng, classes * 400), classes)
    n = samples_for_interval(seen, half_width=0.03, alpha=0.05)
    low, high = bounds(DRAWS[name](rng, classes * n), classes).interval(0.05)
    assert n < 0.8 * samples_for_half_width(0.03, classes=classes, alpha=0.05, width=1)
    assert 0.75 * 0.03 <= ((high - low) / 2).max() <= 1.2 * 0.03


@pytest.mark.parametrize(
    "rule",
    [
        {"at_least": 0.35},
        {"at_least": 0.45},
        {"statistic": "rdi", "at_most": 0.3},
        {"statistic": "value", "at_least": 0.47},
    ],
)
def test_planned_power_is_reached(rule):
    """A rule that is true or false by a margin, and the share of fresh data sets of the planned size that decide it."""
    rng, classes, alpha, power = np.random.default_rng(2), 5, 0.05, 0.8
    means = np.linspace(0.4, 0.6, classes)

    def draw(n):
        return rng.beta(2 * means[:, None], 2 * (1 - means)[:, None], size=(classes, n)).ravel()

    rule = gate_rule("m") | rule
    statistic = statistic_of(rule["statistic"], class_names=list("abcde"), lam=0.5)
    seen = bounds(draw(5000), classes)
    planned = samples_for_rule(_as_if(seen, 50), rule, alpha=alpha, power=power)
    even = samples_for_rule(_as_if(seen, 50), rule, alpha=alpha)
    assert even < planned
    threshold = next((name, rule[name]) for name in ("at_least", "at_most") if name in rule)
    decided = {n: 0 for n in (even, planned)}
    for _ in range(60):
        for n in decided:
            low, high = statistic.bounds(bounds(draw(n), classes), alpha)
            decided[n] += verdict_of(*threshold, low, high) != "INCONCLUSIVE"
    assert decided[planned] >= 60 * power - 3 * np.sqrt(60 * power * (1 - power))
    assert decided[even] >= 15


def _as_if(found, n):
    # The same distributions with fewer samples at hand, so that plans may start low.
    class Fewer(ClassBounds):
        n = np.full(len(found.n), 50)

    return Fewer(found.samples, found.value_range, found.method)


def test_no_number_is_promised_that_cannot_be():
    rule = gate_rule("m", at_least=0.3)
    at_threshold = bounds(np.full(40, 0.3), 2, "hoeffding")
    assert samples_for_rule(at_threshold, rule, alpha=0.05) is None
    absent = ClassBounds(class_samples(np.full(40, 0.9), np.zeros(40, int), 2, seed=0), UNIT, "betting")
    assert samples_for_rule(absent, rule, alpha=0.05) is None
    # Wrong labels leave an interval that no number of samples closes.
    labels = np.repeat([0, 1], 20)
    noisy = ClassBounds(class_samples(np.full(40, 0.35), labels, 2, seed=0), UNIT, "betting", np.full(2, 0.1))
    assert samples_for_rule(noisy, rule, alpha=0.05) is None


@pytest.mark.filterwarnings("error")
def test_a_class_without_samples_has_no_values_outside_the_range():
    absent = ClassBounds(class_samples(np.linspace(2, 5, 40), np.zeros(40, int), 2, seed=0), (2.0, 5.0), "betting")
    assert samples_for_rule(absent, {"at_least": 3}, alpha=0.05) is None


@pytest.mark.parametrize("power", [0, 1, -1, 2])
def test_power_is_a_probability(power):
    with pytest.raises(InputError, match="power must lie strictly between 0 and 1"):
        samples_for_rule(bounds(np.full(40, 0.3), 2), {"at_least": 0.2}, alpha=0.05, power=power)


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ({}, "a rule needs one threshold"),
        ({"at_least": 0.2, "at_most": 0.3}, "a rule needs one threshold"),
        ({"at_most": 0.2}, "more is better; give its threshold as at_least"),
        ({"statistic": "class", "at_least": 0.2}, "name a class"),
        ({"statistic": "wrc", "at_least": 0.2}, "did you mean 'wcr'"),
        ({"at_least": "a lot"}, "at_least: "),
    ],
)
def test_a_plan_is_for_a_rule_that_a_gate_could_have(rule, fault):
    with pytest.raises(InputError, match=fault):
        samples_for_rule(bounds(np.full(40, 0.3), 2), rule, alpha=0.05)


def test_a_plan_judges_the_worst_class_where_no_statistic_is_named():
    seen = bounds(np.repeat([0.3, 0.6], 50), 2)
    named = samples_for_rule(seen, {"statistic": "wcr", "at_least": "1/5"}, alpha=0.05)
    assert samples_for_rule(seen, {"at_least": 0.2}, alpha=0.05) == named


@pytest.mark.parametrize("alpha", [0, 1, 2])
def test_a_plan_needs_an_error_probability(alpha):
    seen = bounds(np.full(40, 0.3), 2)
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        samples_for_rule(seen, {"at_least": 0.2}, alpha=alpha)
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        samples_for_interval(seen, half_width=0.1, alpha=alpha)


def test_a_half_width_that_cannot_be_reached_is_an_error():
    with pytest.raises(InputError, match="half-width must be positive"):
        samples_for_interval(bounds(np.full(40, 0.3), 2), half_width=0, alpha=0.05)


def test_a_rule_on_one_class_plans_for_that_class():
    values = np.repeat([0.1, 0.45, 0.2], 50)
    rule = {"statistic": "class", "class": "middle", "at_least": 0.4}
    found = bounds(values, 3, "hoeffding")
    planned = samples_for_rule(found, rule, alpha=0.05, class_names=["low", "middle", "high"])
    # log(1 / alpha) / (2 * .05^2), one side of one class
    assert planned == pytest.approx(np.log(20) / (2 * 0.05**2), rel=0.002)


# What given samples can show


def test_detectable_rdi_by_hand():
    assert detectable_rdi([0.1, 0.2, 0.5], [0.2, 0.5, 0.7]) == pytest.approx(0.3 + 0.2)
    half = hoeffding_half_width(1000, classes=10, alpha=0.05, width=1)
    assert detectable_rdi(np.full(10, 0.5 - half), np.full(10, 0.5 + half)) == pytest.approx(4 * half)
    with pytest.raises(InputError, match="at least 2 classes"):
        detectable_rdi([0.1], [0.2])


@given(st.integers(0, 10_000))
def test_a_larger_rdi_shows_wherever_the_intervals_hold(seed):
    rng = np.random.default_rng(seed)
    truth = rng.random(5)
    below, above = rng.uniform(0, 0.3, (2, 5))
    low, high = np.maximum(truth - below, 0), np.minimum(truth + above, 1)
    if np.ptp(truth) > detectable_rdi(low, high):
        assert intervals(low, high, n=np.ones(5), lam=0.5)["rdi"][0] > 0


def test_a_disparity_below_it_stays_hidden_in_some_case():
    low, high = np.array([0.2, 0.4]), np.array([0.4, 0.6])
    # Truths .21 and .59 are possible: RDI .38 < .4, and the intervals touch.
    assert detectable_rdi(low, high) == pytest.approx(0.4)
    assert intervals(low, high, n=np.ones(2), lam=0.5)["rdi"][0] == pytest.approx(0)


ALIKE = [0.9] * 10
SPREAD = list(np.linspace(0.85, 0.97, 10))
FAILING = [0.7] * 5 + [0.95] * 5
ONE_NEAR = [0.85] + [0.95] * 99


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("shares", "at_hand"), [(ALIKE, 40), (SPREAD, 60), (FAILING, 40), (ONE_NEAR, 60)], ids=str)
def test_as_many_samples_as_are_asked_for_decide_about_every_other_time(shares, at_hand, added):
    """Whether classes pass or fail, one or several of them near the threshold."""
    rng, statistic, threshold = np.random.default_rng(0), statistic_of("wcr"), 0.8
    classes = len(shares)
    right = np.round(np.array(shares) * at_hand).astype(int)

    def bounds_of(counts, n):
        return bounds((np.arange(n) < counts[:, None]).ravel() * 1.0, classes, "clopper_pearson")

    seen = bounds_of(right, at_hand)
    needed = fewest_samples(seen, statistic, direction="at_least", threshold=threshold, alpha=0.05, added=added)
    decided = 0
    for _ in range(200):
        fresh = rng.binomial(needed - added * at_hand, right / at_hand)
        low, high = statistic.bounds(bounds_of(fresh + added * right, needed), 0.05)
        decided += verdict_of("at_least", threshold, low, high) != "INCONCLUSIVE"
    assert 0.35 <= decided / 200 <= 0.65


def test_a_plan_for_all_samples_together_does_not_depend_on_the_number_of_classes():
    seen = np.random.default_rng(0).permutation(np.repeat([1.0, 0.0], [420, 180]))
    rule = gate_rule("m", statistic="value", at_least=0.69)
    by_classes = {}
    for classes in (1, 10):
        found = bounds(seen, classes, "clopper_pearson")
        by_classes[classes] = classes * samples_for_rule(found, rule, alpha=0.05, power=0.8)
    assert by_classes[10] == pytest.approx(by_classes[1], rel=0.1)
