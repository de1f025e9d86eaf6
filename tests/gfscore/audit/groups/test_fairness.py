"""Group fairness metrics: hand-computed, as the paper prints them, and against fairlearn."""

import numpy as np
import pytest
from fairlearn import metrics as fairlearn
from hypothesis import given, settings
from hypothesis import strategies as st

from gfscore.audit.groups.fairness import (
    METRICS,
    balanced_rows,
    group_counts,
    group_metrics,
    group_metrics_as_printed,
    group_rates,
    over_classes,
    wilson,
    wilson_metrics,
)
from gfscore.audit.groups.grouping import Grouping
from gfscore.audit.settings import BalancedSubsample, IntervalSettings
from gfscore.audit.verdicts.gate_rules import GROUP_GAP, RuleSettings, statistic_of
from gfscore.measures import measure_of
from gfscore.statistics.class_bounds import ClassBounds, bounds_of
from gfscore.statistics.classes import class_samples


def counts(group, labels, predictions, *, groups=2, classes=2):
    columns = (np.asarray(column, dtype=np.int64) for column in (group, labels, predictions))
    return group_counts(*columns, groups=groups, classes=classes)


def metrics(*columns, form=group_metrics, **sizes):
    return form(group_rates(counts(*columns, **sizes)))


# Group 0: 3 of 4 positives and 1 of 4 negatives are taken for class 1; group 1: 1 of 2 and 2 of 5.
GROUP = np.repeat([0, 0, 1, 1], [4, 4, 2, 5])
LABELS = np.repeat([1, 0, 1, 0], [4, 4, 2, 5])
PREDICTED = np.array([1, 1, 1, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0])


def test_hand_computed():
    found = metrics(GROUP, LABELS, PREDICTED)
    true, false = 3 / 4 - 1 / 2, 2 / 5 - 1 / 4
    assert found["dp"] == pytest.approx([4 / 8 - 3 / 7] * 2)
    assert found["eopp"] == pytest.approx([false, true])
    assert found["eodd"] == pytest.approx([max(true, false)] * 2)
    assert found["aodd"] == pytest.approx([(true + false) / 2] * 2)


def test_hand_computed_as_printed():
    found = metrics(GROUP, LABELS, PREDICTED, form=group_metrics_as_printed)
    assert found["eodd"][1] == pytest.approx(3 / 4)
    assert found["aodd"][1] == pytest.approx((3 / 4 + 1 / 2 + 1 / 4 + 2 / 5) / 4)
    assert found["dp"][1] == pytest.approx(4 / 8 - 3 / 7)
    assert found["eopp"][1] == pytest.approx(1 / 4)


def test_an_abstention_is_a_prediction_of_no_class():
    # In group 1 both samples of class 1 and one of class 0 are abstained on, in group 0 one of class 1.
    abstained = np.where([i in (3, 8, 9, 12) for i in range(15)], -1, PREDICTED)
    found = metrics(GROUP, LABELS, abstained)
    assert found["dp"] == pytest.approx([abs(3 / 8 - 2 / 7), 4 / 8 - 2 / 7])
    assert found["eopp"] == pytest.approx([3 / 4 - 2 / 5, 3 / 4])
    assert found["eodd"] == pytest.approx([3 / 4 - 2 / 5, 3 / 4])


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_perfect_classifier_is_fair_but_not_by_the_printed_form(classes):
    labels = np.tile(np.arange(classes), 12)
    group = np.repeat([0, 1, 2], 4 * classes)
    sizes = {"groups": 3, "classes": classes}
    assert all((values == 0).all() for values in metrics(group, labels, labels, **sizes).values())
    printed = metrics(group, labels, labels, form=group_metrics_as_printed, **sizes)
    assert (printed["eodd"] == 1).all()
    assert (printed["aodd"] == 0.5).all()


def test_a_constant_classifier_is_fair_by_every_difference():
    constant = np.ones_like(LABELS)
    assert all((values == 0).all() for values in metrics(GROUP, LABELS, constant).values())
    printed = metrics(GROUP, LABELS, constant, form=group_metrics_as_printed)
    assert printed["eodd"].tolist() == [0, 1]
    assert printed["aodd"].tolist() == [0, 1]


def test_a_metric_with_an_empty_cell_has_no_value():
    # Group 1 has no sample of class 1: its true positive rate does not exist.
    found = metrics([0, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 1])
    assert np.isnan([found["eopp"][1], found["eodd"][1], found["aodd"][1]]).all()
    assert found["eopp"][0] == pytest.approx(1 / 2)
    assert found["dp"] == pytest.approx([0, 0])
    # Seen from class 0 that cell is a false positive rate.
    assert np.isnan(found["eodd"][0])


