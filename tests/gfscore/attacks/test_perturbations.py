from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from gfscore.attacks.perturbations import (
    Perturbation,
    gaussian,
    l2_ball,
    linf_ball,
    of_attack,
    of_sampler,
    one_corruption,
)
from gfscore.core.errors import InputError
from helpers.samples import draws_of

GREY = torch.full((4000, 1, 1, 3), 0.5)
LABELS = torch.zeros(4000, dtype=torch.int64)


def seeded(seed=0, samples=GREY):
    return draws_of(samples, seed)


def drawn(perturb, images=GREY):
    neighbours = perturb(images, LABELS[: len(images)], seeded(samples=images))
    return (neighbours - images).flatten(1).numpy().astype(np.float64)


def test_linf_ball_is_uniform_in_every_pixel():
    difference = drawn(linf_ball(eps=0.2, clip=False))
    assert np.abs(difference).max() <= 0.2 + 1e-6
    for pixel in difference.T:
        assert kstest(pixel, "uniform", args=(-0.2, 0.4)).pvalue > 1e-4


def test_pixels_drawn_together_are_independent():
    # The sum of two independent uniform numbers has a triangular distribution; of 12,000 only neighbours share a draw.
    values = drawn(linf_ball(eps=0.2, clip=False)).ravel()
    for first, second in ((values[0::2], values[1::2]), (values[0::4], values[2::4])):
        assert kstest(first + second, "triang", args=(0.5, -0.4, 0.8)).pvalue > 1e-4


def test_an_odd_number_of_pixels_is_drawn():
    difference = drawn(linf_ball(eps=0.2, clip=False), GREY[:1])
    assert difference.shape == (1, 3) and len(np.unique(difference)) == 3


def test_l2_ball_is_uniform_in_volume():
    radius = np.linalg.norm(drawn(l2_ball(eps=0.2, clip=False)), axis=1)
    assert radius.max() <= 0.2 + 1e-6
    # The volume within r of a ball in three dimensions grows with its cube.
    assert kstest((radius / 0.2) ** 3, "uniform").pvalue > 1e-4


def test_gaussian_noise_has_its_standard_deviation():
    assert kstest(drawn(gaussian(sigma=0.1, clip=False)).ravel(), "norm", args=(0, 0.1)).pvalue > 1e-4


@pytest.mark.parametrize("family", [partial(linf_ball, eps=0.9), partial(gaussian, sigma=0.9)])
def test_clipping_is_chosen_and_recorded(family):
    free, clipped = family(clip=False), family(clip=True)
    outside = free(GREY, LABELS, seeded())
    inside = clipped(GREY, LABELS, seeded())
    assert outside.min() < 0 and outside.max() > 1
    torch.testing.assert_close(inside, outside.clamp(0, 1))
    assert clipped.description.endswith("0.9, clipped to [0, 1]")
    assert free.description.endswith("0.9, not clipped")


def test_the_seed_decides():
    perturb = l2_ball(eps=0.1)
    first, second = (perturb(GREY, LABELS, seeded(seed)) for seed in (0, 1))
    torch.testing.assert_close(first, perturb(GREY, LABELS, seeded()))
    assert not torch.allclose(first, second)


def test_images_are_left_alone():
    before = GREY.clone()
    drawn(gaussian(sigma=0.3, clip=False))
    torch.testing.assert_close(GREY, before, rtol=0, atol=0)


def test_any_function_of_images_and_generator_is_a_perturbation():
    def darker(images, generator):
        return images - torch.rand(len(images), 1, 1, 1, generator=generator)

    perturb = of_sampler(darker, clip=True)
    assert perturb.description == "darker, clipped to [0, 1]"
    assert perturb(GREY, LABELS, seeded()).min() == 0


class Noise:
    """An attack object: draws from torch's global state."""

    def __call__(self, images, labels):
        return images + labels[:, None, None, None] + torch.randn_like(images)


def test_attack_objects_are_samplers():
    perturb = of_attack(Noise())
    labels = LABELS + 10
    torch.manual_seed(5)
    first = perturb(GREY, labels, seeded())
    untouched = torch.rand(1)
    torch.manual_seed(5)
    assert untouched == torch.rand(1)
    torch.testing.assert_close(first, perturb(GREY, labels, seeded()))
    assert not torch.allclose(first, perturb(GREY, labels, seeded(1)))
    assert (first - GREY).mean() == pytest.approx(10, abs=0.1)
    assert perturb.description == "Noise (an attack object)"


def test_corruptions_are_drawn_at_random():
    images = torch.rand(400, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    perturb = one_corruption(corruptions=["brightness", "gaussian_noise"], severities=[1, 5])
    first = perturb(images, LABELS[:400], seeded(samples=400))
    torch.testing.assert_close(first, perturb(images, LABELS[:400], seeded(samples=400)), rtol=0, atol=0)
    assert perturb.description == (
        "one at random of the corruptions brightness, gaussian_noise at severity 1, 5, clipped to [0, 1] and rounded to 256 levels"
    )
    # Brightness repeats itself, noise does not; each of the four is drawn about a hundred times, and a second draw
    # meets the same brightness once more in an eighth of the cases.
    again = perturb(images, LABELS[:400], seeded(7, 400))
    same = (first == again).flatten(1).all(1).float().mean()
    assert same == pytest.approx(1 / 8, abs=0.07)


@pytest.mark.parametrize(
    ("family", "settings", "words"),
    [
        (l2_ball, {"eps": 0}, "eps must be positive"),
        (gaussian, {"sigma": -1.0}, "sigma must be positive"),
        (one_corruption, {"corruptions": ["snow"], "severities": []}, "at least one corruption"),
    ],
)
def test_bad_settings_are_named(family, settings, words):
    with pytest.raises(InputError, match=words):
        family(**settings)


def test_a_neighbour_has_the_shape_of_its_image():
    shrinking = Perturbation(lambda images, labels, draws: images[:, :, :, :2], "shrinking")
    with pytest.raises(InputError, match="shrinking: gives images of shape"):
        shrinking(GREY, LABELS, seeded())


def test_corruptions_say_that_they_are_clipped_and_rounded():
    perturb = one_corruption(corruptions=["gaussian_noise"], severities=[5])
    assert perturb.description.endswith("at severity 5, clipped to [0, 1] and rounded to 256 levels")
    levels = 255 * perturb(GREY, LABELS, seeded())
    torch.testing.assert_close(levels, levels.round().clamp(0, 255))
