"""Class scores over temperatures: interpolated curves, and sweeps beside direct evaluation."""

import itertools
import math

import numpy as np
import pytest

from gfscore import InputError
from gfscore.statistics import SCALE
from gfscore.statistics.classes import class_values
from gfscore.statistics.curves import (
    CACHED_EXPONENTIALS,
    POINTS,
    ROWS_OF_MANY_CLASSES,
    TOLERANCE,
    chebyshev_points,
    class_scores_by_temperature,
    sweep_class_scores,
)
from gfscore.statistics.margins import ACTIVATIONS, BLOCK_ELEMENTS, FEW_CLASSES, predictions, scores
from helpers.samples import adversarial_logits, logits_and_labels

EVERY_ACTIVATION = sorted(ACTIVATIONS)
TEMPERATURES = np.array([0.01, 0.07, 0.3, 1.0, 2.7, 10.0])


def direct(logits, labels, classes, activation, temperatures=TEMPERATURES):
    return np.array(
        [
            class_values(scores(logits, labels, activation=activation, temperature=t), labels, classes).mean
            for t in temperatures
        ]
    )


def random_temperatures(seed, low, high, count=12):
    inside = np.exp(np.random.default_rng(seed).uniform(math.log(low), math.log(high), count))
    return np.concatenate([[low, high], inside])


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("k", [2, 3, 10, 50, 200])
def test_interpolation_agrees_with_direct_evaluation(activation, k):
    logits, labels = logits_and_labels(k, n=2 * k + 50, k=k)
    curves = sweep_class_scores(logits, labels, k, activation=activation, low=0.01, high=10)
    temperatures = random_temperatures(k, 0.01, 10)
    expected = direct(logits, labels, k, activation, temperatures)
    np.testing.assert_allclose(curves(temperatures), expected, rtol=0, atol=TOLERANCE * SCALE)
    assert len(curves.temperatures) <= 129


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("k", [2, 10, 200])
@pytest.mark.parametrize("n", [1, 4])
def test_interpolation_holds_for_adversarial_logits(activation, k, n):
    # Few samples, so that no average smooths the curve; see made.adversarial_logits.
    for seed in range(8):
        logits, labels = adversarial_logits(seed, n=n, k=k)
        curves = sweep_class_scores(logits, labels, k, activation=activation, low=0.01, high=10)
        temperatures = random_temperatures(seed, 0.01, 10)
        expected = direct(logits, labels, k, activation, temperatures)
        np.testing.assert_allclose(curves(temperatures), expected, rtol=0, atol=TOLERANCE * SCALE)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_a_wide_range_takes_more_points_and_not_less_precision(activation):
    logits, labels = logits_and_labels(1, k=10)
    curves = sweep_class_scores(logits, labels, 10, activation=activation, low=1e-6, high=1e3)
    temperatures = random_temperatures(1, 1e-6, 1e3)
    expected = direct(logits, labels, 10, activation, temperatures)
    np.testing.assert_allclose(curves(temperatures), expected, rtol=0, atol=TOLERANCE * SCALE)
    assert len(curves.temperatures) > 65


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_curves_pass_through_their_points(activation):
    logits, labels = logits_and_labels(2)
    curves = sweep_class_scores(logits, labels, 5, activation=activation, low=0.1, high=3)
    expected = direct(logits, labels, 5, activation, curves.temperatures)
    np.testing.assert_allclose(curves.values, expected, rtol=1e-13)
    np.testing.assert_allclose(curves(curves.temperatures), expected, rtol=0, atol=1e-14)


def test_the_ends_are_the_ends_that_were_asked_for():
    logits, labels = logits_and_labels(3)
    for low, high in [(0.01, 10), (0.1, 3), (1e-9, 0.7)]:
        curves = sweep_class_scores(logits, labels, 5, activation="sigmoid", low=low, high=high)
        assert curves.temperatures[[0, -1]].tolist() == [low, high]
        assert (np.diff(curves.temperatures) > 0).all()


