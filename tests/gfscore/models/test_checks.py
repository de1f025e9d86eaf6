import numpy as np
import pytest

from gfscore.bounds.binomial import clopper_pearson
from gfscore.models.checks import CONFIDENCE, published_accuracy_verdict


def verdict(correct, samples, published, *, tolerance=0.005, subset=False):
    return published_accuracy_verdict(correct, samples, published=published, tolerance=tolerance, subset=subset)


def test_on_the_whole_test_set_the_tolerance_decides():
    assert verdict(9120, 10_000, 0.9165)[0]
    accepted, words = verdict(8500, 10_000, 0.91)
    assert not accepted
    assert words == "measured clean accuracy 85.00%, published 91.00% (tolerance 0.50 points)"


def test_on_a_subset_chance_is_allowed_for_and_stated():
    accepted, words = verdict(178, 200, 0.93, subset=True)
    assert accepted
    assert "on 200 samples (99.9% interval" in words
    assert not verdict(100, 200, 0.93, subset=True)[0]


def test_a_right_model_is_refused_on_a_subset_at_most_as_often_as_stated():
    rng = np.random.default_rng(0)
    draws = rng.binomial(200, 0.9, size=4000)
    refused = sum(not verdict(int(k), 200, 0.9, tolerance=0.0, subset=True)[0] for k in draws)
    assert refused <= 4000 * (1 - CONFIDENCE) + 3 * np.sqrt(4000 * (1 - CONFIDENCE))


@pytest.mark.parametrize(
    ("k", "n", "low", "high"), [(0, 10, 0, 0.3084971), (10, 10, 0.6915029, 1), (5, 10, 0.1870860, 0.8129140)]
)
def test_clopper_pearson_has_its_tabulated_values(k, n, low, high):
    assert clopper_pearson(k, n, alpha=0.05) == pytest.approx((low, high), abs=1e-6)
