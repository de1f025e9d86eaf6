import itertools
import math

import numpy as np
import pytest

from gfscore import InputError
from gfscore.statistics import SCALE
from gfscore.statistics.classes import class_values
from gfscore.statistics.curves import POINTS, TOLERANCE, chebyshev_points, sweep_class_scores
from gfscore.statistics.margins import ACTIVATIONS, scores
from made import adversarial_logits, logits_and_labels

EVERY_ACTIVATION = sorted(ACTIVATIONS)


def direct(logits, labels, classes, activation, temperatures):
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
