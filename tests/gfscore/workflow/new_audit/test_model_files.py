"""Networks by name, with weights that were downloaded before."""

from pathlib import Path

import huggingface_hub
import pytest
import torch

from gfscore.core.errors import InputError
from gfscore.networks.compatibility import import_torchvision
from gfscore.workflow.new_audit.model_files import find_named


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
    ("name", "message"),
    [
        (
            "resnet18",
            r"resnet18: its weights are not on this machine.*timm\.create_model\('resnet18', pretrained=True\)",
        ),
        ("torchvision:resnet18", r"not on this machine.*torchvision\.models\.get_model\('resnet18'"),
        ("timm:rsnet18", r"no network of timm or torchvision has this name; did you mean .*resnet18"),
        ("keras:resnet18", r"networks are timm:NAME and torchvision:NAME"),
    ],
)
def test_what_is_not_there_is_told_with_the_command_that_fetches_it(cache, name, message):
    with pytest.raises(InputError, match=message):
        find_named(name)
