from io import BytesIO

import numpy as np
import pytest
import torch
from PIL import Image

from gfscore.core.errors import InputError
from gfscore.images.corruptions import catalogue
from gfscore.images.corruptions.blur import glass_blur, smear, zoom
from gfscore.images.corruptions.catalogue import CORRUPTIONS, corrupt
from gfscore.images.corruptions.parameters import LENGTHS, PARAMETERS, parameters_of
from gfscore.images.corruptions.weather import plasma
from gfscore.measures import KINDS
from gfscore.measures.corruption import Corruption
from gfscore.networks.classifier import Classifier, from_network
from gfscore.statistics.draws import RowGenerators
from helpers.samples import seeds_of

measure_batch = KINDS["corruption"].load()

SEVERITIES = (1, 2, 3, 4, 5)


def scene(side=32, channels=3, n=3):
    """A striped blob on a ramp, in [0, .9]."""
    rows, columns = np.mgrid[:side, :side] / side
    blob = np.exp(-30 * ((rows - 0.4) ** 2 + (columns - 0.6) ** 2)) + 0.2 * np.sin(50 * columns)
    images = [np.clip(0.1 + 0.4 * rows + 0.5 * blob * (0.5 + 0.5 * i / n), 0, 0.9) for i in range(n)]
    return np.repeat(np.stack(images)[:, None], channels, axis=1).astype(np.float32)


def corrupted(images, name, severity, seed=0):
    return corrupt(images, name, severity, rng=RowGenerators(seeds_of(images, seed)))


@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize(("side", "channels"), [(8, 1), (32, 3), (33, 2), (224, 3)])
def test_every_corruption_of_every_size(name, side, channels):
    images = scene(side, channels, n=2)
    if (name, side) == ("defocus_blur", 8):
        with pytest.raises(InputError, match=r"changes nothing in images of 8 pixels .* leave it out"):
            corrupted(images, name, 5)
        return
    results = [corrupted(images, name, severity) for severity in (1, 5)]
    for result in results:
        assert result.dtype == np.float32
        assert result.shape == images.shape
        assert result.min() >= 0
        assert result.max() <= 1
        levels = result * 255
        assert np.abs(levels - np.rint(levels)).max() < 1e-3
        np.testing.assert_array_equal(result, corrupted(images, name, 1 if result is results[0] else 5))
    changes = [np.abs(result - images).mean() for result in results]
    # Blurs of 8 pixels may round to nothing at severity 1, none may at 5.
    assert changes[1] > 0.002
    assert changes[1] > changes[0] or name in {"elastic_transform", "snow"}


def test_other_seeds_give_other_draws_and_the_deterministic_ones_none():
    images = scene()
    fixed = {"defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"}
    for name in CORRUPTIONS:
        same = np.array_equal(corrupted(images, name, 3, seed=1), corrupted(images, name, 3, seed=2))
        assert same == (name in fixed), name


def test_the_published_parameters_hold_at_the_published_sizes():
    for name, sets in PARAMETERS.items():
        for severity in SEVERITIES:
            assert parameters_of(name, severity, 32) == sets["cifar"][severity - 1]
            assert parameters_of(name, severity, 224) == sets["imagenet"][severity - 1]
    assert parameters_of("gaussian_noise", 5, 32) == 0.1
    assert parameters_of("jpeg_compression", 1, 224) == 25
    assert parameters_of("pixelate", 5, 224) == 0.25
    assert parameters_of("motion_blur", 3, 32) == (6, 2)


def test_other_sizes_scale_lengths_only():
    assert parameters_of("motion_blur", 3, 64) == (12, 4)
    assert parameters_of("glass_blur", 5, 448) == (3, 8, 2)
    assert parameters_of("snow", 1, 16)[:4] == parameters_of("snow", 1, 32)[:4]
    assert set(PARAMETERS) == set(CORRUPTIONS)
    assert set(LENGTHS) < set(PARAMETERS)


def test_unknown_corruptions_and_severities_are_refused():
    with pytest.raises(InputError, match="'rain' is unknown"):
        parameters_of("rain", 1, 32)
    for severity in (0, 6):
        with pytest.raises(InputError, match=f"severity {severity} of snow is unknown"):
            parameters_of("snow", severity, 32)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_noise_has_the_published_strength(severity):
    grey = np.full((20, 3, 32, 32), 0.5, dtype=np.float32)
    gaussian = corrupted(grey, "gaussian_noise", severity)
    assert gaussian.std() == pytest.approx(PARAMETERS["gaussian_noise"]["cifar"][severity - 1], rel=0.02)
    shot = corrupted(grey, "shot_noise", severity)
    assert shot.std() == pytest.approx(np.sqrt(0.5 / PARAMETERS["shot_noise"]["cifar"][severity - 1]), rel=0.02)
    impulse = corrupted(grey, "impulse_noise", severity)
    share = PARAMETERS["impulse_noise"]["cifar"][severity - 1]
    assert np.mean((impulse == 0) | (impulse == 1)) == pytest.approx(share, rel=0.1)
    assert np.mean(impulse == 1) == pytest.approx(share / 2, rel=0.15)


