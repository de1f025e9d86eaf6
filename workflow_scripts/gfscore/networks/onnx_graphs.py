"""Transformations of ONNX graphs: their number types, copies in float32, and the head that ends them."""

import math
from collections.abc import Mapping

import onnx
from onnx import helper, numpy_helper

from gfscore.networks.onnx_content import inputs_of, messages_of, tensors_of
from gfscore.networks.outputs import FLOAT32, missing_head_error, prevailing_type

WEIGHTS = {"FLOAT": FLOAT32, "FLOAT16": "float16", "BFLOAT16": "bfloat16", "DOUBLE": "float64"}
"""Number types of weights by ONNX's name."""

TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type")
"""Attributes of operators that name a number type."""

HEAD_OPERATORS = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}
"""Operators that are heads, with their name among gfscore.networks.outputs.HEADS."""

SAME_VALUES = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Dropout"}
"""Operators that may follow a head: they change no value."""


# Number types


def weights_type(graph: onnx.ModelProto) -> str:
    """Number type of most weights of a graph, by their number; "float32" for one without."""
    sizes = []
    for tensor in tensors_of(graph):
        name = _type_name(tensor.data_type)
        if name in WEIGHTS:
            sizes.append((WEIGHTS[name], math.prod(tensor.dims)))
    return prevailing_type(sizes)


def input_type(graph: onnx.ModelProto) -> str:
    """Number type of the first input of a graph that is no weight; "float32" for a type that images cannot have."""
    inputs = inputs_of(graph)
    if not inputs:
        return FLOAT32
    name = _type_name(inputs[0].type.tensor_type.elem_type)
    if name == "UINT8":
        return "uint8"
    return WEIGHTS.get(name, FLOAT32)


def in_float32(graph: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a graph that computes in float32 wherever the graph names another type of real numbers.

    Inputs are converted too: images of 8 bits become real numbers from 0 to 255. All values of tensors must stand in
    the graph.
    """
    converted_types = _type_numbers(WEIGHTS) - _type_numbers({"FLOAT": FLOAT32})
    result = onnx.ModelProto()
    result.CopyFrom(graph)
    # Types of intermediate values follow from those of the inputs.
    del result.graph.value_info[:]

    for message in messages_of(result):
        if isinstance(message, onnx.TensorProto):
            if message.data_type in converted_types:
                message.CopyFrom(_float32_tensor(message, message.name))
        elif isinstance(message, onnx.TypeProto.Tensor):
            if message.elem_type in converted_types:
                message.elem_type = onnx.TensorProto.FLOAT
        elif isinstance(message, onnx.AttributeProto):
            names_type = message.name in TYPE_ATTRIBUTES and message.i in converted_types
            if names_type:
                message.i = onnx.TensorProto.FLOAT

    for value in result.graph.input:
        if value.type.tensor_type.elem_type == onnx.TensorProto.UINT8:
            value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return result


def with_numpy_weights(graph: onnx.ModelProto) -> onnx.ModelProto:
    """Copy of a graph whose weights in bfloat16, which numpy does not have, are converted from float32 by an operator.

    The values are the same, since every number in bfloat16 is one in float32.
    """
    bfloat16 = onnx.TensorProto.BFLOAT16
    result = onnx.ModelProto()
    result.CopyFrom(graph)

    operators = []
    for tensor in result.graph.initializer:
        if tensor.data_type == bfloat16:
            name = tensor.name
            float32_name = f"{name}.float32"
            tensor.CopyFrom(_float32_tensor(tensor, float32_name))
            operators.append(helper.make_node("Cast", [float32_name], [name], to=bfloat16))
    for node in graph.graph.node:
        constant = constant_of(node)
        if constant is not None and constant.data_type == bfloat16:
            (name,) = node.output
            float32_name = f"{name}.float32"
            float32_constant = _float32_tensor(constant, None)
            operators.append(helper.make_node("Constant", [], [float32_name], value=float32_constant))
            operators.append(helper.make_node("Cast", [float32_name], [name], to=bfloat16))
        else:
            operators.append(node)

    del result.graph.node[:]
    result.graph.node.extend(operators)
    return result


def constant_of(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """Tensor that an operator Constant makes; None for other operators, and for constants that are no tensor."""
    if node.op_type == "Constant":
        for attribute in node.attribute:
            if attribute.name == "value":
                return attribute.t
    return None


def _type_name(number: int) -> str:
    return onnx.TensorProto.DataType.Name(number)


def _type_numbers(names: Mapping[str, str]) -> set[int]:
    return {number for name, number in onnx.TensorProto.DataType.items() if name in names}


def _float32_tensor(tensor: onnx.TensorProto, name: str | None) -> onnx.TensorProto:
    values = numpy_helper.to_array(tensor).astype("float32")
    return numpy_helper.from_array(values, name)


# Heads


def onnx_head(graph: onnx.ModelProto, output: str) -> tuple[str, str] | None:
    """Head that an output of a graph comes from, and the name of the tensor before it; None for an output of logits.

    The name of the head is a key of gfscore.networks.outputs.HEADS.
    """
    makers = {}
    for node in graph.graph.node:
        for name in node.output:
            makers[name] = node

    tensor = output
    while tensor in makers:
        node = makers[tensor]
        # A head normalises the values of an image, not over the images of a batch, which are axis 0.
        axes = [attribute.i for attribute in node.attribute if attribute.name == "axis"]
        if node.op_type in HEAD_OPERATORS and 0 not in axes:
            return HEAD_OPERATORS[node.op_type], node.input[0]
        if node.op_type not in SAME_VALUES:
            return None
        tensor = node.input[0]
    return None


def graph_before_head(graph: onnx.ModelProto, output: str, head: str, *, where: object) -> tuple[onnx.ModelProto, str]:
    """Graph with the tensor before a head as a further output, and that tensor's name.

    Raises InputError, naming the file `where`, if the output does not come from this head.
    """
    ending = onnx_head(graph, output)
    if ending is None or ending[0] != head:
        raise missing_head_error(head, where)
    tensor = ending[1]

    extended = onnx.ModelProto()
    extended.CopyFrom(graph)
    if tensor not in [value.name for value in extended.graph.output]:
        extended.graph.output.append(onnx.ValueInfoProto(name=tensor))
    return extended, tensor
