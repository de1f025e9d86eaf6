import zipfile

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from gfscore.core.errors import InputError
from gfscore.images.array_files import write_samples
from gfscore.images.datasets import load_all, open_images
from gfscore.training.generators import (
    ClassMixtures,
    fit_mixtures,
    label_error_rates,
    log_densities,
    sample_images,
)

NAMES = [str(digit) for digit in range(10)]
FIT = {"dimensions": 32, "mixture_components": 2, "regularisation": 0.01, "seed": 1}


@pytest.fixture(scope="module")
def digits():
    return load_all(open_images({"source": "digits", "split": "train", "test_share": 0.5, "seed": 0}, classes=NAMES))


@pytest.fixture(scope="module")
def mixtures(digits):
    return fit_mixtures(*digits, classes=10, **FIT)


def on_a_line(*centres, sd=1.0):
    """One Gaussian per class on the first of four pixels."""
    k = len(centres)
    return ClassMixtures(
        mean=np.zeros(4),
        basis=np.eye(1, 4),
        weights=np.ones((k, 1)),
        centres=np.array(centres, dtype=float).reshape(k, 1, 1),
        factors=np.full((k, 1, 1, 1), sd),
        image_shape=(1, 2, 2),
    )


def real_images(*pixels):
    """Three real images per class, which differ in the first of four pixels as draws on a line do."""
    images = np.zeros((3 * len(pixels), 1, 2, 2), dtype=np.float32)
    images[:, 0, 0, 0] = np.repeat(pixels, 3)
    return images, np.repeat(np.arange(len(pixels)), 3)


def test_label_errors_of_two_gaussians_are_at_least_their_overlap():
    # Distance 2, sd 1: Bayes' rule cuts in the middle and errs with probability Phi(-1) = .1587 on either side.
    # The real images cut at .01, which is nearly the middle.
    found = label_error_rates(on_a_line(-1, 1), *real_images(0, 0.02), draws=40_000, seed=0)
    assert (found >= norm.cdf(-1)).all()
    np.testing.assert_allclose(found, norm.cdf(-1), atol=0.01)


def test_without_an_error_the_bound_is_that_of_zero_failures():
    # Rule of three for ten classes at joint confidence .95: 1 - (.05/10)^(1/n), here two classes.
    found = label_error_rates(on_a_line(-9, 9), *real_images(0, 1), draws=1000, seed=0)
    np.testing.assert_allclose(found, 1 - 0.025 ** (1 / 1000), rtol=1e-9)


def test_draws_that_look_like_real_images_of_another_class_count_as_errors():
    """The mixtures separate the classes perfectly, but their draws show the other class."""
    found = label_error_rates(on_a_line(-9, 9), *real_images(1, 0), draws=1000, seed=0)
    np.testing.assert_array_equal(found, 1)


def test_the_digit_generator_makes_few_label_errors_but_not_none(digits, mixtures):
    found = label_error_rates(mixtures, *digits, draws=2000, seed=0)
    assert (found > 0.001).all()
    assert (found < 0.05).all()


def test_log_densities_agree_with_scipy(mixtures):
    points = np.random.default_rng(0).normal(0, 0.5, (5, 32))
    found = log_densities(mixtures, points)
    for k in (0, 8):
        density = sum(
            weight * multivariate_normal(centre, factor @ factor.T).pdf(points)
            for weight, centre, factor in zip(
                mixtures.weights[k], mixtures.centres[k], mixtures.factors[k], strict=True
            )
        )
        np.testing.assert_allclose(found[:, k], np.log(density), rtol=1e-9)


def test_generated_classes_have_the_means_of_the_training_classes(digits, mixtures):
    images, labels = digits
    x, y = sample_images(mixtures, 2000, seed=3)
    for k in range(10):
        true, found = images[labels == k].mean(axis=0), x[y == k].mean(axis=0)
        # Clipping to [0, 1] and the dropped components move single pixels a little.
        assert np.abs(true - found).mean() < 0.02
        assert np.corrcoef(true.ravel(), found.ravel())[0, 1] > 0.99
        others = [np.abs(found - images[labels == j].mean(axis=0)).mean() for j in range(10) if j != k]
        assert np.abs(true - found).mean() < min(others) / 3


def test_samples_are_images_with_balanced_labels(mixtures):
    x, y = sample_images(mixtures, 7, seed=3)
    assert x.shape == (70, 1, 8, 8)
    assert (x.dtype, y.dtype) == (np.float32, np.int32)
    assert x.min() >= 0
    assert x.max() <= 1
    assert np.bincount(y).tolist() == [7] * 10


def test_spread_of_the_samples_is_that_of_the_mixture():
    factors = np.array([[[[2.0, 0.0], [1.0, 0.5]]]])
    shape = {"mean": np.zeros(2), "basis": np.eye(2), "image_shape": (1, 1, 2)}
    model = ClassMixtures(weights=np.ones((1, 1)), centres=np.zeros((1, 1, 2)), factors=factors, **shape)
    covariance = np.cov(model.draw(0, 50_000, np.random.default_rng(0)).T)
    np.testing.assert_allclose(covariance, [[4, 2], [2, 1.25]], atol=0.08)


def test_two_fits_write_the_same_bytes(digits, mixtures, tmp_path):
    again = fit_mixtures(*digits, classes=10, **FIT)
    for model, name in ((mixtures, "one.npz"), (again, "two.npz")):
        write_samples(tmp_path / name, *sample_images(model, 5, seed=2))
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    # A time of writing in the archive would make two runs differ.
    assert {entry.date_time for entry in zipfile.ZipFile(tmp_path / "one.npz").infolist()} == {(1980, 1, 1, 0, 0, 0)}
    write_samples(tmp_path / "three.npz", *sample_images(mixtures, 5, seed=3))
    assert (tmp_path / "one.npz").read_bytes() != (tmp_path / "three.npz").read_bytes()


def test_written_samples_are_read_as_a_dataset(mixtures, tmp_path):
    write_samples(tmp_path / "g.npz", *sample_images(mixtures, 4, seed=2))
    images = open_images({"source": "generated"}, tmp_path / "g.npz", classes=NAMES)
    x, y = sample_images(mixtures, 4, seed=2)
    np.testing.assert_array_equal(load_all(images)[0], x)
    np.testing.assert_array_equal(images.labels, y)


def test_too_many_dimensions_or_gaussians_are_refused(digits):
    with pytest.raises(InputError, match=r"dimensions 65 must lie in 1\.\.64"):
        fit_mixtures(*digits, classes=10, **{**FIT, "dimensions": 65})
    with pytest.raises(InputError, match="training samples for 95 Gaussians; lower mixture_components"):
        fit_mixtures(*digits, classes=10, **{**FIT, "mixture_components": 95})
