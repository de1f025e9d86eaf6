import math

import numpy as np
import pytest
from scipy.stats import binom

from gfscore import InputError
from gfscore.audit.metrics import AGAINST_CHANCE
from gfscore.audit.noise import between_class_sd, noise_floors
from gfscore.statistics import SCALE
from gfscore.statistics.classes import class_values
from helpers import definitions
from helpers.samples import metric


def noise_floor(values, labels, classes, **settings):
    (floor,) = noise_floors(np.asarray(values)[None], labels, classes, **settings)
    return floor


def draw_values(name, rng, size):
    if name == "uniform":
        return rng.random(size)
    if name == "zero-inflated":
        return (rng.random(size) < 0.2) * rng.random(size)
    return (rng.random(size) < 0.3) * 1.0  # binary: many exact ties between permutations


@pytest.mark.parametrize("name", ["uniform", "zero-inflated", "binary"])
@pytest.mark.parametrize("sizes", [(20, 20, 20, 20), (60, 10, 5, 2)])
def test_p_values_are_valid_when_the_classes_are_identical(name, sizes):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(4), sizes)
    trials, found = 500, {tested.name: [] for tested in AGAINST_CHANCE}
    for _ in range(trials):
        floor = noise_floor(draw_values(name, rng, len(labels)), labels, 4, permutations=39, rng=rng)
        for key, p in floor.p_value.items():
            found[key].append(p)
    for ps in found.values():
        for alpha in (0.05, 0.25, 0.5):
            assert np.sum(np.array(ps) <= alpha) <= binom.ppf(0.9995, trials, alpha)
        # Valid is not enough: a p-value that is always 1 would be valid too.
        if name == "uniform":
            assert np.mean(ps) == pytest.approx(0.5, abs=0.06)


def test_a_planted_difference_is_found():
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat(np.arange(4), 50))
    values = rng.random(200) * np.array([1.0, 1.0, 1.0, 0.4])[labels]
    floor = noise_floor(values, labels, 4, permutations=199, rng=rng)
    assert all(p == pytest.approx(1 / 200) for p in floor.p_value.values())
    observed = class_values(values, labels, 4).mean
    assert floor.permuted["rdi"] < 0.5 * metric("rdi", observed)
    assert floor.permuted["nrgc"] < 0.5 * metric("nrgc", observed)
    assert floor.permuted["wcr"] > metric("wcr", observed) + 0.1


def test_the_smallest_p_value_counts_the_observed_order():
    rng = np.random.default_rng(2)
    labels = np.repeat([0, 1], 30)
    floor = noise_floor(labels * 1.0, labels, 2, permutations=99, rng=rng)
    assert floor.p_value["rdi"] == pytest.approx(0.01)
    assert noise_floor(np.ones(60), labels, 2, permutations=99, rng=rng).p_value["rdi"] == 1


def test_identical_classes_look_unequal_when_they_are_many_and_small():
    # K = 1000, n = 50, mean .62: expected RDI .44, WCR .39. A symmetric U-shaped Beta(.35, .35) on
    # [0, B] has that mean and gives both numbers.
    rng = np.random.default_rng(3)
    classes, n = 1000, 50
    labels = rng.permutation(np.repeat(np.arange(classes), n))
    values = SCALE * rng.beta(0.35, 0.35, classes * n)
    floor = noise_floor(values, labels, classes, permutations=200, rng=rng)
    assert values.mean() == pytest.approx(0.62, abs=0.01)
    assert floor.permuted["rdi"] == pytest.approx(0.44, abs=0.02)
    assert floor.permuted["wcr"] == pytest.approx(0.39, abs=0.02)
    # The measured disparity is all noise, and the corrected spread says so.
    assert metric("rdi", class_values(values, labels, classes).mean) == pytest.approx(0.44, abs=0.05)
    assert floor.p_value["rdi"] > 0.05
    assert floor.between_class_sd < 0.02


def test_same_seed_same_floor():
    rng = np.random.default_rng(4)
    labels, values = rng.integers(0, 3, 60), rng.random(60)
    first, second = (noise_floor(values, labels, 3, permutations=19, rng=np.random.default_rng(7)) for _ in range(2))
    assert first == second
    assert first != noise_floor(values, labels, 3, permutations=19, rng=np.random.default_rng(8))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8])
def test_the_type_of_the_labels_does_not_matter(dtype):
    rng = np.random.default_rng(9)
    labels, values = rng.integers(0, 3, 60), rng.random(60)
    first, second = (
        noise_floor(values, of_type, 3, permutations=19, rng=np.random.default_rng(0))
        for of_type in (labels, labels.astype(dtype))
    )
    assert first == second


