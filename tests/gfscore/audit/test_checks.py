import numpy as np
import pytest

from gfscore.audit.checks import CONFIDENCE, exchanged, guesses, published_accuracy_verdict, repeated
from gfscore.statistics.proportions import clopper_pearson
from gfscore.statistics.tolerances import SIGNIFICANT


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
def test_a_model_that_may_be_guessing_is_told_of(predictions, accuracy):
    words = guesses(predictions, LABELS)
    assert words.startswith(
        f"may be guessing (clean accuracy {accuracy} on 1,000 samples; the same answers in a random"
    )
    assert words.endswith(
        "check that the rows are in the order of the labels, the columns in that of the class names, and that these are "
        "logits"
    )


def test_answers_that_go_with_the_labels_are_no_guesses_however_unequal_the_classes():
    assert guesses(ACCURATE, LABELS) is None
    # Two samples of one class among 40, and everything right: one of the 780 orders is as right.
    few = (np.arange(40) >= 38).astype(int)
    assert guesses(few, few) is None
    # Each class right 19 times in 20, one class 5% of all; to name the other one always is right as often.
    labels = (np.arange(400) >= 380).astype(int)
    predictions = np.where(np.arange(400) % 20 == 0, 1 - labels, labels)
    assert np.mean(predictions == labels) == np.mean(labels == 0)
    assert guesses(predictions, labels) is None
    assert (
        "accuracy 0.950 on 400 samples; the same answers in a random order are right as often with probability 1.00)"
        in (guesses(np.zeros(400, dtype=int), labels))
    )
    assert guesses(np.zeros(5, dtype=int), np.zeros(5, dtype=int)) is None


def test_of_very_few_samples_no_accuracy_rules_out_guessing():
    # 1 of 6, and 1 of 20, orders of two classes are as right.
    assert (
        "(clean accuracy 1.00 on 4 samples; the same answers in a random order are right as often with probability 0.167"
        in (guesses(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])))
    )
    assert guesses(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 1, 1, 1])) is None


@pytest.mark.parametrize(("n", "shares"), [(12, [0.5, 0.5]), (60, [0.9, 0.1]), (50, [0.4, 0.3, 0.2, 0.1])])
def test_a_guessing_model_is_taken_for_better_in_one_of_twenty_at_most(n, shares):
    trials, generator = 400, np.random.default_rng(1)
    drawn = generator.choice(len(shares), p=shares, size=(trials, 2, n))
    missed = sum(guesses(answers, labels) is None and len(set(labels)) > 1 for answers, labels in drawn)
    assert missed <= trials * SIGNIFICANT + 3 * np.sqrt(trials * SIGNIFICANT)


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
    assert "name 0 and name 1; name 2 and name 3; name 4 and name 5; 4 more classes)" in exchanged(
        LABELS ^ 1, LABELS, names
    )


def test_classes_look_exchanged_when_they_moved_round_a_circle():
    names = [f"name {k}" for k in range(10)]
    around = np.arange(10)
    around[[2, 4, 7]] = 4, 7, 2
    assert "exchanged (name 2, name 4 and name 7): are" in exchanged(around[ACCURATE], LABELS, names)
    assert "exchanged (name 0, name 1, name 2 and 7 more): are" in exchanged((ACCURATE + 1) % 10, LABELS, names)
    # A way that leads into a circle is none.
    around[0] = 2
    assert "exchanged (name 2, name 4 and name 7): are" in exchanged(around[ACCURATE], LABELS, names)


def test_rows_that_stand_twice_are_warned_of_and_chance_is_not():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(5000, 3)).astype(np.float32), rng.integers(0, 3, 5000)
    assert repeated(logits, labels) is None
    few = np.concatenate([logits, logits[:50]])
    assert repeated(few, np.concatenate([labels, labels[:50]])) is None
    many, twice = np.concatenate([logits, logits[:200]]), np.concatenate([labels, labels[:200]])
    assert repeated(many, twice).startswith("200 of 5,200 samples")
    # Of another class it is another sample.
    assert repeated(many, np.concatenate([labels, (labels[:200] + 1) % 3])) is None
