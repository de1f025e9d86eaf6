"""Classifiers of the source `onnx`: networks run by onnxruntime on the CPU, or converted to torch."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import onnx
import onnx2fx
import onnxruntime
import torch
from torch import nn

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier, Original
from gfscore.networks.model_source import Settings
from gfscore.networks.number_types import NetworkWithSearch
from gfscore.networks.onnx_content import OnnxModel, read_model, serialize_model
from gfscore.networks.onnx_graphs import (
    graph_before_head,
    in_float32,
    input_type,
    onnx_head,
    weights_type,
    with_numpy_weights,
)
from gfscore.networks.onnx_sessions import GraphLogits, GraphSession, opened_session, session_for_logits
from gfscore.networks.outputs import (
    FLOAT32,
    Head,
    Images,
    Logits,
    Run,
    class_count,
    first_line,
    output_index,
    probe_images,
    require_head,
)
from gfscore.networks.preprocessing import description, preprocessed
from gfscore.networks.wrappers import channels_last, in_blocks, in_number_type, with_logits, wrap

READS_DIGESTS = True
"""open_classifier compares the digests itself, with the bytes that run."""


def open_classifier(
    settings: Settings,
    path: Path | str,
    *,
    image_shape: tuple[int, int, int],
    classes: int,
    threads: int,
    digests: Mapping[str, str] | None = None,
) -> Classifier:
    """Classifier in an ONNX file with one image input, (n, C, H, W) or (n, H, W, C), real numbers or 8 bits.

    A file with a fixed batch size gets blocks of that size, the last one padded. A graph in another number type than
    float32 answers in that type, and has the gradients of its copy in float32.

    Parameters
    ----------
    settings : mapping
        `image_shape` (C, H, W); `output`, name of the output with the logits, or its position from 0, None if there is
        only one; `head`, the operator before which the logits are taken (see gfscore.networks.outputs.HEADS);
        `allow_probabilities`; `gradients`, whether to convert the graph to a torch network; and the preprocessing
        (see gfscore.networks.preprocessing).
    path : Path or str
        The ONNX file.
    image_shape, classes
        Not used, since the graph determines them.
    threads : int
        Threads of one operator of onnxruntime.
    digests : mapping of str to str, optional
        SHA-256 of every file of the model by its path, which are compared as the files are read.

    Raises
    ------
    InputError
        Naming file and remedy: for a damaged file, as `read_model` does, for unsuitable inputs or outputs, and for a
        graph that cannot be converted.
    """
    del image_shape, classes
    model = read_model(path, digests)
    number_type = weights_type(model.proto)
    session = session_in(number_type, model, threads)
    if session is None:
        return _opened_by_torch(number_type, model, settings, threads)

    graph, logits = session_for_logits(session, model.proto, settings, threads, path, data=model.data)
    if number_type == FLOAT32:
        number_type = graph.image_input.number_type

    def run(images: Images) -> Logits:
        return graph.logits(images, logits)

    classifier = _without_gradients(graph, logits, run, number_type)
    if not settings.get("gradients"):
        return classifier
    if number_type == FLOAT32:
        network = _torch_network(model.with_data_embedded(), graph, logits)
        original = Original(run, "onnxruntime", converter())
        return replace(classifier, network=network, run=None, original=original)
    search = _torch_network(in_float32(model.with_data_embedded()), graph, logits)

    def exact(images: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(run(images.cpu().numpy())).to(images.device)

    network = NetworkWithSearch(search, exact, number_type, converter=converter())
    return replace(classifier, network=network, run=None)


def head_of(settings: Settings, path: Path | str) -> str | None:
    """Head that ends the graph of an ONNX file, a key of gfscore.networks.outputs.HEADS; None for a graph of logits.

    `settings`: `output` as for open_classifier. Nothing is executed.
    """
    proto = read_model(path).proto
    names = [output.name for output in proto.graph.output]
    output = settings.get("output")
    index = 0 if output is None else output_index(names, output)
    if index is None:
        return None
    ending = onnx_head(proto, names[index])
    return ending[0] if ending else None


def session_in(number_type: str, model: OnnxModel, threads: int) -> onnxruntime.InferenceSession | None:
    """Session of a model; None where onnxruntime lacks operators for its number type, or numpy has no such type.

    Parameters
    ----------
    number_type : str
        Number type of the weights.
    model : OnnxModel
    threads : int
        Threads of one operator.
    """
    try:
        session = opened_session(model.content, threads, model.path, data=model.data)
    except InputError:
        if number_type == FLOAT32 and input_type(model.proto) in (FLOAT32, "uint8"):
            raise
        return None
    for tensor in [*session.get_inputs(), *session.get_outputs()]:
        if tensor.type == "tensor(bfloat16)":
            return None
    return session


def _opened_by_torch(number_type: str, model: OnnxModel, settings: Settings, threads: int) -> Classifier:
    # The graph in its number type by conversion, whose copy in float32 is compared with onnxruntime.
    whole_graph = model.with_data_embedded()
    float32_graph = in_float32(whole_graph)
    session = opened_session(serialize_model(float32_graph, model.path), threads, model.path)
    graph, logits = session_for_logits(session, float32_graph, settings, threads, model.path)
    original = Original(lambda images: graph.logits(images, logits), "onnxruntime (float32)", converter())
    try:
        exact = _torch_network(with_numpy_weights(whole_graph), graph, logits, number_type=input_type(whole_graph))
    except InputError:
        # No library computes with two types in one operator, which PyTorch's exporter leaves where it folds a
        # normalisation into a convolution.
        classifier = _without_gradients(graph, logits, original.run, FLOAT32)
        words = "; ".join(filter(None, [logits.words, "computed in float32, as its number types are mixed"]))
        classifier = replace(classifier, outputs=words)
        if not settings.get("gradients"):
            return classifier
        return replace(classifier, network=_torch_network(float32_graph, graph, logits), run=None, original=original)

    def run(images: Images) -> Logits:
        with torch.no_grad():
            return exact(torch.from_numpy(images)).float().numpy()

    classifier = _without_gradients(graph, logits, run, number_type)
    if not settings.get("gradients"):
        return classifier
    search = _torch_network(float32_graph, graph, logits)
    return replace(classifier, network=NetworkWithSearch(search, exact, number_type), run=None, original=original)


def _without_gradients(graph: GraphSession, logits: GraphLogits, run: Run, number_type: str) -> Classifier:
    head = None
    if logits.head:
        names = [logits.tensor, logits.output]

        def logits_and_output(images: Images) -> tuple[Logits, Logits]:
            before, after = graph.values(images, names)
            return before, after

        head = Head(logits.head, logits_and_output, number_type)
        require_head(head, probe_images(graph.image_shape), where=graph.path)
    return Classifier(
        architecture="ONNX graph",
        image_shape=graph.image_shape,
        classes=class_count(run, graph.image_shape, where=graph.path),
        network=None,
        run=run,
        preprocessing=description(graph.settings),
        number_type=number_type,
        outputs=logits.words,
        one_column=logits.one_column,
        head=head,
        batch=graph.image_input.batch or 1,
    )


# Conversion to torch


def _torch_network(
    model: onnx.ModelProto, graph: GraphSession, logits: GraphLogits, *, number_type: str = FLOAT32
) -> nn.Module:
    # From images in [0, 1] to logits; `number_type`: the type of the pixels that the graph takes.
    if logits.head:
        model, _ = graph_before_head(model, logits.output, logits.head, where=graph.path)
    network = converted(model, logits.tensor, where=graph.path)
    if number_type != FLOAT32:
        network = in_number_type(network, number_type)
    network = with_logits(network, one_column=logits.one_column, logarithms=logits.logarithms, flat=bool(logits.head))
    if graph.image_input.batch:
        network = in_blocks(network, graph.image_input.batch)
    if graph.image_input.channels_last:
        network = channels_last(network)
    network = preprocessed(network, graph.settings, where=graph.path)
    try:
        with torch.no_grad():
            network(torch.from_numpy(probe_images(graph.image_shape)))
    # What was converted may still fail in any way.
    except Exception as error:
        raise _conversion_error(graph.path, error) from error
    return network


def converter() -> str:
    """Library that converts graphs to torch networks, with its version."""
    return f"onnx2fx {version('onnx2fx')}"


def converted(graph: onnx.ModelProto, output: str, *, where: Path | str) -> nn.Module:
    """Torch network of an ONNX graph, from its only input to the output of this name, in eval mode.

    Raises InputError, naming the file `where`, for a graph with operators or types that have no counterpart.
    """
    index = [value.name for value in graph.graph.output].index(output)
    try:
        network = onnx2fx.convert(graph)
    # Graphs of others may fail in any way.
    except Exception as error:
        raise _conversion_error(where, error) from error

    def forward(network: nn.Module, images: torch.Tensor) -> torch.Tensor:
        outputs = network(images)
        return outputs[index] if isinstance(outputs, tuple | list) else outputs

    return wrap(network, forward)


def _conversion_error(where: Path | str, error: Exception) -> InputError:
    return InputError(
        f"{where}: {converter()} cannot make a torch network of it ({first_line(error)}); set gradients: false and "
        "leave out measures that need gradients, or name the weights and the architecture that it was exported from"
    )
