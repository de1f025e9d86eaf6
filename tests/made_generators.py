"""Generators of known images conditional on the class, in files of every format that a dataset may name."""

import torch
from torch import nn

from gfscore.core.digests import sha256_of_file

CODE = """
import torch
from torch import nn


class Known(nn.Module):
    \"\"\"Images (n, 1, 2, 2) in [-1, 1]: tanh of a latent (n, 2) above, the brightness of the class below.\"\"\"

    def __init__(self, classes):
        super().__init__()
        self.brightness = nn.Parameter(torch.zeros(classes))

    def forward(self, latents, classes):
        below = self.brightness[classes][:, None].expand(-1, 2)
        return torch.cat([torch.tanh(latents), below], dim=1).reshape(-1, 1, 2, 2)


class OneHot(Known):
    def forward(self, latents, classes):
        return super().forward(latents, classes.argmax(dim=1))
"""
FORMATS = ("weights", "script", "export", "onnx")


def brightness(classes):
    """Values of the lower pixels, from black, -1, to white, 1."""
    return torch.linspace(-1, 1, classes)


def known_network(classes, *, name="Known"):
    """The network of these images."""
    namespace = {}
    exec(CODE, namespace)
    network = namespace[name](classes)
    network.load_state_dict({"brightness": brightness(classes)})
    return network.eval()


def place_generator(folder, form, *, classes=3, class_input="index"):
    """Write a generator in a format; returns the settings of it that must be stated. Paths are below the folder."""
    settings = {"latent": [2], "class_input": class_input, "output_range": [-1, 1]}
    name = {"index": "Known", "one_hot": "OneHot"}[class_input]
    if form == "onnx":
        path = folder / "generator.onnx"
        path.write_bytes(known_graph(classes, class_input).SerializeToString())
        return settings | {"path": str(path)}
    network, path = known_network(classes, name=name), folder / f"generator.{'pt' if form == 'weights' else 'pt2'}"
    if form == "weights":
        (folder / "architectures").mkdir(exist_ok=True)
        (folder / "architectures/known.py").write_text(CODE)
        torch.save(network.state_dict(), path)
        return settings | {
            "path": str(path), "architecture": f"architectures.known:{name}", "arguments": {"classes": classes},
        }  # fmt: skip
    example = (torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    if class_input == "one_hot":
        example = (torch.zeros(4, 2), torch.eye(classes)[[0, 1, 2, 0]])
    if form == "script":
        torch.jit.trace(network, example).save(path)
    else:
        n = torch.export.Dim("n")
        torch.export.save(torch.export.export(network, example, dynamic_shapes=({0: n}, {0: n})), path)
    return settings | {"path": str(path), "trust_pickle": True, "sha256": sha256_of_file(path)}


def known_graph(classes, class_input):
    """The same as an ONNX graph."""
    from onnx import TensorProto, helper, numpy_helper

    whole = class_input == "index"
    given = [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 2])]
    given += [
        helper.make_tensor_value_info(
            "y", *((TensorProto.INT64, ["n"]) if whole else (TensorProto.FLOAT, ["n", classes]))
        )
    ]
    table = brightness(classes)[:, None].expand(-1, 2).numpy()
    stored = [numpy_helper.from_array(table.copy(), "table")]
    stored += [numpy_helper.from_array(torch.tensor([-1, 1, 2, 2]).numpy(), "shape")]
    nodes = [
        helper.make_node("Tanh", ["z"], ["above"]),
        helper.make_node("Gather", ["table", "y"], ["below"]) if whole else helper.make_node("MatMul", ["y", "table"], ["below"]),
        helper.make_node("Concat", ["above", "below"], ["flat"], axis=1),
        helper.make_node("Reshape", ["flat", "shape"], ["x"]),
    ]  # fmt: skip
    made = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 2, 2])]
    graph = helper.make_graph(nodes, "g", given, made, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


class Returning(nn.Module):
    """A generator that returns what a function makes of its latents and classes."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, latents, classes):
        return self.function(latents, classes)
