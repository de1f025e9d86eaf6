"""Networks by name, with weights that were downloaded before, and in folders of timm."""

import json
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gfscore.core.errors import InputError
from gfscore.networks.compatibility import import_torchvision
from gfscore.networks.model_source import model_sources
from gfscore.networks.timm_models import open_classifier
from gfscore.workflow.new_audit.model_files import find_models, find_named
from gfscore.workflow.new_audit.request import Request


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of torch and of Hugging Face."""
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda repository, file: None)
    (tmp_path / "checkpoints").mkdir()
    return tmp_path / "checkpoints"


def test_a_network_of_torchvision_brings_its_transforms_and_classes(cache):
    models = import_torchvision().models
    (weights,) = models.get_model_weights("shufflenet_v2_x1_5")
    path = cache / Path(weights.url).name
    torch.save(models.get_model("shufflenet_v2_x1_5").state_dict(), path)
    found = find_named("torchvision:shufflenet_v2_x1_5")
    assert found.entry == {
        "source": "torch", "path": str(path), "architecture": "torchvision.models:shufflenet_v2_x1_5",
        "arguments": {"num_classes": 1000},
    }  # fmt: skip
    assert found.input.shape == (3, 224, 224) and found.input.resize.resize == 232 and found.labels[0] == "tench"
    assert found.input.pixels.preprocessing.mean == pytest.approx([0.485, 0.456, 0.406])


def test_a_network_of_timm_brings_what_its_table_says(cache, monkeypatch):
    monkeypatch.setattr(
        huggingface_hub, "try_to_load_from_cache", lambda repository, file: f"/cache/{repository}/{file}"
    )
    found = find_named("resnet18.a1_in1k")
    assert found.entry == {
        "source": "timm", "path": "/cache/timm/resnet18.a1_in1k/model.safetensors", "architecture": "resnet18",
    }  # fmt: skip
    assert found.input.shape == (3, 224, 224) and found.input.pixels.preprocessing.std == pytest.approx(
        [0.229, 0.224, 0.225]
    )


@pytest.mark.parametrize(
    ("name", "arguments", "interpolation"),
    [
        ("inception_v3", {"num_classes": 1000, "transform_input": True}, "bilinear"),
        ("googlenet", {"num_classes": 1000, "transform_input": True}, "bilinear"),
        ("vit_b_16", {"num_classes": 1000, "image_size": 384}, "bicubic"),
        ("efficientnet_b0", {"num_classes": 1000}, "bicubic"),
    ],
)
def test_a_network_of_torchvision_is_built_as_with_its_weights(name, arguments, interpolation, cache):
    weights = list(import_torchvision().models.get_model_weights(name))
    sizes = [entry.transforms().crop_size[0] for entry in weights]
    largest = weights[sizes.index(max(sizes))]
    (cache / Path(largest.url).name).write_bytes(b"weights")
    found = find_named(f"torchvision:{name}")
    assert found.entry["arguments"] == arguments
    assert found.input.resize.interpolation == interpolation == largest.transforms().interpolation.value


@pytest.mark.parametrize("name", ["resnet18", "squeezenet1_1"])
@pytest.mark.parametrize("classes", [7, 1000])
def test_weights_of_torchvision_have_as_many_classes_as_their_last_layer(name, classes, tmp_path):
    path = tmp_path / "weights.pth"
    network = import_torchvision().models.get_model(name, num_classes=classes)
    torch.save({"state_dict": {f"module.{key}": value for key, value in network.state_dict().items()}}, path)
    (model,) = find_models(Request(models=(str(path),), data=None, architecture=f"torchvision:{name}"))
    assert model.entry.get("arguments", {}) == ({"num_classes": 7} if classes == 7 else {})


@pytest.mark.parametrize(
    ("name", "arguments", "stated"),
    [
        ("resnet18", {"global_pool": "max"}, {"global_pool": "max", "checkpoint_path": "/other", "num_classes": 3}),
        ("vit_tiny_patch16_224", {"img_size": 64}, {}),
    ],
)
@pytest.mark.parametrize("form", ["timm 0.9", "before"])
def test_a_folder_of_timm_is_built_with_its_arguments(name, arguments, stated, form, tmp_path):
    import_torchvision()
    timm = pytest.importorskip("timm")
    network = timm.create_model(name, num_classes=3, **arguments).eval()
    pretrained = {**network.pretrained_cfg, "input_size": [3, 64, 64]}
    config = {
        "architecture": name, "pretrained_cfg": pretrained, "model_args": stated,
        "label_names": {"0": "cat", "1": "dog", "2": "elk"},
    }  # fmt: skip
    if form == "before":
        config = {"architecture": name, "num_classes": 3, "labels": ["cat", "dog", "elk"], **pretrained}
        network = timm.create_model(name, num_classes=3, **({"img_size": 64} if "vit" in name else {})).eval()
    (tmp_path / "config.json").write_text(json.dumps(config))
    save_file(network.state_dict(), tmp_path / "model.safetensors")

    (model,) = find_models(Request(models=(str(tmp_path),), data=None))
    assert list(model.labels) == ["cat", "dog", "elk"]
    settings = model_sources()["timm"].settings.model_validate(model.entry).explicit()
    settings["image_shape"] = [3, 64, 64]
    classifier = open_classifier(settings, model.path, image_shape=(3, 64, 64), classes=3, threads=1)
    images = np.random.default_rng(0).random((2, 3, 64, 64), dtype=np.float32)
    with torch.no_grad():
        expected = network(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(classifier.logits(images), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "resnet18",
            r"resnet18: its weights are not on this machine.*timm\.create_model\('resnet18', pretrained=True\)",
        ),
        ("torchvision:resnet18", r"not on this machine.*torchvision\.models\.get_model\('resnet18'"),
        ("torchvision:maskrcnn_resnet50_fpn", "no classifier of timm or torchvision"),
    ],
)
def test_what_is_not_there_is_told_with_the_command_that_fetches_it(cache, name, message):
    with pytest.raises(InputError, match=message):
        find_named(name)
