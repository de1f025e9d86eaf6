"""The sources torch, timm and onnx: which code a config may name, and what is done to pixels."""

import hashlib

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from safetensors.torch import save_file
from torch import nn

from extract_logits import extract_logits
from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.files import write_json
from gfscore.images.image_set import from_arrays
from gfscore.networks import inference
from gfscore.networks.architecture_files import FOLDER_VARIABLE, describe_network, source_file_of
from gfscore.networks.callables import build_architecture, resolve
from gfscore.networks.checkpoint_files import require_checkpoint
from gfscore.networks.classifier import Classifier, open_classifier
from gfscore.networks.outputs import class_count
from gfscore.networks.preprocessing import description, preprocess, preprocessed
from gfscore.tables.parquet_tables import read_identity, read_logits

IMAGES = np.random.default_rng(0).random((5, 3, 8, 8), dtype=np.float32)
RAW = {"image_shape": [3, 8, 8], "channel_order": "rgb", "value_range": 1, "mean": None, "std": None}

DEFINITION = """
import os
import torch
from torch import nn

VALUE = 3

class Flat(nn.Module):
    def __init__(self, classes=4, side=8):
        super().__init__()
        self.linear = nn.Linear(3 * side * side, classes)

    def forward(self, x):
        return self.linear(x.flatten(1))

class Pair(Flat):
    def forward(self, x):
        return super().forward(x), x

def flat(**arguments):
    return Flat(**arguments)

def number():
    return 7

def broken():
    raise RuntimeError("no luck")
"""


@pytest.fixture(autouse=True)
def architectures(tmp_path, monkeypatch):
    folder = tmp_path / "architectures"
    (folder / "deep").mkdir(parents=True)
    (folder / "mine.py").write_text(DEFINITION)
    (folder / "deep" / "other.py").write_text(
        "from architectures.mine import Flat\n\n\nclass Deeper(Flat):\n    pass\n"
    )
    (tmp_path / "outside.py").write_text(f"open({str(tmp_path / 'it-ran')!r}, 'w')\n")
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    return folder


def manifest_of(path, source, **settings):
    sha256 = sha256_of_file(path)
    common = {"arguments": {}, "weights": "model", "trust_pickle": False, "sha256": None, **RAW, "output": None}
    names = {"dataset": "z", "threat": "none", "model": "M", "architecture": settings.get("architecture", source)}
    return {**names, "source": source, "path": str(path), "sha256": sha256, "settings": {**common, **settings}}


def opened(manifest, *, classes=4):
    return open_classifier(manifest, image_shape=[3, 8, 8], classes=classes)


# ---- what a config may name ----


def test_the_projects_own_architectures_are_found(architectures, tmp_path, monkeypatch):
    assert build_architecture("architectures.mine:Flat", {"classes": 7}).linear.out_features == 7
    assert isinstance(build_architecture("architectures.mine:flat", {}), nn.Module)
    assert isinstance(build_architecture("architectures.deep.other:Deeper", {}), nn.Module)
    assert source_file_of("architectures.mine:Flat") == architectures / "mine.py"
    assert source_file_of("torchvision.models:resnet18") is None
    (architectures / "deep.py").write_text("")
    (architectures / "deep" / "__init__.py").write_text("")
    assert source_file_of("architectures.deep:net") == architectures / "deep" / "__init__.py"
    second = tmp_path / "second"
    second.mkdir()
    (second / "mine.py").write_text(DEFINITION.replace("classes=4", "classes=9"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(second))
    assert build_architecture("architectures.mine:Flat", {}).linear.out_features == 9


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("torchvision.models:squeezenet1_0", {"num_classes": 3}, "SqueezeNet"),
        ("torchvision.models.squeezenet:squeezenet1_0", {"num_classes": 3}, "SqueezeNet"),
        ("timm:test_vit", {"num_classes": 3}, "VisionTransformer"),
        ("timm.models.resnet:resnet18", {"num_classes": 3}, "ResNet"),
        ("torch.nn:Linear", {"in_features": 1, "out_features": 2}, "Linear"),
        ("robustbench.model_zoo.architectures.wide_resnet:WideResNet", {"depth": 10, "widen_factor": 1}, "WideResNet"),
    ],
)
def test_networks_that_packages_list_are_found(name, arguments, kind):
    assert type(build_architecture(name, arguments)).__name__ == kind


