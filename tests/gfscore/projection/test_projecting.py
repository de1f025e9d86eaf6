"""Boundaries of a batch of images on a mapper: what stands in the samples table."""

import numpy as np
import pandas as pd
import pytest

from gfscore.audit.projections.rows import Projected
from gfscore.networks.classifier import Classifier
from gfscore.projection.boundaries import measure_batch, resized
from gfscore.projection.mappers.declared import Search
from gfscore.statistics.margins import predictions

SETTINGS = Search(steps=4, bisections=0, batch_size=100)


class Attributes:
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
    mapper = Attributes()
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
    mapper, sides = Attributes(), []

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
    assert Projected(frame, Attributes.names).constant
