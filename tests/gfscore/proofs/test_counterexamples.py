"""Counterexamples: moved into their ball to the last bit, and stored without loss."""

import numpy as np
import pytest

from gfscore.core.errors import InputError
from gfscore.proofs.counterexamples import distance, from_bytes, moved_inside, to_bytes


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("eps", [2 / 255, 1e-7, 0.5, 0.1])
def test_points_are_moved_into_the_ball_by_less_than_float32_resolves(norm, eps):
    generator = np.random.default_rng(0)
    images = generator.random((50, 3, 5, 4), dtype=np.float32)
    images[:10] = np.round(images[:10] * 255) / np.float32(255)
    offsets = generator.choice([-1, 1], images.shape).astype(np.float32)
    if norm == "l2":
        offsets = generator.normal(size=images.shape).astype(np.float32)
        offsets /= np.linalg.norm(offsets.reshape(50, -1), axis=1).reshape(-1, 1, 1, 1)
    points = (images + np.float32(eps) * offsets).clip(0, 1)
    moved = moved_inside(points, images, norm, eps)
    assert moved.dtype == np.float32
    for point, image in zip(moved, images, strict=True):
        assert distance(point, image, norm) <= eps
    assert moved.min() >= 0 and moved.max() <= 1
    # In l2 by the rounding of 60 numbers.
    assert np.abs(moved - points).max() < (1.3e-7 if norm == "linf" else 5e-7)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_points_well_inside_stay_as_they_are(norm):
    generator = np.random.default_rng(1)
    images = generator.random((5, 1, 4, 4), dtype=np.float32)
    points = (images + 0.01 * generator.random(images.shape, dtype=np.float32)).clip(0, 1)
    np.testing.assert_array_equal(moved_inside(points, images, norm, 0.1), points)


def test_stored_points_are_read_back_bit_for_bit_and_damaged_ones_refused():
    point = np.random.default_rng(2).random((3, 6, 5), dtype=np.float32)
    content = to_bytes(point)
    np.testing.assert_array_equal(from_bytes(content, point.shape), point)
    assert to_bytes(point) == content
    for damaged in (content[:-5], b"", to_bytes(point[:2]), to_bytes(np.concatenate([point, point]))):
        with pytest.raises(InputError, match="counterexample"):
            from_bytes(damaged, point.shape)
