"""Logits at the ends of what numbers can be, through scores, temperatures, classes, intervals and disparity."""

import math

import ml_dtypes
import numpy as np
import pytest

from faults.extremes import EXTREME, LABELS, PLAIN, K
from gfscore import audit_logits
from gfscore.core.errors import InputError
from gfscore.statistics import SCALE
from gfscore.statistics.curves import sweep_class_scores
from gfscore.statistics.logits import require_logits
from gfscore.statistics.margins import ACTIVATIONS, predictions, scores

ACTIVATION = pytest.mark.parametrize("activation", ACTIVATIONS)
ROUNDED = 1 + 1e-12
"""The mean of equal numbers may be another one in the last digit."""


@ACTIVATION
@pytest.mark.parametrize("name", EXTREME)
def test_an_audit_of_extreme_logits_is_finite_and_in_range(name, activation):
    audit = audit_logits(EXTREME[name], LABELS, activation=activation, allow_probabilities=True)
    values = audit.classes[["value", "low", "high"]].to_numpy()
    assert np.isfinite(values).all()
    assert (values >= 0).all() and (values <= ROUNDED * SCALE).all()
    low, high = audit.classes["low"], audit.classes["high"]
    assert (low <= ROUNDED * audit.classes["value"]).all() and (audit.classes["value"] <= ROUNDED * high).all()
    metrics = audit.metrics.loc["model"]
    for statistic in ("value", "class_mean", "rdi", "wcr", "fp"):
        first, last = metrics[f"{statistic}_low"], metrics[f"{statistic}_high"]
        assert math.isfinite(first) and first <= ROUNDED * metrics[statistic], statistic
        assert metrics[statistic] <= ROUNDED * last, statistic
    # The Gini coefficient of classes that are all 0 is none.
    assert math.isfinite(metrics["nrgc"]) or not audit.classes["value"].any()


@ACTIVATION
@pytest.mark.parametrize("name", EXTREME)
@pytest.mark.parametrize("temperature", [1e-300, 0.01, 10.0, 1e300])
def test_scores_of_extreme_logits_stay_in_range_at_every_temperature(name, activation, temperature):
    logits, labels = require_logits(EXTREME[name], LABELS)
    found = scores(logits, labels, activation=activation, temperature=temperature)
    assert np.isfinite(found).all()
    assert (found >= 0).all() and (found <= SCALE).all()
    # A sample that is wrong, or undecided, has no margin.
    assert not found[predictions(logits, labels) != labels].any()


@ACTIVATION
@pytest.mark.parametrize("name", EXTREME)
def test_a_sweep_over_temperatures_settles_or_says_that_it_does_not(name, activation):
    logits, labels = require_logits(EXTREME[name], LABELS)
    try:
        curves = sweep_class_scores(logits, labels, K, activation=activation, low=0.01, high=10.0)
    except InputError as error:
        assert "narrow the range" in str(error)
        return
    found = curves(np.geomspace(0.01, 10, 50))
    assert np.isfinite(found).all()
    assert (found >= 0).all() and (found <= SCALE * (1 + 1e-6)).all()


def test_constant_logits_are_wrong_in_every_class_and_equal():
    metrics = audit_logits(EXTREME["constant"], LABELS).metrics.loc["model"]
    assert metrics["value"] == metrics["rdi"] == metrics["wcr"] == metrics["accuracy"] == 0
    assert metrics["wcr_tied"] == [str(k) for k in range(K)]


def test_a_factor_of_1e30_is_a_temperature_of_1e_minus_30():
    np.testing.assert_allclose(
        scores(1e30 * PLAIN, LABELS, activation="softmax"),
        scores(PLAIN, LABELS, activation="softmax", temperature=1e-30),
        rtol=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_is_scored_as_the_numbers_that_it_stores(dtype):
    stored = PLAIN.astype(dtype)
    wide = audit_logits(stored.astype(np.float64), LABELS)
    # Order of the samples for betting aside, nothing may depend on the type.
    assert audit_logits(stored, LABELS).classes.equals(wide.classes)


@ACTIVATION
def test_one_sample_per_class_gives_intervals_that_cover_nearly_everything(activation):
    audit = audit_logits(PLAIN[:K], LABELS[:K], activation=activation)
    widths = (audit.classes["high"] - audit.classes["low"]).to_numpy()
    assert np.isfinite(widths).all()
    assert (widths > 0.4 * SCALE).all()
    assert audit.metrics.loc["model", "rdi_low"] == 0


def test_ten_thousand_classes_with_one_sample_each():
    k = 10_000
    logits = np.random.default_rng(1).normal(size=(k, k)).astype(np.float32)
    labels = np.random.default_rng(2).permutation(k)
    logits[np.arange(k), labels] += 8
    audit = audit_logits(logits, labels)
    assert len(audit.classes) == k
    assert np.isfinite(audit.classes[["value", "low", "high"]].to_numpy()).all()
    values = audit.classes["value"].to_numpy()
    metrics = audit.metrics.loc["model"]
    assert metrics["wcr"] == values.min()
    assert metrics["rdi"] == values.max() - values.min()
    ordered = np.sort(values)
    gini = 2 * np.sum(np.arange(1, k + 1) * ordered) / (k * ordered.sum()) - (k + 1) / k
    assert metrics["nrgc"] == pytest.approx(gini, rel=1e-9)
    assert metrics["accuracy"] == np.mean(logits.argmax(axis=1) == labels)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_none_among_half_a_million_is_named(value):
    logits = np.zeros((500, 1000), dtype=np.float32)
    logits[123, 456] = value
    with pytest.raises(InputError, match=r"row 123, class 456 is -?(nan|inf)"):
        audit_logits(logits, np.arange(500))