def test_a_group_without_samples_leaves_nothing_to_compare():
    found = metrics([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 0, 1], groups=3)
    assert all(np.isnan(values).all() for values in found.values())


def test_one_group_differs_from_none():
    alone = counts([0, 0, 0], [0, 1, 1], [0, 1, 0], groups=1)
    for form in (group_metrics, group_metrics_as_printed):
        found = form(group_rates(alone))
        assert np.isnan([found["dp"], found["eopp"]]).all()
    assert np.isnan([*metrics([0, 0, 0], [0, 1, 1], [0, 1, 0], groups=1).values()]).all()
    ends = wilson_metrics(alone, alpha=0.05)
    assert np.isnan([ends[name] for name in METRICS]).all()


def test_macro_and_worst_are_over_the_classes_that_have_a_value():
    assert over_classes(np.array([0.2, np.nan, 0.4])) == (pytest.approx(0.3), 0.4)
    assert np.isnan(over_classes(np.full(3, np.nan))).all()


@st.composite
def classified(draw, classes=3):
    """Group, label and prediction of samples, every cell of group and label filled."""
    groups = draw(st.integers(2, 4))
    cells = [(g, k) for g in range(groups) for k in range(classes)]
    cells += draw(st.lists(st.sampled_from(cells), max_size=40))
    guesses = draw(st.lists(st.integers(0, classes - 1), min_size=len(cells), max_size=len(cells)))
    group, labels = map(np.array, zip(*cells, strict=True))
    return group, labels, np.array(guesses), groups


# fairlearn takes a tenth of a second for each comparison
@settings(max_examples=8)
@given(classified())
def test_equals_fairlearn_where_no_cell_is_empty(data):
    group, labels, predictions, groups = data
    found = metrics(group, labels, predictions, groups=groups, classes=3)
    for k in range(3):
        truth, taken = labels == k, predictions == k
        given_to = {"y_true": truth, "y_pred": taken, "sensitive_features": group}
        expected = {
            "dp": fairlearn.demographic_parity_difference(**given_to),
            "eopp": fairlearn.equal_opportunity_difference(**given_to),
            "eodd": fairlearn.equalized_odds_difference(**given_to),
            "aodd": fairlearn.equalized_odds_difference(**given_to, agg="mean"),
        }
        assert {name: found[name][k] for name in METRICS} == pytest.approx(expected, abs=1e-12)


@given(classified(), st.permutations(range(3)))
def test_names_of_classes_and_order_of_groups_do_not_matter(data, order):
    group, labels, predictions, groups = data
    order = np.array(order)
    plain = metrics(group, labels, predictions, groups=groups, classes=3)
    renamed = metrics(groups - 1 - group, order[labels], order[predictions], groups=groups, classes=3)
    for name in METRICS:
        assert renamed[name][order] == pytest.approx(plain[name], abs=1e-12)
        assert ((plain[name] >= 0) & (plain[name] <= 1)).all()


@given(classified())
def test_copies_of_a_sample_count_as_one_sample(data):
    group, labels, predictions, groups = data
    twice = (np.tile(column, 2) for column in (group, labels, predictions))
    copies = group_counts(*twice, groups=groups, classes=3, shares=np.full(2 * len(labels), 0.5))
    once = counts(group, labels, predictions, groups=groups, classes=3)
    for name in ("members", "predicted", "recognised"):
        assert getattr(copies, name) == pytest.approx(getattr(once, name))


def test_wilson_is_the_published_interval():
    # Newcombe 1998, Table I: 81 of 263 gives .2553 to .3662, 0 of 20 gives 0 to .1611.
    assert wilson(np.array([81 / 263]), 263, alpha=0.05) == (
        pytest.approx([0.2553], abs=5e-5),
        pytest.approx([0.3662], abs=5e-5),
    )
    low, high = wilson(np.array([0.0]), 20, alpha=0.05)
    assert (low[0], high[0]) == (0, pytest.approx(0.1611, abs=5e-5))
    assert np.isnan(wilson(np.array([np.nan]), np.array([0]), alpha=0.05)).all()


def drawn(rng, *, n, rates):
    """Samples of two groups and two classes; class 1 is predicted with `rates[group][label]`."""
    group, labels = rng.integers(0, 2, n), rng.integers(0, 2, n)
    return counts(group, labels, (rng.random(n) < np.array(rates)[group, labels]).astype(int))


