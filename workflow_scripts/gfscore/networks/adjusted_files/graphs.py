"""ONNX files with offsets: an operator that is inserted into the graph adds them to the logits.

It follows the operator that makes the logits, and stands before the head (softmax, sigmoid) of a graph that has one.
"""

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
from gfscore.networks.onnx_content import OnnxModel, read_model, serialize_model
from gfscore.networks.onnx_graphs import WEIGHTS, in_float32, weights_type
from gfscore.networks.onnx_models import session_in
from gfscore.networks.onnx_sessions import INPUTS, GraphLogits, opened_session, session_for_logits
from gfscore.networks.outputs import probe_images

NUMBER_TYPES = {name: TensorProto.DataType.Value(onnx_name) for onnx_name, name in WEIGHTS.items()}
"""Codes of ONNX for the number types that logits may have, by the name of the type."""

LEAST_EXTERNAL_BYTES = 1024
"""Size from which a tensor is written to the separate file of weights, where there is one."""


@dataclass(frozen=True)
class LogitsTensor:
    """The tensor of a graph that holds the logits.

    Attributes
    ----------
    logits : GraphLogits
        Its name, and how logits are computed from it.
    shape : tuple of int
        Its shape for one image.
    number_type : int
        ONNX's code of its number type.
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
    """Write an ONNX file whose logits have offsets.

    Weights that the original keeps in a separate file go to one beside `target`. All that follows the logits in the
    graph (a head, a second output) is computed from the adjusted logits. Where the output holds probabilities and the
    graph has no head to insert an operator before, they become the probabilities of the adjusted logits.

    Parameters
    ----------
    settings, path, offsets, target, image_shape, classes
        See gfscore.networks.adjusted_files; the last two are not needed for a graph.

    Raises
    ------
    InputError
        Where the logits are made by no operator of the main graph; names the file and the remedy.
    """
    del image_shape, classes
    model = read_model(path)
    tensor = _logits_tensor(model, settings)
    columns = int(np.prod(tensor.shape))
    shift = output_shift(offsets, settings, columns=columns, where=path)

    graph = onnx.ModelProto()
    graph.CopyFrom(model.with_data_embedded())
    _insert(graph, tensor, shift, where=path)

    if model.data:
        location = f"{target.name}.data"
        onnx.save_model(
            graph, str(target), save_as_external_data=True, location=location, size_threshold=LEAST_EXTERNAL_BYTES
        )
    else:
        target.write_bytes(serialize_model(graph, path))
    place = f"behind its output {tensor.logits.output}"
    if tensor.logits.head:
        place = f"before its {tensor.logits.head}"
    return AdjustedFiles({**settings, "path": str(target)}, f"an operator {place}")


def _logits_tensor(model: OnnxModel, settings: Settings) -> LogitsTensor:
    # A function of its own, so that the session releases its copy of the weights before the graph is copied.
    number_type = weights_type(model.proto)
    session = session_in(number_type, model, 1)
    if session is None:
        # onnxruntime cannot run the model; its copy in float32 has the same names and shapes.
        copy = in_float32(model.with_data_embedded())
        session = opened_session(serialize_model(copy, model.path), 1, model.path)
        graph, logits = session_for_logits(session, copy, settings, 1, model.path)
    else:
        graph, logits = session_for_logits(session, model.proto, settings, 1, model.path, data=model.data)
        types = {output.name: output.type for output in graph.session.get_outputs()}
        number_type = INPUTS[types[logits.tensor]]
    (values,) = graph.values(probe_images(graph.image_shape), [logits.tensor])
    return LogitsTensor(logits, values.shape[1:], NUMBER_TYPES[number_type])


def _insert(graph: onnx.ModelProto, tensor: LogitsTensor, shift: NDArray[np.float64], *, where: Path | str) -> None:
    # The original logits get a new name and the adjusted ones their old name, so that later operators read the adjusted
    # logits.
    name = tensor.logits.tensor
    makers = []
    names: set[str] = set()
    for index, node in enumerate(graph.graph.node):
        names.update(node.output)
        if name in node.output:
            makers.append(index)
    if not makers:
        raise InputError(
            f"{where}: its logits {name!r} come from no operator of the graph; export the network again, with its last "
            "layer inside"
        )
    (position,) = makers
    original = f"{name}.original"
    # A network that is adjusted twice has the name already.
    while original in names:
        original += "."
    maker = graph.graph.node[position]
    maker.output[list(maker.output).index(name)] = original

    shift = shift.reshape(tensor.shape)
    if tensor.logits.logarithms:
        operators = _shifted_probabilities(original, shift, tensor)
    else:
        offsets = f"{original}.offsets"
        operators = [_constant(offsets, shift, tensor), helper.make_node("Add", [original, offsets], [name])]
    for index, operator in enumerate(operators, start=position + 1):
        graph.graph.node.insert(index, operator)


def _shifted_probabilities(original: str, shift: NDArray[np.float64], tensor: LogitsTensor) -> list[onnx.NodeProto]:
    # Adding b to the logits turns probabilities p into p exp(b), divided by their sum over the classes.
    factors = f"{original}.factors"
    weighted = f"{original}.weighted"
    ones = f"{original}.ones"
    total = f"{original}.total"
    operators = [
        _constant(factors, np.exp(shift), tensor),
        helper.make_node("Mul", [original, factors], [weighted]),
    ]
    if tensor.logits.one_column:
        # The only column is the probability of class 1; that of class 0 has no factor.
        complement = f"{original}.complement"
        operators += [
            _constant(ones, np.ones_like(shift), tensor),
            helper.make_node("Sub", [ones, original], [complement]),
            helper.make_node("Add", [complement, weighted], [total]),
        ]
    else:
        # A product with ones, since the operators of sums differ between versions of ONNX.
        operators += [
            _constant(ones, np.ones((shift.size, 1)), tensor),
            helper.make_node("MatMul", [weighted, ones], [total]),
        ]
    operators.append(helper.make_node("Div", [weighted, total], [tensor.logits.tensor]))
    return operators


def _constant(name: str, values: NDArray[np.float64], tensor: LogitsTensor) -> onnx.NodeProto:
    # A Constant operator rather than a weight: files of early ONNX versions must list every weight as an input, too.
    value = helper.make_tensor(name, tensor.number_type, values.shape, values.ravel().tolist())
    return helper.make_node("Constant", [], [name], value=value)