@pytest.mark.parametrize(
    "name",
    [
        *("os:system", "builtins:eval", "subprocess:run", "importlib.metadata:version", "pickle:loads"),
        *("outside:main", "gfscore.core.files:write_text", "joblib:load", "numpy:array"),
        *("torch:load", "torch.hub:load", "torch:Tensor", "torch.fx:GraphModule", "torch.jit:ScriptModule"),
        *("torch.nn.utils:clip_grad_norm_", "torch.nn:functional", "torch.nn:no_such"),
        *("timm.models:load_checkpoint", "timm.models.vgg:resnet18", "timm:no_such"),
        *("torchvision.models:get_model", "torchvision.models.detection:fasterrcnn_resnet50_fpn"),
        *("torchvision.models.feature_extraction:DualGraphModule", "torchvision.models:no_such"),
        *("robustbench.utils:load_model", "robustbench.model_zoo.architectures.deit:create_model"),
        *("robustbench.model_zoo.architectures.no_such:Net", "robustbench.model_zoo.architectures.wide_resnet:torch"),
        *("architectures.mine:Absent", "architectures.mine:VALUE", "architectures.mine:os"),
        *("architectures.borrowed:check_output", "architectures.borrowed:system", "architectures.borrowed:Linear"),
    ],
)
def test_a_config_can_name_nothing_else(name, architectures, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    imports = "from subprocess import check_output\nfrom os import system\nfrom torch.nn import Linear\n"
    (architectures / "borrowed.py").write_text(imports)
    with pytest.raises(InputError, match=f"{name}: .*; allowed are"):
        resolve(name)
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("architectures.absent:Net", r"no such file in .*architectures/; put absent\.py there"),
        ("architectures:Net", "no such file"),
        ("architectures.mine:number", "returns a int; name one that returns a torch.nn.Module"),
        ("architectures.mine:broken", "cannot be built with .*no luck"),
        ("architectures.faulty:Net", r"architectures\.faulty cannot be imported .*no_such_package"),
        ("../outside:main", "not of the form package.module:callable"),
        ("os.system", "not of the form"),
        ("a:b:c", "not of the form"),
        ("architectures.mine:Flat.forward", "not of the form"),
        ("architectures..outside:main", "not of the form"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name, message, architectures, tmp_path):
    (architectures / "faulty.py").write_text("import no_such_package\n")
    with pytest.raises(InputError, match=message):
        build_architecture(name, {})
    assert not (tmp_path / "it-ran").exists()


def test_a_link_out_of_the_folder_is_refused(architectures, tmp_path):
    (architectures / "linked.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(InputError, match="no such file in"):
        resolve("architectures.linked:main")
    assert not (tmp_path / "it-ran").exists()


def test_arguments_that_fetch_weights_or_do_not_exist_are_refused():
    with pytest.raises(InputError, match="argument 'weights' would download weights; remove it, they come from `path`"):
        build_architecture("torchvision.models:resnet18", {"weights": "DEFAULT"})
    with pytest.raises(InputError, match=r"cannot be built with .*unexpected keyword argument 'depth'"):
        build_architecture("architectures.mine:Flat", {"depth": 3})


# ---- pixels ----


def test_pixels_are_reordered_scaled_and_normalised_in_this_order():
    settings = {**RAW, "channel_order": "bgr", "value_range": 255, "mean": [104, 117, 123], "std": [1, 2, 4]}
    module = preprocessed(nn.Identity(), settings, where="m")
    expected = (255 * IMAGES[:, ::-1] - np.reshape([104, 117, 123], (3, 1, 1))) / np.reshape([1, 2, 4], (3, 1, 1))
    np.testing.assert_allclose(module(torch.from_numpy(IMAGES)).numpy(), expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(preprocess(IMAGES, settings, where="m"), expected, rtol=1e-5, atol=1e-4)
    assert description(settings) == "bgr, white 255, mean 104 117 123, std 1 2 4"
    assert module.state_dict() == {}


def test_gradients_go_through_the_preprocessing():
    settings = {**RAW, "channel_order": "bgr", "value_range": 255, "std": [1, 2, 4]}
    images = torch.from_numpy(IMAGES).requires_grad_()
    preprocessed(nn.Identity(), settings, where="m")(images).sum().backward()
    np.testing.assert_allclose(images.grad[0, :, 0, 0], [255 / 4, 255 / 2, 255])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mean": [0.5]}, r"m: mean \[0.5\] must hold 3 finite numbers"),
        ({"std": [1, 0, 1]}, r"m: std \[1, 0, 1\] must hold 3 finite numbers, std positive ones"),
        ({"image_shape": [1, 8, 8], "channel_order": "bgr"}, "bgr needs 3 channels"),
    ],
)
def test_wrong_preprocessing_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        preprocessed(nn.Identity(), {**RAW, **changes}, where="m")


# ---- source torch ----


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
    expected = network(torch.from_numpy((IMAGES - mean) / np.float32(0.2))).detach().numpy()
    np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=1e-4, atol=1e-5)
    assert (classifier.image_shape, classifier.classes) == ((3, 8, 8), 4)
    assert classifier.logits(IMAGES).dtype == np.float32
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


