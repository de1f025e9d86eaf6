"""Mappers: any image size, the same weights at every run, interrupted or not, and effects that were planted."""

import numpy as np
import pandas as pd
import pytest
import torch

from gfscore.core.errors import InputError
from gfscore.projection.mappers.conditions import condition_names, conditions_of, imputed
from gfscore.projection.mappers.declared import mapper_settings
from gfscore.projection.mappers.description import describe_mapper, effects_of, fitted_attributes, image_traits
from gfscore.projection.mappers.fitting import Mapper, build_mapper, fit_mapper, of_network, open_mapper, save_mapper
from gfscore.projection.mappers.pictures import POSITIONS, moved, read_pictures, write_pictures

pytestmark = pytest.mark.seconds(10)

VAE = {"kind": "beta_vae", "latent": 3, "width": 4, "features": 8, "beta": 1.0, "pixel_sd": 0.1}
GAN = {"kind": "conditional", "latent": 4, "width": 4, "features": 16}
GAN |= {"adversarial_weight": 0.01, "attribute_weight": 0.5}
HOW = {
    "train_on": "d",
    "evaluate_on": "d",
    "epochs": 3,
    "batch_size": 16,
    "learning_rate": 0.005,
    "seed": 1,
    "device": "cpu",
}


def arguments(settings):
    return {key: value for key, value in settings.items() if key != "kind"}


def bars(n=96, *, seed=0):
    """Images (n, 1, 8, 8) of a vertical bar whose place and brightness vary, and whether it is bright."""
    rng = np.random.default_rng(seed)
    images, bright = np.zeros((n, 1, 8, 8), dtype=np.float32), rng.random(n) < 0.5
    for row in range(n):
        images[row, 0, :, rng.integers(1, 7)] = 0.9 if bright[row] else 0.4
    return images, bright


@pytest.mark.parametrize(
    "shape", [(1, 8, 8), (3, 8, 8), (1, 11, 9), (3, 28, 28), (3, 33, 64), (3, 128, 128), (1, 16, 128)]
)
@pytest.mark.parametrize("settings", [VAE, GAN], ids=["beta_vae", "conditional"])
def test_images_of_any_size_go_in_and_out(shape, settings):
    names = ["a", "b"] if settings is GAN else None
    network = build_mapper(settings["kind"], shape, names=names, **arguments(settings)).eval()
    images = torch.rand(2, *shape)
    codes, spread = network.encode(images, torch.rand(2, 2) if names else None)
    made = network.decode(codes)
    assert codes.shape == (2, 6 if names else 3) and spread.shape == (2, len(network.names))
    assert made.shape == images.shape and made.min() >= 0 and made.max() <= 1


def test_bad_mappers_are_refused():
    with pytest.raises(InputError, match="at least 8x8 pixels, got 7x8"):
        build_mapper("beta_vae", (1, 7, 8), **arguments(VAE))
    with pytest.raises(InputError, match="needs attributes"):
        build_mapper("conditional", (1, 8, 8), **arguments(GAN))


def same(first, second):
    return all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())


def fitted(settings, folder, *, every_s=1e9, epochs=3, seed=1, name="epoch.pt"):
    images, bright = bars()
    extra = {"conditions": bright[:, None].astype(np.float32), "names": ["bright"]} if settings is GAN else {}
    how = settings | HOW | {"epochs": epochs, "seed": seed}
    return fit_mapper(
        images, mapper_settings(how), path_to_progress=folder / name, version="1", every_s=every_s, **extra
    )


@pytest.mark.parametrize("settings", [VAE, GAN], ids=["beta_vae", "conditional"])
def test_two_trainings_end_in_the_same_weights_and_a_seed_decides_them(settings, tmp_path):
    (first, losses), (second, _) = fitted(settings, tmp_path), fitted(settings, tmp_path)
    assert same(first, second)
    assert not same(first, fitted(settings, tmp_path, seed=2)[0])
    assert np.isfinite(list(losses.values())).all() and "reconstruction" in losses


