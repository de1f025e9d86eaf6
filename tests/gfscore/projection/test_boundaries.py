"""Boundaries along latent dimensions: the search, the scores, and a batch of images on a mapper."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gfscore.audit.projections.scores import ModelBoundaries
from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.projection.boundaries import measure_batch, resized, search_boundaries
from gfscore.projection.mappers.declared import Search
from gfscore.projection.scores import (
    coupling,
    coupling_entropy,
    deviation,
    effective_dimensions,
    is_constant,
    tolerance,
)
from gfscore.statistics.margins import predictions
from helpers.configurations import shipped_configuration

SEARCHES = {
    name: {key: entry["search"][key] for key in ("steps", "bisections")}
    for name, entry in shipped_configuration()["mappers"].items()
}


def searched(classify, codes, sigma=1.0, *, decode=lambda codes: codes, **how):
    """Boundaries under a classifier of the codes themselves."""
    return search_boundaries(decode, classify, codes, sigma, **{"steps": 10, "bisections": 12, "batch_size": 100} | how)


class LinearWorld:
    """Known factors: images are a linear map of the codes, a linear classifier of two classes sees one side of a plane.

    Along dimension d the prediction of code z changes at distance -(w A z + b) / (w A)_d exactly.
    """

    def __init__(self, *, dimensions=4, pixels=12, seed=0):
        rng = np.random.default_rng(seed)
        self.decoder = rng.normal(size=(dimensions, pixels))
        self.weights, self.bias = rng.normal(size=pixels), 0.3
        self.batches = []

    def decode(self, codes):
        self.batches.append(len(codes))
        return codes @ self.decoder

    def classify(self, images):
        return (images @ self.weights + self.bias > 0).astype(int)

    def distances(self, codes, sigma):
        slopes = self.decoder @ self.weights
        return -(codes @ slopes + self.bias)[:, None] / slopes / sigma

    def search(self, codes, sigma, **settings):
        how = {"steps": 20, "bisections": 10, "batch_size": 64} | settings
        return search_boundaries(self.decode, self.classify, codes, sigma, **how)


def made_codes(n=50, d=4, seed=1):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize("mapper", SEARCHES)
@pytest.mark.parametrize("seed", range(3))
def test_every_shipped_search_finds_boundaries_of_known_factors_to_a_thousandth_of_sigma(seed, mapper):
    world, codes, sigma = LinearWorld(seed=seed), made_codes(seed=seed), np.array([0.5, 1.0, 2.0, 4.0])
    found = world.search(codes, sigma, **SEARCHES[mapper])
    distance = world.distances(codes, sigma)
    up = np.where((distance > 0) & (distance <= 1), distance, 1.0)
    down = np.where((distance < 0) & (distance >= -1), -distance, 1.0)
    assert np.abs(found.up - up).max() < 1e-3
    assert np.abs(found.down - down).max() < 1e-3
    np.testing.assert_array_equal(found.up_censored, ~((distance > 0) & (distance <= 1)))
    np.testing.assert_array_equal(found.down_censored, ~((distance < 0) & (distance >= -1)))
    assert 0.2 < found.up_censored.mean() < 0.9


def test_thresholds_of_single_factors_are_found_and_other_factors_do_not_matter():
    def classify(images):
        # class 1 above .4 of the first factor, class 2 below -.7 of it; the second factor is not looked at
        return np.where(images[:, 0] > 0.4, 1, np.where(images[:, 0] < -0.7, 2, 0))

    codes = np.array([[0.0, 5.0], [0.3, -5.0], [-0.6, 0.0]])
    found = searched(classify, codes, steps=20)
    np.testing.assert_allclose(found.up[:, 0], [0.4, 0.1, 1.0], atol=1e-4)
    np.testing.assert_allclose(found.down[:, 0], [0.7, 1.0, 0.1], atol=1e-4)
    assert found.up_censored[:, 1].all() and found.down_censored[:, 1].all()
    np.testing.assert_array_equal(found.up[:, 1], 1)


def test_the_last_step_is_tried_and_is_no_censoring():
    found = searched(lambda images: (images[:, 0] >= 1.0).astype(int), np.zeros((1, 1)), steps=4, bisections=0)
    assert (found.up[0, 0], found.up_censored[0, 0], found.down_censored[0, 0]) == (1.0, False, True)


def test_the_first_of_several_changes_counts():
    # changes at .3, back at .6, changes again at .9
    def classify(images):
        return (((images[:, 0] > 0.3) & (images[:, 0] < 0.6)) | (images[:, 0] > 0.9)).astype(int)

    found = searched(classify, np.zeros((1, 1)), batch_size=1)
    assert found.up[0, 0] == pytest.approx(0.3, abs=1e-4)


def test_a_move_replaces_one_dimension_and_leaves_the_others():
    seen = []

    def decode(codes):
        seen.append(codes.copy())
        return codes

    codes, how = np.array([[7.0, 0.25, 9.0]]), {"steps": 2, "dimensions": [1], "decode": decode}
    found = searched(lambda images: np.zeros(len(images), dtype=int), codes, **how)
    codes = np.concatenate(seen)
    # the undisturbed code is the reference, and moves start from it
    np.testing.assert_allclose(codes[:, 1], [0.25, 0.75, 1.25, -0.25, -0.75])
    assert (codes[:, [0, 2]] == [7.0, 9.0]).all()
    assert found.up.shape == (1, 1) and found.up_censored.all() and found.down_censored.all()


class Attributes:
    """Samples without, with and of unknown value of an attribute: it starts at 0, 1 or halfway, its range is 0 to 1.

    The prediction changes where the attribute passes `threshold`.
    """

    codes = np.array([[0.0], [1.0], [0.5]])

    def __init__(self, threshold):
        self.threshold, self.seen = threshold, []

    def search(self, *, steps=10, bisections=0, limits=(0.0, 1.0)):
        def decode(codes):
            self.seen.extend(codes[:, 0])
            return codes

        how = {"steps": steps, "bisections": bisections, "batch_size": 1000, "limits": limits, "decode": decode}
        return searched(lambda images: (images[:, 0] > self.threshold).astype(int), self.codes, **how)


def test_an_attribute_is_moved_away_from_the_value_that_the_sample_has():
    world = Attributes(0.26)
    found = world.search()
    # 0 changes at .3, 1 at .2, which is .8 of its way down; halfway, at .25, which is half of its way down
    np.testing.assert_allclose(found.up[:, 0], [0.3, np.nan, 1.0])
    np.testing.assert_allclose(found.down[:, 0], [np.nan, 0.8, 0.5])
    np.testing.assert_array_equal(found.up_censored[:, 0], [False, False, True])
    np.testing.assert_array_equal(found.down_censored[:, 0], [False, False, False])
    np.testing.assert_allclose(tolerance(found.up, found.down)[:, 0], [0.3, 0.8, 0.75])
    np.testing.assert_allclose(deviation(found.up, found.down)[:, 0], [np.nan, np.nan, 0.25])
    assert min(world.seen) >= 0 and max(world.seen) <= 1


def test_sides_without_room_cost_no_image():
    world = Attributes(2.0)
    found = world.search(steps=10)
    # three references, ten moves of the first two, twenty of the one halfway
    assert found.evaluations == len(world.seen) == 3 + 10 + 10 + 20
    np.testing.assert_array_equal(found.up_censored[:, 0], [True, False, True])
    np.testing.assert_array_equal(found.down_censored[:, 0], [False, True, True])
    np.testing.assert_array_equal(tolerance(found.up, found.down)[:, 0], 1)


def test_tolerance_of_an_attribute_takes_every_value_and_no_column_is_censored_by_construction():
    # with moves to both sides of a range of one sigma, one half of all would be censored and no Tolerance be below .5
    found = Attributes(0.05).search(steps=20, bisections=6)
    assert tolerance(found.up, found.down)[0, 0] == pytest.approx(0.05, abs=1e-3)
    assert not (found.up_censored | found.down_censored)[:2].any()


def test_an_end_that_is_further_than_sigma_changes_nothing():
    codes, sigma = made_codes(n=10), np.ones(4)
    free, bounded = (LinearWorld().search(codes, sigma, limits=limits) for limits in (None, (-9.0, 9.0)))
    for name in ("up", "down", "up_censored", "down_censored"):
        np.testing.assert_allclose(getattr(bounded, name), getattr(free, name))


def test_a_sigma_of_each_sample_scales_its_own_moves():
    world, codes = LinearWorld(), made_codes(n=6)
    sigma = np.linspace(0.5, 3, 24).reshape(6, 4)
    found = world.search(codes, sigma)
    for row in range(6):
        alone = world.search(codes[[row]], sigma[row])
        np.testing.assert_array_equal(found.up[[row]], alone.up)
        np.testing.assert_array_equal(found.down[[row]], alone.down)


def test_results_do_not_depend_on_the_batch_size_and_batches_shrink():
    codes, sigma = made_codes(n=30), np.ones(4)
    small, large = LinearWorld(), LinearWorld()
    a, b = small.search(codes, sigma, batch_size=7), large.search(codes, sigma, batch_size=10_000)
    for name in ("reference", "up", "down", "up_censored", "down_censored"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert max(small.batches) == 7
    assert sum(small.batches) == a.evaluations < 30 * (1 + 2 * 4 * 30)


def test_a_batch_that_does_not_fit_into_memory_is_halved():
    world, codes = LinearWorld(), made_codes(n=5)
    expected = world.search(codes, np.ones(4), batch_size=4)

    def decode(batch):
        if len(batch) > 4:
            raise RuntimeError("not enough memory: you tried to allocate 1 byte")
        return world.decode(batch)

    found = search_boundaries(decode, world.classify, codes, np.ones(4), steps=20, bisections=10, batch_size=50)
    np.testing.assert_array_equal(found.up, expected.up)


def test_a_constant_classifier_tolerates_everything_and_is_told_apart():
    codes = made_codes(n=3)
    found = searched(lambda x: np.full(len(x), 2), codes, steps=5, bisections=2, batch_size=9)
    assert (tolerance(found.up, found.down) == 1).all() and (deviation(found.up, found.down) == 0).all()
    assert found.up_censored.all() and found.down_censored.all()
    assert is_constant(found.reference, found.up_censored & found.down_censored)
    assert not is_constant(np.array([2, 1]), [[True, True]])
    assert not is_constant(found.reference, [[True, False]])


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf])
def test_a_dimension_without_spread_is_refused(sigma):
    with pytest.raises(InputError, match="dimension 2 is not positive and finite"):
        LinearWorld().search(made_codes(), np.array([1.0, 1.0, sigma, 1.0]))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_deviation_is_at_most_one_minus_tolerance(moves):
    up, down = np.array(moves).T
    assert (deviation(up, down) <= 1 - tolerance(up, down) + 1e-12).all()
    assert (tolerance(up, down) >= 0).all() and (tolerance(up, down) <= 1).all()


def test_tolerance_and_deviation_by_hand():
    assert tolerance(0.25, 0.75) == 0.5
    assert deviation(0.25, 0.75) == 0.25
    assert deviation(1.0, 0.0) == 0.5
    # one side only: its own reach, and no second side to compare it with
    assert tolerance(np.nan, 0.3) == tolerance(0.3, np.nan) == 0.3
    assert np.isnan(deviation(np.nan, 0.3)) and np.isnan(deviation(0.3, np.nan))


def test_coupling_as_printed_is_zero_when_balanced_and_when_most_unbalanced():
    assert coupling([0.6, 0.6, 0.6]) == 0
    assert coupling([1.0, 0.0, 0.0]) == 0
    # P = (0, 1/2): 1/2 log 2
    assert coupling([0.8, 0.4]) == pytest.approx(0.5 * np.log(2))
    assert np.isnan(coupling([0.0, 0.0]))
    # no distribution: ten dimensions at P = 1/e reach 10 / e, beyond log 11
    assert coupling([1.0] + [1 - 1 / np.e] * 10) == pytest.approx(10 / np.e)


def test_entropy_and_effective_number_by_hand():
    assert coupling_entropy([0.5, 0.5, 0.5]) == pytest.approx(1)
    assert effective_dimensions([0.5, 0.5, 0.5]) == pytest.approx(3)
    assert coupling_entropy([1.0, 0.2, 1.0]) == 0
    assert effective_dimensions([1.0, 0.2, 1.0]) == pytest.approx(1)
    # w = (3/4, 1/4)
    entropy = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    assert coupling_entropy([0.4, 0.8]) == pytest.approx(entropy / np.log(2))
    assert effective_dimensions([0.4, 0.8]) == pytest.approx(np.exp(entropy))
    assert np.isnan(coupling_entropy([1.0, 1.0])) and np.isnan(effective_dimensions([1.0, 1.0]))
    assert np.isnan(coupling_entropy([0.3]))


SETTINGS = Search(steps=4, bisections=0, batch_size=100)


class PixelMapper:
    """Mapper whose codes are the conditions, each shown as one pixel."""

    names, sigma, limits, image_shape = ["a=yes", "b=yes"], np.ones(2), (0.0, 1.0), (1, 1, 2)

    def __init__(self):
        self.decoded = []

    def encode(self, images, conditions):
        """Codes are what the sample is said to have."""
        return conditions, np.ones_like(conditions)

    def decode(self, codes):
        """Images of 2 pixels."""
        self.decoded.append(codes.copy())
        return codes.reshape(-1, 1, 1, 2)


CONDITIONS = np.array([[0, 1], [1, 0], [1, 1], [0.5, 0]], dtype=np.float32)


def measured(logits, labels=(0, 1, 2, 0)):
    mapper = PixelMapper()
    images = CONDITIONS.reshape(-1, 1, 1, 2)
    columns = measure_batch(
        Classifier("", None, None, None, run=logits),
        images,
        np.array(labels),
        settings=SETTINGS,
        seeds=None,
        mapper=mapper,
        conditions=CONDITIONS,
    )
    return pd.DataFrame(columns | {"label": np.repeat(labels, 2)}), np.concatenate(mapper.decoded)


def test_attributes_stay_within_their_range_and_idle_sides_are_null():
    # class 1 where attribute a is more than half there
    frame, decoded = measured(lambda x: np.stack([np.full(len(x), 0.6), x[:, 0, 0, 0], np.full(len(x), -1)], axis=1))
    assert decoded.min() == 0 and decoded.max() == 1
    first = frame[frame["dimension"] == "a=yes"]
    np.testing.assert_array_equal(first["up"], [0.75, np.nan, np.nan, 0.25])
    np.testing.assert_array_equal(first["down"], [np.nan, 0.5, 0.5, 1.0])
    np.testing.assert_array_equal(first["value"], [0.75, 0.5, 0.5, 0.625])
    np.testing.assert_array_equal(first["censored"], [False, False, False, True])
    assert frame.loc[frame["dimension"] == "b=yes", "censored"].all()
    assert list(first["clean_prediction"]) == list(first["prediction"]) == [0, 1, 1, 0]


def test_images_are_resized_between_a_mapper_and_a_classifier_of_other_sizes():
    rng = np.random.default_rng(0)
    images = rng.random((3, 2, 8, 8), dtype=np.float32)
    assert resized(images, (8, 8)) is images
    # Antialiased: halving takes a mean over about two pixels to either side, so a flat image stays flat.
    small, flat = resized(images, (4, 4)), np.full((1, 1, 8, 8), 0.25, dtype=np.float32)
    assert small.shape == (3, 2, 4, 4) and small.std() < images.std() and 0 <= small.min() <= small.max() <= 1
    np.testing.assert_allclose(resized(resized(flat, (4, 4)), (8, 8)), flat, atol=1e-6)
    mapper, sides = PixelMapper(), []

    def logits(x):
        sides.append(x.shape[1:])
        return np.stack([np.full(len(x), 0.6), x[:, 0, 0, 0]], axis=1)

    large = np.repeat(np.repeat(CONDITIONS.reshape(-1, 1, 1, 2), 3, axis=2), 3, axis=3)
    how = {"settings": SETTINGS, "seeds": None, "mapper": mapper, "conditions": CONDITIONS}
    columns = measure_batch(Classifier("", None, None, None, run=logits), large, np.array([0, 1, 1, 0]), **how)
    assert set(sides) == {(1, 3, 6)} and list(columns["prediction"][::2]) == [0, 1, 1, 0]


@pytest.mark.parametrize("tied", [(0, 0, 0), (1, 1, 0)])
def test_a_classifier_that_ties_everywhere_is_constant_and_agrees_with_itself(tied):
    logits = np.array(tied, dtype=np.float32)
    # what counts against the label says another class for the samples of one class
    assert len(set(predictions(np.tile(logits, (4, 1)), np.array([0, 1, 2, 0])))) > 1
    frame, _ = measured(lambda x: np.tile(logits, (len(x), 1)))
    assert (frame["clean_prediction"] == 0).all() and (frame["prediction"] == 0).all()
    assert ModelBoundaries(frame, PixelMapper.names).constant
