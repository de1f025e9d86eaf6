"""Classifiers in ONNX files, run by onnxruntime or converted to torch."""

import warnings

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from gfscore.core.errors import InputError
from gfscore.images.image_set import from_arrays
from gfscore.networks import inference
from gfscore.networks.checkpoint_files import require_checkpoint
from helpers.networks import FLAT_IMAGES, manifest_of, opened, write_graph


@pytest.mark.parametrize("batch", ["n", 1, 2])
def test_an_onnx_graph_gives_logits_whatever_its_batch(tmp_path, batch):
    path = tmp_path / "m.onnx"
    weights = write_graph(path, batch=batch)
    require_checkpoint(path)
    classifier = opened(manifest_of(path, "onnx", mean=[0.5, 0.5, 0.5]))
    expected = (FLAT_IMAGES - 0.5).reshape(5, -1) @ weights
    np.testing.assert_allclose(classifier.logits(FLAT_IMAGES), expected, rtol=1e-4, atol=1e-4)
    assert classifier.network is None
    assert classifier.classes == 4
    # Where each image is compared alone with itself, a file for two images is filled up.
    images = from_arrays(FLAT_IMAGES, np.arange(5) % 4, sample_id=list("abcde"), preprocessing="none")
    _, _, logits = inference.extract_logits(classifier, images, device="cpu")
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)


def test_a_graph_that_states_no_sizes_has_the_layout_that_it_runs_on(tmp_path):
    path = tmp_path / "m.onnx"
    layer = torch.nn.Conv2d(3, 4, 3).eval()
    example = torch.from_numpy(FLAT_IMAGES)

    class ChannelsLast(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, images):
            return self.layer(images.permute(0, 3, 1, 2)).mean((2, 3))

    axes = {"images": dict(enumerate("nhwc"))}
    stored = example.permute(0, 2, 3, 1).contiguous()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(ChannelsLast(), (stored,), path, input_names=["images"], dynamic_axes=axes, dynamo=False)
    with torch.no_grad():
        expected = layer(example).mean((2, 3)).numpy()
    for gradients in (False, True):
        classifier = opened(manifest_of(path, "onnx", gradients=gradients))
        np.testing.assert_allclose(classifier.logits(FLAT_IMAGES), expected, rtol=1e-4, atol=1e-5)


def test_other_onnx_graphs_are_named(tmp_path):
    path = tmp_path / "m.onnx"
    write_graph(path, outputs=2)
    with pytest.raises(InputError, match=r"2 outputs: logits \(n, 4\), flat \(n, 192\); .*`output`"):
        opened(manifest_of(path, "onnx"))
    assert opened(manifest_of(path, "onnx", output="logits")).classes == 4
    write_graph(path, dtype=TensorProto.INT32)
    with pytest.raises(InputError, match=r"input 'image' is tensor\(int32\); export it for float32"):
        opened(manifest_of(path, "onnx"))
    write_graph(path, layout=(8, 3, 8))
    with pytest.raises(InputError, match=r"has shape \['n', 8, 3, 8\], but image_shape \[3, 8, 8\] .*for images"):
        opened(manifest_of(path, "onnx"))
    write_graph(path, layout=(1, 8, 8))
    with pytest.raises(InputError, match=r"has shape \['n', 1, 8, 8\].*give grey images as arrays"):
        opened(manifest_of(path, "onnx"))
    graph = onnx.load(path)
    graph.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(graph, path)
    with pytest.raises(InputError, match=r"input 'image' has shape \[\], but image_shape \[3, 8, 8\]"):
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
    weights = write_graph(path, batch=batch, layout=layout)
    changes = {"mean": [0.5, 0.4, 0.3], "std": [0.5, 0.25, 2.0], "outputs": [3, 1]}
    classifier = opened(manifest_of(path, "onnx", gradients=True, **changes))
    plain = opened(manifest_of(path, "onnx", **changes))
    assert plain.network is None and plain.classes == classifier.classes == 2
    assert plain.batch == classifier.batch == (1 if batch == "n" else batch)
    np.testing.assert_allclose(classifier.logits(FLAT_IMAGES), plain.logits(FLAT_IMAGES), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(classifier.original.run(FLAT_IMAGES), plain.logits(FLAT_IMAGES))
    images = torch.from_numpy(FLAT_IMAGES).requires_grad_()
    classifier.network(images)[:, 0].sum().backward()
    expected = weights[:, 3].reshape(layout)
    expected = expected if layout[0] == 3 else expected.transpose(2, 0, 1)
    expected = expected / np.reshape(changes["std"], (3, 1, 1))
    np.testing.assert_allclose(images.grad.numpy(), np.stack([expected] * 5), rtol=1e-4)


def test_a_conversion_counts_only_where_its_logits_are_those_of_the_file(tmp_path):
    path = tmp_path / "m.onnx"
    write_graph(path)
    classifier = opened(manifest_of(path, "onnx", gradients=True))
    images = from_arrays(FLAT_IMAGES, np.arange(5) % 4, sample_id=list("abcde"), preprocessing="none")
    logits = classifier.logits(FLAT_IMAGES)
    said = inference.require_agreement(classifier, images, logits, where=path)
    assert said["conversion"].startswith("by onnx2fx 0.0.1; logits within ")
    for wrong in (logits + 2e-4 * np.abs(logits).max(), np.full_like(logits, np.nan)):
        with pytest.raises(InputError, match=r"m\.onnx: logits .* differ from those of onnxruntime .*gradients: false"):
            inference.require_agreement(classifier, images, wrong, where=path)
    assert inference.require_agreement(opened(manifest_of(path, "onnx")), images, logits, where=path) == {}


def test_a_graph_that_cannot_be_converted_is_named(tmp_path):
    path = tmp_path / "m.onnx"
    write_graph(path)
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
    write_graph(path)
    model = onnx.load(path)
    PLACES[place](model)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"m\.onnx: .*'w'.*another file.*save_as_external_data=False"):
        opened(manifest_of(path, "onnx"))
