"""Samples of a user's generator: what is drawn, the same every time, and what is refused."""

import json
import pickle

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from draw_samples import draw_samples
from gfscore.core.errors import InputError
from gfscore.images.dataset_source import dataset_sources
from gfscore.images.datasets import load_all, open_images
from gfscore.images.sources.generator_file import GeneratorFile, NetworkGenerator
from gfscore.networks.conditional_generators import open_generator
from gfscore.statistics.draws import Draws, seeds_of_samples
from gfscore.training.drawing import draw_images
from helpers.networks import GENERATOR_DEFINITION, GENERATOR_FORMATS, Returning, known_network, place_generator

CLASSES = ["a", "b", "c"]


@pytest.fixture(autouse=True)
def architectures(tmp_path, monkeypatch):
    monkeypatch.setenv("GFSCORE_ARCHITECTURES", str(tmp_path / "architectures"))


def complete(**settings):
    entry = {"classes": CLASSES, "generator": {"path": "g.pt", "architecture": "a.b:c", "latent": [2], **settings}}
    return GeneratorFile.model_validate(entry).explicit()["generator"]


def drawn(network=None, **settings):
    """What a network, by default the known one, gives under settings."""
    return images_of(network or known_network(3), complete(**settings))


def images_of(network, settings):
    return draw_images(network, NetworkGenerator.model_validate(settings), classes=3, where="g")


def write_drawn(folder, name, settings):
    drawn_by = dataset_sources()["generator_file"].drawn_by
    files = folder / f"{name}.npz", folder / f"{name}.json"
    draw_samples(*files, drawn_by=drawn_by, dataset="d", classes=CLASSES, settings=settings)


@pytest.mark.parametrize("class_input", ["index", "one_hot"])
@pytest.mark.parametrize("form", GENERATOR_FORMATS)
def test_every_format_gives_the_images_of_its_latents_and_classes(tmp_path, form, class_input):
    settings = complete(**place_generator(tmp_path, form, class_input=class_input), samples_per_class=4, batch_size=5)
    images, labels = images_of(open_generator(settings, settings["path"]), settings)
    assert labels.tolist() == [0, 1, 2] * 4
    latents = Draws.of(seeds_of_samples(0, "generator", np.arange(12)), "cpu").normal([2]).numpy()
    np.testing.assert_allclose(images[:, 0, 0], (np.tanh(latents) + 1) / 2, atol=1e-6)
    np.testing.assert_allclose(images[:, 0, 1], np.repeat([[0], [0.5], [1]] * 4, 2, axis=1), atol=1e-7)


def test_latents_are_of_the_distribution_that_is_named():
    images, _ = drawn(samples_per_class=1000)
    normal = np.arctanh(2 * images[:, 0, 0].astype(np.float64) - 1)
    assert kstest(normal.ravel(), "norm").pvalue > 0.01
    assert abs(np.corrcoef(normal.T)[0, 1]) < 0.07
    images, _ = drawn(samples_per_class=1000, distribution="uniform")
    assert kstest(np.arctanh(2 * images[:, 0, 0].astype(np.float64) - 1).ravel(), "uniform", (-1, 2)).pvalue > 0.01


def test_a_larger_set_begins_with_a_smaller_one_whatever_the_batch_ends_with():
    few, labels = drawn(samples_per_class=5, batch_size=4)
    many, more = drawn(samples_per_class=9, batch_size=4)
    np.testing.assert_array_equal(many[:15], few)
    np.testing.assert_array_equal(more[:15], labels)
    np.testing.assert_allclose(drawn(samples_per_class=5, batch_size=7)[0], few, atol=1e-6)
    assert (drawn(samples_per_class=5, seed=1)[0][:, 0, 0] != few[:, 0, 0]).all()


def test_noise_that_a_network_adds_is_drawn_again_alike():
    noisy = Returning(lambda z, y: torch.tanh(z + torch.randn_like(z)).reshape(-1, 1, 1, 2))
    np.testing.assert_array_equal(drawn(noisy)[0], drawn(noisy)[0])


