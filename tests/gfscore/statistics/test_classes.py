"""Class values, worst classes, stratified splits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gfscore import InputError
from gfscore.statistics import SCALE, classes
from gfscore.statistics.classes import (
    choosing_samples,
    class_means,
    class_values,
    split_samples,
    worst_class_trade,
)
from gfscore.statistics.margins import predictions, scores
from helpers import definitions
from helpers.samples import logits_and_labels, metric

# Softmax of ln w is w / sum(w), so margins can be read off. Margins / B:
#   class 0: (6,3,1) .3   (7,2,1) .5   (4,3,3) .1            mean .9/3 = .3
#   class 1: (3,5,2) .2   (1,1,.5) tie at the top: 0         mean .1
#   class 2: (4,1,5) .1   (1,4,5) .1                         mean .1     tied with class 1
# N = 7: aggregate (.9 + .2 + .2)/7 = 1.3/7; class mean .5/3; RDI .2; WCR .1;
# NRGC: ordered pairs (0,1), (1,0), (0,2), (2,0) differ by .2: .8 / (2 * 9 * .5/3) = .8/3;
# FP(.5) = .5/3 - .5 * .2 = .2/3; accuracy 6/7, per class 1, 1/2, 1.
WEIGHTS = [(1, 4, 5), (6, 3, 1), (3, 5, 2), (7, 2, 1), (4, 1, 5), (1, 1, 0.5), (4, 3, 3)]
LABELS = np.array([2, 0, 1, 0, 2, 1, 0])


def test_hand_computed_example_of_three_classes():
    logits = np.log(np.array(WEIGHTS))
    values = class_values(scores(logits, LABELS, activation="softmax"), LABELS, 3)
    assert values.n.tolist() == [3, 2, 2]
    np.testing.assert_allclose(values.mean / SCALE, [0.3, 0.1, 0.1], rtol=1e-13)
    # Variances / B^2: ((0)^2 + .2^2 + .2^2)/2 = .04, (.1^2 + .1^2)/1 = .02, 0.
    np.testing.assert_allclose(values.variance / SCALE**2, [0.04, 0.02, 0.0], rtol=1e-12, atol=1e-30)
    assert values.aggregate / SCALE == pytest.approx(1.3 / 7, rel=1e-13)
    assert metric("class_mean", values.mean) / SCALE == pytest.approx(0.5 / 3, rel=1e-13)
    assert metric("rdi", values.mean) / SCALE == pytest.approx(0.2, rel=1e-13)
    assert metric("nrgc", values.mean) == pytest.approx(0.8 / 3, rel=1e-13)
    assert metric("wcr", values.mean) / SCALE == pytest.approx(0.1, rel=1e-13)
    assert classes.worst_classes(values.mean).tolist() == [1, 2]
    assert metric("fp", values.mean) / SCALE == pytest.approx(0.2 / 3, rel=1e-13)
    assert metric("gini_unbiased", values.mean) == pytest.approx(0.4, rel=1e-13)
    assert metric("rdi_over_mean", values.mean) == pytest.approx(1.2, rel=1e-13)
    assert metric("ihdi", values.mean) / SCALE == pytest.approx(0.5 / 3 * (1 - 0.8 / 3), rel=1e-13)
    accuracy = class_values(predictions(logits, LABELS) == LABELS, LABELS, 3)
    assert accuracy.mean.tolist() == [1, 0.5, 1]
    assert accuracy.aggregate == pytest.approx(6 / 7, rel=1e-15)


def test_class_means_are_the_means_without_the_variances():
    # Class 0: (1 + 3) / 2, class 2: 5; class 1 has no sample.
    means = class_means([1, 5, 3], np.array([0, 2, 0], dtype=np.int32), 3)
    np.testing.assert_array_equal(means, [2, math.nan, 5])
    with pytest.raises(InputError, match="row 1 has no value"):
        class_means([1, math.nan], [0, 1], 2)


@pytest.mark.parametrize("seed", range(5))
def test_agrees_with_the_plain_implementation(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 8, 90)
    labels[labels == 3] = 4
    labels[0] = 3
    values = rng.gamma(0.3, size=90)
    got = class_values(values, labels, 9)
    np.testing.assert_allclose(got.mean[:8], definitions.class_means(values, labels, 8), rtol=1e-14)
    for k, expected in enumerate(definitions.class_variances(values, labels, 9)):
        if expected is None:
            assert np.isnan(got.variance[k])
        else:
            assert got.variance[k] == pytest.approx(expected, rel=1e-12)
    assert got.n[3] == 1
    assert got.n[8] == 0


@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(12, 400), st.sampled_from([1e-6, 1.0, 1e6]))
def test_lemma_decomposition_is_exact_for_unsorted_unbalanced_labels(seed, k, n, scale):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(k), rng.multinomial(n, rng.dirichlet(np.full(k, 0.5)))))
    values = scale * rng.gamma(0.2, size=n)
    got = class_values(values, labels, k)
    assert got.aggregate == pytest.approx(math.fsum(values) / n, rel=1e-12)
    present = got.n > 0
    assert np.sum(got.n[present] / n * got.mean[present]) == pytest.approx(got.aggregate, rel=1e-12)


@given(st.integers(0, 2**32), st.integers(2, 4))
def test_lemma_duplicating_every_sample_leaves_the_means(seed, copies):
    logits, labels = logits_and_labels(seed)
    values = scores(logits, labels, activation="sigmoid")
    once = class_values(values, labels, 5)
    several = class_values(np.tile(values, copies), np.tile(labels, copies), 5)
    np.testing.assert_allclose(several.mean, once.mean, rtol=1e-13)
    np.testing.assert_array_equal(several.n, copies * once.n)
    assert several.aggregate == pytest.approx(once.aggregate, rel=1e-13)
    # Variances shrink, by (n - 1) c / (n c - 1): intervals are what changes.
    more_than_one = once.n > 1
    ratio = (once.n - 1) * copies / (once.n * copies - 1)
    np.testing.assert_allclose(
        several.variance[more_than_one], (once.variance * ratio)[more_than_one], rtol=1e-9, atol=1e-30
    )


def test_a_class_without_samples_is_missing_and_never_the_worst():
    values = class_values(np.array([0.2, 0.4, 0.9]), np.array([0, 0, 2]), 4)
    assert np.isnan(values.mean[[1, 3]]).all()
    assert values.n.tolist() == [2, 0, 1, 0]
    assert metric("class_mean", values.mean) == pytest.approx((0.3 + 0.9) / 2)
    assert values.aggregate == pytest.approx(0.5)
    assert classes.worst_classes(values.mean).tolist() == [0]
    assert metric("rdi", values.mean) == pytest.approx(0.6)


def test_a_label_beyond_the_declared_classes_is_not_silently_dropped():
    with pytest.raises(ValueError, match="broadcast"):
        class_values(np.array([0.2, 0.4]), np.array([0, 2]), 2)


def test_a_sample_without_a_value_is_an_error_and_not_a_missing_class():
    with pytest.raises(InputError, match=r"row 2 has no value \(NaN\)"):
        class_values(np.array([0.2, 0.4, np.nan]), np.array([0, 0, 1]), 2)


class_scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, SCALE))


@pytest.mark.parametrize(
    ("values", "worst"),
    [
        ([0.3, 0.1, 0.2, 0.1], [1, 3]),
        # .1 + .2 + .3 and .3 + .2 + .1 differ in the last bit.
        ([(0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3, 0.9], [0, 1]),
        ([0.031, 0.0310001, 0.5], [0]),
    ],
)
def test_every_tied_worst_class_is_named_whatever_rounding_does(values, worst):
    assert classes.worst_classes(values).tolist() == worst


@pytest.mark.parametrize(
    ("low", "high", "worst"),
    [
        ([0.1, 0.3, np.nan], [0.2, 0.9, np.nan], [0]),
        ([0.1, 0.3], [0.3, 0.9], [0]),
        ([0.1, 0.3], [0.4, 0.9], []),
        ([0.1, 0.1, 0.1], [0.1, 0.1, 0.9], [0, 1]),
        ([np.nan, 0.1], [np.nan, 0.9], [1]),
    ],
)
def test_of_undecided_values_only_classes_that_surely_attain_the_minimum_are_the_worst(low, high, worst):
    assert classes.worst_classes(low, high).tolist() == worst


def test_worst_class_set_holds_every_class_that_may_be_the_worst():
    low, high = np.array([0.1, 0.3, 0.45, 0.0]), np.array([0.4, 0.6, 0.8, 1.2])
    # min U = .4: classes 0, 1 and 3 reach down to it, class 2 does not.
    assert classes.worst_class_set(low, high).tolist() == [0, 1, 3]
    # An interval that begins where the lowest one ends may hold the same value.
    assert classes.worst_class_set([0.1, 0.2], [0.2, 0.5]).tolist() == [0, 1]


@given(class_scores, st.integers(0, 2**32))
def test_worst_class_set_contains_the_worst_class_of_every_point_in_the_box(center, seed):
    rng = np.random.default_rng(seed)
    low, high = center - rng.random(len(center)) * 0.2, center + rng.random(len(center)) * 0.2
    point = rng.uniform(low, high)
    assert point.argmin() in classes.worst_class_set(low, high)


@given(class_scores)
def test_pairwise_differences_are_a_distance(values):
    matrix = classes.pairwise_differences(values)
    assert matrix.shape == (len(values), len(values))
    assert (matrix == matrix.T).all()
    assert (np.diag(matrix) == 0).all()
    assert matrix.max() == np.ptp(values)


def test_pairwise_differences_of_a_missing_class_are_missing():
    matrix = classes.pairwise_differences([0.1, np.nan, 0.5])
    assert np.isnan(matrix[1]).all()
    assert np.isnan(matrix[:, 1]).all()
    assert matrix[0, 2] == pytest.approx(0.4)


@pytest.mark.parametrize("values", [[], [np.nan, np.nan]])
def test_no_class_is_the_worst_where_none_has_samples(values):
    with pytest.raises(InputError, match="no class has samples"):
        classes.worst_classes(values)


def halved(labels, seed):
    return split_samples(np.arange(len(labels)), labels, share=0.5, rng=np.random.default_rng(seed))


def test_halves_are_stratified_and_random():
    _, labels = logits_and_labels(7, n=301)
    mask = halved(labels, 0)
    assert abs(mask.sum() - (~mask).sum()) <= 1
    per_class = np.bincount(labels[mask], minlength=5) - np.bincount(labels[~mask], minlength=5)
    assert (np.abs(per_class) <= 1).all()
    assert (mask != halved(labels, 1)).any()
    np.testing.assert_array_equal(mask, halved(labels, 0))


def test_rho_weighs_the_gain_of_the_worst_class_against_the_loss_of_the_mean():
    def rho(worst, mean):
        return worst_class_trade(worst=worst, mean=mean, baseline_worst=0.2, baseline_mean=0.5)

    assert rho(0.2, 0.5) == 0
    # Half of the worst class gained, a tenth of the mean lost; and with a mean that rises by a tenth.
    assert rho(0.3, 0.45) == pytest.approx(0.5 - 0.1)
    assert rho(0.3, 0.55) == pytest.approx(0.5 + 0.1)
    assert rho(0.1, 0.5) == pytest.approx(-0.5)
    assert math.isnan(worst_class_trade(worst=0.1, mean=0.5, baseline_worst=0.0, baseline_mean=0.5))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.75, 0.9])
def test_every_class_gives_its_share(share):
    _, labels = logits_and_labels(9, n=413)
    mask = split_samples(np.arange(413), labels, share=share, rng=np.random.default_rng(2))
    assert abs(mask.sum() - share * 413) <= 1
    assert (np.abs(np.bincount(labels[mask], minlength=5) - share * np.bincount(labels)) <= 1).all()


def test_every_sample_is_as_likely_in_either_half():
    _, labels = logits_and_labels(8, n=40)
    share = np.mean([halved(labels, seed) for seed in range(600)], axis=0)
    # Two halves of one sample differ from a half by chance alone: sd .02.
    assert (np.abs(share - 0.5) < 0.1).all()


def test_models_whose_rows_stand_in_another_order_are_parted_alike():
    _, labels = logits_and_labels(3)
    names = np.array([f"sample-{index}" for index in range(len(labels))])
    order = np.random.default_rng(0).permutation(len(labels))
    split = {"share": 0.5, "seed": 4}
    straight = names[choosing_samples(names, labels, **split)]
    shuffled = names[order][choosing_samples(names[order], labels[order], **split)]
    assert set(straight) == set(shuffled)
