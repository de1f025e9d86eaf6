"""Classifiers of the source `onnx`: networks run by onnxruntime on the CPU, or converted to torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.classifier import FLOAT32, Classifier, Original, classes_given, failed_on, first_line
from gfscore.networks.heads import Head, graph_before_head, onnx_head, probe_images, require_head
from gfscore.networks.number_types import confirmed, given_pixels
from gfscore.networks.onnx_content import (
    OnnxModel,
    is_external,
    parsed,
    read_model,
    serialized,
    tensors_of,
)
from gfscore.networks.onnx_conversion import channels_last, converted, converter, in_blocks
from gfscore.networks.onnx_files import AS_ONE_FILE, data_files
from gfscore.networks.onnx_number_types import INPUTS, in_float32, input_type, weights_type, with_numpy_weights
from gfscore.networks.outputs import Output, logits_of_values, output_words, place_of, selected_output, with_logits
from gfscore.networks.preprocessing import description, preprocess, preprocessed
from gfscore.statistics.logits import both_classes, is_one_column, log_probabilities

if TYPE_CHECKING:
    import onnx
    from torch import Tensor, nn

READS_DIGESTS = True
"""open_classifier compares the digests itself, with the bytes that run."""


REAL_NUMBERS = ("tensor(float)", "tensor(float16)", "tensor(bfloat16)", "tensor(double)")
"""Types of outputs that may be logits, as onnxruntime calls them."""


@dataclass(frozen=True)
class GraphInput:
    """The images that a graph takes.

    Attributes
    ----------
    name : str
        Name of the input.
    batch : int or None
        Images at a time; None where any number fits.
    channels_last : bool
        Whether the channels are the last axis.
    number_type : str
        Type of the pixels, a value of gfscore.networks.onnx_number_types.INPUTS.
    """

    name: str
    batch: int | None
    channels_last: bool
    number_type: str

    def converted(self, images: NDArray[np.float32]) -> NDArray[Any]:
        """Preprocessed images in the number type of the input; those of 8 bits are rounded."""
        if self.number_type == "uint8":
            return np.rint(images).clip(0, 255).astype(np.uint8)
        return images.astype(self.number_type, copy=False)


@dataclass(frozen=True)
class GraphLogits:
    """Where the logits of a graph are, and what they are made of.

    Attributes
    ----------
    output : str
        Name of the output of the file.
    head : str or None
        The softmax or the like that the output comes from, a key of gfscore.networks.heads.HEADS.
    logarithms : bool
        Whether the output holds probabilities, whose logarithms are taken.
    tensor : str
        Name of the tensor with the logits: the output, or what goes into its head.
    one_column : bool
        Whether it holds one number per image, which tells two classes apart.
    """

    output: str
    head: str | None
    logarithms: bool
    tensor: str = ""
    one_column: bool = False

    @property
    def words(self) -> str:
        """What the logits are made of, empty for the output as it is."""
        return output_words(one_column=self.one_column, logarithms=self.logarithms, head=self.head)


@dataclass(frozen=True)
class RunGraph:
    """A graph in onnxruntime.

    Attributes
    ----------
    session : onnxruntime.InferenceSession
    image_input : GraphInput
        The images that it takes.
    settings : mapping
        Those of its model.
    path : Path
        Its file.
    """

    session: Any
    image_input: GraphInput
    settings: Mapping[str, Any]
    path: Path

    def values(self, images: NDArray[np.float32], names: Sequence[str]) -> list[NDArray[np.float32]]:
        """Values of the tensors of these names, (n, ...) float32 each, for images (n, C, H, W) in [0, 1]."""
        pixels = self.image_input.converted(preprocess(images, self.settings, where=self.path))
        if self.image_input.channels_last:
            pixels = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
        size = self.image_input.batch or max(1, len(pixels))
        blocks: list[list[NDArray[Any]]] = []
        for start in range(0, len(pixels), size):
            block = pixels[start : start + size]
            # Only a graph with a fixed batch size has a last block that is not full.
            padding = np.zeros((size - len(block), *block.shape[1:]), dtype=block.dtype)
            values = self.session.run(list(names), {self.image_input.name: np.concatenate([block, padding])})
            blocks.append([value[: len(block)] for value in values])
        return [np.concatenate(values).astype(np.float32) for values in zip(*blocks, strict=True)]

    def logits(self, images: NDArray[np.float32], logits: GraphLogits) -> NDArray[np.float32]:
        """Logits (n, K) float32 of images (n, C, H, W) in [0, 1]."""
        (values,) = self.values(images, [logits.tensor])
        # Between the logits and the output of the file there may be a change of shape.
        values = values.reshape(len(values), -1) if logits.head else values
        return logits_of_values(values, logarithms=logits.logarithms)


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
    there is only one), `head` (the softmax or the like before which the logits are taken, see gfscore.networks.heads),
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


def graph_in(content: bytes, *, where: str | Path) -> onnx.ModelProto:
    """Graph of an ONNX file's content, where one file has to hold all of it; no other file is opened.

    Raises InputError, naming the file `where`, for content that is not ONNX, and for any tensor (weights, attributes of
    nodes, bodies of If, Loop and Scan, functions) that is stored in another file.
    """
    graph = parsed(content, where)
    for tensor in tensors_of(graph):
        if tensor.external_data or is_external(tensor):
            places = [entry.value for entry in tensor.external_data if entry.key == "location"]
            raise InputError(
                f"{where}: its tensor {tensor.name!r} is stored in another file ({', '.join(places) or 'unnamed'}), "
                f"which no digest covers here; load the model where that file is, and {AS_ONE_FILE}"
            )
    return graph


def opened_session(
    content: bytes, threads: int, path: Path | str, *, data: Mapping[str, bytes] = MappingProxyType({})
) -> Any:
    """onnxruntime's session of a graph on the CPU; InputError, naming the file `path`, where it cannot run it.

    `data` is the content of the files that its tensors are stored in, by name: none is opened.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    if data:
        sizes = [len(values) for values in data.values()]
        options.add_external_initializers_from_files_in_memory(list(data), list(data.values()), sizes)
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # onnxruntime's errors have no common base class.
    except Exception as error:
        raise InputError(
            f"{path}: onnxruntime {onnxruntime.__version__} cannot open it ({first_line(error)}); export it again as "
            "one file with all weights inside"
        ) from error