# ---- source timm ----


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


# ---- source onnx ----


def graph(path, *, batch="n", outputs=1, dtype=TensorProto.FLOAT, layout=(3, 8, 8)):
    """Linear classifier of flattened images into 4 classes; returns its weights."""
    size = int(np.prod(layout))
    weights = np.random.default_rng(2).normal(size=(size, 4)).astype(np.float32)
    given = helper.make_tensor_value_info("image", dtype, [batch, *layout])
    names = ["logits", "flat"][:outputs]
    shapes = {"logits": [batch, 4], "flat": [batch, size]}
    made = [helper.make_tensor_value_info(name, dtype, shapes[name]) for name in names]
    nodes = [helper.make_node("Flatten", ["image"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    kind = np.int32 if dtype == TensorProto.INT32 else np.float32
    content = helper.make_graph(nodes, "g", [given], made, [numpy_helper.from_array(weights.astype(kind), "w")])
    onnx.save(helper.make_model(content, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return weights


@pytest.mark.parametrize("batch", ["n", 1, 2])
def test_an_onnx_graph_gives_logits_whatever_its_batch(tmp_path, batch):
    path = tmp_path / "m.onnx"
    weights = graph(path, batch=batch)
    require_checkpoint(path)
    classifier = opened(manifest_of(path, "onnx", mean=[0.5, 0.5, 0.5]))
    expected = (IMAGES - 0.5).reshape(5, -1) @ weights
    np.testing.assert_allclose(classifier.logits(IMAGES), expected, rtol=1e-4, atol=1e-4)
    assert classifier.network is None
    assert classifier.classes == 4
    # Where each image is compared alone with itself, a file for two images is filled up.
    images = from_arrays(IMAGES, np.arange(5) % 4, sample_id=list("abcde"), preprocessing="none")
    _, _, logits = inference.extract_logits(classifier, images, device="cpu")
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)


def test_other_onnx_graphs_are_named(tmp_path):
    path = tmp_path / "m.onnx"
    graph(path, outputs=2)
    with pytest.raises(InputError, match=r"2 outputs: logits \(n, 4\), flat \(n, 192\); .*`output`"):
        opened(manifest_of(path, "onnx"))
    assert opened(manifest_of(path, "onnx", output="logits")).classes == 4
    graph(path, dtype=TensorProto.INT32)
    with pytest.raises(InputError, match=r"input 'image' is tensor\(int32\); export it for float32"):
        opened(manifest_of(path, "onnx"))
    graph(path, layout=(8, 3, 8))
    with pytest.raises(InputError, match=r"has shape \['n', 8, 3, 8\], but image_shape \[3, 8, 8\] .*for images"):
        opened(manifest_of(path, "onnx"))
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b"<html>", b""):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"m\.onnx: (onnxruntime .* cannot open it|is damaged)"):
            opened(manifest_of(path, "onnx"))


@pytest.mark.parametrize("batch", ["n", 1, 2])
@pytest.mark.parametrize("layout", [(3, 8, 8), (8, 8, 3)])
def test_a_converted_graph_is_a_network_with_gradients_and_the_same_logits(tmp_path, batch, layout):
    path = tmp_path / "m.onnx"
    weights = graph(path, batch=batch, layout=layout)
    changes = {"mean": [0.5, 0.4, 0.3], "std": [0.5, 0.25, 2.0], "outputs": [3, 1]}
    classifier = opened(manifest_of(path, "onnx", gradients=True, **changes))
    plain = opened(manifest_of(path, "onnx", **changes))
    assert plain.network is None and plain.classes == classifier.classes == 2
    np.testing.assert_allclose(classifier.logits(IMAGES), plain.logits(IMAGES), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(classifier.original.run(IMAGES), plain.logits(IMAGES))
    images = torch.from_numpy(IMAGES).requires_grad_()
    classifier.network(images)[:, 0].sum().backward()
    expected = weights[:, 3].reshape(layout)
    expected = expected if layout[0] == 3 else expected.transpose(2, 0, 1)
    expected = expected / np.reshape(changes["std"], (3, 1, 1))
    np.testing.assert_allclose(images.grad.numpy(), np.stack([expected] * 5), rtol=1e-4)


def test_a_conversion_counts_only_where_its_logits_are_those_of_the_file(tmp_path):
    path = tmp_path / "m.onnx"
    graph(path)
    classifier = opened(manifest_of(path, "onnx", gradients=True))
    images = from_arrays(IMAGES, np.arange(5) % 4, sample_id=list("abcde"), preprocessing="none")
    logits = classifier.logits(IMAGES)
    said = inference.require_agreement(classifier, images, logits, where=path)
    assert said["conversion"].startswith("by onnx2fx 0.0.1; logits within ")
    for wrong in (logits + 2e-4 * np.abs(logits).max(), np.full_like(logits, np.nan)):
        with pytest.raises(InputError, match=r"m\.onnx: logits .* differ from those of onnxruntime .*gradients: false"):
            inference.require_agreement(classifier, images, wrong, where=path)
    assert inference.require_agreement(opened(manifest_of(path, "onnx")), images, logits, where=path) == {}


def test_a_graph_that_cannot_be_converted_is_named(tmp_path):
    path = tmp_path / "m.onnx"
    graph(path)
    model = onnx.load(path)
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 5), dtype=np.float32), "rois"))
    model.graph.node.append(helper.make_node("MaxRoiPool", ["image", "rois"], ["other"], pooled_shape=[2, 2]))
    onnx.save(model, path)
    assert opened(manifest_of(path, "onnx")).classes == 4
    with pytest.raises(InputError, match=r"m\.onnx: onnx2fx 0\.0\.1 cannot make a torch network .*gradients: false"):
        opened(manifest_of(path, "onnx", gradients=True))


