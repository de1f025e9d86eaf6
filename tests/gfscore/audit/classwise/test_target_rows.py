import numpy as np
import pytest
from scipy.stats import spearmanr

from gfscore.audit.classwise.target_rows import contest, predictors


def test_contest_by_hand():
    found = contest([0.3, 0.1, 0.2])
    assert (found.models, found.mean, found.p) == (3, pytest.approx(0.2), 2 / 8)
    # Sums of signs times (3, 1): 4, 2, -2, -4; two of four reach 4, all reach 2.
    assert contest([0.3, 0.1]).p == 0.5
    assert contest([0.3, -0.1]).p == 1
    assert contest([0.4, np.nan]).models == 1
    assert contest([0.4]).p == 1
    assert np.isnan(contest([np.nan]).p)


def test_contest_of_many_models_is_level_alpha():
    rng = np.random.default_rng(0)
    few = [contest(rng.normal(size=6)).p for _ in range(300)]
    many = [contest(rng.normal(size=20), draws=499).p for _ in range(300)]
    for p in (np.array(few), np.array(many)):
        assert 0.01 <= np.mean(p <= 0.1) <= 0.15
    assert contest(np.full(20, 0.1), draws=499).p < 0.01


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