def test_samples_are_written_once_as_a_dataset(tmp_path):
    settings = complete(**place_generator(tmp_path, "weights"), samples_per_class=4)
    for name in ("one", "two"):
        write_drawn(tmp_path, name, settings)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    images = open_images({"source": "generator_file"}, tmp_path / "one.npz", classes=CLASSES)
    assert images.image_shape == (1, 2, 2) and np.bincount(images.labels).tolist() == [4, 4, 4]
    np.testing.assert_array_equal(load_all(images)[0], images_of(known_network(3), settings)[0])
    generator = json.loads((tmp_path / "one.json").read_text())["generator"]
    assert len(generator["sha256"]) == len(generator["architecture_sha256"]) == 64


# ---- what is refused ----


@pytest.mark.parametrize(
    "function",
    [
        lambda z, y: torch.tanh(z),
        lambda z, y: torch.tanh(z).reshape(-1, 1, 1, 2)[1:],
        lambda z, y: torch.tanh(z).reshape(-1, 2)[:, None, None].expand(-1, 5, -1, -1),
        lambda z, y: (torch.tanh(z).reshape(-1, 1, 1, 2), y),
        lambda z, y: torch.where(y[:, None] == 2, torch.nan, torch.tanh(z)).reshape(-1, 1, 1, 2),
        lambda z, y: 1.1 * torch.sign(z).reshape(-1, 1, 1, 2),
        lambda z, y: torch.sigmoid(z).reshape(-1, 1, 1, 2),
        lambda z, y: z[:, 5],
    ],
    ids=["flat", "too-few", "too-many-channels", "two-outputs", "nan", "beyond", "half-of-the-range", "fails"],
)
def test_outputs_that_are_no_images_are_refused(function):
    with pytest.raises(InputError, match=r"^g: "):
        drawn(Returning(function))


def test_the_sample_with_nan_is_named():
    with pytest.raises(InputError, match="sample 2 "):
        drawn(Returning(lambda z, y: torch.where(y[:, None] == 2, torch.nan, torch.tanh(z)).reshape(-1, 1, 1, 2)))


def test_chance_that_no_seed_reaches_is_refused():
    state = np.random.default_rng()
    noisy = Returning(lambda z, y: torch.from_numpy(state.uniform(-1, 1, (len(z), 1, 2, 2))))
    with pytest.raises(InputError, match="other images"):
        drawn(noisy)


class Code:
    def __reduce__(self):
        return print, ("this code ran",)


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path, capsys):
    settings = complete(**place_generator(tmp_path, "weights"))
    torch.save({"brightness": torch.zeros(3), "more": Code()}, settings["path"])
    with pytest.raises(InputError, match="refused"):
        open_generator(settings, settings["path"])
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Code()))
    with pytest.raises(InputError):
        open_generator(settings, tmp_path / "plain.pt")
    assert "this code ran" not in capsys.readouterr().out


@pytest.mark.parametrize("form", GENERATOR_FORMATS)
def test_a_file_that_is_no_generator_is_refused_by_name(tmp_path, form):
    settings = complete(**place_generator(tmp_path, form))
    path = tmp_path / "other.pt"
    path.write_bytes(GENERATOR_DEFINITION.encode())
    with pytest.raises(InputError, match=path.name):
        open_generator(settings, path)


def test_another_file_than_the_pinned_one_is_refused(tmp_path):
    settings = complete(**place_generator(tmp_path, "script")) | {"sha256": "0" * 64}
    with pytest.raises(InputError, match="sha256"):
        write_drawn(tmp_path, "x", settings)
    assert not (tmp_path / "x.npz").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": None},
        {"architecture": None, "trust_pickle": True},
        {"output_range": [1, -1]},
        {"latent": []},
    ],
)
def test_settings_that_do_not_fit_are_refused(settings):
    with pytest.raises(ValueError, match="validation error"):
        complete(**settings)
