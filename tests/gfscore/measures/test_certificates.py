import numpy as np
import pytest
from scipy.stats import beta, binom, norm

from gfscore.measures import KINDS
from gfscore.measures.certified import Smoothing, provable_radius
from gfscore.measures.certified.radii import fewest_votes, largest_certificate, radii
from gfscore.statistics.proportions import (
    allowed_refutations,
    certified_accuracy,
    corrected_certified_accuracy,
)

SMOOTHING = {"sigma": 0.25, "selection_samples": 20, "estimation_samples": 1000, "alpha": 0.001}


def test_radii_by_hand():
    found = radii([0.0, 0.5, 0.500001, norm.cdf(1), norm.cdf(2)], sigma=0.25)
    np.testing.assert_allclose(found, [0, 0, 0.25 * norm.ppf(0.500001), 0.25, 0.5], rtol=1e-6)
    assert np.isinf(radii([1 - 1e-15, 1.0], sigma=1.0)).tolist() == [False, True]


def test_fewest_votes_are_the_first_that_prove_a_majority():
    votes = fewest_votes(1000, alpha=0.001)
    assert beta.ppf(0.001, votes, 1001 - votes) > 0.5 >= beta.ppf(0.001, votes - 1, 1002 - votes)
    # As a test of p = 1/2: the first count whose upper tail is below alpha.
    assert binom.sf(votes - 1, 1000, 0.5) < 0.001 <= binom.sf(votes - 2, 1000, 0.5)


def test_nine_draws_can_prove_nothing_at_a_thousandth():
    # The most that the settings allow, without a bound for each number of votes.
    assert fewest_votes(10_000_000, alpha=0.001) == 5_004_887
    assert fewest_votes(9, alpha=0.001) == 10
    assert fewest_votes(10, alpha=0.001) == 10
    assert not list(mistakes(estimation_samples=10))
    (mistake,) = mistakes(estimation_samples=9)
    assert "9 estimation_samples can prove nothing at alpha 0.001" in mistake.words
    (mistake,) = mistakes(batch_size=10, sandwich={"gradient_draws": 16})
    assert "gradient_draws must be at most batch_size (10)" in mistake.words


def mistakes(**smoothing):
    kind = KINDS["certified"]
    return kind.mistakes(kind.parse({"kind": "certified", "smoothing": SMOOTHING | smoothing}))


def test_largest_radius_is_reached_when_all_draws_agree():
    largest = provable_radius(Smoothing(**SMOOTHING))
    assert largest == pytest.approx(0.25 * norm.ppf(0.001 ** (1 / 1000)), rel=1e-8)
    reached = radii(beta.ppf(0.001, 1000, 1), sigma=0.25)
    assert reached <= largest
    assert reached == pytest.approx(largest, rel=1e-8)
    assert largest_certificate(Smoothing(**SMOOTHING)) == pytest.approx(reached, rel=1e-12)


VALUES = np.array([0.0, 0.1, 0.3, 0.5, 0.0, 0.2])
LABELS = np.array([0, 0, 0, 1, 1, 1])


def test_certified_accuracy_per_class():
    def at(radius):
        return certified_accuracy(VALUES, LABELS, 3, radius=radius).mean

    np.testing.assert_allclose(at(0.0), [2 / 3, 2 / 3, np.nan])
    np.testing.assert_allclose(at(0.1), [2 / 3, 2 / 3, np.nan])
    np.testing.assert_allclose(at(0.25), [1 / 3, 1 / 3, np.nan])
    np.testing.assert_allclose(at(0.6), [0, 0, np.nan])


def test_corrected_certified_accuracy_by_hand():
    low = corrected_certified_accuracy(np.array([80, 0, 0]), np.array([100, 10, 0]), alpha=0.01, confidence=0.95)
    np.testing.assert_allclose(low, [(beta.ppf(0.05, 80, 21) - 0.01) / 0.99, 0, 0], rtol=1e-9)


def test_corrected_certified_accuracy_holds_though_certificates_err():
    rng, runs, n, share, alpha = np.random.default_rng(0), 4000, 200, 0.6, 0.05
    certified = (rng.random((runs, n)) < share) | (rng.random((runs, n)) < alpha)
    low = corrected_certified_accuracy(certified.sum(1), n, alpha=alpha, confidence=0.95)
    # Three standard deviations of a share of 4,000.
    assert np.mean(low <= share) >= 0.95 - 0.0104
    uncorrected = corrected_certified_accuracy(certified.sum(1), n, alpha=0.0, confidence=0.95)
    assert np.mean(uncorrected <= share) < 0.9


def test_allowance_is_the_quantile_of_wrong_certificates():
    assert allowed_refutations(1000, alpha=0.001) == binom.ppf(0.999, 1000, 0.001) == 5
    assert allowed_refutations(0, alpha=0.001) == 0
