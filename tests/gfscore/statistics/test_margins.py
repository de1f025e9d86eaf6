import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gfscore import InputError
from gfscore.statistics import SCALE
from gfscore.statistics.classes import class_values
from gfscore.statistics.margins import (
    ACTIVATIONS,
    BLOCK_ELEMENTS,
    FEW_CLASSES,
    MODERATE,
    predictions,
    scores,
    true_and_rival_logits,
)
from helpers.samples import logits_and_labels

EVERY_ACTIVATION = sorted(ACTIVATIONS)


@st.composite
def samples(draw, bound=20.0):
    k = draw(st.integers(2, 6))
    n = draw(st.integers(1, 12))
    logits = draw(arrays(np.float64, (n, k), elements=st.floats(-bound, bound)))
    labels = draw(arrays(np.int64, n, elements=st.integers(0, k - 1)))
    return logits, labels


temperatures = st.floats(0.01, 10)


def test_scale_is_the_square_root_of_half_pi():
    assert abs(SCALE - 1.2533141373155) < 1e-13


@pytest.mark.parametrize(
    ("activation", "temperature", "logits", "margin"),
    [
        # Softmax of ln w is w / sum(w): .6 - .3; at T = 2, w becomes its square root, (3, 2, 1).
        ("softmax", 1, np.log([6.0, 3.0, 1.0]), 0.3),
        ("softmax", 1, np.log([3.0, 6.0, 1.0]), 0),
        ("softmax", 2, np.log([9.0, 4.0, 1.0]), 1 / 6),
        # sig(ln 3) = .75, sig(0) = .5, sig(-ln 3) = .25; at T = 1/2 the first becomes sig(ln 9) = .9.
        ("sigmoid", 1, [math.log(3), 0.0, -math.log(3)], 0.25),
        ("sigmoid", 0.5, [math.log(3), 0.0, -math.log(3)], 0.4),
        # softmax(ln 3, 0) = (.75, .25): sig(3) - sig(1). sigmoid(ln 3, 0) = (.75, .5): margin tanh(1 / 2).
        ("sigmoid-of-softmax", 0.25, [math.log(3), 0.0], 1 / (1 + math.exp(-3)) - 1 / (1 + math.exp(-1))),
        ("softmax-of-sigmoid", 0.25, [math.log(3), 0.0], math.tanh(0.5)),
    ],
)
def test_hand_computed_margins_of_class_0(activation, temperature, logits, margin):
    found = scores(np.array([logits]), np.array([0]), activation=activation, temperature=temperature)
    assert found[0] == pytest.approx(margin * SCALE, rel=1e-13)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_blocks_do_not_matter(activation):
    k = 7
    n = 2 * (BLOCK_ELEMENTS // k) + 5
    logits, labels = logits_and_labels(4, n=n, k=k)
    whole = scores(logits, labels, activation=activation)
    rows = np.random.default_rng(5).choice(n, 200, replace=False)
    rows[:4] = BLOCK_ELEMENTS // k + np.arange(-2, 2)
    np.testing.assert_array_equal(whole[rows], scores(logits[rows], labels[rows], activation=activation))


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_more_classes_than_a_block_holds(activation):
    k = BLOCK_ELEMENTS + 3
    logits = np.zeros((3, k), dtype=np.float32)
    logits[:, 5] = 30.0
    result = scores(logits, np.array([5, 5, 6]), activation=activation)
    assert result[0] == result[1] > 0
    assert result[2] == 0


# Lemmas


@given(samples(), temperatures, temperatures)
def test_lemma_softmax_margin_of_a_correct_sample_does_not_increase_with_temperature(sample, a, b):
    logits, labels = sample
    cool, warm = sorted([a, b])
    at_cool = scores(logits, labels, activation="softmax", temperature=cool)
    at_warm = scores(logits, labels, activation="softmax", temperature=warm)
    assert (at_warm <= at_cool * (1 + 1e-12)).all()


@given(samples())
def test_lemma_score_tends_to_scaled_accuracy_as_temperature_goes_to_zero(sample):
    logits, labels = sample
    logits = np.round(logits, 3)  # so that a margin is 0 or at least .001
    result = scores(logits, labels, activation="softmax", temperature=1e-6)
    correct = predictions(logits, labels) == labels
    np.testing.assert_allclose(result, SCALE * correct, rtol=0, atol=1e-12)
    assert result.mean() == pytest.approx(SCALE * correct.mean(), abs=1e-12)


@pytest.mark.parametrize("temperature", [0.02, 1, 7.5])
def test_logits_at_the_edge_of_what_needs_no_shift_score_as_beyond_it(temperature):
    logits, labels = logits_and_labels(0, n=200, k=10)
    edge = MODERATE * temperature
    within = edge * (logits / np.abs(logits).max())
    beyond = within.copy()
    # A class that is far behind changes no other sample, but takes all of them beyond the edge.
    beyond[0] = -2 * edge
    beyond[0, labels[0]] = edge
    within[0] = -edge
    within[0, labels[0]] = edge
    pair = (scores(values, labels, activation="softmax", temperature=temperature) for values in (within, beyond))
    np.testing.assert_allclose(*pair, rtol=1e-13, atol=0)


@given(samples(), temperatures, st.sampled_from(EVERY_ACTIVATION))
def test_lemma_class_score_is_at_most_scaled_class_accuracy(sample, temperature, activation):
    logits, labels = sample
    k = logits.shape[1]
    omega = class_values(scores(logits, labels, activation=activation, temperature=temperature), labels, k).mean
    accuracy = class_values(predictions(logits, labels) == labels, labels, k).mean
    present = ~np.isnan(omega)
    assert (omega[present] <= SCALE * accuracy[present] * (1 + 1e-14)).all()


@given(samples(), temperatures, st.floats(-30, 30))
def test_lemma_adding_a_constant_leaves_softmax_unchanged(sample, temperature, shift):
    logits, labels = sample
    before = scores(logits, labels, activation="softmax", temperature=temperature)
    after = scores(logits + shift, labels, activation="softmax", temperature=temperature)
    # The addition itself rounds, which a small temperature magnifies.
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-14 / temperature + 1e-14)


