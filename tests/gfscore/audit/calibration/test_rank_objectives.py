import dataclasses
from functools import partial

import numpy as np
import pytest

from gfscore.audit.calibration import attack_free, rank_objectives
from gfscore.audit.calibration.temperature_search import Stretches, coarse_grid, optimum, two_phase_grid
from gfscore.audit.settings import TemperatureGrid
from gfscore.statistics.classes import class_values
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import predictions
from gfscore.statistics.ranking import every_order, ranks, spearman
from helpers.samples import MadeCurves, logits_and_labels

PAPER = TemperatureGrid(low=0.01, high=10.0, coarse_step=0.1, fine_step=0.001, fine_radius=0.1)
DELTA = 0.05
STEP = 1e-4
OBJECTIVES = {
    "cross_model_accuracy": (
        lambda curves, accuracy: rank_objectives.cross_model_accuracy(curves, accuracy, PAPER),
        attack_free.cross_model_accuracy,
    ),
    "within_model_class_accuracy": (
        lambda curves, accuracy: rank_objectives.within_model_class_accuracy(curves, accuracy, PAPER),
        attack_free.within_model_class_accuracy,
    ),
    "ranking_stability_endpoints": (
        lambda curves, _: rank_objectives.ranking_stability(curves, PAPER, delta=DELTA, endpoints_only=True),
        lambda curves, _: attack_free.ranking_stability(
            curves, delta=DELTA, low=PAPER.low, high=PAPER.high, endpoints_only=True
        ),
    ),
}


def made_models(*, models=5, k=5, n=400, activation="sigmoid", first_seed=0):
    curves, accuracies = [], []
    for index in range(models):
        # The less accurate a model, the larger its logits: confidence tells nothing about accuracy.
        logits, labels = logits_and_labels(first_seed + index, n=n, k=k, scale=1.0, signal=3.0 - 0.2 * index)
        logits *= 1 + index
        curves.append(sweep_class_scores(logits, labels, k, activation=activation, low=PAPER.low, high=PAPER.high))
        accuracies.append(class_values(predictions(logits, labels) == labels, labels, k).mean)
    return curves, np.array(accuracies)


def away_from_boundaries(stretches, temperatures):
    boundaries = np.append(stretches.first, stretches.last[-1])
    above = np.clip(np.searchsorted(boundaries, temperatures), 1, len(boundaries) - 1)
    nearest = np.minimum(temperatures - boundaries[above - 1], boundaries[above] - temperatures)
    return nearest > 1e-5 * temperatures


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("activation", ["sigmoid", "softmax"])
def test_the_exact_search_agrees_with_a_brute_force_grid(name, activation):
    curves, accuracy = made_models(activation=activation)
    exact_of, function_of = OBJECTIVES[name]
    exact = exact_of(curves, accuracy)
    values, found = exact.values(), optimum(exact.stretches, exact.values())
    temperatures = np.arange(PAPER.low, PAPER.high, STEP)
    temperatures = temperatures[away_from_boundaries(exact.stretches, temperatures)]
    grid = function_of(curves, accuracy)(temperatures)
    np.testing.assert_allclose(values[exact.stretches.holding(temperatures)], grid, rtol=0, atol=1e-12)
    assert grid.max() <= found.best + 1e-12
    # Whatever stretch is wider than the step, the grid has a point in it and sees the same optimum.
    if max(last - first for first, last in found.stretches) > 2 * STEP:
        assert grid.max() == pytest.approx(found.best, abs=1e-12)
    assert function_of(curves, accuracy)(np.array([found.t_star]))[0] == pytest.approx(found.best, abs=1e-12)


def test_stability_over_the_window_agrees_with_a_brute_force_window():
    curves, _ = made_models(models=2, k=6)
    exact = rank_objectives.ranking_stability(curves, PAPER, delta=DELTA)
    values = exact.values()
    for temperature in (0.03, 0.06, 0.2, 0.5, 1.1, 3.0, 9.99):
        window = np.arange(max(PAPER.low, temperature - DELTA), min(PAPER.high, temperature + DELTA), STEP / 4)
        least = [spearman(curve([temperature]), curve(window)).min() for curve in curves]
        at = exact.stretches.holding(np.array([temperature]))[0]
        assert values[at] == pytest.approx(np.mean(least), abs=1e-12), temperature


def test_stability_sees_a_change_between_the_samples_of_the_window():
    # Class 0 falls behind class 1 from T = 1.0215 to 1.0235 only; around T = 1 the samples are 1.02 and 1.025.
    low, high = np.log([1.0215, 1.0235])
    curves = [MadeCurves(lambda t: [0.5 + (np.log(t) - low) * (np.log(t) - high), 0.5, 0.3], np.array([5, 5, 5]))]
    sampled = attack_free.ranking_stability(curves, delta=DELTA, low=PAPER.low, high=PAPER.high)(np.ones(1))[0]
    exact = rank_objectives.ranking_stability(curves, PAPER, delta=DELTA)
    assert sampled == 1
    assert exact.values()[exact.stretches.holding(np.ones(1))[0]] == pytest.approx(0.5)


