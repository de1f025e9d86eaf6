"""What is true of single metrics, beyond what holds for every one (test_contract)."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from gfscore import InputError
from gfscore.audit.metrics import METRICS
from gfscore.statistics.margins import SCALE
from helpers import definitions
from helpers.samples import metric

class_scores = arrays(np.float64, st.integers(2, 30), elements=st.floats(0, SCALE))


@given(class_scores)
def test_agrees_with_the_plain_implementation(values):
    assert metric("rdi", values) == definitions.rdi(values)
    assert metric("wcr", values) == min(values)
    assert metric("fp", values) == pytest.approx(definitions.fp(values, 0.5), abs=1e-14)
    assume(values.sum() > 1e-300)
    assert metric("nrgc", values) == pytest.approx(definitions.nrgc(values), abs=1e-14)


@given(class_scores, st.floats(0, 3))
def test_lemma_rdi_does_not_change_under_translation(values, shift):
    assert metric("rdi", values + shift) == pytest.approx(metric("rdi", values), abs=1e-14)
    assert metric("wcr", values + shift) == pytest.approx(metric("wcr", values) + shift, abs=1e-14)


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
def test_one_class_with_everything_is_the_upper_end(k):
    values = np.zeros(k)
    values[k // 2] = 0.8
    assert metric("nrgc", values) == pytest.approx((k - 1) / k, rel=1e-15)
    assert metric("gini_unbiased", values) == pytest.approx(1, rel=1e-15)


@pytest.mark.parametrize("k", [2, 3, 5, 7, 10, 49, 1000])
@pytest.mark.parametrize("name", ["rdi", "nrgc", "gini_unbiased", "rdi_over_mean"])
def test_no_rounding_makes_equal_classes_unequal(k, name):
    assert all(metric(name, np.full(k, value)) == 0 for value in (0.1, 1 / 3, 0.7, SCALE))


def test_all_zero_scores_have_no_gini():
    assert math.isnan(metric("nrgc", np.zeros(4)))
    assert math.isnan(metric("gini_unbiased", np.zeros(4)))
    assert math.isnan(metric("rdi_over_mean", np.zeros(4)))
    assert metric("ihdi", np.zeros(4)) == 0
    assert metric("rdi", np.zeros(4)) == 0


def test_the_gini_of_negative_values_is_refused():
    with pytest.raises(InputError, match=r"needs values >= 0, got -0\.1"):
        metric("nrgc", [-0.1, 0.5])


@pytest.mark.parametrize("name", ["nrgc", "gini_unbiased", "ihdi"])
def test_rounding_errors_below_zero_count_as_zero(name):
    assert metric(name, [-1e-17, 0.5]) == pytest.approx(metric(name, [0.0, 0.5]))


@pytest.mark.parametrize("name", METRICS)
def test_no_models_have_no_values(name):
    values = METRICS[name].compute_many(np.empty((0, 3)), counts=np.array([1, 2, 3]), lam=0.5)
    assert values.shape == (0,)


def test_rdi_follows_the_scale_of_the_score_and_nrgc_does_not():
    # H6: whether the stronger model is the less fair one depends on the metric.
    weak, strong = np.array([0.10, 0.20, 0.15]), np.array([0.60, 0.80, 0.70])
    assert metric("rdi", strong) > metric("rdi", weak)
    assert metric("nrgc", strong) < metric("nrgc", weak)
    assert metric("rdi_over_mean", strong) < metric("rdi_over_mean", weak)


def test_fp_may_be_negative_and_is_the_mean_at_lambda_zero():
    values = [0.0, 0.0, 0.0, 1.0]
    assert metric("fp", values) == -0.25
    assert metric("fp", values, lam=0) == 0.25


@pytest.mark.parametrize("lam", [-0.5, math.nan])
def test_a_negative_lambda_is_an_error(lam):
    with pytest.raises(InputError, match="lambda of FP must be at least 0"):
        metric("fp", [0.1, 0.5], lam=lam)
