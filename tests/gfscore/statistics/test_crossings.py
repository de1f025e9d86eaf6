import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfscore import InputError
from gfscore.statistics.classes import TIE_TOLERANCE
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.margins import ACTIVATIONS
from gfscore.statistics.ranking import RESOLUTION, joined, rank_boundaries, ranks
from made import adversarial_logits, logits_and_labels

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