def stored_elsewhere(*, entries=True, location=TensorProto.EXTERNAL):
    """A tensor `w` whose values are said to be in another file."""
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], data_location=location)
    if entries:
        tensor.external_data.add(key="location", value="weights.bin")
    return tensor


def body_with(tensor):
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    return helper.make_graph([helper.make_node("Identity", [tensor.name], ["y"])], "body", [], [output], [tensor])


def loop_with(node):
    return helper.make_node("Loop", ["n", "flag"], ["y"], body=helper.make_graph([node], "b", [], []))


def function_with(node):
    return helper.make_function("own", "F", [], ["c"], [node], [helper.make_opsetid("", 13)])


NODES = {
    "attribute": lambda: helper.make_node("Constant", [], ["c"], value=stored_elsewhere()),
    "attribute that is a list": lambda: helper.make_node("Own", [], ["c"], domain="own", w=[stored_elsewhere()]),
    "branch": lambda: helper.make_node("If", ["flag"], ["y"], then_branch=body_with(stored_elsewhere())),
    "branch in a loop": lambda: loop_with(NODES["branch"]()),
}
PLACES = {
    "initializer": lambda model: model.graph.initializer.append(stored_elsewhere()),
    "initializer, only its location": lambda model: model.graph.initializer.append(stored_elsewhere(entries=False)),
    "initializer, only its entries": lambda model: model.graph.initializer.append(
        stored_elsewhere(location=TensorProto.DEFAULT)
    ),
    "sparse values": lambda model: model.graph.sparse_initializer.add().values.CopyFrom(stored_elsewhere()),
    "sparse indices": lambda model: model.graph.sparse_initializer.add().indices.CopyFrom(stored_elsewhere()),
    **{name: lambda model, make=make: model.graph.node.append(make()) for name, make in NODES.items()},
    "function": lambda model: model.functions.append(function_with(NODES["attribute"]())),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_tensor_in_a_file_that_is_missing_is_refused_wherever_it_stands(tmp_path, place):
    path = tmp_path / "m.onnx"
    graph(path)
    model = onnx.load(path)
    PLACES[place](model)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"m\.onnx: .*'w'.*another file.*save_as_external_data=False"):
        opened(manifest_of(path, "onnx"))


