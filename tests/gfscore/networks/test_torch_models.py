"""The sources torch and timm, and logits of any source from a manifest to a table."""

import hashlib

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from extract_logits import extract_logits
from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images import encoded
from gfscore.networks.architecture_files import describe_network
from gfscore.networks.callables import build_architecture
from gfscore.networks.classifier import Classifier
from gfscore.networks.outputs import class_count
from gfscore.tables.parquet_tables import read_identity, read_logits
from helpers.networks import FLAT_DEFINITION, FLAT_IMAGES, manifest_of, opened, write_graph

pytestmark = pytest.mark.usefixtures("architectures")


@pytest.fixture
def stored(tmp_path):
    network = build_architecture("architectures.mine:Flat", {})
    path = tmp_path / "flat.pth"
    torch.save({"state_dict": {f"module.{k}": v for k, v in network.state_dict().items()}}, path)
    return network, path


def test_a_stored_network_comes_back_with_its_preprocessing(stored):
    network, path = stored
    settings = {"architecture": "architectures.mine:Flat", "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.2, 0.2]}
    classifier = opened(manifest_of(path, "torch", **settings))
    mean = np.reshape([0.5, 0.4, 0.3], (3, 1, 1)).astype(np.float32)
    expected = network(torch.from_numpy((FLAT_IMAGES - mean) / np.float32(0.2))).detach().numpy()
    np.testing.assert_allclose(classifier.logits(FLAT_IMAGES), expected, rtol=1e-4, atol=1e-5)
    assert (classifier.image_shape, classifier.classes) == ((3, 8, 8), 4)
    assert classifier.logits(FLAT_IMAGES).dtype == np.float32
    assert not classifier.network.training
    assert classifier.preprocessing.startswith("rgb, white 1, mean 0.5")


def test_another_digest_is_refused_before_anything_is_read(stored):
    _, path = stored
    manifest = manifest_of(path, "torch", architecture="os:system")
    with pytest.raises(InputError, match=r"flat\.pth: sha256 is"):
        opened({**manifest, "sha256": "0" * 64})


def test_wrong_shapes_and_outputs_are_named(stored):
    _, path = stored
    with pytest.raises(InputError, match=r"fails on images of shape \(3, 9, 9\).*correct image_shape"):
        opened(manifest_of(path, "torch", architecture="architectures.mine:Flat", image_shape=[3, 9, 9]))
    with pytest.raises(
        InputError,
        match=r"2 outputs: 0 \(n, 4\), 1 \(n, 3, 8, 8\); .*`output`",
    ):
        opened(manifest_of(path, "torch", architecture="architectures.mine:Pair"))
    with pytest.raises(InputError, match=r"linear\.weight \(4, 192\) instead of \(6, 192\)"):
        opened(manifest_of(path, "torch", architecture="architectures.mine:Flat", arguments={"classes": 6}))
    with pytest.raises(InputError, match=r"has outputs 0 to 3, not 4; correct `outputs`"):
        opened(manifest_of(path, "torch", architecture="architectures.mine:Flat", outputs=[4, 0]))


def test_one_number_per_image_is_no_classifier():
    with pytest.raises(InputError, match=r"m: returns shape \(2, 1\)"):
        class_count(lambda images: images.reshape(2, -1)[:, :1], (3, 8, 8), where="m")


def test_a_network_of_one_channel_that_is_shown_colours_needs_arrays():
    network = torch.nn.Conv2d(1, 4, 3)
    with pytest.raises(InputError, match=r"m: fails on images of shape \(3, 8, 8\).*give grey images as arrays"):
        class_count(lambda images: network(torch.from_numpy(images)), (3, 8, 8), where="m")


def test_a_timm_network_with_local_weights(tmp_path):
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import timm

    network = timm.create_model("test_vit", num_classes=4, img_size=32).eval()
    path = tmp_path / "vit.safetensors"
    save_file(network.state_dict(), path)
    settings = {"architecture": "test_vit", "arguments": {"img_size": 32}, "image_shape": [3, 32, 32]}
    classifier = opened(manifest_of(path, "timm", **settings))
    images = np.random.default_rng(1).random((2, 3, 32, 32), dtype=np.float32)
    with torch.no_grad():
        np.testing.assert_allclose(classifier.logits(images), network(torch.from_numpy(images)), rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="has no architecture 'test_vitt'; did you mean 'test_vit'"):
        opened(manifest_of(path, "timm", **settings | {"architecture": "test_vitt"}))
    with pytest.raises(InputError, match="has no architecture 'hf-hub:someone/model'"):
        opened(manifest_of(path, "timm", **settings | {"architecture": "hf-hub:someone/model"}))
    with pytest.raises(InputError, match="'pretrained' follows from the data and `path`"):
        opened(manifest_of(path, "timm", **settings | {"arguments": {"pretrained": True}}))
    with pytest.raises(InputError, match="other shapes"):
        opened(manifest_of(path, "timm", **settings), classes=5)


def test_unknown_sources_are_named(stored):
    with pytest.raises(InputError, match=r"source 'keras' is unknown; known: onnx, .*trained"):
        opened({**manifest_of(stored[1], "torch"), "source": "keras"})


@pytest.mark.parametrize("source", ["torch", "onnx"])
def test_logits_of_a_fetched_checkpoint_carry_its_identity(tmp_path, stored, source):
    np.savez(tmp_path / "d.npz", x=FLAT_IMAGES, y=[0, 1, 2, 3, 0])
    from fetch_dataset import fetch_dataset

    settings = {"source": "npz", "value_range": 1, "channels": "first"}
    made = tmp_path / "d.json", tmp_path / "d.parquet"
    fetch_dataset(settings, list("abcd"), *made, dataset="d", path_to_images=tmp_path / "d.npz")
    path = stored[1]
    if source == "onnx":
        path = tmp_path / "m.onnx"
        write_graph(path)
    manifest = manifest_of(path, source, architecture="architectures.mine:Flat")
    write_json(tmp_path / "m.json", manifest)
    extract_logits(tmp_path / "d.json", tmp_path / "m.json", None, tmp_path / "l.parquet")
    _, label, logits = read_logits(tmp_path / "l.parquet")
    assert label.tolist() == [0, 1, 2, 3, 0]
    classifier = opened(manifest)
    assert isinstance(classifier, Classifier)
    np.testing.assert_allclose(logits, classifier.logits(FLAT_IMAGES), rtol=1e-5, atol=1e-5)
    identity = read_identity(tmp_path / "l.parquet")
    assert identity["checkpoint_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert identity["preprocessing"].endswith("; rgb, white 1")
    assert identity["architecture"] == "architectures.mine:Flat"


def test_images_are_decoded_once_for_a_converted_graph_and_its_original(tmp_path, monkeypatch):
    from fetch_dataset import fetch_dataset

    for row, name in enumerate("abcdabcd"):
        folder = tmp_path / "images" / name
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(row).integers(0, 256, (8, 8, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{row}.png")
    settings = {"source": "image_folder", "folders": None, "list": None, "preprocessing": {"method": "none"}}
    made = tmp_path / "d.json", tmp_path / "d.parquet"
    fetch_dataset(settings, list("abcd"), *made, dataset="d", path_to_images=tmp_path / "images")
    write_graph(tmp_path / "m.onnx")
    write_json(tmp_path / "m.json", manifest_of(tmp_path / "m.onnx", "onnx", gradients=True))
    decode, decoded = encoded.prepare, []

    def counted(content, preprocessing, *, name):
        decoded.append(name)
        return decode(content, preprocessing, name=name)

    monkeypatch.setattr(encoded, "prepare", counted)
    extract_logits(made[0], tmp_path / "m.json", None, tmp_path / "l.parquet")
    # The first one says the size.
    assert len(decoded) == 1 + 8
    assert "onnxruntime" in read_identity(tmp_path / "l.parquet")["conversion"]


def test_a_network_is_opened_with_the_code_of_its_manifest_only(architectures, stored):
    name = "architectures.mine:Flat"
    manifest = {**manifest_of(stored[1], "torch", architecture=name), **describe_network(name)}
    assert isinstance(opened(manifest), Classifier)
    (architectures / "mine.py").write_text(f"{FLAT_DEFINITION}\nopen('it-ran', 'w')\n")
    with pytest.raises(InputError, match=r"architectures/mine\.py: differs from the code of architectures\.mine:Flat"):
        opened(manifest)
