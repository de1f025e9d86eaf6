"""Inspection of ONNX models whose weights are in files beside them, and of models in other number types."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from gfscore.core.errors import InputError
from gfscore.workflow.new_audit.inspection import inspect
from gfscore.workflow.new_audit.request import Request
from helpers import own_files

ACCURACY = "57.4%"
"""Of the network on its 500 images, as its logits have it."""

pytestmark = pytest.mark.usefixtures("project")


def said_of(model, data, **options):
    return "\n".join(inspect(Request((str(model),), str(data), **options), lambda line: None).lines)


def with_weights_beside(source, path, location="net.onnx.data"):
    """Write a model as exporters do: the graph, and its weights in a file beside it."""
    model = onnx.load(source)
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)


def of_type(source, path, number_type, numpy_type):
    """Write a model with its inputs, weights and outputs in another number type."""
    model = onnx.load(source)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            values = numpy_helper.to_array(tensor).astype(numpy_type)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    del model.graph.value_info[:]
    for place in (*model.graph.input, *model.graph.output):
        place.type.tensor_type.elem_type = number_type
    onnx.save(model, path)


def of_8_bits(source, path):
    """Write a model that takes images from 0 to 255."""
    model = onnx.load(source)
    given = model.graph.input[0]
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            if name == given.name:
                node.input[place] = "pixels"
    first = [
        helper.make_node("Cast", [given.name], ["cast"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["cast", "scale"], ["pixels"]),
    ]
    nodes = [*first, *model.graph.node]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    model.graph.initializer.append(numpy_helper.from_array(np.array(1 / 255, np.float32), "scale"))
    given.type.tensor_type.elem_type = TensorProto.UINT8
    onnx.save(model, path)


@pytest.mark.parametrize("location", ["net.onnx.data", "weights.bin"])
def test_weights_beside_a_graph_are_found_and_named(own, tmp_path, location):
    (tmp_path / "models").mkdir()
    with_weights_beside(own / "net.onnx", tmp_path / "models/net.onnx", location)
    for given in ("models/net.onnx", "models"):
        said = said_of(tmp_path / given, own / "images.npz")
        assert ACCURACY in said and location in said and "onnx2fx" in said


def test_weights_that_are_missing_are_refused_before_anything_is_written(own, tmp_path):
    with_weights_beside(own / "net.onnx", tmp_path / "net.onnx")
    (tmp_path / "net.onnx.data").unlink()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"net\.onnx: .*net\.onnx\.data"):
        said_of(tmp_path / "net.onnx", own / "images.npz")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("number_type", "numpy_type", "words"),
    [(TensorProto.FLOAT16, np.float16, "float16"), (TensorProto.DOUBLE, np.float64, "float64")],
)
def test_the_number_type_of_a_graph_is_said(own, tmp_path, number_type, numpy_type, words):
    of_type(own / "net.onnx", tmp_path / "net.onnx", number_type, numpy_type)
    said = said_of(tmp_path / "net.onnx", own / "images.npz")
    assert f"numbers in {words}, attacks search in float32" in said
    assert "not normalised" in said and "57." in said


def test_images_of_8_bits_are_stated_by_the_graph(own, tmp_path):
    of_8_bits(own / "net.onnx", tmp_path / "net.onnx")
    said = said_of(tmp_path / "net.onnx", own / "images.npz")
    assert ACCURACY in said and "0 to 255" in said and "uint8" in said


def test_the_number_type_of_a_file_of_code_is_said(own, tmp_path):
    definition = own_files.DEFINITION.replace("nn.Linear(64, 10),\n    )", "nn.Linear(64, 10),\n    ).half()")
    assert ".half()" in definition
    (tmp_path / "architectures/my_networks.py").write_text(definition)
    file = tmp_path / "my_networks.py"
    file.write_text(definition)
    weights = torch.load(own / "weights.pth", weights_only=True)
    torch.save({name: value.half() for name, value in weights.items()}, tmp_path / "weights.pth")
    said = said_of(tmp_path / "weights.pth", own / "images.npz", architecture=f"{file}:marabou")
    assert "numbers in float16, attacks search in float32" in said and "57." in said
