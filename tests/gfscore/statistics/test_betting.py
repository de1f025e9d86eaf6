import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from gfscore.statistics.betting import HALVINGS, lower_bounds
from helpers import definitions

RESOLUTION = 2.0**-HALVINGS


def lower(*groups, alpha):
    return lower_bounds(np.concatenate(groups), np.array([len(group) for group in groups]), alpha=alpha)


@pytest.mark.parametrize("alpha", [0.05, 1e-5])
def test_agrees_with_the_plain_implementation_in_classes_of_every_size(alpha):
    rng = np.random.default_rng(0)
    groups = [rng.beta(0.4, 0.6, size) for size in (1, 2, 3, 100, 7, 64, 63, 65)]
    found = lower(*groups, alpha=alpha)
    for group, low in zip(groups, found, strict=True):
        # The plain one gives way to the mean of the values, which ClassBounds does here.
        assert min(low, group.mean()) == pytest.approx(definitions.betting_lower(list(group), alpha), abs=1e-9)


def test_hand_computed_bound_of_equal_values():
    # n values of 1 and the largest stake throughout: (1 + .75 (1 - m) / m)^n = 1 / alpha at the bound.
    n, alpha = 10, 1e-4
    expected = 0.75 / (alpha ** (-1 / n) - 1 + 0.75)
    assert lower(np.ones(n), alpha=alpha)[0] == pytest.approx(expected, abs=1e-9)


def test_zeros_refute_nothing_and_an_absent_class_gets_zero():
    assert lower(np.zeros(50), np.empty(0), np.ones(50), alpha=0.1)[:2].tolist() == [0, 0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(1e-6, 0.5))
def test_every_mean_below_the_bound_is_refuted_and_none_above(values, alpha):
    low = lower(np.array(values), alpha=alpha)[0]
    target = math.log(1 / alpha)
    if low > RESOLUTION:
        for share in (0.1, 0.5, 0.9, 1.0):
            assert definitions.wealth(values, share * low, target) >= target - 1e-9
    for share in (1e-6, 0.1, 0.5, 0.9):
        m = low + RESOLUTION + share * (1 - low)
        assert definitions.wealth(values, m, target) < target + 1e-9


@given(st.integers(0, 1000), st.floats(1e-6, 0.2))
def test_a_smaller_alpha_never_raises_the_bound_by_much_and_companions_change_nothing(seed, alpha):
    rng = np.random.default_rng(seed)
    own, other = rng.random(40), rng.random(55)
    assert lower(own, other, alpha=alpha)[0] == lower(own, alpha=alpha)[0]
    assert lower(other, own, alpha=alpha)[1] == lower(own, alpha=alpha)[0]


@pytest.mark.parametrize("name", ["skewed", "zero-inflated", "binary"])
def test_the_bound_holds_at_every_size_at_once_of_one_stream(name):
    """Bets made for 200 values, the bound read off after each: the largest of them covers with the same probability."""
    draw = {
        "skewed": (lambda rng: rng.beta(0.3, 3, 200), 0.3 / 3.3),
        "zero-inflated": (lambda rng: (rng.random(200) < 0.1) * rng.uniform(0.5, 1, 200), 0.075),
        "binary": (lambda rng: (rng.random(200) < 0.3) * 1.0, 0.3),
    }[name]
    rng, trials, alpha = np.random.default_rng(0), 400, 0.3
    groups = [draw[0](rng) for _ in range(trials)]
    missed = np.sum(lower(*groups, alpha=alpha) > draw[1])
    assert missed <= binom.ppf(0.999, trials, alpha)
    # The running bound is used up: a test at the end alone would miss less.
    assert missed > 0


def test_sorted_values_void_the_bound_and_a_random_order_restores_it():
    rng, trials, alpha = np.random.default_rng(0), 300, 0.1
    drawn = [rng.random(100) for _ in range(trials)]
    falling = lower(*[np.sort(values)[::-1] for values in drawn], alpha=alpha)
    shuffled = lower(*[rng.permutation(np.sort(values)) for values in drawn], alpha=alpha)
    assert np.mean(falling > 0.5) > 0.9
    assert np.sum(shuffled > 0.5) <= binom.ppf(0.999, trials, alpha)
