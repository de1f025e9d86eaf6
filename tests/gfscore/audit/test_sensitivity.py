import numpy as np
import pytest

from gfscore.audit import sensitivity
from gfscore.audit.metrics import METRICS, metric_values
from gfscore.audit.sensitivity import (
    changed_statistics,
    lambda_swaps,
    places,
    single_changes,
)
from gfscore.statistics.classes import class_values
from gfscore.statistics.margins import ACTIVATIONS, scores
from helpers.processes import most_memory
from helpers.samples import logits_and_labels, metric


def test_changes_come_one_at_a_time_and_start_with_none():
    assert single_changes(shifts=[-1, 0, 2], scales=[0.5, 1]) == [(0, 1), (-1, 1), (2, 1), (0, 0.5)]


def test_swaps_by_hand():
    # FP of a: .8 - .4 lam; b: .7 - .2 lam; c: .5 - .1 lam. a = b at .5, a = c at 1, b = c at 2.
    swaps = lambda_swaps([0.8, 0.7, 0.5], [0.4, 0.2, 0.1])
    assert [swap[1:] for swap in swaps] == [(0, 1), (0, 2), (1, 2)]
    assert [swap[0] for swap in swaps] == pytest.approx([0.5, 1, 2])


def test_models_that_are_better_in_both_never_swap():
    assert lambda_swaps([0.8, 0.7], [0.2, 0.3]) == []
    assert lambda_swaps([0.8, 0.8], [0.2, 0.3]) == []
    assert lambda_swaps([0.8, 0.7], [0.2, 0.2]) == []


def test_ranking_changes_exactly_at_the_swaps():
    rng = np.random.default_rng(3)
    mean, rdi = rng.random((2, 12))
    swaps = [swap for swap in lambda_swaps(mean, rdi) if swap[0] < 50]
    assert len(swaps) > 10
    at = np.array([0, *(swap[0] for swap in swaps), 60])
    order = np.argsort(-mean)
    for index, (_, before, after) in enumerate(swaps):
        below, above = (np.argsort(-(mean - (at[index + i] + at[index + i + 1]) / 2 * rdi)) for i in (0, 1))
        np.testing.assert_array_equal(below, order)
        # The two that swap are neighbours, and nothing else moves.
        place = list(order).index(before)
        assert order[place + 1] == after
        order = order.copy()
        order[[place, place + 1]] = after, before
        np.testing.assert_array_equal(above, order)


def test_a_scale_is_an_inverse_temperature():
    logits, labels = logits_and_labels(1, n=200)
    for activation in ("sigmoid", "softmax"):
        changed = changed_statistics(logits, labels, activation=activation, change=(0, 4), lam=0.5)
        values = class_values(scores(logits, labels, activation=activation, temperature=0.25), labels, 5)
        assert changed["value"] == pytest.approx(values.aggregate, rel=1e-12)
        assert changed["rdi"] == pytest.approx(metric("rdi", values.mean), rel=1e-10)


def test_a_shift_moves_sigmoid_and_not_softmax():
    logits, labels = logits_and_labels(1, n=200)
    by = {
        (activation, shift): changed_statistics(logits, labels, activation=activation, change=(shift, 1), lam=0.5)
        for activation in ("sigmoid", "softmax")
        for shift in (0, 3)
    }
    assert by["softmax", 3] == pytest.approx(by["softmax", 0], rel=1e-9)
    assert abs(by["sigmoid", 3]["value"] - by["sigmoid", 0]["value"]) > 0.01


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_many_classes_are_changed_a_few_rows_at_a_time_to_the_same_scores(activation, monkeypatch):
    logits, labels = logits_and_labels(2, n=300, k=100)
    logits = logits.astype(np.float32)
    at_once = scores(logits.astype(np.float64) * 2.5 - 1, labels, activation=activation)
    expected = metric_values(class_values(at_once, labels, 100), lam=0.5)
    for rows in (1, 7, 1000):
        monkeypatch.setattr(sensitivity, "BLOCK_ELEMENTS", rows * 100)
        assert changed_statistics(logits, labels, activation=activation, change=(-1, 2.5), lam=0.5) == expected


def test_changes_of_many_classes_copy_no_more_than_a_block_of_the_logits():
    labels = np.repeat(np.arange(1000), 5)
    logits = np.zeros((5000, 1000), np.float32)
    with most_memory() as most:
        changed_statistics(logits, labels, activation="softmax", change=(1, 2), lam=0.5)
    # One copy in float64 is 40 MB.
    assert most[0] < 8e6


def test_statistics_are_those_of_disparity():
    values = class_values([0.2, 0.4, 0.6, 0.8, 0.6, 0.8], np.array([0, 0, 1, 1, 2, 2]), 3)
    numbers = metric_values(values, lam=0.5)
    assert set(numbers) == set(METRICS)
    assert numbers["rdi"] == pytest.approx(0.4)
    assert numbers["fp"] == pytest.approx((0.3 + 0.7 + 0.7) / 3 - 0.2)


def test_places_share_ties_and_leave_out_what_is_undefined():
    np.testing.assert_array_equal(places([0.1, 0.4, 0.4, np.nan]), [3, 1.5, 1.5, np.nan])
    np.testing.assert_array_equal(places([0.1, 0.4, 0.3], better=-1), [1, 3, 2])
