import numpy as np
import pytest
from scipy.stats import t as student

from gfscore.audit.calibration.piecewise_objectives import AcrossModels, MeanOverModels, permutation_p_value
from gfscore.audit.calibration.temperature_search import Stretches
from gfscore.audit.calibration_results import PermutationTest
from gfscore.statistics.ranking import EXACT_UP_TO, ranks

THREE = Stretches.between(np.array([0.1, 1.0, 2.0, 10.0]))


def across(scores, accuracy):
    """AcrossModels of scores (S, M), one row per stretch, on S stretches of one width each."""
    stretches = Stretches.between(np.geomspace(0.1, 10, len(scores) + 1))
    searched = np.ones(len(scores), dtype=bool)
    return AcrossModels(stretches, ranks(np.asarray(scores)), ranks(np.asarray(accuracy)), True, searched)


def test_permutation_p_value_by_hand():
    # Over both stretches the best rho is 1 for the orders 123 and 321, so 2 of 6 orders reach it.
    found = permutation_p_value(across([[1, 2, 3], [3, 2, 1]], [0.1, 0.2, 0.3]), draws=9, rng=None)
    assert found == PermutationTest(p=2 / 6, orders=6, method="all orders")
    # On one stretch alone it is 1 of 6.
    assert permutation_p_value(across([[1, 2, 3]], [0.1, 0.2, 0.3]), draws=9, rng=None).p == 1 / 6


def test_ties_of_accuracies_are_permuted_too():
    # Accuracies a a b: of 6 orders 2 put b last.
    assert permutation_p_value(across([[1, 2, 3]], [0.1, 0.1, 0.3]), draws=9, rng=None).p == 2 / 6


def test_random_orders_count_the_observed_one():
    models = EXACT_UP_TO + 3
    found = permutation_p_value(across([np.arange(models)], np.arange(models)), draws=99, rng=np.random.default_rng(0))
    assert found == PermutationTest(p=1 / 100, orders=99, method="random orders")


def test_an_objective_without_accuracies_has_no_p_value():
    objective = MeanOverModels(THREE, np.array([[0.1, 0.9, 0.2]]), exact=True)
    assert permutation_p_value(objective, draws=9, rng=None) is None


@pytest.mark.parametrize("models", [6, 17])
def test_a_search_under_permuted_accuracies_is_rejected_as_often_as_it_says(models):
    # Many rankings to choose from, accuracies that have nothing to do with any of them.
    rng = np.random.default_rng(models)
    start, slope = rng.normal(size=(2, models))
    scores = start + slope * np.linspace(-2, 2, 60)[:, None]
    repeats, level = 300, 0.05
    p, naive = [], []
    for _ in range(repeats):
        objective = across(scores, rng.permutation(models))
        p.append(permutation_p_value(objective, draws=199, rng=rng).p)
        rho = np.nanmax(objective.values())
        statistic = rho * np.sqrt((models - 2) / max(1e-12, 1 - rho**2))
        naive.append(student.sf(statistic, models - 2))
    error = np.sqrt(level * (1 - level) / repeats)
    assert np.mean(np.array(p) <= level) <= level + 3 * error
    # It is not valid by never rejecting.
    assert np.mean(np.array(p) <= 0.2) > 0.1
    # A test that forgets that T was chosen rejects far too often.
    assert np.mean(np.array(naive) <= level) > level + 5 * error
