"""Proofs never contradict attacks on the provably trained networks of the test data, sample by sample."""

import re
from pathlib import Path

import numpy as np
import pytest

from helpers.real_bounds import EPS, LARGEST, RADII, SAMPLES, STEPS, bounds_table, compare_bounds
from studies.known_truth.page import bounds_of

pytestmark = pytest.mark.seconds(25)

PAGE = Path(__file__).parents[3] / "docs" / "known-truth.md"


@pytest.fixture(scope="module")
def found(real_data):
    return {bounds.network: bounds for bounds in compare_bounds(real_data)}


@pytest.mark.parametrize("network", SAMPLES)
def test_what_is_proven_no_attack_breaks(found, network):
    bounds = found[network]
    # Enough is proven, and enough broken, for the comparison to compare something.
    assert bounds.proven.sum() >= 3
    for name, broken in bounds.broken.items():
        assert not (bounds.proven & broken).any(), name
    assert (bounds.distance[bounds.proven] > EPS).all()


@pytest.mark.parametrize("network", SAMPLES)
def test_certified_accuracy_is_at_most_attacked_accuracy_and_that_at_most_clean(found, network):
    bounds = found[network]
    assert bounds.proven.sum() <= bounds.survived.sum() <= bounds.right.sum()


@pytest.mark.parametrize("network", RADII)
def test_no_example_lies_within_the_largest_radius_that_is_proven(found, network):
    bounds = found[network]
    searched = ~np.isnan(bounds.radius)
    radius, distance, proven = bounds.radius[searched], bounds.distance[searched], bounds.proven[searched]
    assert len(radius) == RADII[network]
    assert (radius < distance).all()
    # Enough is proven for the comparison to compare something, and it is what one proof at EPS says, too.
    assert (radius > 0.3 * distance).all()
    assert proven[radius >= EPS].all()
    assert (radius[proven] >= EPS - LARGEST / 2**STEPS).all()


def test_the_attacks_do_break_samples(found):
    assert sum((bounds.right & ~bounds.survived).sum() for bounds in found.values()) >= 2


def test_the_nearest_example_within_the_ball_is_one_that_attacks_in_the_ball_find(found):
    for bounds in found.values():
        near = bounds.right & (bounds.distance < 0.99 * EPS)
        assert not (near & bounds.survived).any()


def test_the_page_says_what_is_computed(found):
    """Word for word, and each count to one sample, since rounding differs between machines."""
    written = bounds_of(PAGE.read_text(encoding="utf-8"))
    computed = bounds_table(list(found.values())).strip()
    number = r"\d+(?:\.\d+)?"
    assert re.sub(number, "#", written) == re.sub(number, "#", computed)
    pairs = zip(re.findall(number, written), re.findall(number, computed), strict=True)
    assert all(float(theirs) == pytest.approx(float(ours), abs=1.01) for theirs, ours in pairs)
