"""Temperature scaling: log-loss, its minimum, and calibration errors of classes."""

import math

import numpy as np
import pytest

from gfscore import InputError
from gfscore.audit.calibration import likelihood
from gfscore.audit.calibration.likelihood import class_calibration_error, likelihood_temperature, log_loss
from helpers import definitions
from helpers.processes import most_memory
from helpers.samples import logits_and_labels


def test_log_loss_agrees_with_the_plain_implementation():
    logits, labels = logits_and_labels(0)
    for temperature in (0.3, 1.0, 5.0):
        expected = definitions.log_loss(logits, labels, temperature)
        assert log_loss(logits, labels, temperature) == pytest.approx(expected, rel=1e-12)


def test_log_loss_of_huge_logits_is_finite():
    logits = np.array([[1e30, -1e30], [1e30, -1e30]], dtype=np.float32)
    assert log_loss(logits, np.array([0, 0]), 0.01) == 0
    assert log_loss(logits, np.array([0, 1]), 1.0) == pytest.approx(1e30)


def log_loss_at_once(logits, labels, temperature):
    scaled = logits.astype(np.float64) / temperature
    shifted = scaled - scaled.max(axis=1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]))


@pytest.mark.parametrize("k", [5, 130])
def test_log_loss_in_blocks_is_that_of_all_logits_at_once(k, monkeypatch):
    logits, labels = logits_and_labels(7, n=400, k=k)
    logits, labels = logits.astype(np.float32), labels.astype(np.int32)
    expected = log_loss_at_once(logits, labels, 0.7)
    for rows in (1, 3, 64, 400):
        monkeypatch.setattr(likelihood, "BLOCK_ELEMENTS", rows * k)
        assert log_loss(logits, labels, 0.7) == expected


def test_log_loss_and_calibration_error_copy_no_more_than_a_block_of_the_logits():
    logits, labels = np.zeros((40_000, 64), np.float32), np.zeros(40_000, np.int32)
    with most_memory() as most:
        log_loss(logits, labels, 0.7)
        class_calibration_error(logits, labels, temperature=0.7)
    # One copy in float64 is 20 MB.
    assert most[0] < 8e6


def sampled_from_softmax(seed, *, n=4000, k=5):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    gumbel = -np.log(-np.log(rng.random((n, k))))
    return logits, (logits + gumbel).argmax(axis=1)


@pytest.mark.parametrize("factor", [0.3, 2.5, 7.0])
def test_likelihood_temperature_scales_with_the_logits(factor):
    logits, labels = sampled_from_softmax(1)
    once = likelihood_temperature(logits, labels, low=0.01, high=20)
    scaled = likelihood_temperature(factor * logits, labels, low=0.01, high=20)
    assert scaled == pytest.approx(factor * once, rel=1e-4)


def test_likelihood_temperature_is_the_minimum_of_the_log_loss():
    logits, labels = logits_and_labels(2)
    found = likelihood_temperature(logits, labels, low=0.01, high=10)
    least = log_loss(logits, labels, found)
    assert all(log_loss(logits, labels, t) >= least for t in np.geomspace(0.01, 10, 400))


@pytest.mark.parametrize(("right", "bound"), [(True, 0.05), (False, 8.0)])
def test_likelihood_temperature_without_a_minimum_inside_goes_to_the_bound(right, bound):
    logits, labels = logits_and_labels(3)
    labels = logits.argmax(axis=1) if right else logits.argmin(axis=1)
    assert likelihood_temperature(logits, labels, low=0.05, high=8.0) == bound


@pytest.mark.parametrize("lead", [5, 20, 100, 1e4])
def test_likelihood_temperature_of_confident_right_logits_is_the_lower_bound(lead):
    # Their log-loss rounds to 0 at temperatures far above the bound.
    logits, _ = logits_and_labels(3)
    labels = logits.argmax(axis=1)
    logits[np.arange(len(labels)), labels] += lead
    assert likelihood_temperature(logits, labels, low=0.01, high=10) == 0.01


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_log_loss_and_calibration_error_refuse_a_temperature_that_is_not_positive(temperature):
    with pytest.raises(InputError, match="temperature must be a positive number"):
        log_loss(np.eye(2), np.arange(2), temperature)
    with pytest.raises(InputError, match="temperature must be a positive number"):
        class_calibration_error(np.eye(2), np.arange(2), temperature=temperature)


# Calibration error per class


def test_class_calibration_error_by_hand():
    # Class 0 is given .9, .9, .6, .6, and its share is 1/2 in the first bin, 1 in the second:
    # |.9 - .5| / 2 + |.6 - 1| / 2 = .4. Class 1 mirrors it.
    probability = np.array([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4], [0.6, 0.4]])
    error = class_calibration_error(np.log(probability), np.array([0, 1, 0, 0]), temperature=1.0, bins=10)
    np.testing.assert_allclose(error, [0.4, 0.4])


@pytest.mark.parametrize("temperature", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("bins", [1, 7, 15])
def test_class_calibration_error_agrees_with_the_plain_implementation(temperature, bins):
    logits, labels = logits_and_labels(4)
    got = class_calibration_error(logits, labels, temperature=temperature, bins=bins)
    expected = [definitions.class_calibration_error(logits, labels, k, temperature, bins) for k in range(5)]
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_class_calibration_error_in_blocks_is_that_of_all_logits_at_once(monkeypatch):
    logits, labels = logits_and_labels(4)
    expected = class_calibration_error(logits, labels, temperature=2.0)
    for rows in (1, 7):
        monkeypatch.setattr(likelihood, "BLOCK_ELEMENTS", rows * 5)
        np.testing.assert_allclose(class_calibration_error(logits, labels, temperature=2.0), expected, rtol=1e-12)


def test_class_calibration_error_is_smallest_at_the_true_temperature():
    logits, labels = sampled_from_softmax(5)
    errors = {t: class_calibration_error(3 * logits, labels, temperature=t).mean() for t in (1.0, 3.0, 9.0)}
    assert errors[3.0] < 0.5 * min(errors[1.0], errors[9.0])
    assert errors[3.0] < 0.02


def test_class_calibration_error_of_a_class_without_samples_is_missing():
    logits, _ = logits_and_labels(6)
    error = class_calibration_error(logits, np.zeros(len(logits), int), temperature=1.0)
    assert not np.isnan(error[0])
    assert np.isnan(error[1:]).all()
