import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import plain
from gfscore import InputError
from gfscore.statistics import disparity
from gfscore.statistics.scale import SCALE

class_scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, SCALE))


@given(class_scores)
def test_agrees_with_the_plain_implementation(values):
    assert disparity.rdi(values) == plain.rdi(values)
    assert disparity.wcr(values) == min(values)
    assert disparity.fp(values, 0.5) == pytest.approx(plain.fp(values, 0.5), abs=1e-14)
    assume(values.sum() > 1e-300)
    assert disparity.nrgc(values) == pytest.approx(plain.nrgc(values), abs=1e-14)


def test_hand_computed():
    # Pairs of (1, 2, 5): |1-2| = 1, |1-5| = 4, |2-5| = 3, each twice: 16 / (2 * 9 * 8/3) = 1/3.
    values = [1.0, 2.0, 5.0]
    assert disparity.rdi(values) == 4
    assert disparity.wcr(values) == 1
    assert disparity.nrgc(values) == pytest.approx(1 / 3, rel=1e-15)
    assert disparity.gini_unbiased(values) == pytest.approx(1 / 2, rel=1e-15)
    assert disparity.fp(values, 0.5) == pytest.approx(8 / 3 - 2)
    assert disparity.rdi_over_mean(values) == pytest.approx(1.5)
    assert disparity.ihdi(values) == pytest.approx(8 / 3 * 2 / 3)
    assert disparity.pairwise_differences(values).tolist() == [[0, 1, 4], [1, 0, 3], [4, 3, 0]]


@given(class_scores, st.floats(0, 3))
def test_lemma_rdi_does_not_change_under_translation(values, shift):
    assert disparity.rdi(values + shift) == pytest.approx(disparity.rdi(values), abs=1e-14)
    assert disparity.wcr(values + shift) == pytest.approx(disparity.wcr(values) + shift, abs=1e-14)


@given(class_scores, st.floats(1e-6, 1e6))
def test_lemma_nrgc_does_not_change_under_scaling(values, factor):
    assume(values.max() > 1e-200)
    assert disparity.nrgc(values * factor) == pytest.approx(disparity.nrgc(values), abs=1e-14)
    assert disparity.rdi(values * factor) == pytest.approx(factor * disparity.rdi(values), rel=1e-13)
    assert disparity.rdi_over_mean(values * factor) == pytest.approx(disparity.rdi_over_mean(values), rel=1e-12)


