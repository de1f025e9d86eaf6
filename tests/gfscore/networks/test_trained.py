"""Files of trained classifiers."""

import hashlib

import pytest
import torch
from safetensors.torch import save

from gfscore.core.errors import InputError
from gfscore.networks.architectures import build_network
from gfscore.networks.trained import load_network, save_classifier

SHAPE = {"in_channels": 3, "image_size": (9, 12), "classes": 5}


@pytest.fixture
def stored(tmp_path):
    network = build_network("patch_mixer", seed=4, width=8, depth=1, **SHAPE)
    path = tmp_path / "model.safetensors"
    return network, path, save_classifier(path, network, metadata={"method": "PGD", "seed": 4})


def test_a_stored_classifier_comes_back_whole(stored):
    network, path, sha256 = stored
    loaded = load_network(path)
    images = torch.rand(4, 3, 9, 12)
    assert torch.equal(loaded(images), network(images))
    assert not loaded.training
    assert loaded.recipe == {
        "architecture": "patch_mixer",
        "in_channels": 3,
        "image_size": [9, 12],
        "classes": 5,
        "arguments": {"width": 8, "depth": 1},
    }
    assert loaded.metadata == {"method": "PGD", "seed": 4}
    assert sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_equal_classifiers_give_equal_files(stored, tmp_path):
    network, path, _ = stored
    for index in range(5):
        again = tmp_path / f"again-{index}.safetensors"
        save_classifier(again, network, metadata={"seed": 4, "method": "PGD"})
        assert again.read_bytes() == path.read_bytes()


def test_a_file_of_another_kind_is_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    for content in (save({"weight": torch.zeros(2)}), b"<!doctype html>", b"", b"\x80\x04pickle"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"foreign\.safetensors: no header of a classifier"):
            load_network(path)


def test_weights_of_another_architecture_are_refused(tmp_path):
    path = tmp_path / "mixed.safetensors"
    network = build_network("small_convnet", **SHAPE)
    network.recipe = {**network.recipe, "arguments": {"width": 4}}
    save_classifier(path, network, metadata={})
    with pytest.raises(InputError, match=r"mixed\.safetensors: the weights do not fit architecture 'small_convnet'"):
        load_network(path)