@pytest.mark.parametrize(("low", "high"), [(0.01, 10), (1e-8, 1e-3)])
def test_each_point_set_holds_the_smaller_ones(low, high):
    for fewer, more in itertools.pairwise(POINTS):
        np.testing.assert_allclose(
            chebyshev_points(fewer, low, high), chebyshev_points(more, low, high)[::2], rtol=1e-14
        )


def test_refining_wastes_no_evaluation(monkeypatch):
    asked = []

    def counted(logits, labels, classes, *, activation):
        def scores_at(temperatures):
            asked.extend(temperatures)
            return direct(logits, labels, classes, activation, temperatures)

        return scores_at

    monkeypatch.setattr("gfscore.statistics.curves.class_scores_by_temperature", counted)
    logits, labels = logits_and_labels(4, k=10)
    curves = sweep_class_scores(logits, labels, 10, activation="softmax", low=1e-3, high=1e3)
    assert len(curves.temperatures) > POINTS[0]
    assert len(asked) == len(set(asked)) == len(curves.temperatures)


def test_a_class_without_samples_is_missing_at_every_temperature():
    logits, labels = logits_and_labels(5, k=4)
    logits = np.insert(logits, 2, -50.0, axis=1)
    labels = np.where(labels >= 2, labels + 1, labels)
    curves = sweep_class_scores(logits, labels, 5, activation="softmax", low=0.1, high=3)
    got = curves([0.2, 1.0])
    assert np.isnan(got[:, 2]).all()
    assert curves.n[2] == 0
    expected = direct(logits, labels, 5, "softmax", [0.2, 1.0])
    np.testing.assert_allclose(got[:, [0, 1, 3, 4]], expected[:, [0, 1, 3, 4]], atol=TOLERANCE * SCALE)


def test_a_class_that_is_never_right_is_zero_and_not_slightly_negative():
    logits, labels = logits_and_labels(6)
    logits[labels == 1, 1] = -100.0
    curves = sweep_class_scores(logits, labels, 5, activation="softmax", low=0.01, high=10)
    got = curves(random_temperatures(6, 0.01, 10, 200))
    assert (got[:, 1] == 0).all()
    assert (got >= 0).all()


def test_a_vanishing_score_is_never_negative():
    # Both outputs saturate at small T, so the score falls below the noise of the interpolation.
    logits, labels = np.array([[400.0, 300.0], [300.0, 400.0], [5.0, 1.0]]), np.array([0, 1, 0])
    curves = sweep_class_scores(logits, labels, 2, activation="sigmoid", low=0.01, high=10)
    got = curves(np.geomspace(0.01, 10, 500))
    assert (got >= 0).all()
    assert got.min() < 1e-12


@pytest.mark.parametrize("temperature", [0.05, 3.2])
def test_no_extrapolation(temperature):
    logits, labels = logits_and_labels(7)
    curves = sweep_class_scores(logits, labels, 5, activation="softmax", low=0.1, high=3)
    with pytest.raises(InputError, match=r"must lie in the swept range \[0\.1, 3\]"):
        curves([1.0, temperature])


def test_no_temperatures_give_no_rows():
    logits, labels = logits_and_labels(8)
    curves = sweep_class_scores(logits, labels, 5, activation="softmax", low=0.1, high=3)
    assert curves([]).shape == (0, 5)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-1, 1), (2, 1), (1, 1), (math.nan, 1)])
def test_an_empty_range_is_an_error(low, high):
    logits, labels = logits_and_labels(9)
    with pytest.raises(InputError, match="temperature range must satisfy 0 < low < high"):
        sweep_class_scores(logits, labels, 5, activation="softmax", low=low, high=high)


def test_a_range_too_wide_to_settle_is_an_error_and_not_a_wrong_curve():
    logits = np.zeros((1, 1000))
    logits[0, 0] = 1.0
    with pytest.raises(InputError, match="between T = 1e-06 and 1e\\+06 need more than 513 points"):
        sweep_class_scores(logits, np.array([0]), 1000, activation="softmax", low=1e-6, high=1e6)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 10, FEW_CLASSES, FEW_CLASSES + 1, 300])