def lines(*offsets):
    """One model per offset: its score is 1/2 at log T = -offset and grows with log T, faster for later models."""
    n = np.array([10, 10])
    return [
        MadeCurves(lambda t, slope=0.01 * (1 + i), o=o: [0.5 + slope * (np.log(t) + o)] * 2, n)
        for i, o in enumerate(offsets)
    ]


def test_two_models_that_cross_once_by_hand():
    # Scores .5 + .01 x and .5 + .02 x, x = log T, cross at T = 1; the second model is the more accurate one.
    accuracy = np.array([[0.6, 0.6], [0.7, 0.7]])
    objective = rank_objectives.cross_model_accuracy(lines(0, 0), accuracy, PAPER)
    found = optimum(objective.stretches, objective.values())
    assert found.interval == pytest.approx((1, 10), rel=1e-6)
    assert found.t_star == pytest.approx(10**0.5)
    assert (found.best, found.edge) == (1, True)
    np.testing.assert_allclose(objective.values(), [-1, 1])


def test_identical_models_are_tied_at_every_temperature():
    accuracy = np.array([[0.6, 0.6], [0.7, 0.7], [0.8, 0.8]])
    curves = lines(0, 0)
    objective = rank_objectives.cross_model_accuracy([curves[0], curves[0], curves[1]], accuracy, PAPER)
    # Ranks 2.5 2.5 1 below T = 1, 1.5 1.5 3 above, against 1 2 3.
    np.testing.assert_allclose(objective.values(), np.array([-1, 1]) * np.sqrt(3) / 2)


def test_a_knife_edge_at_a_crossing_is_no_optimum():
    # Equal accuracies would like equal scores, which there are at T = 1 only: nobody can set that temperature.
    accuracy = np.array([[0.7, 0.7], [0.7, 0.7], [0.2, 0.2]])
    curves = [*lines(0, 0), MadeCurves(lambda t: [0.1, 0.1], np.array([10, 10]))]
    objective = rank_objectives.cross_model_accuracy(curves, accuracy, PAPER)
    found = optimum(objective.stretches, objective.values())
    assert found.best == pytest.approx(np.sqrt(3) / 2)
    assert found.interval == (PAPER.low, PAPER.high)


def test_permuting_accuracies_is_searching_anew():
    curves, accuracy = made_models(models=4, k=4)
    orders = every_order(4)[[0, 3, 11, 23]]
    across = rank_objectives.cross_model_accuracy(curves, accuracy, PAPER)
    within = rank_objectives.within_model_class_accuracy(curves, accuracy, PAPER)
    for order, found, found_within in zip(
        orders, across.permuted_maxima(orders), within.permuted_maxima(orders), strict=True
    ):
        direct = dataclasses.replace(across, accuracy_ranks=across.accuracy_ranks[order])
        assert found == pytest.approx(direct.values().max(), abs=1e-12)
        # The same classes change places in every model.
        direct = rank_objectives.within_model_class_accuracy(curves, accuracy[:, order], PAPER)
        assert found_within == pytest.approx(direct.values().max(), abs=1e-12)


def test_models_without_an_order_of_accuracies_are_left_out_of_permutations_too():
    curves, accuracy = made_models(models=3, k=4)
    accuracy[1] = 0.8
    objective = rank_objectives.within_model_class_accuracy(curves, accuracy, PAPER)
    assert np.isnan(objective.by_model[1]).all()
    without = rank_objectives.within_model_class_accuracy([curves[0], curves[2]], accuracy[[0, 2]], PAPER)
    orders = every_order(4)
    np.testing.assert_allclose(objective.permuted_maxima(orders), without.permuted_maxima(orders), atol=1e-12)


@pytest.mark.parametrize("most_ranked", [100, 2], ids=["exact", "grid"])
@pytest.mark.parametrize("name", ["within_model_class_accuracy", "ranking_stability"])
def test_a_temperature_gains_nothing_where_the_classes_of_a_model_are_tied(monkeypatch, name, most_ranked):
    monkeypatch.setattr(rank_objectives, "MOST_RANKED", most_ranked)
    n = np.array([10, 10, 10])
    # Scores of the second model are below 1e-9 where T < 0.04, those of the third everywhere.
    fading = MadeCurves(lambda t: [0.1 * np.exp(-1 / t), 0.2 * np.exp(-1 / t), 0.3 * np.exp(-1 / t)], n)
    curves = [MadeCurves(lambda t: [0.1, 0.2, 0.3], n), fading, MadeCurves(lambda t: [0.0, 0.0, 0.0], n)]
    accuracy = np.array([[0.5, 0.6, 0.7], [0.5, 0.6, 0.7], [0.0, 0.0, 0.0]])
    if name == "ranking_stability":
        objective = rank_objectives.ranking_stability(curves, PAPER, delta=0.01)
    else:
        objective = rank_objectives.within_model_class_accuracy(curves, accuracy, PAPER)
        assert objective.permuted_maxima(np.arange(3)[None]) == pytest.approx(1)
    below, above = objective.values()[objective.stretches.holding(np.array([0.01, 1.0]))]
    assert (below, above) == pytest.approx((0.5, 1))
    assert optimum(objective.stretches, objective.values()).stretches[0][0] > 0.04


