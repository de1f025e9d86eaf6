"""Graphs that normalise pixels by their first operators: which pixels they take follows from these."""

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from gfscore.workflow.new_audit.inspection import inspect
from gfscore.workflow.new_audit.new_model import pixels_of_graph
from gfscore.workflow.new_audit.request import Request

pytestmark = pytest.mark.usefixtures("project")

MEANS = [0.485, 0.456, 0.406]

FIRST_OPERATORS = {
    "a division by 255": ([("Div", 255)], 255),
    "a product with 1/255": ([("Mul", 1 / 255)], 255),
    "mean and deviation after a division by 255": ([("Div", 255), ("Sub", MEANS), ("Div", 0.225)], 255),
    "mean and deviation of pixels up to 255": ([("Sub", 118), ("Div", 58)], 255),
    "a division by 127.5, and 1 less": ([("Div", 127.5), ("Sub", 1)], 255),
    "mean and deviation of pixels up to 1": ([("Sub", MEANS), ("Div", 0.225)], 1),
    "the same after a product with 255": ([("Mul", 255), ("Sub", 118), ("Div", 58)], 1),
    "twice the pixel, and 1 less": ([("Mul", 2), ("Sub", 1)], 1),
}


def write_graph(path, operators, *, number_type=TensorProto.FLOAT, shape=("n", 3, 8, 8)):
    """Write a graph whose logits are ten times the mean of each channel, after operators with constants."""
    image = helper.make_tensor_value_info("image", number_type, shape)
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    nodes = [helper.make_node("Cast", ["image"], ["v0"], to=TensorProto.FLOAT)]
    weights = [numpy_helper.from_array(np.float32(10 / 64) * np.repeat(np.eye(3, dtype=np.float32), 64, 0), "weights")]
    for position, (operator, constant) in enumerate(operators):
        values = np.array(constant, np.float32)
        weights.append(numpy_helper.from_array(values.reshape(-1, 1, 1) if values.ndim else values, f"c{position}"))
        nodes.append(helper.make_node(operator, [f"v{position}", f"c{position}"], [f"v{position + 1}"]))
    nodes.append(helper.make_node("Flatten", [f"v{len(operators)}"], ["flat"]))
    nodes.append(helper.make_node("MatMul", ["flat", "weights"], ["logits"]))
    graph = helper.make_graph(nodes, "network", [image], [logits], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)
    return model


def write_data(path):
    """Write 60 images of .1 but for .7 in the channel of their class."""
    labels = np.arange(60) % 3
    images = np.full((60, 3, 8, 8), 26, dtype=np.uint8)
    images[np.arange(60), labels] = 178
    images += np.random.default_rng(0).integers(0, 6, images.shape, dtype=np.uint8)
    np.savez(path, x=images, y=labels)


@pytest.mark.parametrize("name", FIRST_OPERATORS)
def test_the_value_of_white_follows_from_all_first_operators(name):
    operators, white = FIRST_OPERATORS[name]
    stated = pixels_of_graph(write_graph("net.onnx", operators))
    assert stated is not None and stated.preprocessing.value_range == white


def test_a_graph_of_bytes_is_compared_with_its_copy_on_bytes():
    write_data("data.npz")
    write_graph("net.onnx", [("Div", 255)], number_type=TensorProto.UINT8)
    found = inspect(Request(("net.onnx",), "data.npz"), lambda line: None)
    assert any("gradients by onnx2fx" in line for line in found.lines)
    (models,) = yaml.safe_load(found.text)["models"]["net"].values()
    assert models["net"]["gradients"] is True and models["net"]["value_range"] == 255
