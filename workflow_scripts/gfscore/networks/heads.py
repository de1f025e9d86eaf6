"""Softmax, log-softmax or sigmoid at the end of a graph: the logits are the input of that operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    import onnx
    import torch

Array = NDArray[np.floating]

TOLERANCE = {"float32": 1e-4, "float64": 1e-4, "uint8": 1e-4, "float16": 2e-3, "bfloat16": 2e-2}
"""Largest difference between a head applied to the logits and the output, relative to the largest output or 1, by the
number type of the network, in which the output is rounded."""

ONNX_HEADS = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}
ONNX_SAME_VALUES = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Dropout"}
"""Operators that may follow a head: they change no value."""

ATEN_HEADS = {"softmax": "softmax", "_softmax": "softmax", "log_softmax": "log_softmax", "_log_softmax": "log_softmax",
              "sigmoid": "sigmoid"}  # fmt: skip
ATEN_SAME_VALUES = {
    "view",
    "reshape",
    "flatten",
    "squeeze",
    "alias",
    "clone",
    "contiguous",
    "dropout",
    "_to_copy",
    "to",
}


@dataclass(frozen=True)
class Head:
    """The operator that ends a graph, and its effect: `both` maps images to the logits before it and to the output.

    `number_type` is that of the output.
    """

    name: str
    both: Callable[[NDArray[np.float32]], tuple[Array, Array]]
    number_type: str


def softmax(logits: Array) -> Array:
    """Softmax of logits (n, K) over the classes."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def log_softmax(logits: Array) -> Array:
    """Logarithm of the softmax of logits (n, K)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def sigmoid(logits: Array) -> Array:
    """Sigmoid of each logit."""
    # Of the side on which the power does not overflow.
    powers = np.exp(-np.abs(logits))
    return np.where(logits < 0, powers, 1) / (1 + powers)


HEADS: Mapping[str, Callable[[Array], Array]] = {"softmax": softmax, "log_softmax": log_softmax, "sigmoid": sigmoid}


def require_head(head: Head, images: NDArray[np.float32], *, where: object) -> None:
    """Raise InputError, naming `where`, unless the head, applied to the logits of images, gives the file's output.

    Compared for every image and class, to TOLERANCE.
    """
    tolerance = TOLERANCE[head.number_type]
    logits, outputs = head.both(images)
    applied = HEADS[head.name](_rows(logits))
    outputs = _rows(outputs)
    distance = float(np.abs(applied - outputs).max()) if applied.shape == outputs.shape else np.inf
    # NaN, for which every comparison is false, must be refused too.
    if not distance <= tolerance * max(1.0, float(np.abs(outputs).max())):
        raise InputError(
            f"{where}: its {head.name}, applied to the values before it, differs from the output of the file by "
            f"{distance:.1e}, above {tolerance:g}; export the network without its last {head.name}, so that it gives "
            "logits"
        )


def probe_images(shape: Sequence[int]) -> NDArray[np.float32]:
    """Two images of noise, always the same, that a head is checked on wherever a network is opened."""
    return np.random.default_rng(0).random((2, *shape), dtype=np.float32)


def _rows(values):
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _no_head(name, where):
    return InputError(
        f"{where}: `head` is {name}, but the graph does not end in one; correct `head`, or leave it out for logits"
    )


# ---- ONNX ----


def onnx_head(graph: onnx.ModelProto, output: str) -> tuple[str, str] | None:
    """Head that an output of an ONNX graph comes from, and the name of the tensor before it; None for no head."""
    makers = {name: node for node in graph.graph.node for name in node.output}
    tensor = output
    while tensor in makers:
        node = makers[tensor]
        if node.op_type in ONNX_HEADS and _over_classes(node):
            return ONNX_HEADS[node.op_type], node.input[0]
        if node.op_type not in ONNX_SAME_VALUES:
            return None
        tensor = node.input[0]
    return None


def _over_classes(node):
    # Whether it normalises the values of an image, not over the images of a batch.
    return all(attribute.i != 0 for attribute in node.attribute if attribute.name == "axis")


def graph_before_head(graph: onnx.ModelProto, output: str, head: str, *, where: object) -> tuple[onnx.ModelProto, str]:
    """ONNX graph with the tensor before a head as a further output, and that tensor's name.

    Raises InputError, naming `where`, if the output does not come from this head.
    """
    import onnx

    ending = onnx_head(graph, output)
    if ending is None or ending[0] != head:
        raise _no_head(head, where)
    longer = onnx.ModelProto()
    longer.CopyFrom(graph)
    if ending[1] not in [given.name for given in longer.graph.output]:
        longer.graph.output.append(onnx.ValueInfoProto(name=ending[1]))
    return longer, ending[1]


# ---- torch.export ----


def program_head(network: torch.nn.Module, place: int) -> str | None:
    """Head that an output of a program of torch.export comes from, by its place from 0; None for no head."""
    node = _head_node(network, place)
    return None if node is None else ATEN_HEADS[_operator(node)]


def remove_head(network: torch.nn.Module, place: int, head: str, *, where: object) -> None:
    """Make a program of torch.export return the input of a head in place of its output.

    Raises InputError, naming `where`, if the output does not come from this head.
    """
    node = _head_node(network, place)
    if node is None or ATEN_HEADS[_operator(node)] != head:
        raise _no_head(head, where)
    program: Any = network
    node.replace_all_uses_with(node.args[0])
    program.graph.erase_node(node)
    program.recompile()


def _head_node(network, place):
    outputs = _output_nodes(network)
    node = outputs[place] if place < len(outputs) else None
    while node is not None and node.op == "call_function":
        name = _operator(node)
        if name in ATEN_HEADS:
            return node if name == "sigmoid" or node.args[1] != 0 else None
        if name not in ATEN_SAME_VALUES:
            return None
        node = node.args[0]
    return None


def _output_nodes(network):
    # Nodes of the tensors that it returns, in their order.
    import torch

    if not isinstance(network, torch.fx.GraphModule):
        return []
    values = list(network.graph.nodes)[-1].args[0]
    flat = values if isinstance(values, tuple | list) else [values]
    return [one for one in flat if isinstance(one, torch.fx.Node)]


def _operator(node):
    # "softmax" of torch.ops.aten.softmax.int.
    return str(getattr(node.target, "_opname", node.target))
