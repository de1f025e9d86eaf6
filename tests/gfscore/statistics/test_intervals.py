import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from gfscore import InputError
from gfscore.statistics import SCALE
from gfscore.statistics.class_bounds import ClassBounds
from gfscore.statistics.classes import class_samples
from gfscore.statistics.intervals import (
    correct_for_label_errors,
    empirical_bernstein_half_width,
    hoeffding_half_width,
    least_mean,
    rdi_bound,
    samples_for_half_width,
)

UNIT = (0.0, 1.0)


# Known numbers


def test_equation_11_of_the_paper():
    assert hoeffding_half_width(1000, classes=10, alpha=0.05, width=SCALE) == pytest.approx(0.068598, abs=5e-7)
    assert hoeffding_half_width(50, classes=1000, alpha=0.05, width=SCALE) == pytest.approx(0.407985, abs=5e-7)
    assert hoeffding_half_width(1000, classes=10, alpha=0.05, width=SCALE) == pytest.approx(
        math.sqrt(math.pi * math.log(2 * 10 / 0.05) / (4 * 1000)), rel=1e-14
    )


def test_equation_12_is_twice_equation_11_at_the_smallest_class():
    # H9: the ImageNet bound is .816 and not "about 0.35".
    assert rdi_bound(50, classes=1000, alpha=0.05, width=SCALE) == pytest.approx(0.816, abs=5e-4)
    n = np.array([50, 400])
    widths = hoeffding_half_width(n, classes=1000, alpha=0.05, width=SCALE)
    assert rdi_bound(n.min(), classes=1000, alpha=0.05, width=SCALE) == pytest.approx(2 * widths.max())


def test_empirical_bernstein_widths():
    # .038 to .127 at n = 1000, K = 10, depending on the variance; above 1.1 at n = 50, K = 1000.
    def full(n, k, variance):
        return 2 * float(
            empirical_bernstein_half_width(np.array([n]), np.array([variance]), classes=k, alpha=0.05, width=1)[0]
        )

    assert full(1000, 10, 0.0) < 0.038
    assert full(1000, 10, 0.25) > 0.127
    assert full(50, 1000, 0.001) > 1.1
    assert full(1000, 10, 0.01) < 0.109 < full(1000, 10, 0.2)


def test_sample_size_planner():
    assert samples_for_half_width(0.05, classes=10, alpha=0.05, width=SCALE) == 1883


@given(st.floats(0.005, 2), st.integers(2, 1000), st.floats(0.001, 0.5), st.sampled_from([1.0, SCALE]))
def test_planned_samples_are_the_fewest_that_suffice(half_width, k, alpha, width):
    n = samples_for_half_width(half_width, classes=k, alpha=alpha, width=width)
    assert hoeffding_half_width(n, classes=k, alpha=alpha, width=width) <= half_width
    if n > 1:
        assert hoeffding_half_width(n - 1, classes=k, alpha=alpha, width=width) > half_width


@pytest.mark.parametrize("half_width", [0.0, -0.1])
def test_a_half_width_that_cannot_be_reached_is_an_error(half_width):
    with pytest.raises(InputError, match="half-width must be positive"):
        samples_for_half_width(half_width, classes=10, alpha=0.05, width=1)


@pytest.mark.parametrize("alpha", [-1, 0, 1, 2])
def test_a_half_width_needs_an_error_rate_between_0_and_1(alpha):
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1"):
        samples_for_half_width(0.05, classes=10, alpha=alpha, width=1)


# Exact half-widths at the edges


def test_no_sample_gives_an_infinite_half_width():
    assert hoeffding_half_width(0, classes=2, alpha=0.05, width=1) == math.inf
    half = empirical_bernstein_half_width(np.array([0, 1]), np.array([np.nan, np.nan]), classes=2, alpha=0.05, width=1)
    assert half.tolist() == [math.inf, math.inf]


# Label errors


def test_label_error_bounds_by_hand():
    # m in [.4, .6], eta = .2: lowest if wrong labels scored 1: (.4 - .2)/.8 = .25; highest if 0: .6/.8 = .75.
    low, high = correct_for_label_errors(np.array([0.4]), np.array([0.6]), 0.2, value_range=UNIT)
    assert low[0] == pytest.approx(0.25)
    assert high[0] == pytest.approx(0.75)


