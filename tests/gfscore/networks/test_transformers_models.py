"""Networks of transformers in a local folder."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from gfscore.core.errors import InputError
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import open_classifier

IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)


PIXELS = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": [0.5, 0.5, 0.5], "std": None}


MODEL = {"dataset": "z", "threat": "none", "model": "M"}


class Runs:
    """Object whose unpickling writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def opened(path, *, classes=4, **settings):
    entry = {"source": "transformers", "path": str(path), "url": None, "sha256": None, **PIXELS}
    manifest = describe_checkpoint({**entry, **settings}, identity=MODEL)
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=classes)


@pytest.fixture
def folder(tmp_path):
    """Folder of a tiny network of transformers for images of 8 pixels, and that network."""
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import transformers

    torch.manual_seed(1)
    config = transformers.ViTConfig(
        image_size=8, patch_size=4, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=4, architectures=["ViTForImageClassification"],
    )  # fmt: skip
    made = transformers.ViTForImageClassification(config).eval()
    made.save_pretrained(tmp_path / "vit")
    return tmp_path / "vit", made


def test_a_folder_of_transformers_gives_the_logits_of_its_network(folder):
    path, network = folder
    classifier = opened(path / "model.safetensors")
    expected = network(pixel_values=torch.from_numpy(IMAGES) - 0.5).logits.detach()
    np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=1e-4, atol=1e-5)
    named = opened(path / "model.safetensors", output="logits")
    np.testing.assert_array_equal(named.logits(IMAGES), classifier.logits(IMAGES))
    with pytest.raises(InputError, match=r"no output 'features'; it has logits \(n, 4\)"):
        opened(path / "model.safetensors", output="features")


def saved_as(path, network, kind):
    """File that names the weights, of the network saved anew in this way."""
    for file in path.glob("model*"):
        file.unlink()
    if kind == "safetensors in parts":
        network.save_pretrained(path, max_shard_size="2KB")
        return path / "model.safetensors.index.json"
    state = network.state_dict()
    if kind == "bin":
        torch.save(state, path / "pytorch_model.bin")
        return path / "pytorch_model.bin"
    index = {"metadata": {}, "weight_map": {}}
    for number in (1, 2):
        name = f"pytorch_model-0000{number}-of-00002.bin"
        part = dict(list(state.items())[number - 1 :: 2])
        torch.save(part, path / name)
        index["weight_map"].update(dict.fromkeys(part, name))
    (path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    return path / "pytorch_model.bin.index.json"


@pytest.mark.parametrize("kind", ["safetensors in parts", "bin", "bin in parts"])
def test_weights_are_read_from_every_file_that_save_pretrained_wrote(folder, kind):
    path, network = folder
    file = saved_as(path, network, kind)
    expected = network(pixel_values=torch.from_numpy(IMAGES) - 0.5).logits.detach()
    np.testing.assert_allclose(opened(file).logits(IMAGES), expected, rtol=1e-4, atol=1e-5)


def test_every_part_belongs_to_the_identity_and_none_is_run(folder):
    path, network = folder
    index = saved_as(path, network, "bin in parts")
    part = path / "pytorch_model-00002-of-00002.bin"
    entry = {"source": "transformers", "path": str(index), "url": None, "sha256": None, **PIXELS}
    first = describe_checkpoint(entry, identity=MODEL, record=False)["sha256"]
    weights = torch.load(part)
    torch.save({name: value + 1 for name, value in weights.items()}, part)
    assert describe_checkpoint(entry, identity=MODEL, record=False)["sha256"] != first
    torch.save({"code": Runs(path / "it-ran"), **weights}, part)
    with pytest.raises(InputError, match=r"pytorch_model-00002-of-00002\.bin: refused, nothing in it was run"):
        opened(index)
    assert not (path / "it-ran").exists()
    part.unlink()
    with pytest.raises(InputError, match=r"pytorch_model-00002-of-00002\.bin"):
        opened(index)


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": "../b.bin"}}', "{", '{"weight_map": {"a": 1}}']
)
def test_an_index_that_names_no_files_of_its_folder_is_refused(folder, content):
    path, _ = folder
    (path / "pytorch_model.bin.index.json").write_text(content)
    with pytest.raises(InputError, match=r"index\.json: (names no files of weights|is no PyTorch)"):
        opened(path / "pytorch_model.bin.index.json")


def test_its_configuration_is_a_part_of_its_identity(folder):
    path, _ = folder
    opened(path / "model.safetensors")
    (path / "config.json").write_text((path / "config.json").read_text() + " ")
    with pytest.raises(InputError, match=r"config\.json: sha256 is"):
        opened(path / "model.safetensors")


@pytest.mark.parametrize("changes", [{"model_type": "nothing"}, {"model_type": "bert"}, {"hidden_size": 12}])
def test_configurations_that_do_not_fit_are_named(folder, changes):
    path, _ = folder
    known = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(known | changes))
    message = r"model\.safetensors: transformers .* makes no image classifier of it and its config\.json"
    with pytest.raises(InputError, match=message):
        opened(path / "model.safetensors")


