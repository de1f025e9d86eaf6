"""The source probe: a linear classifier on the features of a frozen backbone."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.linear_model import LogisticRegression
from torch import nn

from extract_logits import extract_logits
from fetch_checkpoint import fetch_checkpoint
from fetch_dataset import fetch_dataset
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import read_json, write_json
from gfscore.networks.classifier import open_classifier
from gfscore.networks.compatibility import import_torchvision
from gfscore.networks.model_source import model_sources
from gfscore.networks.probe import fit_head, open_backbone
from gfscore.tables.parquet_tables import read_identity, read_logits
from train_model import train_model

IDENTITY = {"dataset": "z", "threat": "none", "model": "P"}
DATA = {"source": "npz", "value_range": 1, "channels": "first"}
SETTINGS = {
    "source": "probe",
    "train_on": "train",
    "evaluate_on": "test",
    "penalty": 0.5,
    "iterations": 500,
    "url": None,
    "sha256": None,
    "architecture": "test_vit",
    "arguments": {"img_size": 32},
    "weights": "model",
    "trust_pickle": False,
    "image_shape": [3, 32, 32],
    "channel_order": "rgb",
    "value_range": 1,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
}


def samples(n, seed, *, classes, side=12):
    """Noise with one bright channel per class: what even random features tell apart."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    images = generator.random((n, 3, side, side)) * 0.6
    images[np.arange(n), labels] += 0.2
    return images.astype(np.float32), labels


def random_backbone(path, **arguments):
    import_torchvision()
    import timm

    torch.manual_seed(0)
    network = timm.create_model("test_vit", img_size=32, **arguments).eval()
    save_file(network.state_dict(), path)
    return network


@pytest.fixture(params=[3, 2], ids=["three", "two"])
def probed(tmp_path, request):
    """Folder with a fitted probe of images of 12 pixels on a backbone of 32."""
    random_backbone(tmp_path / "vit.safetensors", num_classes=0)
    for name, n, seed in (("train", 90, 1), ("test", 30, 2)):
        images, labels = samples(n, seed, classes=request.param)
        np.savez(tmp_path / f"{name}.npz", x=images, y=labels)
        files = {"dataset": name, "path_to_images": tmp_path / f"{name}.npz"}
        made = tmp_path / f"{name}.json", tmp_path / f"{name}.parquet"
        fetch_dataset(DATA, list("abc")[: request.param], *made, **files)
    settings = {**SETTINGS, "path": str(tmp_path / "vit.safetensors")}
    fetch_checkpoint(settings, tmp_path / "backbone.json", identity=IDENTITY)
    fit(tmp_path)
    return tmp_path


def fit(folder, name="head"):
    train_model(
        {file: folder / f"{file}.json" for file in ("train", "test", "backbone")},
        folder / f"{name}.safetensors",
        folder / f"{name}.json",
        folder / "progress",
        fitted_by=model_sources()["probe"].fitted_by,
        version="1",
        identity=IDENTITY,
        settings=None,
        attack=None,
    )


def opened(folder, *, image_shape=(3, 12, 12)):
    manifest = read_json(folder / "head.json")
    return open_classifier(manifest, folder / "head.safetensors", image_shape=image_shape, classes=3)


def features_of(folder, images):
    """Resized, normalised and passed through the network, step by step, by timm's own methods."""
    network = random_backbone(folder / "again.safetensors", num_classes=0)
    resized = nn.functional.interpolate(torch.from_numpy(images), (32, 32), mode="bilinear", antialias=True)
    with torch.no_grad():
        tokens = network.forward_features((resized - 0.5) / 0.25)
        return network.forward_head(tokens, pre_logits=True).numpy()


