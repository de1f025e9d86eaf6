"""ONNX files with offsets: an operator behind the logits, before the head where the graph ends in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from gfscore.core.errors import InputError
from gfscore.networks.adjusted_files.shift import AdjustedFiles, output_shift
from gfscore.networks.model_source import Settings
from gfscore.networks.onnx_content import OnnxModel, read_model, serialized
from gfscore.networks.onnx_graphs import WEIGHTS, in_float32, weights_type
from gfscore.networks.onnx_models import session_in
from gfscore.networks.onnx_sessions import INPUTS, GraphLogits, opened_session, session_for_logits
from gfscore.networks.outputs import probe_images

NUMBER_TYPES = {name: TensorProto.DataType.Value(onnx_name) for onnx_name, name in WEIGHTS.items()}
"""ONNX's numbers of the types of logits, by name."""

OPERATORS_INSIDE = 1024
"""Bytes from which the values of a tensor are stored in the file of weights, where there is one."""


@dataclass(frozen=True)
class LogitsTensor:
    """The tensor of a graph that holds the logits.

    Attributes
    ----------
    logits : GraphLogits
        Its name, and what the logits are made of.
    shape : tuple of int
        Its shape without the images.
    number_type : int
        Its type, as ONNX numbers them.
    """

    logits: GraphLogits
    shape: tuple[int, ...]
    number_type: int


def write_adjusted(
    settings: Settings,
    path: Path | str,
    offsets: NDArray[np.float64],
    target: Path,
    *,
    image_shape: Sequence[int],
    classes: int,
) -> AdjustedFiles:
    """Write an ONNX file whose logits have offsets; weights in another file go to one beside `target`.

    Whatever the graph makes of the logits (a head, a second output) it makes of the adjusted ones. Of probabilities
    without a head that can be removed, those of the adjusted logits are taken.

    Parameters
    ----------
    settings, path, offsets, target, image_shape, classes
        As gfscore.networks.adjusted_files describes them.

    Raises
    ------
    InputError
        Naming file and remedy, where the logits come from no operator of the main graph.
    """
    del image_shape, classes
    model = read_model(path)
    tensor = _logits_tensor(model, settings)
    columns = int(np.prod(tensor.shape))
    shift = output_shift(offsets, settings, columns=columns, where=path)

    graph = onnx.ModelProto()
    graph.CopyFrom(model.whole_graph())
    _insert(graph, tensor, shift, where=path)

    if model.data:
        location = f"{target.name}.data"
        onnx.save_model(
            graph, str(target), save_as_external_data=True, location=location, size_threshold=OPERATORS_INSIDE
        )
    else:
        target.write_bytes(serialized(graph, path))
    place = f"before its {tensor.logits.head}" if tensor.logits.head else f"behind its output {tensor.logits.output}"
    return AdjustedFiles({**settings, "path": str(target)}, f"an operator {place}")


def _logits_tensor(model: OnnxModel, settings: Settings) -> LogitsTensor:
    number_type = weights_type(model.graph)
    session = session_in(number_type, model, 1)
    if session is None:
        # Names and shapes are those of the copy in float32, which onnxruntime can run.
        copy = in_float32(model.whole_graph())
        session = opened_session(serialized(copy, model.path), 1, model.path)
        graph, logits = session_for_logits(session, copy, settings, 1, model.path)
    else:
        graph, logits = session_for_logits(session, model.graph, settings, 1, model.path, data=model.data)
        types = {output.name: output.type for output in graph.session.get_outputs()}
        number_type = INPUTS[types[logits.tensor]]
    (values,) = graph.values(probe_images(graph.image_shape), [logits.tensor])
    return LogitsTensor(logits, values.shape[1:], NUMBER_TYPES[number_type])


def _insert(graph: onnx.ModelProto, tensor: LogitsTensor, shift: NDArray[np.float64], *, where: Path | str) -> None:
    # The tensor keeps its name, so that all that reads it reads the adjusted values; the original gets another.
    name = tensor.logits.tensor
    makers = [number for number, node in enumerate(graph.graph.node) if name in node.output]
    if not makers:
        raise InputError(
            f"{where}: its logits {name!r} come from no operator of the graph; export the network again, with its last "
            "layer inside"
        )
    (position,) = makers
    original = _free_name(graph, f"{name}.original")
    maker = graph.graph.node[position]
    maker.output[list(maker.output).index(name)] = original

    if tensor.logits.logarithms:
        operators = _shifted_probabilities(original, shift.reshape(tensor.shape), tensor)
    else:
        constant = _constant(f"{original}.offsets", shift.reshape(tensor.shape), tensor)
        operators = [constant, helper.make_node("Add", [original, f"{original}.offsets"], [name])]
    for further, operator in enumerate(operators, start=1):
        graph.graph.node.insert(position + further, operator)


def _shifted_probabilities(original: str, shift: NDArray[np.float64], tensor: LogitsTensor) -> list[onnx.NodeProto]:
    # p exp(b), divided by the sum over the classes.
    factors, raised, ones, total = (f"{original}.{word}" for word in ("factors", "raised", "ones", "total"))
    operators = [
        _constant(factors, np.exp(shift), tensor),
        helper.make_node("Mul", [original, factors], [raised]),
    ]
    if tensor.logits.one_column:
        rest = f"{original}.rest"
        operators += [
            _constant(ones, np.ones_like(shift), tensor),
            helper.make_node("Sub", [ones, original], [rest]),
            helper.make_node("Add", [rest, raised], [total]),
        ]
    else:
        # A product with ones, since the operators of sums differ between versions of ONNX.
        operators += [
            _constant(ones, np.ones((shift.size, 1)), tensor),
            helper.make_node("MatMul", [raised, ones], [total]),
        ]
    return [*operators, helper.make_node("Div", [raised, total], [tensor.logits.tensor])]


def _constant(name: str, values: NDArray[np.float64], tensor: LogitsTensor) -> onnx.NodeProto:
    # An operator, since weights of files of early versions have to be inputs too.
    value = helper.make_tensor(name, tensor.number_type, values.shape, values.ravel().tolist())
    return helper.make_node("Constant", [], [name], value=value)


def _free_name(graph: onnx.ModelProto, name: str) -> str:
    # A network may be adjusted twice.
    names = {output for node in graph.graph.node for output in node.output}
    while name in names:
        name += "."
    return name