@given(class_scores, st.randoms(use_true_random=False))
def test_lemma_order_of_classes_does_not_matter(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = values[order]
    assert disparity.rdi(shuffled) == disparity.rdi(values)
    assert disparity.wcr(shuffled) == disparity.wcr(values)
    assert disparity.fp(shuffled, 0.5) == pytest.approx(disparity.fp(values, 0.5), abs=1e-14)
    assert disparity.nrgc(shuffled) == pytest.approx(disparity.nrgc(values), rel=1e-12, nan_ok=True)
    assert set(np.array(order)[disparity.worst_classes(shuffled)]) == set(disparity.worst_classes(values))


@given(class_scores)
def test_nrgc_lies_in_its_range(values):
    assume(values.max() > 1e-200)
    k = len(values)
    assert 0 <= disparity.nrgc(values) <= (k - 1) / k + 1e-15
    assert 0 <= disparity.gini_unbiased(values) <= 1 + 1e-15


@pytest.mark.parametrize("k", [2, 3, 5, 7, 10, 49, 1000])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7, SCALE])
def test_perfect_equality_is_exactly_zero(k, value):
    values = np.full(k, value)
    assert disparity.nrgc(values) == 0
    assert disparity.rdi(values) == 0
    assert disparity.rdi_over_mean(values) == 0
    assert disparity.fp(values, 0.5) == pytest.approx(value)
    assert disparity.ihdi(values) == pytest.approx(value)
    assert len(disparity.worst_classes(values)) == k


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
def test_one_class_with_everything_is_the_upper_end(k):
    values = np.zeros(k)
    values[k // 2] = 0.8
    assert disparity.nrgc(values) == pytest.approx((k - 1) / k, rel=1e-15)
    assert disparity.gini_unbiased(values) == pytest.approx(1, rel=1e-15)


def test_all_zero_scores_have_no_gini():
    assert math.isnan(disparity.nrgc(np.zeros(4)))
    assert math.isnan(disparity.gini_unbiased(np.zeros(4)))
    assert math.isnan(disparity.rdi_over_mean(np.zeros(4)))
    assert disparity.ihdi(np.zeros(4)) == 0
    assert disparity.rdi(np.zeros(4)) == 0


def test_the_gini_of_negative_values_is_refused():
    with pytest.raises(InputError, match=r"needs values >= 0, got -0\.1"):
        disparity.nrgc([-0.1, 0.5])


@pytest.mark.parametrize("function", ["rdi", "wcr", "nrgc", "gini_unbiased", "rdi_over_mean", "ihdi", "worst_classes"])
@pytest.mark.parametrize("values", [[0.5], [], [0.5, np.nan], [np.nan, np.nan]])
def test_fewer_than_two_classes_with_samples_is_an_error(function, values):
    with pytest.raises(InputError, match="needs at least 2 classes with samples"):
        getattr(disparity, function)(values)


@given(class_scores, st.integers(1, 5))
def test_classes_without_samples_are_left_out(values, missing):
    with_missing = np.insert(values, 1, np.full(missing, np.nan))
    assert disparity.rdi(with_missing) == disparity.rdi(values)
    assert disparity.wcr(with_missing) == disparity.wcr(values)
    assert disparity.fp(with_missing, 0.3) == disparity.fp(values, 0.3)
    np.testing.assert_equal(disparity.nrgc(with_missing), disparity.nrgc(values))
    np.testing.assert_equal(disparity.gini_unbiased(with_missing), disparity.gini_unbiased(values))
    assert not np.isnan(with_missing[disparity.worst_classes(with_missing)]).any()


def test_every_tied_worst_class_is_named():
    assert disparity.worst_classes([0.3, 0.1, 0.2, 0.1]).tolist() == [1, 3]


def test_rounding_does_not_untie_the_worst_classes():
    # .1 + .2 + .3 and .3 + .2 + .1 differ in the last bit.
    values = np.array([(0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3, 0.9])
    assert values[0] != values[1]
    assert disparity.worst_classes(values).tolist() == [0, 1]


def test_a_real_difference_is_no_tie():
    assert disparity.worst_classes([0.031, 0.0310001, 0.5]).tolist() == [0]


def test_worst_class_set_holds_every_class_that_may_be_the_worst():
    low, high = np.array([0.1, 0.3, 0.45, 0.0]), np.array([0.4, 0.6, 0.8, 1.2])
    # min U = .4: classes 0, 1 and 3 reach down to it, class 2 does not.
    assert disparity.worst_class_set(low, high).tolist() == [0, 1, 3]
    # An interval that begins where the lowest one ends may hold the same value.
    assert disparity.worst_class_set([0.1, 0.2], [0.2, 0.5]).tolist() == [0, 1]


@given(class_scores, st.integers(0, 2**32))
def test_worst_class_set_contains_the_worst_class_of_every_point_in_the_box(center, seed):
    rng = np.random.default_rng(seed)
    low, high = center - rng.random(len(center)) * 0.2, center + rng.random(len(center)) * 0.2
    point = rng.uniform(low, high)
    assert point.argmin() in disparity.worst_class_set(low, high)


@given(class_scores)
def test_pairwise_differences_are_a_distance(values):
    matrix = disparity.pairwise_differences(values)
    assert matrix.shape == (len(values), len(values))
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    assert matrix.max() == disparity.rdi(values)


def test_pairwise_differences_of_a_missing_class_are_missing():
    matrix = disparity.pairwise_differences([0.1, np.nan, 0.5])
    assert np.isnan(matrix[1]).all()
    assert np.isnan(matrix[:, 1]).all()
    assert matrix[0, 2] == pytest.approx(0.4)


def test_rdi_follows_the_scale_of_the_score_and_nrgc_does_not():
    # H6: whether the stronger model is the less fair one depends on the metric.
    weak, strong = np.array([0.10, 0.20, 0.15]), np.array([0.60, 0.80, 0.70])
    assert disparity.rdi(strong) > disparity.rdi(weak)
    assert disparity.nrgc(strong) < disparity.nrgc(weak)
    assert disparity.rdi_over_mean(strong) < disparity.rdi_over_mean(weak)


def test_fp_may_be_negative_and_is_the_mean_at_lambda_zero():
    values = [0.0, 0.0, 0.0, 1.0]
    assert disparity.fp(values, 0.5) == -0.25
    assert disparity.fp(values, 0) == 0.25


@pytest.mark.parametrize("lam", [-0.5, math.nan])
def test_a_negative_lambda_is_an_error(lam):
    with pytest.raises(InputError, match="lambda of FP must be at least 0"):
        disparity.fp([0.1, 0.5], lam)