@pytest.mark.parametrize("settings", [VAE, GAN], ids=["beta_vae", "conditional"])
def test_an_interrupted_training_ends_where_an_undisturbed_one_does(settings, tmp_path, monkeypatch, capsys):
    expected, losses = fitted(settings, tmp_path)
    calls = []

    def interrupted(self, epochs, **state):
        save(self, epochs, **state)
        calls.append(epochs)
        if epochs == 2:
            raise KeyboardInterrupt

    from gfscore.networks.trained import TrainingProgress

    save = TrainingProgress.save
    monkeypatch.setattr(TrainingProgress, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fitted(settings, tmp_path, every_s=0)
    monkeypatch.undo()
    assert calls == [1, 2]
    resumed, again = fitted(settings, tmp_path, every_s=0)
    assert "resuming after 2 epochs" in capsys.readouterr().out
    assert same(expected, resumed)
    assert again == losses


def test_what_was_kept_of_other_images_or_settings_is_not_used(tmp_path, capsys):
    fitted(VAE, tmp_path, every_s=0)
    other, _ = fitted(VAE, tmp_path, every_s=0, seed=5)
    assert "belongs to other images, settings" in capsys.readouterr().out
    assert same(other, fitted(VAE, tmp_path, seed=5, name="none")[0])


def test_a_vae_learns_to_reconstruct_and_its_unit_follows_the_law_of_total_variance(tmp_path):
    images, _ = bars(256)
    settings = mapper_settings(VAE | HOW | {"epochs": 40})
    network, losses = fit_mapper(images, settings, path_to_progress=tmp_path / "p", version="1")
    mapper = of_network(network, images)
    codes, spread = mapper.encode(images)
    error = np.mean((mapper.decode(codes) - images) ** 2)
    assert error < 0.6 * np.mean((images - images.mean(axis=0)) ** 2)
    np.testing.assert_allclose(mapper.sigma**2, codes.var(axis=0) + (spread**2).mean(axis=0), rtol=1e-5)
    assert mapper.limits is None and mapper.names == ["z0", "z1", "z2"]
    described = describe_mapper(mapper, (images, None), (images, None))
    assert described["reconstruction_error"] == pytest.approx(float(error), rel=1e-5)
    assert described["explained"] > 0.4 and min(described["divergence"]) >= 0
    assert losses["divergence"] == pytest.approx(sum(described["divergence"]), rel=0.2)


def test_a_conditional_mapper_moves_the_attribute_it_is_given(tmp_path):
    images, bright = bars(256)
    conditions = bright[:, None].astype(np.float32)
    conditions[:10] = np.nan
    settings = GAN | HOW | {"epochs": 40, "adversarial_weight": 0.001, "attribute_weight": 0.01}
    network, _ = fit_mapper(
        images,
        mapper_settings(settings),
        path_to_progress=tmp_path / "p",
        version="1",
        conditions=conditions,
        names=["bright=yes"],
    )
    mapper = of_network(network, images, conditions)
    assert (mapper.sigma, mapper.limits, mapper.names) == (np.array([1.0]), (0.0, 1.0), ["bright=yes"])
    assert describe_mapper(mapper, (images, conditions), (images, conditions))["divergence"] is None
    codes, _ = mapper.encode(images, conditions)
    np.testing.assert_array_equal(codes[:, 0], imputed(conditions)[:, 0])
    low, high = (mapper.decode(moved(mapper, codes, 0, side)).mean() for side in (-1.0, 1.0))
    assert high > 1.3 * low
    effects = effects_of(mapper, images, codes, (images, conditions))
    by_trait = {effect["trait"]: effect for effect in effects}
    assert by_trait["bright=yes"]["how"] == "classifier" and by_trait["bright=yes"]["shift"] > 0.3
    assert by_trait["brightness"]["how"] == "measured" and by_trait["brightness"]["shift"] > 0.5


def test_mappers_are_stored_with_their_units_and_give_the_same_bytes(tmp_path):
    network, _ = fitted(VAE, tmp_path)
    mapper = of_network(network, bars()[0])
    digests = [save_mapper(tmp_path / f"{n}.safetensors", mapper, metadata={"a": 1}) for n in range(2)]
    assert digests[0] == digests[1]
    again = open_mapper(tmp_path / "0.safetensors", sha256=digests[0])
    np.testing.assert_array_equal(again.sigma, mapper.sigma)
    codes = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_array_equal(again.decode(codes), mapper.decode(codes))
    with pytest.raises(InputError, match=r"0\.safetensors"):
        open_mapper(tmp_path / "0.safetensors", sha256="0" * 64)


def test_a_file_that_holds_no_mapper_is_refused(tmp_path):
    import hashlib

    from safetensors.torch import save_file

    path = tmp_path / "other.safetensors"
    save_file({"weight": torch.zeros(2)}, path)
    with pytest.raises(InputError, match="no mapper of this version"):
        open_mapper(path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())


def test_conditions_by_hand():
    frame = pd.DataFrame({"age": ["old", "young", None], "hair": ["red", "brown", "blond"], "one": ["x", "x", "x"]})
    categories = {"age": ["young", "old"], "hair": ["blond", "brown", "red"], "one": ["x"]}
    assert condition_names(categories) == ["age=old", "hair=blond", "hair=brown", "hair=red"]
    expected = [[1, 0, 0, 1], [0, 0, 1, 0], [np.nan, 1, 0, 0]]
    found = conditions_of(frame, categories, source="toy")
    np.testing.assert_array_equal(found, expected)
    assert imputed(found)[2, 0] == 0.5
    assert conditions_of(frame, {}, source="toy").shape == (3, 0)


def test_categories_that_the_mapper_does_not_know_are_refused_instead_of_counting_as_another():
    frame = pd.DataFrame({"sample_id": ["a", "b", "c"], "age": ["Old", "young", None], "one": ["x", "x", "y"]})
    with pytest.raises(
        InputError, match=r"toy\.parquet: age holds 'Old', but the mapper was trained with 'young', 'old'"
    ):
        conditions_of(frame, {"age": ["young", "old"]}, source="toy.parquet")
    # A mapper that saw a single category moves nothing of it, but was not trained on another one either.
    with pytest.raises(InputError, match="one holds 'y', but the mapper was trained with 'x'"):
        conditions_of(frame, {"one": ["x"]}, source="toy.parquet")
    with pytest.raises(
        InputError, match=r"toy\.parquet: attribute 'ages' is unknown; did you mean 'age'\?.*; the mapper"
    ):
        conditions_of(frame, {"ages": ["young", "old"]}, source="toy.parquet")
    # Fewer categories than the mapper knows are fine.
    assert conditions_of(frame.iloc[1:2], {"age": ["young", "old", "older"]}, source="toy").tolist() == [[1, 0, 0]]


def test_traits_by_hand():
    images = np.zeros((2, 1, 8, 8), dtype=np.float32)
    images[0, 0, :, 7] = 1
    found = image_traits(images)
    assert found["brightness"][0] == 1 / 8 and found["horizontal_position"][0] == 1
    assert found["vertical_position"][0] == pytest.approx(0.5)
    assert found["slant"][0] == pytest.approx(0) and found["loops"][0] == 0
    assert np.isnan(found["horizontal_position"][1]) and found["contrast"][1] == 0
    colour = np.zeros((1, 3, 8, 8), dtype=np.float32)
    colour[:, 2] = 0.5
    found = image_traits(colour)
    assert (found["red"][0], found["blue"][0]) == (0, 0.5) and "slant" not in found


class Planted:
    """A decoder whose first dimension is the brightness of the whole image, and whose second does nothing."""

    names, sigma, limits = ["light", "idle"], np.array([0.2, 1.0]), None

    def encode(self, images, conditions=None):
        codes = np.zeros((len(images), 2), dtype=np.float32)
        codes[:, 0] = images.mean(axis=(1, 2, 3))
        return codes, np.full_like(codes, 0.1)

    def decode(self, codes):
        return np.clip(np.repeat(codes[:, :1], 64, axis=1), 0, 1).reshape(-1, 1, 8, 8).astype(np.float32)


def test_effects_find_what_was_planted():
    images = np.repeat(np.linspace(0.3, 0.7, 50), 64).reshape(50, 1, 8, 8).astype(np.float32)
    mapper = Planted()
    codes, _ = mapper.encode(images)
    found = {(e["dimension"], e["trait"]): e for e in effects_of(mapper, images, codes, (images, None))}
    spread = images.mean(axis=(1, 2, 3)).std()
    assert found["light", "brightness"]["shift"] == pytest.approx(0.4 / spread, rel=1e-3)
    assert found["light", "brightness"]["strength"] == pytest.approx(0.4 / spread, rel=1e-3)
    assert found["idle", "brightness"]["shift"] == 0
    # every image is uniform: its contrast does not vary
    assert found["light", "contrast"]["shift"] is None or abs(found["light", "contrast"]["shift"]) < 1e-3


def test_pictures_are_those_of_the_moves_and_are_read_without_torch(tmp_path):
    images = np.repeat(np.linspace(0.3, 0.7, 50), 64).reshape(50, 1, 8, 8).astype(np.float32)
    for name in ("a.npz", "b.npz"):
        write_pictures(tmp_path / name, Planted(), images, of_images=True)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    found = read_pictures(tmp_path / "a.npz")
    assert found["originals"].shape == (8, 1, 8, 8) and found["traversals"].shape == (2, 2, 9, 1, 8, 8)
    np.testing.assert_array_equal(found["positions"], POSITIONS)
    assert list(found["names"]) == ["light", "idle"]
    light = found["traversals"][0, 0, :, 0, 0, 0]
    np.testing.assert_allclose(light, 255 * (0.3 + 0.2 * POSITIONS), atol=1)
    assert len(np.unique(found["traversals"][0, 1])) == 1
    write_pictures(tmp_path / "mean.npz", Planted(), images, of_images=False)
    mean = read_pictures(tmp_path / "mean.npz")
    assert len(mean["originals"]) == len(mean["reconstructions"]) == 0 and mean["traversals"].shape[0] == 1
    # the mean brightness of the images is 0.5
    np.testing.assert_allclose(mean["traversals"][0, 0, :, 0, 0, 0], 255 * (0.5 + 0.2 * POSITIONS), atol=1)
    (tmp_path / "a.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"a\.npz: no pictures .*neither a \.npy nor a \.npz file"):
        read_pictures(tmp_path / "a.npz")


def test_attribute_classifiers_name_what_varies():
    images, bright = bars()
    conditions = np.column_stack([bright, np.ones(len(bright))]).astype(np.float32)
    found = fitted_attributes(images, conditions, ["bright", "always"])
    assert set(found) == {"bright"}
    assert ((found["bright"](images) > 0.5) == bright).mean() > 0.95
    large = np.random.default_rng(0).random((4, 3, 50, 33))
    assert fitted_attributes(large, np.array([[0], [1], [0], [1.0]]), ["x"])["x"](large).shape == (4,)


def test_conditions_move_over_their_range_wherever_a_sample_stands():
    mapper = Mapper(None, ["a"], np.ones(1), (0.0, 1.0))
    codes = np.array([[0.0, 7.0], [1.0, 7.0]], dtype=np.float32)
    np.testing.assert_array_equal(moved(mapper, codes, 0, -1.0), [[0, 7], [0, 7]])
    np.testing.assert_array_equal(moved(mapper, codes, 0, 0.5), [[0.75, 7], [0.75, 7]])