def test_lemma_adding_a_constant_moves_sigmoid_scores():
    # sig(1) - sig(-1) = .4621; shifted by 5 in either direction, sig(6) - sig(4) = .0155.
    logits = np.array([[1.0, -1.0]])
    margins = [scores(logits + shift, np.array([0]), activation="sigmoid")[0] / SCALE for shift in (-5, 0, 5)]
    np.testing.assert_allclose(margins, [0.0155, 0.4621, 0.0155], atol=5e-5)


@given(samples(), temperatures, st.sampled_from(EVERY_ACTIVATION))
def test_scores_lie_in_the_declared_range_and_are_positive_only_when_correct(sample, temperature, activation):
    logits, labels = sample
    result = scores(logits, labels, activation=activation, temperature=temperature)
    assert ((result >= 0) & (result <= SCALE)).all()
    assert not np.signbit(result).any()
    assert (predictions(logits, labels) == labels)[result > 0].all()


@given(samples(), st.randoms(use_true_random=False), st.sampled_from(EVERY_ACTIVATION))
def test_renaming_classes_changes_no_score(sample, random, activation):
    logits, labels = sample
    order = list(range(logits.shape[1]))
    random.shuffle(order)
    renamed = np.argsort(order)[labels]
    np.testing.assert_allclose(
        scores(logits[:, order], renamed, activation=activation),
        scores(logits, labels, activation=activation),
        rtol=1e-13,
        atol=0,
    )


# Edge cases


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_a_tie_at_the_top_scores_zero_and_counts_as_an_error(activation):
    logits = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 2.0], [0.0, 3.0, 3.0]])
    labels = np.array([0, 1, 2])
    assert scores(logits, labels, activation=activation).tolist() == [0, 0, 0]
    assert (predictions(logits, labels) != labels).all()


@pytest.mark.parametrize("temperature", [0, -1, 0.0, math.nan, math.inf, -math.inf, None, "1", [1.0], 1j])
def test_a_temperature_that_is_not_a_positive_number_is_an_error(temperature):
    with pytest.raises(InputError, match="temperature must be a positive number, got"):
        scores(np.eye(2), np.arange(2), activation="softmax", temperature=temperature)


