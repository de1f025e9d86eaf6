import math

import numpy as np
import pytest

from gfscore.audit.calibration.attack_free import (
    STABILITY_STEPS,
    cross_model_accuracy,
    ranking_stability,
    within_model_class_accuracy,
)
from gfscore.audit.calibration.temperature_search import Stretches, coarse_grid, optimum, two_phase_grid
from gfscore.audit.settings import TemperatureGrid
from gfscore.statistics import SCALE
from gfscore.statistics.classes import class_values
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.statistics.ranking import spearman
from helpers import definitions
from helpers.samples import MadeCurves, logits_and_labels

PAPER = TemperatureGrid(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)


def searched(objective, settings=PAPER):
    """Optimum on the paper's grid."""
    temperatures, values = two_phase_grid(objective, settings)
    return optimum(Stretches.at(temperatures), values)


# Cross-model accuracy (Eq. 8)


def test_planted_best_temperature_across_models():
    # Scores follow the accuracies .5 < .6 < .7 only while 2 < T < 3: elsewhere the best model scores lowest.
    accuracy = np.array([[0.5, 0.5], [0.6, 0.6], [0.7, 0.7]])
    n = np.array([30, 10])
    best_model = MadeCurves(lambda t: [0.1 + 0.8 * ((t > 2) & (t < 3))] * 2, n)
    curves = [MadeCurves(lambda t: [0.3, 0.3], n), MadeCurves(lambda t: [0.4, 0.4], n), best_model]
    objective = cross_model_accuracy(curves, accuracy)
    found = searched(objective, PAPER)
    assert found.best == 1
    assert objective(np.ones(1))[0] == pytest.approx(-0.5)  # ranks 2, 3, 1 against 1, 2, 3
    assert found.interval == pytest.approx((2.001, 2.91), abs=0.0015)
    assert found.t_star == pytest.approx(math.sqrt(2.001 * 2.91), abs=0.05)
    assert not found.edge


def made_models(seeds, *, k=5, activation="softmax", n=400):
    curves, accuracies = [], []
    for index, seed in enumerate(seeds):
        # The less accurate a model, the larger its logits: confidence tells nothing about accuracy.
        logits, labels = logits_and_labels(seed, n=n, k=k, scale=1.0, signal=3.0 - 0.4 * index)
        logits *= 1 + 2 * index
        curves.append(sweep_class_scores(logits, labels, k, activation=activation, low=0.01, high=10))
        accuracies.append(class_values(predictions(logits, labels) == labels, labels, k).mean)
    return curves, np.array(accuracies)


def test_softmax_calibration_against_accuracy_degenerates_to_accuracy_at_the_lower_edge():
    # H5: as T -> 0 the score becomes B times accuracy, so Eq. 8 is maximised by not measuring robustness at all.
    curves, accuracy = made_models(range(5))
    found = searched(cross_model_accuracy(curves, accuracy), PAPER)
    assert found.edge
    assert found.interval[0] == 0.01
    assert found.best == 1
    assert cross_model_accuracy(curves, accuracy)(np.ones(1))[0] < 0.9
    at_edge = np.array([np.average(curve([0.01])[0], weights=curve.n) for curve in curves])
    shares = np.array([np.average(row, weights=curve.n) for row, curve in zip(accuracy, curves, strict=True)])
    np.testing.assert_allclose(at_edge, SCALE * shares, atol=0.02)


# Within-model class accuracy


def test_within_model_objective_by_hand():
    n = np.array([10, 10, 10])
    curves = [MadeCurves(lambda t: [0.1, 0.2, 0.3], n), MadeCurves(lambda t: [t / 10, 0.2, 0.3], n)]
    accuracy = np.array([[0.5, 0.6, 0.7], [0.5, 0.6, 0.7]])
    value = within_model_class_accuracy(curves, accuracy)(np.array([1.0, 2.5, 5.0]))
    # Second model: in order; 2 1 3 -> .5; 3 1 2 -> -.5.
    np.testing.assert_allclose(value, [1, 0.75, 0.25])