def test_blurs_keep_the_mean_and_lower_the_contrast():
    rng = np.random.default_rng(0)
    images = rng.random((4, 1, 32, 32)).astype(np.float32)
    for name in ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"):
        result = corrupted(images, name, 5)
        assert result.mean() == pytest.approx(images.mean(), abs=0.03), name
        assert result.std() < 0.8 * images.std(), name


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_the_same_however_many_images_are_corrupted_together(name, monkeypatch):
    images = scene(n=7)
    whole = corrupted(images, name, 4)
    for size in (1, 3 * images[0].size):
        monkeypatch.setattr(catalogue, "VALUES_AT_ONCE", size)
        np.testing.assert_array_equal(corrupted(images, name, 4), whole)


@pytest.mark.parametrize("delta", [1, 2, 4])
def test_glass_is_the_published_walk_from_pixel_to_pixel(delta):
    images = np.random.default_rng(0).random((3, 2, 21, 18)).astype(np.float32)
    expected = images.astype(np.float64)
    for image, rng in zip(expected, RowGenerators(seeds_of(images)), strict=True):
        for _ in range(2):
            drawn = rng.integers(-delta, delta, (20 - 2 * delta + 1, 17 - 2 * delta + 1, 2))
            for row in range(21 - delta, delta, -1):
                for column in range(18 - delta, delta, -1):
                    down, right = drawn[21 - delta - row, 18 - delta - column]
                    image[:, row, column] = image[:, row + down, column + right]
    # A blur so narrow that it is none
    result = glass_blur(images.astype(np.float64), (0.01, delta, 2), RowGenerators(seeds_of(images)))
    np.testing.assert_array_equal(result, expected)
    assert not np.array_equal(result, images)


def test_every_image_smears_along_its_own_angle():
    images = np.random.default_rng(0).random((3, 2, 12, 9))
    angles = np.array([0.3, -0.7, 1.9])
    weights = np.exp(-0.5 * (np.arange(9) / 3) ** 2)
    expected = np.zeros_like(images)
    rows, columns = np.mgrid[:12, :9]
    for of_image, (image, angle) in enumerate(zip(images, angles, strict=True)):
        for distance, weight in enumerate(weights / weights.sum()):
            down, right = np.rint(distance * np.sin(angle)), np.rint(distance * np.cos(angle))
            near = np.clip(rows + down, 0, 11).astype(int), np.clip(columns + right, 0, 8).astype(int)
            expected[of_image] += weight * image[:, *near]
    np.testing.assert_array_equal(smear(images, 4, 3, angles), expected)


@pytest.mark.parametrize("side", [20, 160])
def test_zoom_lies_between_two_neighbours(side):
    images = np.random.default_rng(0).random((1, 2, side, side + 3))
    for factor in (1, 1.07, 3):
        expected = images
        for axis in (2, 3):
            places = (images.shape[axis] - 1) / 2 * (1 - 1 / factor) + np.arange(images.shape[axis]) / factor
            low = np.minimum(np.floor(places).astype(int), images.shape[axis] - 2)
            share = np.expand_dims(places - low, tuple(range(1, 4 - axis)))
            below, above = (np.take(expected, low + step, axis) for step in (0, 1))
            expected = (1 - share) * below + share * above
        np.testing.assert_allclose(zoom(images, factor), expected, atol=1e-12)


def test_contrast_brightness_and_fog_by_hand():
    images = np.zeros((1, 3, 32, 32), dtype=np.float32)
    images[0, 0], images[0, 1, :16] = 0.6, 0.3
    half = corrupted(images, "contrast", 2)
    assert half[0, 1, 0, 0] == pytest.approx(0.15 + 0.5 * 0.15, abs=0.003)
    bright = corrupted(images, "brightness", 5)
    # Hue and saturation stay: (.6, .3, 0) at value .9
    assert bright[0, :, 0, 0] == pytest.approx([0.9, 0.45, 0], abs=0.003)
    assert corrupted(np.zeros_like(images), "brightness", 5)[0, :, 0, 0] == pytest.approx([0.3] * 3, abs=0.003)
    foggy = corrupted(images, "fog", 5)
    assert foggy.max() <= 0.6 + 0.003, "the brightest value stays the brightest"


def test_jpeg_is_the_library_s_own():
    images = scene(n=1)
    file = BytesIO()
    Image.fromarray(np.rint(255 * images[0].transpose(1, 2, 0)).astype(np.uint8)).save(file, "JPEG", quality=80)
    expected = np.asarray(Image.open(file)).transpose(2, 0, 1)
    assert np.rint(255 * corrupted(images, "jpeg_compression", 1)[0]).astype(int).tolist() == expected.tolist()