def _input_of(session: Any, shape: Sequence[int], path: Path | str) -> GraphInput:
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise InputError(
            f"{path}: has inputs {', '.join(i.name for i in inputs) or 'none'}; export it with one, the image"
        )
    (only,) = inputs
    if only.type not in INPUTS:
        raise InputError(
            f"{path}: input {only.name!r} is {only.type}; export it for float32 images (n, C, H, W), other types that "
            f"are read are {', '.join(INPUTS)}"
        )

    def fits(needed: tuple[int, ...]) -> bool:
        # Symbolic dimensions are text or None and accept any size.
        sides = zip(only.shape[1:], needed, strict=True)
        return len(only.shape) == 4 and all(not isinstance(has, int) or has == needs for has, needs in sides)

    channels, height, width = shape
    first, last = (channels, height, width), (height, width, channels)
    if not fits(first) and not fits(last):
        raise InputError(
            f"{path}: input {only.name!r} has shape {only.shape}, but image_shape {list(shape)} needs (n, C, H, W) or "
            "(n, H, W, C); correct image_shape, or export the model for images"
        )
    batch = only.shape[0] if isinstance(only.shape[0], int) else None
    return GraphInput(only.name, batch, not fits(first), INPUTS[only.type])


def _grey_images(shape: tuple[int, ...], image_input: GraphInput) -> NDArray[Any]:
    # In the layout and number type of the graph's input.
    sides = (*shape[1:], shape[0]) if image_input.channels_last else shape
    return image_input.converted(np.full((image_input.batch or 2, *sides), 0.5, dtype=np.float32))


def _output_of(session: Any, wanted: str | int | None, images: NDArray[Any], path: Path | str) -> str:
    # Name of the output with the logits. It is run on images, since files need not state the shapes of outputs.
    names = [output.name for output in session.get_outputs()]
    real = session.get_outputs()[0].type in REAL_NUMBERS
    if len(names) == 1 and wanted in (None, names[0]) and real:
        return names[0]
    try:
        values = session.run(names, {session.get_inputs()[0].name: images})
    # onnxruntime's errors have no common base class.
    except Exception as error:
        raise failed_on(images.shape[1:], error, where=path) from error
    outputs = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        whole = np.asarray(value).dtype.kind in "iub"
        outputs.append(Output(name, place, np.shape(value), whole_numbers=whole))
    return selected_output(outputs, wanted, where=path, images=len(images)).name


def head_of(settings: Mapping[str, Any], path: Path | str) -> str | None:
    """Softmax or the like that ends the graph, a key of gfscore.networks.heads.HEADS; None for a graph of logits.

    `settings`: `output` as for open_classifier. Nothing is executed.
    """
    graph = read_model(path).graph
    names = [output.name for output in graph.graph.output]
    wanted = settings.get("output")
    place = 0 if wanted is None else place_of(names, wanted)
    ending = None if place is None else onnx_head(graph, names[place])
    return ending[0] if ending else None
