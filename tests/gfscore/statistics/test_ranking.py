"""Ranks, rank correlations, rankings of classes, boundaries between rankings."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gfscore import InputError
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import ACTIVATIONS
from gfscore.statistics.ranking import (
    RESOLUTION,
    every_order,
    joined,
    rank_boundaries,
    ranks,
    share_of_orders,
    spearman,
    spearman_or_none,
    vulnerability,
)
from gfscore.statistics.tolerances import TIE_TOLERANCE
from helpers import definitions
from helpers.samples import adversarial_logits, logits_and_labels

# Few distinct values, so that ties are frequent.
tied_lists = st.integers(2, 12).flatmap(lambda m: st.tuples(*[st.lists(st.integers(0, 5), min_size=m, max_size=m)] * 2))


@given(tied_lists)
def test_spearman_agrees_with_the_plain_implementation_with_ties(pair):
    x, y = pair
    expected = definitions.spearman(x, y)
    if expected is None:
        assert math.isnan(spearman(x, y))
    else:
        assert spearman(x, y) == pytest.approx(expected, abs=1e-12)
        assert -1 <= spearman(x, y) <= 1


def test_spearman_by_hand():
    # Ranks 1, 2, 3, 4 against 2, 1, 4, 3: 1 - 6 * 4 / (4 * 15) = .6
    assert spearman([10, 20, 30, 40], [0.2, 0.1, 0.9, 0.5]) == pytest.approx(0.6)
    # With a tie: ranks 1, 2, 3 against 1, 2.5, 2.5: 1.5 / sqrt(2 * 1.5) = .8660
    assert spearman([1, 2, 3], [1, 5, 5]) == pytest.approx(math.sqrt(3) / 2)


@given(st.integers(0, 2**32), st.integers(2, 40))
def test_spearman_knows_only_the_order(seed, m):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, m))
    rho = spearman(x, y)
    assert spearman(np.exp(x), 3 * y + 7) == pytest.approx(rho, abs=1e-12)
    assert spearman(y, x) == pytest.approx(rho, abs=1e-12)
    assert spearman(-x, y) == pytest.approx(-rho, abs=1e-12)
    assert spearman(x, x) == 1
    assert spearman(x, -x) == -1
    order = rng.permutation(m)
    assert spearman(x[order], y[order]) == pytest.approx(rho, abs=1e-12)


def test_spearman_of_many_rows_at_once():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (3, 6, 8)), rng.integers(0, 4, 8)
    got = spearman(x, y)
    assert got.shape == (3, 6)
    for i, j in itertools.product(range(3), range(6)):
        np.testing.assert_equal(got[i, j], spearman(x[i, j], y))


def test_spearman_leaves_out_pairs_with_a_missing_value():
    assert spearman([1, np.nan, 3, 2, 9], [1, 2, 3, 2, np.nan]) == 1
    assert math.isnan(spearman([1, np.nan, 3], [np.nan, 2, 3]))


@pytest.mark.parametrize(
    ("x", "y"),
    [([1, 1, 1], [1, 2, 3]), ([1, 2], [0.5, 0.5]), ([1], [2]), ([], []), ([np.nan, np.nan], [1, 2])],
)
def test_spearman_is_undefined_without_an_order(x, y):
    assert math.isnan(spearman(x, y))
    assert spearman_or_none(x, y) is None


def test_spearman_of_several_rows_needs_values_and_two_models():
    with pytest.raises(InputError, match="needs values without NaN"):
        spearman([[1, np.nan], [1, 2]], [1, 2])
    assert np.isnan(spearman(np.zeros((4, 1)), np.zeros(1))).tolist() == [True] * 4


def test_rounding_decides_no_rank():
    noise = 1e-13 * np.array([1, -1, 2, 0])
    assert ranks(0.3 + noise).tolist() == [2.5, 2.5, 2.5, 2.5]
    # Wherever the values lie with respect to decimal places.
    assert ranks([0.1234567895 - 1e-16, 0.1234567895 + 1e-16]).tolist() == [1.5, 1.5]
    assert ranks([1.4e-10, 9e-10, 0.5]).tolist() == [1.5, 1.5, 3]


def test_values_further_apart_than_the_tolerance_are_ranked():
    assert ranks([0.3 + 2 * TIE_TOLERANCE, 0.3]).tolist() == [2, 1]


@pytest.mark.parametrize("models", [2, 3, 4, 6])
def test_shares_of_orders_against_enumeration(models):
    places = list(range(models))
    every = [definitions.spearman(places, order) for order in itertools.permutations(places)]
    for rho in {round(value, 6) for value in every}:
        expected = sum(abs(value) >= abs(rho) - 1e-5 for value in every) / len(every)
        share = share_of_orders(np.array(places), np.array(places), every_order(models), max(0.0, abs(rho) - 1e-6))
        assert share == pytest.approx(expected)


def test_vulnerability_by_hand():
    values = [
        [0.1, 0.5, 0.3],  # ranks 1 3 2
        [0.2, 0.6, 0.2],  # ranks 1.5 3 1.5: a tie counts for both
        [0.4, 0.3, 0.9],  # ranks 2 1 3
    ]
    frame = vulnerability(values, ["cat", "ship", "dog"])
    assert frame["class_name"].tolist() == ["cat", "dog", "ship"]
    assert frame["class_index"].tolist() == [0, 2, 1]
    assert frame["mean_rank"].tolist() == pytest.approx([4.5 / 3, 6.5 / 3, 7 / 3])
    assert frame["times_worst"].tolist() == [2, 1, 1]
    assert frame["times_best"].tolist() == [0, 1, 2]
    assert frame["models"].tolist() == [3, 3, 3]


def test_vulnerability_ties_follow_the_tie_rule_of_the_worst_class():
    values = [[(0.1 + 0.2 + 0.3) / 3, (0.3 + 0.2 + 0.1) / 3, 0.9]]
    frame = vulnerability(values, ["a", "b", "c"])
    assert frame["times_worst"].tolist() == [1, 1, 0]
    assert frame["mean_rank"].tolist() == [1.5, 1.5, 3]


def test_vulnerability_ranks_the_classes_that_all_models_have():
    values = np.array([[0.2, np.nan, 0.3], [0.2, 0.1, 0.3]])
    frame = vulnerability(values, ["a", "b", "c"]).set_index("class_name")
    alone = vulnerability(values[:, [0, 2]], ["a", "c"]).set_index("class_name")
    counted = ["mean_rank", "times_worst", "times_best", "models"]
    pd.testing.assert_frame_equal(frame.loc[["a", "c"], counted], alone[counted])
    assert frame.index.tolist() == ["a", "c", "b"]
    assert math.isnan(frame.loc["b", "mean_rank"]) and frame.loc["b", ["times_worst", "times_best"]].tolist() == [0, 0]
    none = vulnerability([[0.1, np.nan], [np.nan, 0.2]], ["a", "b"])
    assert none["mean_rank"].isna().all() and (none[["times_worst", "times_best"]] == 0).all(axis=None)


@pytest.mark.parametrize("shape", [(1,), (9,), (30, 17), (2, 3, 200), (0, 4), (4, 0)])
def test_ranks_are_the_average_ranks_of_a_library(shape):
    values = np.random.default_rng(0).integers(0, 9, shape).astype(float)
    np.testing.assert_array_equal(ranks(values), stats.rankdata(values, axis=-1))


LOW, HIGH = 0.01, 10.0


def curves_of(*formulas):
    """Curves (T, C) from formulas of log T."""
    return lambda temperatures: np.stack(
        [np.broadcast_to(formula(np.log(temperatures)), np.shape(temperatures)) for formula in formulas], axis=1
    )


def inner(*formulas):
    return rank_boundaries(curves_of(*formulas), low=LOW, high=HIGH)[1:-1]


def test_crossings_of_lines_by_hand():
    # 0 crosses x at T = 1 and x - log 2 at T = 2; the two lines never meet.
    found = inner(lambda x: 0 * x, lambda x: x, lambda x: x - math.log(2))
    assert found == pytest.approx([1, 2], rel=1e-7)


def test_several_crossings_of_one_pair():
    found = inner(lambda x: np.cos(3 * x), lambda x: 0 * x)
    expected = [math.exp((0.5 + k) * math.pi / 3) for k in range(-5, 2)]
    expected = [t for t in expected if LOW < t < HIGH]
    assert found == pytest.approx(expected, rel=1e-7)


def test_crossings_that_a_grid_steps_over_are_found():
    # Two crossings 2e-5 apart in log T.
    width = 1e-5
    found = inner(lambda x: 1e4 * (x**2 - width**2), lambda x: 0 * x)
    assert found == pytest.approx(np.exp([-width, width]), rel=1e-7)


def test_touching_curves_change_nothing():
    found = rank_boundaries(curves_of(lambda x: x**2, lambda x: 0 * x), low=LOW, high=HIGH)
    # Where they touch they are tied for a short while; what lasts is the same order on both sides.
    values = ranks(curves_of(lambda x: x**2, lambda x: 0 * x)(np.sqrt(found[1:] * found[:-1])))
    wide = np.diff(np.log(found)) > 1e-3
    assert (values[wide] == [2, 1]).all()
    tied = ~wide
    assert np.diff(np.log(found))[tied].sum() == pytest.approx(2 * math.sqrt(TIE_TOLERANCE), rel=1e-3)


def test_identical_curves_have_no_crossing():
    assert len(inner(np.sin, np.sin)) == 0
    assert len(inner(lambda x: 0 * x, lambda x: 0 * x + 0.9 * TIE_TOLERANCE)) == 0
    assert len(inner(lambda x: 0 * x, lambda x: 0 * x + 1.1 * TIE_TOLERANCE)) == 0


def test_a_difference_that_stays_at_the_tolerance_of_ties_comes_to_an_end():
    assert len(inner(lambda x: 0 * x, lambda x: 0 * x + TIE_TOLERANCE)) < 100


def test_curves_that_merge_are_tied_from_where_they_are():
    # exp(-1/T) falls below the tolerance of ties at T = -1 / log(1e-9).
    found = inner(lambda x: np.exp(-np.exp(-x)), lambda x: 0 * x)
    assert found == pytest.approx([-1 / math.log(TIE_TOLERANCE)], rel=1e-6)


def test_one_curve_has_no_crossing():
    assert rank_boundaries(curves_of(np.sin), low=LOW, high=HIGH).tolist() == [LOW, HIGH]


def test_curves_too_rough_for_series_are_an_error():
    with pytest.raises(InputError, match="too rough to find their crossings"):
        inner(lambda x: np.sign(np.sin(1e5 * x)), lambda x: 0 * x)


def test_boundaries_that_lie_together_become_one():
    assert joined(np.array([2.0, 2.0 + 1e-9, 2.0 + 2e-9]), low=1, high=4) == pytest.approx([1, 2, 4])
    assert joined(np.array([]), low=1, high=4).tolist() == [1, 4]
    assert joined(np.array([1 + 1e-9, 4 - 1e-9, 0.5, 7]), low=1, high=4).tolist() == [1, 4]


def require_constant_ranks(curves, temperatures):
    boundaries = rank_boundaries(curves, low=LOW, high=HIGH)
    middles = np.sqrt(boundaries[1:] * boundaries[:-1])
    away = np.abs(np.log(temperatures[:, None] / boundaries)).min(axis=1) > RESOLUTION
    stretch = np.clip(np.searchsorted(boundaries, temperatures) - 1, 0, len(middles) - 1)
    np.testing.assert_array_equal(ranks(curves(middles))[stretch][away], ranks(curves(temperatures))[away])
    return boundaries


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
@pytest.mark.parametrize("k", [2, 6, 20])
def test_between_boundaries_no_rank_changes(activation, k):
    logits, labels = logits_and_labels(k, n=60 * k, k=k)
    curves = sweep_class_scores(logits, labels, k, activation=activation, low=LOW, high=HIGH)
    require_constant_ranks(curves, np.arange(LOW, HIGH, 1e-3))


def test_no_rank_changes_on_a_grid_of_step_1e_4():
    logits, labels = logits_and_labels(1, n=2000, k=10)
    curves = sweep_class_scores(logits, labels, 10, activation="sigmoid", low=LOW, high=HIGH)
    temperatures = np.arange(LOW, HIGH, 1e-4)
    boundaries = require_constant_ranks(curves, temperatures)
    # And each change that the grid sees has its boundary.
    changed = np.flatnonzero((np.diff(ranks(curves(temperatures)), axis=0) != 0).any(axis=1))
    held = np.searchsorted(boundaries, temperatures[changed + 1] * (1 + RESOLUTION)) - np.searchsorted(
        boundaries, temperatures[changed] / (1 + RESOLUTION)
    )
    assert len(changed) > 10
    assert (held >= 1).all()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(sorted(ACTIVATIONS)))
def test_no_rank_changes_for_adversarial_logits(seed, activation):
    logits, labels = adversarial_logits(seed, n=40, k=4)
    curves = sweep_class_scores(logits, labels, 4, activation=activation, low=LOW, high=HIGH)
    present = curves.n > 0
    require_constant_ranks(lambda t: curves(t)[:, present], np.geomspace(LOW, HIGH, 3000))
