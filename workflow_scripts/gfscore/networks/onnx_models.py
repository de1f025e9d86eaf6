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
from gfscore.networks.classifier import Classifier, Original, classes_given, first_line
from gfscore.networks.number_types import FLOAT32, confirmed, given_pixels
from gfscore.networks.onnx_content import (
    AS_ONE_FILE,
    OnnxModel,
    is_external,
    parsed,
    read_model,
    serialized,
    tensors_of,
)
from gfscore.networks.onnx_conversion import channels_last, converted, converter, in_blocks
from gfscore.networks.onnx_files import data_files
from gfscore.networks.onnx_number_types import INPUTS, in_float32, input_type, weights_type, with_numpy_weights
from gfscore.networks.preprocessing import description, preprocess, preprocessed

if TYPE_CHECKING:
    import onnx
    from torch import Tensor, nn

READS_DIGESTS = True
"""open_classifier compares the digests itself, with the bytes that run."""


@dataclass(frozen=True)
class GraphInput:
    """The images that a graph takes.

    Attributes
    ----------
    name : str
        Name of the input.
    batch : int or None
        Images at a time; None where any number fits.
    last : bool
        Whether the channels are the last axis.
    number_type : str
        Type of the pixels, a value of gfscore.networks.onnx_number_types.INPUTS.
    """

    name: str
    batch: int | None
    last: bool
    number_type: str

    def converted(self, images: NDArray[np.float32]) -> NDArray[Any]:
        """Preprocessed images in the number type of the input; those of 8 bits are rounded."""
        if self.number_type == "uint8":
            return np.rint(images).clip(0, 255).astype(np.uint8)
        return images.astype(self.number_type, copy=False)


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

    `settings`: `image_shape` (C, H, W), `output` (name of the output with the logits, None if there is only one),
    `gradients` (whether to convert the graph to a torch network) and the preprocessing (see
    gfscore.networks.preprocessing). A file with a fixed batch size gets blocks of that size, the last one padded.
    `threads` are those of one operator of onnxruntime; `digests`: SHA-256 of every file of the model by its path, which
    are compared as the files are read. A graph in another number type than float32 answers in that type, and has the
    gradients of its copy in float32. Raises InputError, naming file and remedy, for a damaged file, files beside it as
    `read_model` does, unsuitable inputs or outputs, and a graph that cannot be converted.
    """
    del image_shape, classes
    model = read_model(path, digests)
    weights = weights_type(model.graph)
    session = _session_in(weights, model, threads)
    if session is None:
        return _opened_by_torch(weights, model, settings, threads)
    shape = tuple(settings["image_shape"])
    given = _input_of(session, shape, path)
    output = _output_of(session, settings["output"], path)
    run = _running(session, given, output, settings, path)
    number_type = given.number_type if weights == FLOAT32 else weights
    classifier = Classifier(
        architecture="ONNX graph",
        image_shape=shape,
        classes=classes_given(run, shape, where=path),
        network=None,
        run=run,
        preprocessing=description(settings),
        number_type=number_type,
    )
    if not settings.get("gradients"):
        return classifier
    if number_type == FLOAT32:
        network = _network_of(model.whole_graph(), output, given, settings, path)
        return replace(classifier, network=network, run=None, original=Original(run, "onnxruntime", converter()))
    search = _network_of(in_float32(model.whole_graph()), output, given, settings, path)
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
    path, shape = model.path, tuple(settings["image_shape"])
    graph = model.whole_graph()
    copied = in_float32(graph)
    session = opened_session(serialized(copied, path), threads, path)
    given = _input_of(session, shape, path)
    output = _output_of(session, settings["output"], path)
    exact = _network_of(with_numpy_weights(graph), output, given, settings, path, number_type=input_type(graph))
    run = _on_arrays(exact)
    classifier = Classifier(
        architecture="ONNX graph",
        image_shape=shape,
        classes=classes_given(run, shape, where=path),
        network=None,
        run=run,
        preprocessing=description(settings),
        number_type=weights,
    )
    if not settings.get("gradients"):
        return classifier
    search = _network_of(copied, output, given, settings, path)
    original = Original(_running(session, given, output, settings, path), "onnxruntime (float32)", converter())
    return replace(classifier, network=confirmed(search, exact, weights), run=None, original=original)


def _running(
    session: Any, given: GraphInput, output: str, settings: Mapping[str, Any], path: Path | str
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    # Logits of images in [0, 1] by onnxruntime.
    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        pixels = given.converted(preprocess(images, settings, where=path))
        if given.last:
            pixels = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))
        size = given.batch or max(1, len(pixels))
        blocks = []
        for start in range(0, len(pixels), size):
            block = pixels[start : start + size]
            padding = np.zeros((size - len(block) if given.batch else 0, *block.shape[1:]), dtype=block.dtype)
            blocks.append(session.run([output], {given.name: np.concatenate([block, padding])})[0][: len(block)])
        return np.concatenate(blocks).astype(np.float32)

    return run


def _network_of(
    graph: onnx.ModelProto,
    output: str,
    given: GraphInput,
    settings: Mapping[str, Any],
    path: Path | str,
    *,
    number_type: str = FLOAT32,
) -> nn.Module:
    # Torch network of a graph that takes pixels of this type, from images in [0, 1] to logits.
    network = converted(graph, output, where=path)
    if number_type != FLOAT32:
        network = given_pixels(network, number_type)
    network = in_blocks(network, given.batch) if given.batch else network
    network = channels_last(network) if given.last else network
    return preprocessed(network, settings, where=path)


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


def _output_of(session, wanted, path):
    names = [output.name for output in session.get_outputs()]
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        what = f"output {wanted!r} is not one of" if wanted else "has the outputs"
        raise InputError(f"{path}: {what} {', '.join(names)}; name the logits under `output` in the model's entry")
    return wanted
