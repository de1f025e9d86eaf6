from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr

from gfscore.audit.agreement.rank_correlations import (
    EVERY_ORDER,
    RANDOM_ORDERS,
    correlation_over_models,
    rank_correlation,
)

SETTINGS = {"confidence": 0.95, "permutations": 999, "seed": 0}


def agreement(x, y, **changes):
    return rank_correlation(x, y, **SETTINGS | changes)


def test_exact_p_by_hand_and_by_enumeration():
    found = agreement([1, 2, 3, 4, 5], [2, 1, 3, 4, 5])
    assert found["rho"] == pytest.approx(0.9)
    assert found["p"] == pytest.approx(1 / 12)
    assert found["p_method"] == EVERY_ORDER


def test_p_with_ties_by_hand():
    """All 24 orders of 4 models: with two ties |rho| reaches its maximum in 8 of them, without ties in 2."""
    values, tied = np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0])
    assert agreement(values, tied)["p"] == 8 / 24
    assert agreement(values, values)["p"] == 2 / 24
    assert agreement([*values, 9.0], [*tied, np.nan])["p"] == 8 / 24
    assert np.isnan(agreement(values, np.zeros(4))["p"])


@pytest.mark.parametrize("models", [5, 12])
def test_a_relation_over_models_is_clear_from_five_models_on(models):
    values = np.arange(models)
    assert correlation_over_models(values, values**2) == (1, True)
    assert correlation_over_models(values[:4], values[:4]) == (1, False)
    assert not correlation_over_models(values, values % 2)[1]
    assert not correlation_over_models(values, np.zeros(models))[1]


def test_p_with_ties_is_that_of_every_order():
    x, y = np.array([1, 1, 2, 3, 3, 4.0]), np.array([1, 2, 2, 2, 3, 1.0])
    observed = abs(spearmanr(x, y).statistic)
    every = np.array([abs(spearmanr(order, y).statistic) for order in permutations(x)])
    assert agreement(x, y)["p"] == np.mean(every >= observed - 1e-9)


def test_p_of_random_orders_is_never_zero_and_uniform_without_relation():
    assert agreement(range(20), range(20))["p"] == pytest.approx(1 / 1000)
    assert agreement(range(20), range(20))["p_method"] == RANDOM_ORDERS
    rng = np.random.default_rng(0)
    p = np.array([agreement(rng.normal(size=12), rng.normal(size=12), permutations=199)["p"] for _ in range(400)])
    assert 0.02 <= np.mean(p <= 0.05) <= 0.08
    assert 0.42 <= np.mean(p <= 0.5) <= 0.58


def test_approximate_interval_covers_as_stated_for_normal_pairs():
    rng, true = np.random.default_rng(1), 0.6
    # Spearman's rho of a normal pair: Kendall 1970, 6/pi arcsin(r/2).
    target, covered = 6 / np.pi * np.arcsin(true / 2), 0
    for _ in range(300):
        x = rng.normal(size=40)
        y = true * x + np.sqrt(1 - true**2) * rng.normal(size=40)
        found = agreement(x, y, permutations=1)
        covered += found["low"] <= target <= found["high"]
    assert 0.91 <= covered / 300 <= 0.985


@pytest.mark.parametrize(
    ("x", "y", "n"),
    [([1.0], [2.0], 1), ([1, 1, 1], [1, 2, 3], 3), ([np.nan, 1.0, np.nan], [1, 2, np.nan], 1), ([], [], 0)],
)
def test_undefined_without_an_order(x, y, n):
    found = agreement(x, y)
    assert (found["n"], found["p_method"]) == (n, None)
    assert np.isnan([found["rho"], found["low"], found["high"], found["p"]]).all()


def test_pairs_with_a_missing_value_are_left_out_and_few_pairs_get_no_interval():
    found = agreement([1, 2, np.nan, 3], [1, 2, 9, 3])
    assert (found["n"], found["rho"], found["p"]) == (3, 1, pytest.approx(1 / 3))
    assert np.isnan([found["low"], found["high"]]).all()