# ---- from a manifest to a table ----


def test_unknown_sources_are_named(stored):
    with pytest.raises(InputError, match=r"source 'keras' is unknown; known: onnx, .*trained"):
        opened({**manifest_of(stored[1], "torch"), "source": "keras"})


@pytest.mark.parametrize("source", ["torch", "onnx"])
def test_logits_of_a_fetched_checkpoint_carry_its_identity(tmp_path, stored, source):
    np.savez(tmp_path / "d.npz", x=IMAGES, y=[0, 1, 2, 3, 0])
    from fetch_dataset import fetch_dataset

    settings = {"source": "npz", "value_range": 1, "channels": "first"}
    made = tmp_path / "d.json", tmp_path / "d.parquet"
    fetch_dataset(settings, list("abcd"), *made, dataset="d", path_to_images=tmp_path / "d.npz")
    path = stored[1]
    if source == "onnx":
        path = tmp_path / "m.onnx"
        graph(path)
    manifest = manifest_of(path, source, architecture="architectures.mine:Flat")
    write_json(tmp_path / "m.json", manifest)
    extract_logits(tmp_path / "d.json", tmp_path / "m.json", None, tmp_path / "l.parquet")
    _, label, logits = read_logits(tmp_path / "l.parquet")
    assert label.tolist() == [0, 1, 2, 3, 0]
    classifier = opened(manifest)
    assert isinstance(classifier, Classifier)
    np.testing.assert_allclose(logits, classifier.logits(IMAGES), rtol=1e-5, atol=1e-5)
    identity = read_identity(tmp_path / "l.parquet")
    assert identity["checkpoint_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert identity["preprocessing"].endswith("; rgb, white 1")
    assert identity["architecture"] == "architectures.mine:Flat"


def test_a_network_is_opened_with_the_code_of_its_manifest_only(architectures, stored):
    name = "architectures.mine:Flat"
    manifest = {**manifest_of(stored[1], "torch", architecture=name), **describe_network(name)}
    assert isinstance(opened(manifest), Classifier)
    (architectures / "mine.py").write_text(f"{DEFINITION}\nopen('it-ran', 'w')\n")
    with pytest.raises(InputError, match=r"architectures/mine\.py: differs from the code of architectures\.mine:Flat"):
        opened(manifest)
