import numpy as np
import pytest
from scipy.stats import spearmanr

from gfscore.audit.classwise.targets import predictors, target_success
from gfscore.measures.targeted.batch import other_classes


def test_both_predictors_are_judged_on_the_same_classes():
    success = np.array([0.1, 0.2, 0.3, np.nan, 0.5])
    cfps, miss = np.array([0.1, 0.2, 0.3, 0.9, 0.4]), np.array([0.4, 0.3, 0.2, 0.0, np.nan])
    assert predictors(success, cfps=cfps, miss_rate=miss) == {
        "classes": 3, "rho_cfps": 1, "rho_miss_rate": -1, "difference": 2,
    }  # fmt: skip


@pytest.mark.parametrize("classes", [2, 3])
def test_few_classes(classes):
    success, cfps, miss = np.random.default_rng(classes).random((3, classes))
    found = predictors(success, cfps=cfps, miss_rate=miss)
    assert found["rho_cfps"] == pytest.approx(spearmanr(success, cfps).statistic)
    undefined = predictors(success, cfps=np.full(classes, np.nan), miss_rate=miss)
    assert undefined["classes"] == 0 and np.isnan(undefined["difference"])


def test_the_three_definitions_by_hand():
    """Two samples of class 0, one of class 1, none of class 2; each attacked towards both other classes."""
    #                   sample 0  sample 1  sample 2
    labels = np.array([0, 0, 0, 0, 1, 1])
    targets = np.array([1, 2, 1, 2, 0, 2])
    under_attack = np.array([1, 1, 1, 2, 0, 1])
    clean = np.array([0, 0, 1, 1, 1, 1])
    found, matrix = target_success(labels, targets, under_attack, clean, 3)
    np.testing.assert_array_equal(found.n, [1, 2, 3])
    np.testing.assert_allclose(found.success, [1, 1, 1 / 3])
    np.testing.assert_allclose(found.clean, [0, 1 / 2, 0])
    np.testing.assert_allclose(found.excess, [1, 1 / 2, 1 / 3])
    # Towards 2: one hit among the two that strayed at all.
    np.testing.assert_allclose(found.among_misclassified, [1, 1, 1 / 2])
    np.testing.assert_allclose(matrix, [[np.nan, 1, 1 / 2], [1, np.nan, 0], [np.nan] * 3])


def test_success_is_the_mean_of_the_matrix_over_samples():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 400)
    row, targets = other_classes(labels, 5)
    under_attack, clean = rng.integers(0, 5, len(row)), rng.integers(0, 5, 400)[row]
    found, matrix = target_success(labels[row], targets, under_attack, clean, 5)
    weights = np.bincount(labels, minlength=5)
    for target in range(5):
        others = np.delete(np.arange(5), target)
        mean = np.average(matrix[others, target], weights=weights[others])
        assert found.success[target] == pytest.approx(mean)
    assert (found.among_misclassified >= found.success).all()
    np.testing.assert_array_equal(target_success(labels[row], targets, clean, clean, 5)[0]["excess"], 0)


def test_where_nothing_strays_the_share_is_undefined():
    found, _ = target_success([0, 0], [1, 2], [0, 0], [0, 0], 3)
    assert found.success[1:].tolist() == [0, 0]
    assert np.isnan(found.among_misclassified).all()
    assert np.isnan(found.success[0])