def test_without_label_errors_nothing_changes():
    low, high = np.array([0.1, 0.4]), np.array([0.2, 0.9])
    corrected = correct_for_label_errors(low, high, 0.0, value_range=(0, SCALE))
    np.testing.assert_array_equal(corrected, (low, high))


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.99), st.floats(0.0, 0.5))
def test_label_error_bounds_only_widen_and_stay_in_the_range(a, b, eta, more):
    low, high = np.array([min(a, b)]), np.array([max(a, b)])
    once = correct_for_label_errors(low, high, eta, value_range=UNIT)
    assert 0 <= once[0][0] <= low[0] + 1e-12
    assert high[0] - 1e-12 <= once[1][0] <= 1
    again = correct_for_label_errors(low, high, eta + more * (0.99 - eta), value_range=UNIT)
    assert again[0][0] <= once[0][0] + 1e-12
    assert again[1][0] >= once[1][0] - 1e-12


@pytest.mark.parametrize("eta", [-0.01, 1.0, 1.5, math.nan, [0.1, math.nan]])
def test_a_label_error_rate_outside_its_range_is_an_error(eta):
    with pytest.raises(InputError, match=r"label error rate must lie in \[0, 1\)"):
        correct_for_label_errors(np.array([0.4, 0.4]), np.array([0.6, 0.6]), eta, value_range=UNIT)


@pytest.mark.parametrize("wrong_score", [0.0, 0.3, SCALE])
@pytest.mark.parametrize("eta", [0.05, 0.3])
def test_label_error_bounds_cover_the_value_of_rightly_labelled_samples(wrong_score, eta):
    # A share eta of each class's samples carries a wrong label, whatever those samples score.
    rng = np.random.default_rng(0)
    classes, n, alpha, trials = 3, 500, 0.1, 150
    truth = np.array([0.2, 0.6, 1.0])
    missed_corrected = missed_raw = 0
    for _ in range(trials):
        values = np.minimum(rng.uniform(0, 2 * truth[:, None], size=(classes, n)), SCALE)
        exact = np.array([0.2, 0.6, SCALE - SCALE**2 / 4])  # E min(U(0, 2), B) = B - B^2 / 4
        wrong = rng.random((classes, n)) < eta
        values[wrong] = wrong_score
        found = class_samples(values.ravel(), np.repeat(np.arange(classes), n), classes, seed=0)
        low, high = ClassBounds(found, (0, SCALE), "empirical_bernstein").interval(alpha)
        missed_raw += not ((low <= exact) & (exact <= high)).all()
        low, high = correct_for_label_errors(low, high, eta, value_range=(0, SCALE))
        missed_corrected += not ((low <= exact) & (exact <= high)).all()
    assert missed_corrected <= binom.ppf(0.999, trials, alpha)
    if eta == 0.3 and wrong_score != 0.3:
        assert missed_raw > trials / 2


@given(st.integers(0, 10_000))
def test_the_least_mean_under_wrong_labels_is_that_of_a_linear_program(seed):
    """Unknown is what each class's right samples lack to 1: as labelled, all together lack at most 1 - low."""
    rng = np.random.default_rng(seed)
    n, rates, low = rng.integers(0, 50, 4) + np.array([1, 0, 0, 0]), rng.uniform(0, 0.6, 4), rng.random()
    weights = n / n.sum()
    worst = linprog(-weights, A_ub=(weights * (1 - rates))[None, :], b_ub=[1 - low], bounds=(0, 1))
    assert least_mean(low, rates, n=n) == pytest.approx(1 + worst.fun, abs=1e-8)


def test_the_least_mean_needs_rates_below_1():
    with pytest.raises(InputError, match="label error rate must lie in"):
        least_mean(0.5, np.array([0.1, 1.0]), n=np.array([5, 5]))


def test_the_least_mean_under_one_rate_of_wrong_labels_is_the_correction_of_a_class():
    for low in (0.0, 0.05, 0.7, 1.0):
        corrected, _ = correct_for_label_errors(low, 1.0, 0.1, value_range=(0.0, 1.0))
        assert least_mean(low, np.full(3, 0.1), n=np.array([5, 0, 90])) == pytest.approx(float(corrected))