def test_no_code_of_a_folder_is_run(folder, monkeypatch):
    path, _ = folder
    known = json.loads((path / "config.json").read_text())
    del known["model_type"]
    auto = {"AutoConfig": "mine.Config", "AutoModelForImageClassification": "mine.Model"}
    (path / "config.json").write_text(json.dumps(known | {"auto_map": auto}))
    (path / "mine.py").write_text(f"open({str(path / 'it-ran')!r}, 'w')\n")
    with pytest.raises(InputError, match=r"makes no image classifier"):
        opened(path / "model.safetensors")
    assert not (path / "it-ran").exists()


KERNEL = "kernels-community/flash-attn"


@pytest.mark.parametrize(
    "changes",
    [
        {"_attn_implementation": KERNEL},
        {"attn_implementation": "flash_attention_2"},
        {"_attn_implementation_internal": KERNEL},
        {"attn_implementation": {"": "eager", "vision_config": KERNEL}},
        {"vision_config": {"layers": [{"_attn_implementation": KERNEL}]}},
        {"experts_implementation": "sonicmoe"},
        {"quantization_config": {"quant_method": "fp8"}},
        {"configuration_files": ["config.5.0.0.json"]},
    ],
    ids=str,
)
def test_a_configuration_that_names_kernels_is_refused_before_anything_is_loaded(folder, changes, monkeypatch):
    import transformers

    path, _ = folder
    known = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(known | changes))
    automatic = transformers.AutoModelForImageClassification
    monkeypatch.setattr(automatic, "from_pretrained", lambda *_, **__: pytest.fail("the library was asked"))
    with pytest.raises(InputError, match=r"config\.json: \w*(implementation|config|files)"):
        opened(path / "model.safetensors")


@pytest.mark.parametrize("name", ["eager", "sdpa", None])
def test_attention_of_torch_gives_the_logits_of_the_network(folder, name):
    path, network = folder
    known = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(known | {"_attn_implementation": name}))
    expected = network(pixel_values=torch.from_numpy(IMAGES) - 0.5).logits.detach()
    logits = opened(path / "model.safetensors").logits(IMAGES)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_other_files_of_weights_are_refused(folder):
    path, network = folder
    torch.save(network.state_dict(), path / "weights.pt")
    with pytest.raises(InputError, match=r"weights\.pt: .*model\.safetensors"):
        opened(path / "weights.pt")
    quantised = dict(network.state_dict())
    quantised["classifier.weight"] = (100 * quantised["classifier.weight"]).to(torch.int8)
    save_file(quantised, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"8-bit whole numbers .*: classifier\.weight int8"):
        opened(path / "model.safetensors")
    (path / "model.safetensors.sha256").unlink()
    save_file({"a": torch.zeros(2)}, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"model\.safetensors: the weights do not fit"):
        opened(path / "model.safetensors")
