"""Networks with offsets in files: what the written file gives when others run it, and what is refused."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import load_file, save_file
from torch import nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.networks.adjusted_files import writing
from gfscore.networks.checkpoint_files import describe_checkpoint
from helpers.networks import FLAT_IMAGES, FLAT_PREPROCESSING, manifest_of

OFFSETS = np.array([0.5, -1.0, 0.25, 0.25])
IMAGE = torch.from_numpy(FLAT_IMAGES)
WEIGHTS = np.random.default_rng(2).normal(size=(192, 4)) / 10


def softmax(values):
    powers = np.exp(values)
    return powers / powers.sum(axis=1, keepdims=True)


def described(path, source, **settings):
    entry = {"source": source, "path": str(path), "url": None, "sha256": None, **FLAT_PREPROCESSING, **settings}
    return describe_checkpoint(entry, identity={"dataset": "z", "threat": "none", "model": "M"}, record=False)


def written(manifest, target, *, offsets=OFFSETS, **options):
    return writing.write_adjusted(manifest, np.asarray(offsets), target, images=FLAT_IMAGES, **options)


# ONNX


def write_graph(
    path, *operators, dtype=np.float32, number_type=TensorProto.FLOAT, columns=4, outputs=("y",), data=None
):
    """Linear classifier whose output z goes through further operators, each the last one's."""
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["z"])]
    names = ["z", *[f"v{number}" for number in range(len(operators) - 1)], "y"]
    for operator, source, result in zip(operators or ("Identity",), names, names[1:] or ["y"], strict=False):
        nodes.append(helper.make_node(operator, [source], [result]))
    image = helper.make_tensor_value_info("image", number_type, ["n", 3, 8, 8])
    results = [helper.make_tensor_value_info(name, number_type, ["n", columns]) for name in outputs]
    weights = numpy_helper.from_array(WEIGHTS[:, :columns].astype(dtype), "w")
    graph = helper.make_graph(nodes, "g", [image], results, [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save_model(model, path, save_as_external_data=data is not None, location=data, size_threshold=0)


def run(path, *, dtype=np.float32):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return [value.astype(np.float64) for value in session.run(None, {"image": FLAT_IMAGES.astype(dtype)})]


LOGITS = FLAT_IMAGES.reshape(5, -1).astype(np.float64) @ WEIGHTS.astype(np.float32)


def test_offsets_are_added_to_the_logits_of_a_graph(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "new" / "m.onnx"
    write_graph(path)
    model = written(described(path, "onnx"), target)
    np.testing.assert_allclose(run(target)[0], LOGITS + OFFSETS, atol=1e-5)
    assert model.sha256 == sha256_of_file(target) == (target.parent / "m.onnx.sha256").read_text().split()[0]
    assert sorted(file.name for file in target.parent.iterdir()) == ["m.onnx", "m.onnx.sha256"]


def test_a_head_and_a_second_output_follow_the_adjusted_logits(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "a.onnx"
    write_graph(path, "Softmax", outputs=("z", "y"))
    written(described(path, "onnx", output="y", head="softmax"), target)
    logits, probabilities = run(target)
    np.testing.assert_allclose(logits, LOGITS + OFFSETS, atol=1e-5)
    np.testing.assert_allclose(probabilities, softmax(LOGITS + OFFSETS), atol=1e-6)


def test_probabilities_become_those_of_the_adjusted_logits(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "a.onnx"
    write_graph(path, "Softmax")
    written(described(path, "onnx", allow_probabilities="logarithms"), target)
    np.testing.assert_allclose(run(target)[0], softmax(LOGITS + OFFSETS), atol=1e-6)


@pytest.mark.parametrize("settings", [{}, {"head": "sigmoid"}, {"allow_probabilities": "logarithms"}])
def test_one_output_moves_by_the_difference_of_both_offsets(tmp_path, settings):
    path, target = tmp_path / "m.onnx", tmp_path / "a.onnx"
    write_graph(path, *(["Sigmoid"] if settings else []), columns=1)
    written(described(path, "onnx", **settings), target, offsets=[0.25, -0.75])
    moved = LOGITS[:, :1] - 1
    np.testing.assert_allclose(run(target)[0], 1 / (1 + np.exp(-moved)) if settings else moved, atol=1e-5)


def test_only_outputs_that_are_classes_move(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "a.onnx"
    write_graph(path)
    written(described(path, "onnx", outputs=[3, 1]), target, offsets=[1.0, -2.0])
    np.testing.assert_allclose(run(target)[0], LOGITS + np.array([0, -2, 0, 1]), atol=1e-5)


def test_weights_in_another_file_stay_in_one(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "new" / "a.onnx"
    write_graph(path, data="weights.bin")
    written(described(path, "onnx"), target)
    assert (target.parent / "a.onnx.data").stat().st_size >= 192 * 4 * 4
    np.testing.assert_allclose(run(target)[0], LOGITS + OFFSETS, atol=1e-5)


def test_a_graph_in_float16_stays_one(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "a.onnx"
    write_graph(path, dtype=np.float16, number_type=TensorProto.FLOAT16)
    written(described(path, "onnx"), target)
    assert onnx.load(target).graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    np.testing.assert_allclose(run(target, dtype=np.float16)[0], LOGITS + OFFSETS, atol=0.02)


def test_offsets_may_be_added_twice(tmp_path):
    path, once, twice = (tmp_path / f"{name}.onnx" for name in ("m", "once", "twice"))
    write_graph(path)
    written(described(path, "onnx"), once)
    written(described(once, "onnx"), twice)
    np.testing.assert_allclose(run(twice)[0], LOGITS + 2 * OFFSETS, atol=1e-5)


# Weights


class Flat(nn.Module):
    """As architectures/mine.py of the helpers defines it."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(192, 4)


@pytest.mark.parametrize("suffix", ["pth", "safetensors"])
def test_offsets_go_into_the_last_bias(tmp_path, architectures, suffix):
    torch.manual_seed(0)
    weights = {f"module.{name}": value for name, value in Flat().state_dict().items()}
    path, target = tmp_path / f"m.{suffix}", tmp_path / f"a.{suffix}"
    if suffix == "pth":
        torch.save({"state_dict": weights, "epoch": 3}, path)
    else:
        save_file(weights, path, metadata={"format": "pt", "made": "here"})
    model = written(manifest_of(path, "torch", architecture="architectures.mine:Flat"), target)
    assert model.code is None
    changed = torch.load(target) if suffix == "pth" else load_file(target)
    assert changed.keys() == weights.keys()
    moved = changed["module.linear.bias"] - weights["module.linear.bias"]
    np.testing.assert_allclose(moved.detach(), OFFSETS, atol=1e-6)


FURTHER = """

class Clamped(Flat):
    def forward(self, x):
        return super().forward(x).clamp(-50, 50)

class Soft(Flat):
    def forward(self, x):
        return super().forward(x).softmax(1)

class Tied(Flat):
    def forward(self, x):
        return super().forward(x + self.linear.bias.sum())
"""
"""Networks that do not end in a bias of their own."""


@pytest.mark.parametrize(("name", "allow"), [("Clamped", None), ("Soft", "logarithms"), ("Tied", None)])
def test_a_network_without_a_last_bias_gets_one_around_it(tmp_path, architectures, name, allow):
    with (architectures / "mine.py").open("a") as file:
        file.write(FURTHER)
    torch.manual_seed(0)
    path, target = tmp_path / "m.pth", tmp_path / "a-b.pth"
    torch.save(Flat().state_dict(), path)
    manifest = manifest_of(path, "torch", architecture=f"architectures.mine:{name}", allow_probabilities=allow)
    model = written(manifest, target)
    assert model.code == tmp_path / "a_b.py"
    np.testing.assert_allclose(torch.load(target)["offsets"], OFFSETS)


@pytest.mark.parametrize("file", ["model.safetensors", "model.safetensors.index.json"])
def test_a_folder_of_transformers_stays_one(tmp_path, file):
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import transformers

    config = transformers.ViTConfig(
        image_size=8, patch_size=4, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        num_labels=4,
    )  # fmt: skip
    network = transformers.ViTForImageClassification(config).eval()
    network.save_pretrained(tmp_path / "vit", max_shard_size="2KB" if "index" in file else "5GB")
    (tmp_path / "vit" / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.5]}))
    target = tmp_path / "new" / "model.safetensors"
    written(described(tmp_path / "vit" / file, "transformers"), target)
    adjusted = transformers.ViTForImageClassification.from_pretrained(target.parent).eval()
    with torch.no_grad():
        moved = adjusted(pixel_values=IMAGE).logits - network(pixel_values=IMAGE).logits
    np.testing.assert_allclose(moved, np.tile(OFFSETS, (5, 1)), atol=1e-5)
    names = {path.name for path in target.parent.iterdir() if path.suffix != ".sha256"}
    assert names == {"model.safetensors", "config.json", "preprocessor_config.json"}


def test_a_network_of_timm_keeps_its_names(tmp_path):
    from gfscore.networks.compatibility import import_torchvision

    import_torchvision()
    import timm

    torch.manual_seed(0)
    network = timm.create_model("resnet10t", num_classes=4)
    path, target = tmp_path / "m.safetensors", tmp_path / "a.safetensors"
    save_file(network.state_dict(), path)
    manifest = described(path, "timm", architecture="resnet10t", arguments={}, weights="model")
    assert written(manifest, target).method == "in the last bias, fc.bias"
    assert load_file(target).keys() == load_file(path).keys()


# Programs


class Two(nn.Module):
    """Logits and their softmax."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, images):
        logits = self.network(images)
        return logits, logits.softmax(1)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 4)).eval()


def exported(network, path, *, batch=None):
    shapes = None if batch else ({0: torch.export.Dim("n")},)
    torch.export.save(torch.export.export(network, (torch.zeros(batch or 2, 3, 8, 8),), dynamic_shapes=shapes), path)


def program(path, **settings):
    return described(path, "program", trust_pickle=True, sha256=sha256_of_file(path), **settings)


def test_torchscript_gets_an_operator(tmp_path, network):
    path, target = tmp_path / "m.pt", tmp_path / "a.pt"
    torch.jit.trace(network, IMAGE).save(path)
    written(program(path), target)
    with torch.no_grad():
        moved = torch.jit.load(target)(IMAGE) - network(IMAGE)
    np.testing.assert_allclose(moved, np.tile(OFFSETS, (5, 1)), atol=1e-5)
    torch.jit.trace(Two(network), IMAGE).save(path)
    with pytest.raises(InputError, match=r"m\.pt: returns several tensors"):
        written(program(path, output="0"), tmp_path / "b.pt")
    assert not (tmp_path / "b.pt").exists()


def test_an_exported_program_keeps_its_channels_last(tmp_path, network):
    path, target = tmp_path / "net.pt2", tmp_path / "new.pt2"
    last = nn.Sequential(Permuted(), network)
    shapes = ({0: torch.export.Dim("n")},)
    torch.export.save(torch.export.export(last, (torch.zeros(2, 8, 8, 3),), dynamic_shapes=shapes), path)
    written(program(path), target)
    with torch.no_grad():
        moved = torch.export.load(target).module()(IMAGE.permute(0, 2, 3, 1)) - network(IMAGE)
    np.testing.assert_allclose(moved, np.tile(OFFSETS, (5, 1)), atol=1e-5)


class Permuted(nn.Module):
    """From images (n, H, W, C) to (n, C, H, W)."""

    def forward(self, images):
        return images.permute(0, 3, 1, 2)


@pytest.mark.parametrize("batch", [None, 3])
def test_an_exported_program_is_exported_again(tmp_path, network, batch):
    path, target = tmp_path / "m.pt2", tmp_path / "a.pt2"
    exported(nn.Sequential(network, nn.Softmax(1)), path, batch=batch)
    written(program(path, head="softmax"), target)
    images = IMAGE[: batch or 5]
    with torch.no_grad():
        probabilities = torch.export.load(target).module()(images)
        expected = (network(images) + torch.tensor(OFFSETS)).softmax(1)
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_the_selected_output_of_a_program_moves_and_what_is_made_of_it(tmp_path, network):
    path, target = tmp_path / "m.pt2", tmp_path / "a.pt2"
    exported(Two(network), path)
    written(program(path, output="0"), target)
    with torch.no_grad():
        logits, probabilities = torch.export.load(target).module()(IMAGE)
        expected = network(IMAGE) + torch.tensor(OFFSETS)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    np.testing.assert_allclose(probabilities, expected.softmax(1), atol=1e-6)


# Refused


def test_offsets_that_are_lost_in_half_precision_are_refused(tmp_path, network):
    path, target = tmp_path / "m.pt", tmp_path / "a.pt"
    # Neighbouring numbers of bfloat16 are 0.5 apart at logits near 100.
    with torch.no_grad():
        network[-1].bias.fill_(100)
    torch.jit.trace(network.to(torch.bfloat16), IMAGE.to(torch.bfloat16)).save(path)
    with pytest.raises(InputError, match=r"m\.pt: not written, as its logits with offsets would differ"):
        written(program(path), target, offsets=[0.1, -0.1, 0.1, -0.1])
    written(program(path), target, offsets=[4.0, -4.0, 4.0, -4.0])


def test_what_stands_there_is_replaced_on_request_alone(tmp_path):
    path, target = tmp_path / "m.onnx", tmp_path / "a.onnx"
    write_graph(path)
    target.write_text("mine")
    with pytest.raises(InputError, match=r"a\.onnx: stands already; add --force"):
        written(described(path, "onnx"), target)
    assert target.read_text() == "mine"
    written(described(path, "onnx"), target, overwrite=True)
    np.testing.assert_allclose(run(target)[0], LOGITS + OFFSETS, atol=1e-5)


def test_a_refusal_leaves_nothing(tmp_path):
    path = tmp_path / "m.onnx"
    write_graph(path)
    with pytest.raises(InputError, match=r"m\.onnx: gives 4 classes, but the offsets are of 3"):
        written(described(path, "onnx"), tmp_path / "a.onnx", offsets=[1.0, 0.0, -1.0])
    assert [file.name for file in tmp_path.iterdir()] == ["m.onnx"]


def test_other_logits_than_those_with_offsets_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "m.onnx"
    write_graph(path)
    monkeypatch.setattr("gfscore.networks.adjusted_files.graphs.output_shift", lambda *_, **__: np.full(4, 1e-3))
    with pytest.raises(InputError, match=r"m\.onnx: not written, as its logits with offsets would differ"):
        written(described(path, "onnx"), tmp_path / "a.onnx")
    assert not (tmp_path / "a.onnx").exists()
