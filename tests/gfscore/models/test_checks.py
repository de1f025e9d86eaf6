import numpy as np
import pytest

from gfscore.bounds.binomial import clopper_pearson
from gfscore.models.checks import CONFIDENCE, exchanged, guesses, published_accuracy_verdict


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


LABELS = np.repeat(np.arange(10), 100)
RNG = np.random.default_rng(0)
ACCURATE = np.where(RNG.random(1000) < 0.8, LABELS, RNG.integers(0, 10, 1000))


@pytest.mark.parametrize(
    ("predictions", "accuracy"),
    [
        (ACCURATE[RNG.permutation(1000)], "0.0880"),
        ((LABELS + 1) % 10, "0"),
        (np.zeros(1000, dtype=int), "0.100"),
    ],
    ids=["rows in another order", "never right", "always the same class"],
)
def test_a_model_that_is_no_better_than_guessing_is_told_of(predictions, accuracy):
    words = guesses(predictions, LABELS, 10)
    assert words.startswith(f"no better than guessing (clean accuracy {accuracy} of 10 classes; ")
    assert "largest one gives 0.100): are the rows in the order of the labels, and are these logits?" in words


def test_better_than_guessing_is_better_than_the_largest_class_by_a_binomial_test():
    assert guesses(ACCURATE, LABELS, 10) is None
    # 100 of 1,000 are expected; 116 or more come about with probability 0.0535, 117 with 0.0433.
    for right, guessed in ((116, True), (117, False)):
        predictions = np.where(np.arange(1000) < right, LABELS, (LABELS + 1) % 10)
        assert (guesses(predictions, LABELS, 10) is not None) == guessed
    # Right for every sample of a class that holds 90% of them, and for none of the others.
    unbalanced = (np.arange(100) >= 90).astype(int)
    assert "accuracy 0.900 of 2 classes; always naming the largest one gives 0.900" in guesses(
        np.zeros(100, dtype=int), unbalanced, 2
    )
    assert guesses(np.zeros(5, dtype=int), np.zeros(5, dtype=int), 10) is None


def test_two_classes_look_exchanged_when_most_of_each_go_to_the_other():
    names = [f"name {k}" for k in range(10)]
    swap = np.arange(10)
    swap[[3, 5]] = 5, 3
    words = exchanged(swap[ACCURATE], LABELS, names)
    assert words.startswith(
        "classes look exchanged (name 3 and name 5): are the columns in the order of the class names?"
    )
    assert exchanged(ACCURATE, LABELS, names) is None
    # Half is not most, one direction is no exchange, and a few samples say nothing.
    half = np.where(np.arange(1000) % 2 == 0, swap[LABELS], LABELS)
    assert exchanged(half, LABELS, names) is None
    assert exchanged(np.where(LABELS == 3, 5, LABELS), LABELS, names) is None
    assert exchanged(np.repeat(swap, 4), np.repeat(np.arange(10), 4), names) is None
    assert "name 0 and name 1; name 2 and name 3; name 4 and name 5; 2 more pairs)" in exchanged(
        LABELS ^ 1, LABELS, names
    )