def test_shuffles_of_right_and_wrong_answers_by_hand():
    # Two of five samples are 1. Both are in the first class of two in 1 of 10 orders, one of each in 6, none in 3.
    labels, values = np.array([1, 0, 1, 0, 1]), np.array([0.0, 1, 0, 1, 0])
    shuffles = 4000
    floor = noise_floor(values, labels, 2, permutations=shuffles, rng=np.random.default_rng(0))
    # RDI: 1, |1/2 - 1/3| = 1/6, 2/3; WCR: 0, 1/3, 0. Five standard deviations of a share, and the observed order.
    assert floor.p_value["rdi"] == pytest.approx(0.1, abs=0.025)
    assert floor.p_value["wcr"] == pytest.approx(0.4, abs=0.04)
    assert floor.permuted["rdi"] == pytest.approx((1 + 6 / 6 + 3 * 2 / 3) / 10, abs=0.025)
    assert floor.permuted["wcr"] == pytest.approx(0.6 / 3, abs=0.015)


def test_rows_are_shuffled_alike_and_do_not_change_each_other():
    rng = np.random.default_rng(10)
    labels, values = rng.integers(0, 3, 90), rng.random((4, 90))
    together = noise_floors(values, labels, 3, permutations=99, rng=np.random.default_rng(0))
    alone = [noise_floor(row, labels, 3, permutations=99, rng=np.random.default_rng(0)) for row in values]
    assert [floor.p_value for floor in together] == [floor.p_value for floor in alone]
    for first, second in zip(together, alone, strict=True):
        assert list(first.permuted.values()) == pytest.approx(list(second.permuted.values()), rel=1e-12)


def test_all_zero_values_have_no_gini_and_no_p_value_of_one():
    floor = noise_floor(np.zeros(30), np.repeat([0, 1, 2], 10), 3, permutations=19, rng=np.random.default_rng(0))
    assert math.isnan(floor.p_value["nrgc"])
    assert math.isnan(floor.permuted["nrgc"])
    assert floor.p_value["rdi"] == 1
    assert floor.permuted["wcr"] == 0


@pytest.mark.parametrize("name", ["uniform", "binary"])
def test_classes_without_samples_are_left_out(name):
    rng = np.random.default_rng(6)
    labels, values = rng.integers(0, 3, 60), draw_values(name, rng, 60)
    without = noise_floor(values, labels, 3, permutations=19, rng=np.random.default_rng(0))
    with_empty = noise_floor(values, labels, 9, permutations=19, rng=np.random.default_rng(0))
    assert with_empty == without


def test_one_class_is_an_error():
    with pytest.raises(InputError, match="at least 2 classes with samples"):
        noise_floor(np.ones(5), np.zeros(5, int), 3, permutations=9, rng=np.random.default_rng(0))


def test_between_class_sd_recovers_a_planted_spread_from_unbalanced_classes():
    rng = np.random.default_rng(8)
    sizes = rng.integers(2, 60, 400)
    labels = np.repeat(np.arange(400), sizes)
    means = rng.normal(0.5, 0.1, 400)
    values = class_values(means[labels] + rng.normal(0, 0.3, len(labels)), labels, 400)
    assert between_class_sd(values) == pytest.approx(0.1, abs=0.015)


def test_between_class_sd_is_zero_when_the_noise_explains_everything():
    # Means .5 and .5, so the variance between is below its noise.
    values = class_values(np.array([0.0, 1.0, 0.1, 0.9]), np.array([0, 0, 1, 1]), 2)
    assert between_class_sd(values) == 0


def test_between_class_sd_by_hand():
    # Means .1, .5: s2 = .08. Variances .02, .02 over n = 2: noise .01. sqrt(.07).
    values = class_values(np.array([0.0, 0.2, 0.4, 0.6]), np.array([0, 0, 1, 1]), 2)
    assert definitions.class_variances([0.0, 0.2, 0.4, 0.6], [0, 0, 1, 1], 2) == pytest.approx([0.02, 0.02])
    assert between_class_sd(values) == pytest.approx(math.sqrt(0.07))


def test_between_class_sd_needs_two_classes_with_two_samples():
    values = class_values(np.array([0.0, 0.2, 0.4]), np.array([0, 0, 1]), 2)
    assert math.isnan(between_class_sd(values))


def test_rounding_of_large_values_parts_no_equal_shuffles():
    """Of the 20 ways to deal 6 values to 2 classes of 3, two have the RDI observed: no p-value is far below 0.1."""
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], 3)
    for _ in range(40):
        floor = noise_floor(1e6 * rng.random(6), labels, 2, permutations=1999, rng=rng)
        assert floor.p_value["rdi"] > 0.08
