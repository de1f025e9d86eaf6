import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import CensoredData, logrank

from gfscore.core.errors import InputError
from gfscore.statistics.survival import (
    _log_rank_scores,
    class_distances,
    log_rank,
    mean_distance,
    median_distance,
    survival_curves,
)

VALUES = np.array([0.0, 0.2, 0.2, 0.5, 1.0, 1.0, 0.4, 1.0, 1.0])
CENSORED = np.array([False, False, False, False, False, True, False, True, True])
LABELS = np.array([0, 0, 0, 0, 0, 0, 2, 2, 2])

# Weeks of remission of leukaemia patients (Freireich et al. 1963), with log white cell counts: a textbook's example
# (Kleinbaum and Klein, Survival Analysis, chapter 2), which prints the statistics of both tests.
TREATED = [6, 6, 6, 7, 10, 13, 16, 22, 23, 6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
TREATED_CENSORED = [False] * 9 + [True] * 12
TREATED_COUNTS = [
    2.31, 4.06, 3.28, 4.43, 2.96, 2.88, 3.60, 2.32, 2.57, 3.20, 2.80, 2.70, 2.60, 2.16, 2.05, 2.01, 1.78, 2.20, 2.53,
    1.47, 1.45,
]  # fmt: skip
PLACEBO = [1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23]
PLACEBO_COUNTS = [
    2.80, 5.00, 4.91, 4.48, 4.01, 4.36, 2.42, 3.49, 3.97, 3.52, 3.05, 2.32, 3.26, 3.49, 2.12, 1.50, 3.06, 2.30, 2.95,
    2.73, 1.97,
]  # fmt: skip
WEEKS = np.array(TREATED + PLACEBO)
WEEKS_CENSORED = np.array(TREATED_CENSORED + [False] * 21)
GROUP = np.repeat([0, 1], 21)
COUNT_GROUP = np.digitize(TREATED_COUNTS + PLACEBO_COUNTS, [2.305, 3.005])


def test_curves_are_the_share_beyond_each_radius_and_stop_where_nobody_looked():
    curves = survival_curves(VALUES, CENSORED, LABELS, 3, radii=[0.0, 0.2, 0.45, 0.999, 1.0])
    np.testing.assert_allclose(curves[0], [5 / 6, 3 / 6, 3 / 6, 2 / 6, np.nan])
    assert np.isnan(curves[1]).all()
    np.testing.assert_allclose(curves[2], [1, 1, 2 / 3, 2 / 3, np.nan])


def test_without_censoring_a_curve_goes_down_to_nothing():
    curves = survival_curves([0.1, 0.3], [False, False], [0, 0], 1, radii=[0, 0.1, 0.3, 9])
    np.testing.assert_allclose(curves, [[1, 0.5, 0, 0]])


def test_success_rate_and_median_by_hand():
    summary = class_distances(VALUES, CENSORED, LABELS, 3)
    np.testing.assert_array_equal(summary["n"], [6, 0, 3])
    np.testing.assert_array_equal(summary["misclassified"], [1, 0, 0])
    np.testing.assert_array_equal(summary["found"], [4, 0, 1])
    np.testing.assert_array_equal(summary["censored"], [1, 0, 2])
    np.testing.assert_allclose(summary["success_rate"], [4 / 5, np.nan, 1 / 3])
    np.testing.assert_allclose(summary["median"], [0.35, np.nan, np.nan])


def test_a_class_that_is_all_misclassified_has_median_0_and_no_success_rate():
    summary = class_distances(np.zeros(3), np.zeros(3, bool), np.zeros(3, int), 1)
    assert summary["median"][0] == 0
    assert np.isnan(summary["success_rate"][0])


@pytest.mark.parametrize(
    ("values", "censored", "median"),
    [
        ([0.1, 0.3, 2.0], [False, False, True], 0.3),
        ([0.1, 2.0, 2.0], [False, True, True], np.nan),
        # Half censored: the upper middle value is unknown.
        ([0.1, 0.2, 2.0, 2.0], [False, False, True, True], np.nan),
        ([0.1, 2.0, 2.0, 2.0, 2.0], [False, False, False, True, True], 2.0),
        ([], [], np.nan),
    ],
)
def test_the_median_is_missing_when_censored_past_half(values, censored, median):
    np.testing.assert_equal(median_distance(np.array(values), np.array(censored, dtype=bool)), median)


def test_the_mean_is_restricted_to_the_largest_distance():
    assert mean_distance(np.array([0.0, 1.0, 2.0])) == 1.0
    assert np.isnan(mean_distance(np.array([])))


def test_log_rank_of_two_groups_is_the_textbook_one():
    result = log_rank(WEEKS, WEEKS_CENSORED, GROUP, 2)
    assert result.statistic == pytest.approx(16.79, abs=0.005)
    np.testing.assert_allclose(result.expected, [19.25, 10.75], atol=0.005)
    np.testing.assert_array_equal(result.observed, [9, 21])


def test_log_rank_of_three_groups_is_the_textbook_one():
    result = log_rank(WEEKS, WEEKS_CENSORED, COUNT_GROUP, 3)
    np.testing.assert_array_equal(result.observed, [4, 10, 16])
    np.testing.assert_allclose(result.expected, [13.06, 10.72, 6.21], atol=0.005)
    assert result.statistic == pytest.approx(26.39, abs=0.005)
    assert result.degrees_of_freedom == 2


def scipy_logrank(values, censored, labels):
    both = [
        CensoredData(uncensored=values[(labels == k) & ~censored], right=values[(labels == k) & censored])
        for k in (0, 1)
    ]
    return logrank(*both)


@given(
    rows=st.lists(st.tuples(st.integers(1, 6), st.booleans(), st.integers(0, 1)), min_size=6, max_size=40).filter(
        lambda rows: {0, 1} == {row[2] for row in rows} and not all(row[1] for row in rows)
    )
)
def test_two_classes_agree_with_scipy(rows):
    values, censored, labels = (np.array(column) for column in zip(*rows, strict=True))
    ours = log_rank(values, censored, labels, 2)
    # Where one class is gone before the first event, there is no variance and scipy divides by it.
    if np.isnan(ours.statistic):
        return
    theirs = scipy_logrank(values, censored, labels)
    assert ours.statistic == pytest.approx(theirs.statistic**2, rel=1e-9, abs=1e-12)
    assert ours.p_chi_square == pytest.approx(theirs.pvalue, rel=1e-7)


def test_statistic_depends_on_the_order_of_distances_only_and_not_on_empty_classes():
    result = log_rank(VALUES, CENSORED, LABELS, 3)
    shuffled = np.random.default_rng(0).permutation(len(VALUES))
    again = log_rank(VALUES[shuffled] ** 2, CENSORED[shuffled], LABELS[shuffled], 7)
    assert again.statistic == pytest.approx(result.statistic, rel=1e-12)
    assert again.degrees_of_freedom == 1
    np.testing.assert_array_equal(again.observed, [5, 0, 1, 0, 0, 0, 0])
    assert result.expected.sum() == pytest.approx(result.observed.sum())


def test_more_distances_than_one_block_change_nothing(monkeypatch):
    rng = np.random.default_rng(1)
    values, labels = rng.exponential(size=500).round(2), rng.integers(4, size=500)
    censored = values > 1.5
    whole = log_rank(np.minimum(values, 1.5), censored, labels, 4)
    monkeypatch.setattr("gfscore.statistics.survival.BLOCK", 7)
    parts = log_rank(np.minimum(values, 1.5), censored, labels, 4)
    assert parts.statistic == pytest.approx(whole.statistic, rel=1e-9)


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 0]])
def test_nothing_found_or_one_class_has_no_p_value(labels):
    censored = [True, True, True] if len(set(labels)) > 1 else [False, False, True]
    result = log_rank([1.0, 1.0, 1.0], censored, labels, 2, permutations=9, rng=np.random.default_rng(0))
    assert np.isnan([result.statistic, result.p_chi_square, result.p_permutation]).all()


