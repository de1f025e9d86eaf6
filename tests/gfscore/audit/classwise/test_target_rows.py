from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from gfscore.audit.classwise.target_rows import contest, predictors
from gfscore.show.words.measure_words import central_claim


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


def rows(*differences):
    return pd.DataFrame(
        {
            "definition": "success",
            "rho_cfps": 0.5 + np.array(differences) / 2,
            "rho_miss_rate": 0.5 - np.array(differences) / 2,
            "difference": differences,
        }
    )


def test_the_claim_in_words():
    better = central_claim(rows(*[0.1 * index for index in range(1, 8)]), "success")
    assert "+0.700 with CFPS and +0.300 with 1 - recall; CFPS predicts better (p = 0.016" in better
    assert "1 - recall predicts better" in central_claim(rows(*[-0.1] * 7), "success")
    few = central_claim(rows(0.3, 0.2), "success")
    assert "is not settled (p = 0.500, sign-flip test over 2 models, which cannot get below 0.500)" in few
    mixed = central_claim(rows(*[sign * 0.1 for sign, _ in product((1, -1), range(4))]), "success")
    assert mixed.endswith("is not settled (p = 1.000, sign-flip test over 8 models)")
    assert central_claim(rows(np.nan), "success") is None
