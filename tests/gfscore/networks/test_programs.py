"""The sources program and transformers: networks whose code or configuration comes with their file."""

import json
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.networks.batches import fitting_batch_size
from gfscore.networks.checkpoint_files import describe_checkpoint
from gfscore.networks.classifier import open_classifier
from gfscore.networks.programs import kind_of_program

IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)
PIXELS = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": [0.5, 0.5, 0.5], "std": None}
MODEL = {"dataset": "z", "threat": "none", "model": "M"}


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 4)).eval()


def opened(path, source, *, classes=4, **settings):
    sha256 = None if source == "transformers" else sha256_of_file(path)
    entry = {"source": source, "path": str(path), "url": None, "sha256": sha256, "trust_pickle": True, **PIXELS}
    if source == "transformers":
        del entry["trust_pickle"]
    manifest = describe_checkpoint({**entry, **settings}, identity=MODEL)
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=classes)


def saved(network, path, *, kind="script", batch="any"):
    example = torch.zeros(2 if batch == "any" else batch, 3, 8, 8)
    if kind == "script":
        torch.jit.trace(network, example).save(path)
    else:
        shapes = ({0: torch.export.Dim("n")},) if batch == "any" else None
        torch.export.save(torch.export.export(network, (example,), dynamic_shapes=shapes), path)


@pytest.mark.parametrize(("kind", "batch"), [("script", "any"), ("export", "any"), ("export", 1), ("export", 3)])
def test_a_program_gives_the_logits_and_gradients_of_its_network(tmp_path, network, kind, batch):
    path = tmp_path / "m.pt2"
    saved(network, path, kind=kind, batch=batch)
    assert kind_of_program(path) == kind
    classifier = opened(path, "program")
    images = torch.from_numpy(IMAGES).requires_grad_()
    expected = network(images - 0.5)
    np.testing.assert_allclose(classifier.logits(IMAGES), expected.detach(), rtol=1e-5, atol=1e-6)
    (wanted,) = torch.autograd.grad(expected[:, 1].sum(), images)
    (found,) = torch.autograd.grad(classifier.network(images)[:, 1].sum(), images)
    torch.testing.assert_close(found, wanted)
    assert 1 <= fitting_batch_size(classifier, (3, 8, 8), "cpu") <= 256
    assert classifier.classes == 4 and opened(path, "program", outputs=[2, 0]).classes == 2


def test_code_is_opened_only_with_trust_and_its_digest(tmp_path, network):
    path = tmp_path / "m.pt"
    saved(network, path)
    for missing in ({"trust_pickle": False}, {"sha256": None}):
        with pytest.raises(InputError, match=r"trust"):
            opened(path, "program", **missing)
    with pytest.raises(InputError, match=r"sha256 is"):
        opened(path, "program", sha256="0" * 64)


def test_files_that_are_no_programs_are_named(tmp_path, network):
    path = tmp_path / "weights.pt"
    torch.save(network.state_dict(), path)
    with pytest.raises(InputError, match=r"weights\.pt: is neither TorchScript nor .*architecture"):
        opened(path, "program")
    with zipfile.ZipFile(tmp_path / "compiled.pt2", "w") as file:
        file.writestr("m/archive_format", "pt2")
        file.writestr("m/data/aotinductor/model/code.so", "")
    with pytest.raises(InputError, match=r"compiled\.pt2: holds compiled code"):
        opened(tmp_path / "compiled.pt2", "program")


# ---- source transformers ----


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
    classifier = opened(path / "model.safetensors", "transformers")
    expected = network(pixel_values=torch.from_numpy(IMAGES) - 0.5).logits.detach()
    np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=1e-4, atol=1e-5)
    named = opened(path / "model.safetensors", "transformers", output="logits")
    np.testing.assert_array_equal(named.logits(IMAGES), classifier.logits(IMAGES))
    with pytest.raises(InputError, match=r"no output 'features'; it has logits \(n, 4\)"):
        opened(path / "model.safetensors", "transformers", output="features")


def test_its_configuration_is_a_part_of_its_identity(folder):
    path, _ = folder
    opened(path / "model.safetensors", "transformers")
    (path / "config.json").write_text((path / "config.json").read_text() + " ")
    with pytest.raises(InputError, match=r"config\.json: sha256 is"):
        opened(path / "model.safetensors", "transformers")


@pytest.mark.parametrize("changes", [{"model_type": "nothing"}, {"model_type": "bert"}, {"hidden_size": 12}])
def test_configurations_that_do_not_fit_are_named(folder, changes):
    path, _ = folder
    known = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(known | changes))
    message = r"model\.safetensors: transformers .* makes no image classifier of it and its config\.json"
    with pytest.raises(InputError, match=message):
        opened(path / "model.safetensors", "transformers")


def test_no_code_of_a_folder_is_run(folder, monkeypatch):
    path, _ = folder
    known = json.loads((path / "config.json").read_text())
    del known["model_type"]
    auto = {"AutoConfig": "mine.Config", "AutoModelForImageClassification": "mine.Model"}
    (path / "config.json").write_text(json.dumps(known | {"auto_map": auto}))
    (path / "mine.py").write_text(f"open({str(path / 'it-ran')!r}, 'w')\n")
    with pytest.raises(InputError, match=r"makes no image classifier"):
        opened(path / "model.safetensors", "transformers")
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
        opened(path / "model.safetensors", "transformers")


@pytest.mark.parametrize("name", ["eager", "sdpa", None])
def test_attention_of_torch_gives_the_logits_of_the_network(folder, name):
    path, network = folder
    known = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(known | {"_attn_implementation": name}))
    expected = network(pixel_values=torch.from_numpy(IMAGES) - 0.5).logits.detach()
    logits = opened(path / "model.safetensors", "transformers").logits(IMAGES)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_other_files_of_weights_are_refused(folder):
    path, network = folder
    torch.save(network.state_dict(), path / "weights.pt")
    with pytest.raises(InputError, match=r"weights\.pt: .*model\.safetensors"):
        opened(path / "weights.pt", "transformers")
    save_file({"a": torch.zeros(2)}, path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"model\.safetensors: the weights do not fit"):
        opened(path / "model.safetensors", "transformers")
