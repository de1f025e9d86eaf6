"""Images that a mapper is trained and described on: how many, which, and how much memory they take."""

import numpy as np
import pandas as pd
import pytest

import train_mapper as step
from fetch_dataset import fetch_dataset
from gfscore.core.errors import InputError
from gfscore.core.files import read_json
from gfscore.images.datasets import load_all
from gfscore.images.manifests import open_described
from gfscore.projection.mappers.conditions import conditions_by_sample
from gfscore.projection.mappers.description import fitted_attributes, image_traits
from gfscore.projection.mappers.fitting import conditioned_images, open_mapper
from gfscore.tables.parquet_tables import write_attributes
from helpers.processes import most_memory

N, SIDES = 400, {"side": ["left", "right"]}
VAE = {
    "kind": "beta_vae", "train_on": "sorted", "evaluate_on": "sorted", "latent": 2, "width": 4, "features": 8, "beta": 1, "pixel_sd": 0.1,
    "epochs": 1, "batch_size": 32, "learning_rate": 0.01, "seed": 3, "device": "cpu", "pictures": True,
}  # fmt: skip
GAN = {key: value for key, value in VAE.items() if key not in ("beta", "pixel_sd")}
GAN |= {"kind": "conditional", "attributes": ["side"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """400 images of 16x16 sorted by class, as in an image folder, each of its own brightness, and an attribute."""
    root = tmp_path_factory.mktemp("images")
    shades = np.linspace(0, 1, N, dtype=np.float32)
    labels = np.repeat(np.arange(4), N // 4)
    np.savez(root / "sorted.npz", x=np.tile(shades[:, None, None, None], (1, 1, 16, 16)), y=labels)
    settings = {"source": "npz", "value_range": 1, "channels": "first", "subset": None, "digest": None}
    made = root / "sorted.json", root / "sorted.parquet"
    fetch_dataset(settings, list("abcd"), *made, dataset="sorted", path_to_images=root / "sorted.npz")
    ids = open_described(root / "sorted.json")[0].sample_id.astype(object)
    sides = np.where(np.arange(N) % 2 == 0, "left", "right").astype(object)
    identity = {"dataset": "sorted", "categories": SIDES}
    write_attributes(root / "sides.parquet", pd.DataFrame({"sample_id": ids, "side": sides}), identity=identity)
    return root


def test_a_part_is_drawn_over_the_whole_data_set_with_its_conditions(folder):
    given = folder / "sorted.json", folder / "sides.parquet", SIDES
    images, conditions, described = conditioned_images(*given, most=60, seed=1)
    rows = np.round(images[:, 0, 0, 0] * (N - 1)).astype(int)
    assert described["samples"] == N and len(rows) == 60 and (np.diff(rows) > 0).all()
    # The first 60 would be of the first class alone.
    assert np.bincount(rows // 100, minlength=4).min() >= 5
    np.testing.assert_array_equal(conditions[:, 0], rows % 2)
    np.testing.assert_array_equal(images, conditioned_images(*given, most=60, seed=1)[0])
    assert not np.array_equal(images, conditioned_images(*given, most=60, seed=2)[0])
    whole = load_all(open_described(folder / "sorted.json")[0])[0]
    for most in (None, N):
        np.testing.assert_array_equal(conditioned_images(*given, most=most)[0], whole)


def test_a_mapper_is_described_on_a_part_of_many_images(folder, tmp_path, monkeypatch):
    assert step.MOST_DESCRIBED == 512
    monkeypatch.setattr(step, "MOST_DESCRIBED", 60)
    described = []
    monkeypatch.setattr(step, "describe_mapper", lambda *given: described.append(given) or describe(*given))
    files = {"train": folder / "sorted.json", "test": folder / "sorted.json"}
    files |= {"train_attributes": [], "test_attributes": []}
    outputs = {"weights": tmp_path / "m.safetensors", "manifest": tmp_path / "m.json", "pictures": tmp_path / "m.npz"}
    step.train_mapper(files, outputs, tmp_path / "progress", name="m", settings=VAE, version="1")
    (_, (trained_on, _), (shown, _)) = described[0]
    assert (len(trained_on), len(shown)) == (N, 60)
    expected, _, _ = conditioned_images(files["test"], None, None, most=60, seed=VAE["seed"])
    np.testing.assert_array_equal(shown, expected)
    manifest = read_json(outputs["manifest"])
    mapper = open_mapper(outputs["weights"], sha256=manifest["sha256"])
    error = np.mean((mapper.decode(mapper.encode(expected)[0]) - expected) ** 2)
    assert manifest["reconstruction_error"] == pytest.approx(float(error), rel=1e-6)


describe = step.describe_mapper


@pytest.mark.parametrize("batch_size", [32, N], ids=["steps", "one-step"])
@pytest.mark.parametrize("settings", [VAE, GAN], ids=["beta_vae", "conditional"])
def test_a_training_that_diverges_names_mapper_epoch_and_remedy_and_writes_nothing(
    folder, tmp_path, settings, batch_size
):
    files = {"train": folder / "sorted.json", "test": folder / "sorted.json"}
    attributes = folder / "sides.parquet" if settings is GAN else []
    files |= {"train_attributes": attributes, "test_attributes": attributes}
    outputs = {"weights": tmp_path / "m.safetensors", "manifest": tmp_path / "m.json", "pictures": tmp_path / "m.npz"}
    diverging = settings | {"learning_rate": 1e10, "batch_size": batch_size}
    with pytest.raises(InputError, match=r"^mappers: m: the training diverged in .*epoch.*: .*; lower learning_rate$"):
        step.train_mapper(files, outputs, tmp_path / "progress", name="m", settings=diverging, version="1")
    assert not list(tmp_path.iterdir())


def test_no_step_takes_the_memory_of_the_images_a_second_time(folder):
    images = np.random.default_rng(0).random((1500, 3, 32, 32), dtype=np.float32)
    conditions = (np.arange(1500) % 2)[:, None].astype(np.float32)
    fitted_attributes(images[:8], conditions[:8], ["x"])
    # A float64 copy takes twice the bytes.
    with most_memory() as taken:
        fitted_attributes(images, conditions, ["x"])
        image_traits(images)
    assert taken[0] < 1.2 * images.nbytes
    with most_memory() as taken:
        held, _, _ = conditioned_images(folder / "sorted.json", None, None)
    # What is read of the file, and the array that is filled of it.
    with most_memory() as of_file:
        open_described(folder / "sorted.json")
    assert taken[0] < of_file[0] + 1.2 * held.nbytes


def test_measurements_do_not_depend_on_how_many_are_made_together():
    images = np.random.default_rng(0).random((600, 3, 20, 20), dtype=np.float32)
    whole = image_traits(images)
    parts = [image_traits(images[start : start + 100]) for start in range(0, 600, 100)]
    for name, values in whole.items():
        assert values.shape == (600,)
        np.testing.assert_allclose(values, np.concatenate([part[name] for part in parts]), rtol=1e-12)
    assert image_traits(images[:0])["brightness"].shape == (0,)


def test_attributes_that_do_not_fit_the_mapper_or_the_samples_are_refused(folder):
    with pytest.raises(InputError, match=r"sides\.parquet: attribute 'age' is unknown"):
        conditioned_images(folder / "sorted.json", folder / "sides.parquet", {"age": ["young", "old"]})
    with pytest.raises(InputError, match=r"sides\.parquet: its dataset is 'sorted', but 'other' is expected"):
        conditions_by_sample(folder / "sides.parquet", SIDES, dataset="other")
    of_samples = conditions_by_sample(folder / "sides.parquet", SIDES)
    with pytest.raises(InputError, match=r"sides\.parquet: no sample 'stranger'; delete the file"):
        of_samples(np.array(["stranger"]))