def test_within_model_objective_agrees_with_the_plain_implementation():
    curves, accuracy = made_models(range(3), activation="sigmoid")
    temperatures = np.array([0.2, 1.0, 4.0])
    expected = [
        definitions.mean(
            [definitions.spearman(list(c([t])[0]), list(a)) for c, a in zip(curves, accuracy, strict=True)]
        )
        for t in temperatures
    ]
    np.testing.assert_allclose(within_model_class_accuracy(curves, accuracy)(temperatures), expected, atol=1e-12)


def test_models_without_an_order_of_accuracies_and_classes_without_samples_are_left_out():
    n = np.array([10, 10, 0, 10])
    ordered = MadeCurves(lambda t: [0.1, 0.3, np.nan, 0.2], n)
    accuracy = np.array([[0.5, 0.6, np.nan, 0.7], [0.8, 0.8, np.nan, 0.8]])
    value = within_model_class_accuracy([ordered, ordered], accuracy)(np.array([1.0]))
    np.testing.assert_allclose(value, [definitions.spearman([0.1, 0.3, 0.2], [0.5, 0.6, 0.7])])


# Ranking stability (Eq. 9)


def test_the_window_sees_what_its_end_points_do_not():
    # Class 1 jumps over class 0 only near T = 1.02: inside the window around T = 1, at neither of its ends.
    curves = [MadeCurves(lambda t: [0.5, 0.4 + 0.2 * (np.abs(t - 1.02) < 0.008), 0.3], np.array([5, 5, 5]))]
    at = np.array([1.0])
    whole = ranking_stability(curves, delta=0.05, low=0.01, high=10)(at)[0]
    ends = ranking_stability(curves, delta=0.05, low=0.01, high=10, endpoints_only=True)(at)[0]
    assert whole == pytest.approx(0.5)
    assert ends == 1


def test_stability_is_never_higher_over_the_window_than_at_its_ends():
    curves, _ = made_models(range(4), k=8)
    temperatures = coarse_grid(PAPER)[:40]
    whole = ranking_stability(curves, delta=0.05, low=0.01, high=10)(temperatures)
    ends = ranking_stability(curves, delta=0.05, low=0.01, high=10, endpoints_only=True)(temperatures)
    assert (whole <= ends + 1e-12).all()
    assert (whole < 1).any()


def test_stability_agrees_with_the_plain_implementation():
    curves, _ = made_models([3], k=6)
    for t in (0.3, 0.7, 3.0):
        window = [t + 0.05 * i / STABILITY_STEPS for i in range(-STABILITY_STEPS, STABILITY_STEPS + 1)]
        window = [min(max(w, 0.01), 10) for w in window]
        center = list(curves[0]([t])[0])
        expected = min(definitions.spearman(center, list(curves[0]([w])[0])) for w in window)
        got = ranking_stability(curves, delta=0.05, low=0.01, high=10)(np.array([t]))[0]
        assert got == pytest.approx(expected, abs=1e-12)


def test_the_window_is_clipped_to_the_search_range():
    curves, _ = made_models([1])
    values = ranking_stability(curves, delta=0.05, low=0.01, high=10)(np.array([0.01, 10.0]))
    assert np.isfinite(values).all()


def test_cross_model_objective_agrees_with_scores_computed_directly():
    curves, accuracy = made_models(range(4), activation="sigmoid")
    shares = [np.average(row, weights=curve.n) for row, curve in zip(accuracy, curves, strict=True)]
    for t in (0.1, 1.0, 5.0):
        aggregates = [np.average(curve([t])[0], weights=curve.n) for curve in curves]
        expected = definitions.spearman(aggregates, shares)
        assert cross_model_accuracy(curves, accuracy)(np.array([t]))[0] == pytest.approx(expected, abs=1e-12)
        assert spearman(aggregates, shares) == pytest.approx(expected, abs=1e-12)