def test_class_scores_are_the_means_of_the_scores(activation, dtype, k):
    logits, labels = logits_and_labels(k, n=2 * k + 400, k=k)
    logits = logits.astype(dtype)
    got = class_scores_by_temperature(logits, labels, k, activation=activation)(TEMPERATURES)
    np.testing.assert_allclose(got, direct(logits, labels, k, activation), rtol=1e-11)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize(
    ("n", "k"), [(CACHED_EXPONENTIALS + 3, 3), (BLOCK_ELEMENTS // 20 + 1, 20), (ROWS_OF_MANY_CLASSES + 1, 70)]
)
def test_blocks_do_not_matter(activation, n, k):
    logits, labels = logits_and_labels(1, n=2 * n, k=k, signal=6.0)
    assert (predictions(logits, labels) == labels).sum() > n
    got = class_scores_by_temperature(logits, labels, k, activation=activation)(TEMPERATURES)
    np.testing.assert_allclose(got, direct(logits, labels, k, activation), rtol=1e-11)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("k", [3, 100])
def test_huge_logits_and_ties(activation, k):
    for seed in range(8):
        logits, labels = adversarial_logits(seed, n=60, k=k)
        got = class_scores_by_temperature(logits, labels, k, activation=activation)(TEMPERATURES)
        np.testing.assert_allclose(got, direct(logits, labels, k, activation), rtol=1e-11, atol=1e-300)


def test_classes_that_a_temperature_leaves_nothing_of_are_skipped_without_a_trace():
    # Rivals 0, 100, 200, ... logits behind: at T = 1 each but the first adds less than rounding.
    k = 400
    logits = np.tile(-100.0 * np.arange(k), (3, 1))
    logits[:, 0] = 1.0
    got = class_scores_by_temperature(logits, np.zeros(3, int), k, activation="softmax")(np.array([0.5, 1.0, 50.0]))
    expected = direct_softmax(logits, np.array([0.5, 1.0, 50.0]))
    np.testing.assert_allclose(got[:, 0], expected, rtol=1e-14)
    assert np.isnan(got[:, 1:]).all()


def direct_softmax(logits, temperatures):
    z = logits[0].astype(np.longdouble)
    powers = np.exp((z - z[0]) / temperatures[:, None].astype(np.longdouble))
    return (np.sqrt(np.pi / 2) * (1 - powers[:, 1]) / powers.sum(axis=1)).astype(float)


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
def test_nothing_right_scores_zero_and_a_class_without_samples_has_no_score(activation):
    logits = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    got = class_scores_by_temperature(logits, np.array([0, 0]), 3, activation=activation)(TEMPERATURES)
    assert (got[:, 0] == 0).all()
    assert np.isnan(got[:, 1:]).all()


@pytest.mark.parametrize("activation", EVERY_ACTIVATION)
@pytest.mark.parametrize("k", [4, 90])
def test_inputs_are_left_as_they_were(activation, k):
    logits, labels = logits_and_labels(10, k=k)
    before = logits.copy(), labels.copy()
    scores_at = class_scores_by_temperature(logits, labels, k, activation=activation)
    np.testing.assert_array_equal(scores_at(TEMPERATURES), scores_at(TEMPERATURES))
    np.testing.assert_array_equal(logits, before[0])
    np.testing.assert_array_equal(labels, before[1])


def test_refusals():
    with pytest.raises(InputError, match="activation 'relu' is unknown"):
        class_scores_by_temperature(np.eye(2), np.arange(2), 2, activation="relu")
    scores_at = class_scores_by_temperature(np.eye(2), np.arange(2), 2, activation="softmax")
    with pytest.raises(InputError, match="temperature must be a positive number"):
        scores_at([1.0, 0])