@pytest.mark.parametrize("temperature", [1, np.float32(1), np.float64(1), np.int64(1)])
def test_any_kind_of_number_is_a_temperature(temperature):
    logits, labels = logits_and_labels(7)
    np.testing.assert_array_equal(
        scores(logits, labels, activation="softmax", temperature=temperature),
        scores(logits, labels, activation="softmax"),
    )


def test_an_unknown_activation_is_an_error_that_lists_the_known_ones():
    with pytest.raises(InputError, match="activation 'relu' is unknown; choose one of sigmoid, softmax"):
        scores(np.eye(2), np.arange(2), activation="relu")


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("temperature", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("size", [1e30, 1e308])
def test_huge_logits_give_finite_scores(activation, temperature, size):
    logits = np.array([[size, -size, 0.0], [-size, size, 0.0], [size, size / 2, -size], [-size / 2, -size, -size]])
    result = scores(logits, np.zeros(4, int), activation=activation, temperature=temperature)
    assert np.isfinite(result).all()
    assert result[1] == 0
    if activation == "softmax":
        assert result.tolist() == [SCALE, 0, SCALE, SCALE]
    if activation == "sigmoid":
        # Between two saturated outputs there is no margin, however far apart the logits are.
        assert result.tolist() == [SCALE / 2, 0, 0, 0]


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_a_vanishing_temperature_gives_finite_scores(activation):
    logits, labels = logits_and_labels(8)
    result = scores(logits, labels, activation=activation, temperature=1e-310)
    assert np.isfinite(result).all()
    assert (result <= SCALE).all()


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_subnormal_margins_are_no_error(activation):
    logits = np.array([[5e-324, 0.0], [0.0, 5e-324]])
    result = scores(logits, np.array([0, 0]), activation=activation, temperature=10.0)
    assert (result >= 0).all()
    assert (result < 1e-300).all()
    assert predictions(logits, np.array([0, 0])).tolist() == [0, 1]


def test_sigmoid_does_not_saturate_where_float32_does():
    # In float32 sig(40) = sig(20) = 1 and the margin would vanish; it is exp(-20) to 9 digits.
    logits = np.array([[40.0, 20.0]], dtype=np.float32)
    assert np.float32(1) / (1 + np.exp(-logits[0, 0])) == np.float32(1)
    expected = SCALE * math.exp(-20) * (1 - math.exp(-20)) / (1 + math.exp(-20))
    assert scores(logits, np.array([0]), activation="sigmoid")[0] == pytest.approx(expected, rel=1e-12)


def test_softmax_margin_keeps_relative_precision_when_it_is_tiny():
    # tanh(x / 2) for two classes; 1 - 1 would be left of exp(-1e-12) in naive arithmetic.
    result = scores(np.array([[1e-12, 0.0]]), np.array([0]), activation="softmax")
    assert result[0] == pytest.approx(SCALE * 5e-13, rel=1e-12)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_low_precision_logits_are_scored_in_double_precision(activation, dtype):
    logits, labels = logits_and_labels(9)
    logits = logits.astype(dtype)
    got = scores(logits, labels, activation=activation)
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, scores(logits.astype(np.float64), labels, activation=activation))


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_inputs_are_left_as_they_were(activation):
    logits, labels = logits_and_labels(10)
    before = logits.copy(), labels.copy()
    scores(logits, labels, activation=activation)
    predictions(logits, labels)
    true_and_rival_logits(logits, labels)
    np.testing.assert_array_equal(logits, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_own_and_rival():
    own, rival = true_and_rival_logits(np.array([[1, 5, 2], [7, 0, 3]], dtype=np.float32), np.array([1, 2]))
    assert own.tolist() == [5, 3]
    assert rival.tolist() == [2, 7]
    assert own.dtype == rival.dtype == np.float64


def test_predictions_are_the_argmax_where_it_is_unique():
    logits, labels = logits_and_labels(11, n=500)
    predicted = predictions(logits, labels)
    assert predicted.dtype == np.int32
    np.testing.assert_array_equal(predicted, logits.argmax(axis=1))


# Counterexamples: the score is no certified radius


def test_not_a_certified_radius_identity_generator_and_sign_classifier():
    # G(z) = z, f(x) = sign(x): the distance of x to the boundary is |x|, whose mean is sqrt(2 / pi) = .798.
    x = np.random.default_rng(0).normal(size=20_000)
    labels = (x > 0).astype(int)
    reported = []
    for steepness in (1, 5, 20):
        logits = steepness * np.sign(x)[:, None] * [-1, 1]
        reported.append(scores(logits, labels, activation="softmax").mean())
    true_distance = np.abs(x).mean()
    assert true_distance == pytest.approx(math.sqrt(2 / math.pi), abs=0.01)
    assert reported[2] == pytest.approx(1.2533, abs=1e-4)
    assert reported[0] < reported[1] < reported[2]
    assert reported[2] > 1.5 * true_distance
    # Of single samples the claim fails for P(|x| < 1.2533) = 79%.
    claimed = scores(20 * np.sign(x)[:, None] * [-1, 1], labels, activation="softmax")
    assert np.mean(claimed > np.abs(x)) == pytest.approx(0.79, abs=0.01)


def test_not_a_certified_radius_normal_cdf_generator():
    # G = Phi, so x is uniform on [0, 1]; logits +-k (x - 1/2): the true mean distance to x = 1/2 is 1/4.
    # Sigmoid margin tanh(k |x - 1/2| / 2), mean 4 / k ln cosh(k / 4): .7255 at k = 10, times B .9092.
    x = (np.arange(100_000) + 0.5) / 100_000
    labels = (x > 0.5).astype(int)
    logits = 10 * (x - 0.5)[:, None] * [-1, 1]
    score = scores(logits, labels, activation="sigmoid").mean()
    assert score == pytest.approx(SCALE * 0.4 * math.log(math.cosh(2.5)), abs=1e-8)
    assert score == pytest.approx(0.9092, abs=5e-5)
    assert np.abs(x - 0.5).mean() == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize("activation", ["softmax", "sigmoid"])
def test_not_a_certified_radius_temperature_changes_the_score_and_not_the_classifier(activation):
    x = np.linspace(-1, 1, 2001)
    labels = (x > 0).astype(int)
    logits = x[:, None] * [-1, 1]
    at = [scores(logits, labels, activation=activation, temperature=t).mean() for t in (1e-4, 1, 1e4)]
    assert at[0] > 0.99 * SCALE
    assert 0.1 < at[1] < SCALE / 2 + 0.1
    assert at[2] < 1e-3


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("temperature", [0.01, 0.3, 1.0, 10.0])
@pytest.mark.parametrize("k", [2, FEW_CLASSES, FEW_CLASSES + 1, 1000])
def test_agrees_with_the_formulas_in_double_precision(activation, temperature, k):
    logits, labels = logits_and_labels(k, n=k + 300, k=k)
    logits = logits.astype(np.float32)
    rows, z = np.arange(len(labels)), logits.astype(np.longdouble)

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    def softmax(x):
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    outer = {"sigmoid": sigmoid, "softmax": softmax}
    first, _, second = activation.partition("-of-")
    s = outer[first]((outer[second](z) if second else z) / temperature)
    own = s[rows, labels]
    s[rows, labels] = -1
    expected = np.maximum(own - s.max(axis=1), 0) * SCALE
    got = scores(logits, labels, activation=activation, temperature=temperature)
    # Below this the reference itself has no digits left.
    seen = expected > 1e-8
    np.testing.assert_allclose(got[seen], expected[seen].astype(float), rtol=1e-9)
    np.testing.assert_allclose(got, expected.astype(float), rtol=0, atol=1e-14)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_no_class_is_predicted_from_nan(place):
    logits = np.zeros((3, 3), dtype=np.float32)
    logits[1, place] = np.nan
    with pytest.raises(InputError, match="NaN in place of a logit"):
        predictions(logits, [0, 1, 2])