@pytest.mark.parametrize("most_ranked", [100, 2], ids=["exact", "grid"])
def test_no_temperature_is_chosen_at_which_all_models_are_tied(monkeypatch, most_ranked):
    monkeypatch.setattr(rank_objectives, "MOST_RANKED", most_ranked)
    n = np.array([10, 10, 10])
    # Scores below 1e-9 where T < 0.04, and against the order of the accuracies elsewhere.
    fading = MadeCurves(lambda t: [0.1 * np.exp(-1 / t), 0.2 * np.exp(-1 / t), 0.3 * np.exp(-1 / t)], n)
    accuracy = np.array([[0.7, 0.6, 0.5]] * 2)
    objective = rank_objectives.within_model_class_accuracy([fading, fading], accuracy, PAPER)
    best = optimum(objective.stretches, objective.values())
    assert best.stretches[0][0] > 0.04
    assert objective.permuted_maxima(np.arange(3)[None]) == pytest.approx(-1)


def test_a_class_without_samples_takes_no_part():
    logits, labels = logits_and_labels(5, k=4)
    logits = np.insert(logits, 2, -50.0, axis=1)
    labels = np.where(labels >= 2, labels + 1, labels)
    curve = sweep_class_scores(logits, labels, 5, activation="softmax", low=PAPER.low, high=PAPER.high)
    accuracy = class_values(predictions(logits, labels) == labels, labels, 5).mean
    objective = rank_objectives.within_model_class_accuracy([curve], accuracy[None], PAPER)
    assert objective.permuted_items == 4
    assert np.isfinite(objective.values()).all()


def test_more_classes_than_can_be_searched_exactly_are_searched_on_the_grid(monkeypatch):
    monkeypatch.setattr(rank_objectives, "MOST_RANKED", 3)
    curves, accuracy = made_models(models=3, k=4)
    within = rank_objectives.within_model_class_accuracy(curves, accuracy, PAPER)
    window = {"delta": DELTA, "low": PAPER.low, "high": PAPER.high}
    stability = rank_objectives.ranking_stability(curves, PAPER, delta=DELTA)
    for objective, function in (
        (within, attack_free.within_model_class_accuracy(curves, accuracy)),
        (stability, attack_free.ranking_stability(curves, **window)),
    ):
        assert not objective.exact
        # T = 1 is no temperature of the paper's grid, but where every score is before calibration.
        temperatures = np.union1d(two_phase_grid(function, PAPER)[0], 1.0)
        assert 1.0 not in coarse_grid(PAPER)
        np.testing.assert_array_equal(objective.stretches.first, temperatures)
        values = function(temperatures)
        np.testing.assert_allclose(objective.values(), values, atol=1e-12)
        assert optimum(objective.stretches, objective.values()) == optimum(Stretches.at(temperatures), values)
    assert rank_objectives.cross_model_accuracy(curves, accuracy, PAPER).exact
    # So are more models.
    curves, accuracy = made_models(models=5, k=3)
    across, function = (each(curves, accuracy) for each in (_across, attack_free.cross_model_accuracy))
    assert not across.exact
    np.testing.assert_allclose(across.values(), function(across.stretches.first), atol=1e-12)


def _across(curves, accuracy):
    return rank_objectives.cross_model_accuracy(curves, accuracy, PAPER)


def _spearman_at(temperatures, *, scores, accuracies):
    return spearman(scores(temperatures), accuracies)


@pytest.mark.parametrize("permuted", ["models", "classes"])
def test_permutations_search_only_what_the_accuracies_did_not_place(monkeypatch, permuted):
    monkeypatch.setattr(rank_objectives, "MOST_RANKED", 3)
    rough = TemperatureGrid(low=0.01, high=10.0, coarse_step=1.0, fine_step=0.01, fine_radius=1.0)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(12), (40, 1)), axis=1)
    if permuted == "models":
        curves, accuracy = made_models(models=12, k=3)
        objective = rank_objectives.cross_model_accuracy(curves, accuracy, rough)
        scores, accuracies = attack_free.aggregates(curves), attack_free.aggregate_accuracy(curves, accuracy)
        functions = [partial(_spearman_at, scores=scores, accuracies=accuracies[order]) for order in orders]
    else:
        curves, accuracy = made_models(models=2, k=12)
        objective = rank_objectives.within_model_class_accuracy(curves, accuracy, rough)
        functions = [attack_free.within_model_class_accuracy(curves, accuracy[:, order]) for order in orders]
    coarse, all_steps = (
        np.nanmax([function(temperatures) for function in functions], axis=1)
        for temperatures in (coarse_grid(rough), objective.stretches.first)
    )
    np.testing.assert_allclose(objective.permuted_maxima(orders), coarse, atol=1e-12)
    assert (coarse < all_steps - 0.01).any()


def test_one_model_has_no_order_across_models():
    curves, accuracy = made_models(models=1)
    objective = rank_objectives.cross_model_accuracy(curves, accuracy, PAPER)
    assert ranks(accuracy.mean(axis=1)).tolist() == [1]
    assert np.isnan(objective.values()).all()
