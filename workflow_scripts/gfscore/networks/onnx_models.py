"""Classifiers of the source `onnx`: networks run by onnxruntime on the CPU, or converted to torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.classifier import Classifier, Original
from gfscore.networks.number_types import confirmed
from gfscore.networks.onnx_content import (
    OnnxModel,
    read_model,
    serialized,
)
from gfscore.networks.onnx_files import data_files
from gfscore.networks.onnx_graphs import (
    graph_before_head,
    in_float32,
    input_type,
    onnx_head,
    weights_type,
    with_numpy_weights,
)
from gfscore.networks.onnx_sessions import GraphLogits, RunGraph, _grey_images, _input_of, _output_of, opened_session
from gfscore.networks.outputs import (
    FLOAT32,
    Head,
    classes_given,
    first_line,
    place_of,
    probe_images,
    require_head,
)
from gfscore.networks.preprocessing import description, preprocessed
from gfscore.networks.wrappers import channels_last, given_pixels, in_blocks, with_logits
from gfscore.statistics.logits import both_classes, is_one_column, log_probabilities

if TYPE_CHECKING:
    import onnx
    from torch import Tensor, nn
from importlib.metadata import version
from typing import TYPE_CHECKING

from gfscore.networks.wrappers import around

if TYPE_CHECKING:
    import onnx
    import torch


READS_DIGESTS = True
"""open_classifier compares the digests itself, with the bytes that run."""


def open_classifier(
    settings: Mapping[str, Any],
    path: Path | str,
    *,
    image_shape: tuple[int, int, int],
    classes: int,
    threads: int,
    digests: Mapping[str, str] | None = None,
) -> Classifier:
    """Classifier in an ONNX file with one image input, (n, C, H, W) or (n, H, W, C), real numbers or 8 bits.

    `settings`: `image_shape` (C, H, W), `output` (name of the output with the logits, or its place from 0, None if
    there is only one), `head` (the softmax or the like before which the logits are taken),
    `allow_probabilities` (see gfscore.networks.outputs), `gradients` (whether to convert the graph to a torch network)
    and the preprocessing (see gfscore.networks.preprocessing). A file with a fixed batch size gets blocks of that size,
    the last one padded. `threads` are those of one operator of onnxruntime; `digests`: SHA-256 of every file of the
    model by its path, which are compared as the files are read. A graph in another number type than float32 answers in
    that type, and has the gradients of its copy in float32. Raises InputError, naming file and remedy, for a damaged
    file, files beside it as `read_model` does, unsuitable inputs or outputs, and a graph that cannot be converted.
    """
    del image_shape, classes
    model = read_model(path, digests)
    weights = weights_type(model.graph)
    session = _session_in(weights, model, threads)
    if session is None:
        return _opened_by_torch(weights, model, settings, threads)
    graph, logits = _run_for_logits(session, model.graph, settings, threads, path, data=model.data)
    number_type = graph.image_input.number_type if weights == FLOAT32 else weights

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        return graph.logits(images, logits)

    classifier = _classifier(graph, logits, run, number_type)
    if not settings.get("gradients"):
        return classifier
    if number_type == FLOAT32:
        network = _network_of(model.whole_graph(), graph, logits)
        return replace(classifier, network=network, run=None, original=Original(run, "onnxruntime", converter()))
    search = _network_of(in_float32(model.whole_graph()), graph, logits)
    network = confirmed(search, _on_tensors(run), number_type, made_by=converter())
    return replace(classifier, network=network, run=None)


def _session_in(weights: str, model: OnnxModel, threads: int) -> Any:
    # None where onnxruntime lacks operators for the number type of the weights, or numpy lacks that of inputs.
    try:
        session = opened_session(model.content, threads, model.path, data=model.data)
    except InputError:
        if weights == FLOAT32:
            raise
        return None
    places = [*session.get_inputs(), *session.get_outputs()]
    return None if any(place.type == "tensor(bfloat16)" for place in places) else session


def _opened_by_torch(weights: str, model: OnnxModel, settings: Mapping[str, Any], threads: int) -> Classifier:
    # The graph in its own number type by conversion, whose copy in float32 is compared with onnxruntime.
    whole = model.whole_graph()
    copied = in_float32(whole)
    session = opened_session(serialized(copied, model.path), threads, model.path)
    graph, logits = _run_for_logits(session, copied, settings, threads, model.path)
    exact = _network_of(with_numpy_weights(whole), graph, logits, number_type=input_type(whole))
    classifier = _classifier(graph, logits, _on_arrays(exact), weights)
    if not settings.get("gradients"):
        return classifier
    search = _network_of(copied, graph, logits)
    original = Original(lambda images: graph.logits(images, logits), "onnxruntime (float32)", converter())
    return replace(classifier, network=confirmed(search, exact, weights), run=None, original=original)


def _run_for_logits(
    session: Any,
    graph: onnx.ModelProto,
    settings: Mapping[str, Any],
    threads: int,
    path: Path | str,
    *,
    data: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[RunGraph, GraphLogits]:
    # The graph of a session, opened again where its logits are inside it, and where its logits are.
    shape, head = tuple(settings["image_shape"]), settings.get("head")
    image_input = _input_of(session, shape, path)
    output = _output_of(session, settings.get("output"), _grey_images(shape, image_input), path)
    logits = GraphLogits(output, head, settings.get("allow_probabilities") == LOGARITHMS, tensor=output)
    if head:
        longer, tensor = graph_before_head(graph, output, head, where=path)
        session = opened_session(serialized(longer, path), threads, path, data=data)
        logits = replace(logits, tensor=tensor)
    running = RunGraph(session, image_input, settings, Path(path))
    # Says in words what a graph that fails, or has no logits, does wrong.
    classes_given(lambda images: running.logits(images, logits), shape, where=path)
    (shown,) = running.values(probe_images(shape), [logits.tensor])
    one_column = is_one_column(shown.reshape(len(shown), -1))
    if logits.logarithms:
        log_probabilities(both_classes(shown, probabilities=True) if one_column else shown, source=path)
    return running, replace(logits, one_column=one_column)


def _classifier(
    graph: RunGraph,
    logits: GraphLogits,
    run: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    number_type: str,
) -> Classifier:
    # Classifier without gradients whose logits `run` gives.
    shape = tuple(graph.settings["image_shape"])
    head = None
    if logits.head:
        names = [logits.tensor, logits.output]

        def both(images: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            before, after = graph.values(images, names)
            return before, after

        head = Head(logits.head, both, number_type)
        require_head(head, probe_images(shape), where=graph.path)
    return Classifier(
        architecture="ONNX graph",
        image_shape=shape,
        classes=classes_given(run, shape, where=graph.path),
        network=None,
        run=run,
        preprocessing=description(graph.settings),
        number_type=number_type,
        outputs=logits.words,
        one_column=logits.one_column,
        head=head,
    )


def _network_of(
    model: onnx.ModelProto, graph: RunGraph, logits: GraphLogits, *, number_type: str = FLOAT32
) -> nn.Module:
    # Torch network of a graph that takes pixels of this type, from images in [0, 1] to logits.
    if logits.head:
        model, _ = graph_before_head(model, logits.output, logits.head, where=graph.path)
    network = converted(model, logits.tensor, where=graph.path)
    if number_type != FLOAT32:
        network = given_pixels(network, number_type)
    network = with_logits(network, one_column=logits.one_column, logarithms=logits.logarithms, flat=bool(logits.head))
    network = in_blocks(network, graph.image_input.batch) if graph.image_input.batch else network
    network = channels_last(network) if graph.image_input.channels_last else network
    return preprocessed(network, graph.settings, where=graph.path)


def _on_tensors(run: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> Callable[[Tensor], Tensor]:
    import torch

    return lambda images: torch.from_numpy(run(images.cpu().numpy())).to(images.device)


def _on_arrays(network: nn.Module) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    import torch

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.no_grad():
            return network(torch.from_numpy(images)).float().numpy()

    return run


def files_beside(path: Path | str) -> list[dict[str, Any]]:
    """Files that tensors are stored in, as the files of an entry: each is enforced by its recorded digest.

    Raises InputError as `read_model` does, before a digest of any of them is recorded.
    """
    files = data_files(path)
    if files:
        read_model(path)
    return [{"path": str(file), "url": None, "sha256": None} for file in files]


def require_usable(path: str | Path) -> None:
    """Raise InputError for a file that is not ONNX, or whose weights cannot be read; nothing is executed."""
    read_model(path)


def head_of(settings: Mapping[str, Any], path: Path | str) -> str | None:
    """Softmax or the like that ends the graph, a key of gfscore.networks.outputs.HEADS; None for a graph of logits.

    `settings`: `output` as for open_classifier. Nothing is executed.
    """
    graph = read_model(path).graph
    names = [output.name for output in graph.graph.output]
    wanted = settings.get("output")
    place = 0 if wanted is None else place_of(names, wanted)
    ending = None if place is None else onnx_head(graph, names[place])
    return ending[0] if ending else None


# ---- Conversion of an ONNX graph to a torch network, which has gradients.


def converter() -> str:
    """Library that converts, with its version."""
    return f"onnx2fx {version('onnx2fx')}"


def converted(graph: onnx.ModelProto, output: str, *, where: Path | str) -> torch.nn.Module:
    """Torch network of an ONNX graph, from its only input to the output of this name, in eval mode.

    Raises InputError, naming the file `where`, for a graph with operators or types that have no counterpart.
    """
    import onnx2fx

    position = [given.name for given in graph.graph.output].index(output)
    try:
        network = onnx2fx.convert(graph)
    # Graphs of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{where}: {converter()} cannot make a torch network of it ({first_line(error)}); set gradients: false and "
            "leave out measures that need gradients, or name the weights and the architecture that it was exported from"
        ) from error

    def one_output(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        outputs = network(images)
        return outputs[position] if isinstance(outputs, tuple | list) else outputs

    return around(network, one_output)