def test_logits_of_a_probe_are_those_of_scikit_learn_on_the_features(probed):
    with np.load(probed / "train.npz") as train, np.load(probed / "test.npz") as test:
        fitted = LogisticRegression(C=2, max_iter=500)
        fitted.fit(features_of(probed, train["x"]).astype(float), train["y"])
        probabilities = fitted.predict_proba(features_of(probed, test["x"]))
        accuracy = fitted.score(features_of(probed, test["x"]), test["y"])
    extract_logits(
        probed / "test.json",
        probed / "head.json",
        probed / "head.safetensors",
        probed / "logits.parquet",
    )
    _, _, logits = read_logits(probed / "logits.parquet")
    np.testing.assert_allclose(torch.tensor(logits).softmax(1), probabilities, atol=1e-3)
    np.testing.assert_array_equal(logits.argmax(1), probabilities.argmax(1))
    manifest = read_json(probed / "head.json")
    assert manifest["clean_accuracy"] == pytest.approx(accuracy)
    assert manifest["clean_accuracy"] > 0.8
    assert manifest["converged"]
    identity = read_identity(probed / "logits.parquet")
    assert identity["checkpoint_sha256"] == manifest["sha256"] == sha256_of_file(probed / "head.safetensors")
    assert identity["architecture"] == "linear probe on test_vit"
    assert "resized to 32x32 where the size differs (bilinear, antialiased), rgb" in identity["preprocessing"]


def test_two_fits_give_the_same_bytes(probed):
    fit(probed, "second")
    for extension in ("safetensors", "json"):
        assert (probed / f"head.{extension}").read_bytes() == (probed / f"second.{extension}").read_bytes()


@pytest.mark.parametrize("name", ["vit", "head"])
def test_either_file_changed_is_refused_before_it_is_parsed(probed, name):
    (probed / f"{name}.safetensors").write_bytes(b"not even a checkpoint")
    with pytest.raises(InputError, match=rf"{name}\.safetensors: sha256 is"):
        opened(probed)
    if name == "vit":
        with pytest.raises(InputError, match=r"vit\.safetensors: sha256 is"):
            fit(probed)


@pytest.mark.parametrize(
    "stored",
    [
        {"weight": torch.zeros(3)},
        {"weight": torch.zeros(3, 64)},
    ],
    ids=["vector", "no bias"],
)
def test_another_file_in_place_of_the_head_is_named(probed, stored):
    save_file(stored, probed / "head.safetensors")
    manifest = read_json(probed / "head.json")
    manifest["sha256"] = sha256_of_file(probed / "head.safetensors")
    write_json(probed / "head.json", manifest)
    with pytest.raises(InputError, match=r"head\.safetensors: is no head of a probe"):
        opened(probed)


def test_gradients_reach_the_pixels_of_the_data(probed):
    images = torch.rand(2, 3, 12, 12, requires_grad=True)
    opened(probed).network(images)[:, 0].sum().backward()
    assert images.grad.shape == (2, 3, 12, 12)
    assert float(images.grad.abs().sum()) > 0


def test_images_of_the_backbones_size_are_left_as_they_are(probed):
    images, _ = samples(2, 3, classes=2, side=32)
    head = load_file(probed / "head.safetensors")
    expected = features_of(probed, images) @ head["weight"].numpy().T + head["bias"].numpy()
    np.testing.assert_allclose(opened(probed, image_shape=(3, 32, 32)).logits(images), expected, atol=1e-4)


def test_images_with_other_channels_are_refused(probed):
    with pytest.raises(InputError, match=r"takes 3 channels \(image_shape\), but the images have 1"):
        opened(probed, image_shape=(1, 12, 12))


def test_the_last_layer_of_a_classifier_is_left_out(tmp_path):
    network = random_backbone(tmp_path / "whole.safetensors", num_classes=5)
    settings = {**SETTINGS, "path": str(tmp_path / "whole.safetensors")}
    backbone = open_backbone(settings, settings["path"], image_shape=(3, 32, 32))
    images, _ = samples(2, 3, classes=2, side=32)
    with torch.no_grad():
        tokens = network.forward_features(torch.from_numpy((images - 0.5) / 0.25))
        expected = network.forward_head(tokens, pre_logits=True).numpy()
    np.testing.assert_allclose(backbone.logits(images), expected, atol=1e-4)


def test_a_fit_cut_short_says_so_and_bad_features_are_refused():
    features = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    labels = np.arange(60) % 3
    _, taken = fit_head(features, labels, classes=3, penalty=0.01, iterations=2)
    assert taken == 2
    features[3, 1] = np.nan
    with pytest.raises(InputError, match="non-finite features"):
        fit_head(features, labels, classes=3, penalty=1, iterations=10)