def test_pixelate_keeps_a_share_of_the_pixels():
    result = corrupted(np.random.default_rng(0).random((1, 1, 32, 32)).astype(np.float32), "pixelate", 5)
    # 20 of 32 rows and columns are left
    assert len(np.unique(np.round(result[0, 0], 3), axis=0)) <= 32
    blocks = corrupted(scene(224, 1, n=1), "pixelate", 5)
    assert np.array_equal(blocks[0, 0, ::4], blocks[0, 0, 1::4])


def test_elastic_without_strength_moves_nothing_inside_a_shear():
    images = scene(n=1)
    result = corrupted(images, "elastic_transform", 1)
    assert np.abs(result - images).mean() < 0.05
    assert not np.array_equal(result, images)


def test_plasma_fills_its_range_and_is_smoother_for_a_larger_decay():
    rough, smooth = (plasma(6, 64, decay=d, rng=np.random.default_rng(0)) for d in (1.2, 3))
    for heights in (rough, smooth):
        assert heights.shape == (6, 64, 64)
        assert heights.min(axis=(1, 2)) == pytest.approx(np.zeros(6))
        assert heights.max(axis=(1, 2)) == pytest.approx(np.ones(6))
    assert np.abs(np.diff(rough)).mean() > 4 * np.abs(np.diff(smooth)).mean()


def test_one_row_per_corruption_severity_and_sample():
    def brightness_as_class(images):
        mean = images.mean(axis=(1, 2, 3))
        return np.stack([0.5 - mean, mean - 0.5], axis=1).astype(np.float32)

    classifier = Classifier("mean", (1, 32, 32), 2, None, run=brightness_as_class)
    images = np.stack([np.full((1, 32, 32), value, dtype=np.float32) for value in (0.3, 0.47, 0.8)])
    labels = np.array([0, 0, 1])
    settings = Corruption(corruptions=["brightness", "contrast"], severities=[1, 5])
    columns = measure_batch(classifier, images, labels, settings=settings, seeds=seeds_of(images))
    assert columns["row"].tolist() == [0, 1, 2] * 4
    assert columns["corruption"].tolist() == ["brightness"] * 6 + ["contrast"] * 6
    assert columns["severity"].tolist() == ([1] * 3 + [5] * 3) * 2
    # .3 of brightness turns both dark images into the bright class; contrast keeps the mean.
    assert columns["value"].tolist() == [1, 0, 1, 0, 0, 1] + [1, 1, 1] * 2
    alone = measure_batch(
        classifier,
        images,
        labels,
        settings=Corruption(corruptions=["contrast"], severities=[5]),
        seeds=seeds_of(images),
    )
    assert alone["prediction"].tolist() == columns["prediction"][-3:].tolist()


def test_details_of_plasma_shrink_as_in_the_published_code():
    """Its noise is a number times a draw from a range, and both fall by the decay at every level."""

    def published(side, decay, rng):
        heights, step, wibble = np.zeros((side, side)), side, 100.0

        def around(total):
            return total / 4 + wibble * rng.uniform(-wibble, wibble, total.shape)

        while step >= 2:
            half = step // 2
            corners = heights[::step, ::step]
            total = corners + np.roll(corners, -1, axis=0)
            heights[half::step, half::step] = around(total + np.roll(total, -1, axis=1))
            middles = heights[half::step, half::step]
            beside, above = middles + np.roll(middles, 1, axis=0), middles + np.roll(middles, 1, axis=1)
            heights[::step, half::step] = around(beside + corners + np.roll(corners, -1, axis=1))
            heights[half::step, ::step] = around(above + corners + np.roll(corners, -1, axis=0))
            step, wibble = half, wibble / decay
        heights -= heights.min()
        return heights / heights.max()

    rng = np.random.default_rng(0)
    for decay in (1.75, 3):
        ours = plasma(60, 32, decay=decay, rng=rng)
        theirs = np.stack([published(32, decay, rng) for _ in range(60)])
        for step in (1, 2, 4, 8):
            means = [np.abs(heights[:, step:] - heights[:, :-step]).mean() for heights in (ours, theirs)]
            assert means[0] == pytest.approx(means[1], rel=0.1), (decay, step)


def test_logits_that_are_no_numbers_are_refused():
    """A photograph of little contrast has none left after a corruption, by which the network divides."""

    class Standardised(torch.nn.Module):
        def forward(self, x):
            x = x.flatten(1)
            return ((x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True))[:, :3]

    images = (0.5 + 0.02 * np.random.default_rng(0).random((20, 1, 8, 8))).astype(np.float32)
    classifier = from_network(Standardised())
    settings = Corruption(corruptions=["contrast"], severities=[5])
    labels = classifier.logits(images).argmax(1)
    with pytest.raises(InputError, match="NaN"):
        measure_batch(classifier, images, labels, settings=settings, seeds=seeds_of(images))
