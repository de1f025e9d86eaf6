"""Number types of ONNX graphs, and graphs with the same operators in float32."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from gfscore.networks.onnx_content import inputs_of, tensors_of
from gfscore.networks.outputs import FLOAT32, _no_head

if TYPE_CHECKING:
    import onnx
    from google.protobuf.message import Message


WEIGHTS = {"FLOAT": FLOAT32, "FLOAT16": "float16", "BFLOAT16": "bfloat16", "DOUBLE": "float64"}
"""Number types of weights by ONNX's name."""

TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type")
"""Attributes of operators that name a number type."""


def weights_type(graph: onnx.ModelProto) -> str:
    """Number type of most weights of a graph, by their number; "float32" for one without."""
    import onnx

    counts: Counter[str] = Counter()
    for tensor in tensors_of(graph):
        name = onnx.TensorProto.DataType.Name(tensor.data_type)
        if name in WEIGHTS:
            counts[WEIGHTS[name]] += math.prod(tensor.dims)
    return counts.most_common(1)[0][0] if counts else FLOAT32


def input_type(graph: onnx.ModelProto) -> str:
    """Number type of the first input of a graph that is no weight; "float32" for a type that images cannot have."""
    import onnx

    inputs = inputs_of(graph)
    if not inputs:
        return FLOAT32
    name = onnx.TensorProto.DataType.Name(inputs[0].type.tensor_type.elem_type)
    return "uint8" if name == "UINT8" else WEIGHTS.get(name, FLOAT32)


def in_float32(graph: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a graph that computes in float32 wherever it names another type of real numbers, inputs included.

    Images of 8 bits become real numbers from 0 to 255. All values of tensors must stand in the graph.
    """
    import onnx
    from onnx import numpy_helper

    others = {number for name, number in onnx.TensorProto.DataType.items() if name in WEIGHTS and name != "FLOAT"}
    result = onnx.ModelProto()
    result.CopyFrom(graph)
    # Types of intermediate values follow from those of the inputs.
    del result.graph.value_info[:]
    for tensor in tensors_of(result):
        if tensor.data_type in others:
            values = numpy_helper.to_array(tensor).astype("float32")
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for message in _messages(result):
        if isinstance(message, onnx.TypeProto.Tensor) and message.elem_type in others:
            message.elem_type = onnx.TensorProto.FLOAT
        elif isinstance(message, onnx.AttributeProto) and message.name in TYPE_ATTRIBUTES and message.i in others:
            message.i = onnx.TensorProto.FLOAT
    for given in result.graph.input:
        if given.type.tensor_type.elem_type == onnx.TensorProto.UINT8:
            given.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return result


def with_numpy_weights(graph: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a graph whose weights in bfloat16, which numpy does not have, are converted from float32 by an operator.

    Every number in bfloat16 is one in float32.
    """
    import onnx
    from onnx import helper, numpy_helper

    bfloat16 = onnx.TensorProto.BFLOAT16
    result = onnx.ModelProto()
    result.CopyFrom(graph)
    operators = []
    for tensor in result.graph.initializer:
        if tensor.data_type == bfloat16:
            name, stored = tensor.name, f"{tensor.name}.float32"
            values = numpy_helper.to_array(tensor).astype("float32")
            tensor.CopyFrom(numpy_helper.from_array(values, stored))
            operators.append(helper.make_node("Cast", [stored], [name], to=bfloat16))
    for node in graph.graph.node:
        tensors = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        if node.op_type == "Constant" and tensors and tensors[0].data_type == bfloat16:
            (output,) = node.output
            stored = f"{output}.float32"
            constant = numpy_helper.from_array(numpy_helper.to_array(tensors[0]).astype("float32"))
            operators.append(helper.make_node("Constant", [], [stored], value=constant))
            operators.append(helper.make_node("Cast", [stored], [output], to=bfloat16))
        else:
            operators.append(node)
    del result.graph.node[:]
    result.graph.node.extend(operators)
    return result


def _messages(message: Message) -> list[Message]:
    # All messages within a message, at any depth.
    from google.protobuf.message import Message

    reached: list[Message] = []
    waiting = [message]
    while waiting:
        current = waiting.pop()
        for field, value in current.ListFields():
            if field.message_type is not None:
                inner = [value] if isinstance(value, Message) else list(value)
                reached += inner
                waiting += inner
    return reached


ONNX_HEADS = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}


ONNX_SAME_VALUES = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Dropout"}
"""Operators that may follow a head: they change no value."""


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