@pytest.mark.parametrize("gap", [0.0, 0.2])
def test_approximate_intervals_cover_the_true_differences_at_least_as_often_as_they_say(gap):
    """Those of one class, of the mean over classes and of the worst; no difference at all is the hardest to cover."""
    rng, runs, classes, recall = np.random.default_rng(0), 200, 5, 0.9
    hits = np.zeros(classes + 2)
    for _ in range(runs):
        group, labels = rng.integers(0, 3, 900), rng.integers(0, classes, 900)
        right = rng.random(900) < recall - gap * (group == 0)
        made = counts(group, labels, np.where(right, labels, (labels + 1) % classes), groups=3, classes=classes)
        low, high = wilson_metrics(made, alpha=0.1)["eopp"]
        hits += (low <= gap) & (gap <= high)
    assert (hits / runs >= 0.9).all(), hits


def test_intervals_hold_their_values():
    made = drawn(np.random.default_rng(1), n=150, rates=[[0.1, 0.9], [0.3, 0.6]])
    value = group_metrics(group_rates(made))
    for name in METRICS:
        low, high = wilson_metrics(made, alpha=0.05)[name]
        values = np.append(value[name], over_classes(value[name]))
        assert ((low <= values) & (values <= high)).all()
        # All classes at once pay for it.
        assert high[-1] > high[:-2].max()


def test_balancing_draws_the_smallest_group_from_every_group():
    group = np.array([0] * 50 + [1] * 7 + [2] * 20 + [-1] * 5)
    part = balanced_rows(group, seed=0)
    assert np.bincount(group[part]).tolist() == [7, 7, 7]
    assert (np.diff(part) > 0).all()
    assert (balanced_rows(group, seed=0) == part).all()
    assert (balanced_rows(group, seed=1) != part).any()
    assert len(balanced_rows(np.array([-1, -1]), seed=0)) == 0


def test_the_balanced_subsample_depends_on_which_samples_there_are_and_not_on_their_order():
    rng = np.random.default_rng(0)
    ids = np.array([f"s{row}" for row in range(200)])
    codes = {"side": dict(zip(ids, (rng.random(200) < 0.3).astype(int), strict=True))}
    grouping = Grouping(codes, {"side": ["left", "right"]}, BalancedSubsample(attribute="side", seed=4))
    subsamples = [set(order[grouping.balanced_subsample(order)]) for order in (ids, np.sort(ids), rng.permutation(ids))]
    assert subsamples[0] == subsamples[1] == subsamples[2]
    assert len(subsamples[0]) == 2 * sum(codes["side"].values())
    other = Grouping(codes, grouping.groups, BalancedSubsample(attribute="side", seed=5))
    assert set(ids[other.balanced_subsample(ids)]) != subsamples[0]


def test_the_gate_bounds_the_largest_difference_of_groups_like_the_rdi_of_classes():
    rule = RuleSettings(statistic=GROUP_GAP, attribute="age", measure="clean", at_most=0.1)
    assert rule.bounds_key == ("clean", GROUP_GAP, "age")
    statistic = rule.statistic_of()
    rdi = statistic_of("rdi")
    assert statistic.value_range((0.0, 2.0), 3) == (0.0, 2.0)
    assert statistic.title == "largest difference between the groups by age"
    samples = class_samples([0.1, 0.3, 0.5, 0.9], [0, 0, 1, 2], 3, seed=0)
    groups = ClassBounds(samples, (0.0, 1.0), "hoeffding")
    assert statistic.value(samples.summary) == rdi.value(samples.summary)
    assert statistic.bounds(groups, 0.1) == rdi.bounds(groups, 0.1)


def test_the_bounds_of_a_largest_difference_hold_as_often_as_they_promise():
    alpha, runs = 0.1, 200
    statistic = statistic_of(GROUP_GAP, attribute="age")
    rng, shares = np.random.default_rng(5), np.array([0.9, 0.8, 0.55])
    intervals = IntervalSettings()
    missed = np.zeros(2)
    for _ in range(runs):
        group = rng.integers(0, 3, 150)
        values = (rng.random(150) < shares[group]).astype(float)
        bounds = bounds_of(values, group, 3, measure=measure_of({"kind": "clean"}), intervals=intervals)
        low, high = statistic.bounds(bounds, alpha)
        assert low <= statistic.value(bounds.samples.summary) <= high
        missed += [low > 0.35, high < 0.35]
    # Each side by itself is wrong with probability alpha at most; three standard errors on top.
    assert (missed / runs <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / runs)).all()