def test_negative_distances_are_refused():
    with pytest.raises(InputError, match="at least 0; 2 are not"):
        log_rank([-1.0, np.nan, 1.0], [False] * 3, [0, 1, 1], 2)


def test_permutation_p_value_of_a_tiny_sample_is_the_enumerated_one():
    # Three and three, perfectly separated: 2 of the 20 splits are as extreme.
    values, labels = np.arange(1.0, 7.0), np.repeat([0, 1], 3)
    result = log_rank(values, np.zeros(6, bool), labels, 2, permutations=4000, rng=np.random.default_rng(0))
    assert result.p_permutation == pytest.approx(0.1, abs=0.02)


def test_log_rank_scores_sum_to_observed_minus_expected():
    rng = np.random.default_rng(2)
    labels = rng.integers(3, size=600)
    values = rng.exponential(1 + 0.3 * labels)
    censored = values > 1
    plain = log_rank(np.minimum(values, 1), censored, labels, 3)
    scores = _log_rank_scores(np.minimum(values, 1), censored)
    np.testing.assert_allclose(np.bincount(labels, weights=scores), plain.observed - plain.expected, atol=1e-9)


@pytest.mark.parametrize(
    ("p_value", "permutations", "most"),
    # 0.05 plus three standard deviations of 300 draws; chi-square is only near its level for small classes.
    [("p_permutation", 99, 0.088), ("p_chi_square", 0, 0.1)],
)
def test_both_p_values_keep_their_level_and_find_a_weak_class(p_value, permutations, most):
    def rejections(effect):
        """Share of 300 made-up audits of 3 small classes, censored at 1, in which the test says p <= 0.05."""
        rng, labels, rejected = np.random.default_rng(5), np.repeat(np.arange(3), [6, 8, 10]), 0
        for _ in range(300):
            distance = rng.exponential(np.where(labels == 0, effect, 1.0))
            given = np.minimum(distance, 1.0), distance > 1, labels, 3
            rejected += getattr(log_rank(*given, permutations=permutations, rng=rng), p_value) <= 0.05
        return rejected / 300

    assert rejections(effect=1.0) <= most
    assert rejections(effect=0.1) >= 0.7
