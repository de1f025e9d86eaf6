"""Classifiers of the source `onnx`: networks run by onnxruntime on the CPU, or converted to torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier, Original, classes_given, first_line
from gfscore.networks.onnx_conversion import channels_last, converted, converter, in_blocks
from gfscore.networks.preprocessing import description, preprocess, preprocessed

if TYPE_CHECKING:
    import onnx
    from google.protobuf.message import Message


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier in an ONNX file with one image input, float32 (n, C, H, W) or (n, H, W, C).

    `settings`: `image_shape` (C, H, W), `output` (name of the output with the logits, None if there is only one),
    `gradients` (whether to convert the graph to a torch network) and the preprocessing (see
    gfscore.networks.preprocessing). A file with a fixed batch size gets blocks of that size, the last one padded.
    `threads` are those of one operator of onnxruntime. Raises InputError, naming file and remedy, for a damaged file,
    weights stored in other files, unsuitable inputs or outputs, and a graph that cannot be converted.
    """
    del image_shape, classes
    content = Path(path).read_bytes()
    graph = graph_in(content, where=path)
    session = opened_session(content, threads, path)
    shape = tuple(settings["image_shape"])
    name, batch, last = _input_of(session, shape, path)
    output = _output_of(session, settings["output"], path)

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        images = preprocess(images, settings, where=path)
        if last:
            images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        size = batch or max(1, len(images))
        blocks = []
        for start in range(0, len(images), size):
            block = images[start : start + size]
            padding = np.zeros((size - len(block) if batch else 0, *block.shape[1:]), dtype=np.float32)
            blocks.append(session.run([output], {name: np.concatenate([block, padding])})[0][: len(block)])
        return np.concatenate(blocks).astype(np.float32)

    classifier = Classifier(
        architecture="ONNX graph",
        image_shape=shape,
        classes=classes_given(run, shape, where=path),
        network=None,
        run=run,
        preprocessing=description(settings),
    )
    if not settings.get("gradients"):
        return classifier
    network = converted(graph, output, where=path)
    network = in_blocks(network, batch) if batch else network
    network = channels_last(network) if last else network
    network = preprocessed(network, settings, where=path)
    return replace(classifier, network=network, run=None, original=Original(run, "onnxruntime", converter()))


def require_usable(path: str | Path) -> None:
    """Raise InputError for a file that is not ONNX or whose weights are in other files; nothing is executed."""
    graph_in(Path(path).read_bytes(), where=path)


def graph_in(content: bytes, *, where: str | Path) -> onnx.ModelProto:
    """Graph of an ONNX file's content; no other file is opened.

    Raises InputError, naming the file `where`, for content that is not ONNX, and for any tensor (weights, attributes of
    nodes, bodies of If, Loop and Scan, functions) that is stored in another file, since no digest covers that file.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        graph = onnx.ModelProto.FromString(content)
    except DecodeError as error:
        raise InputError(
            f"{where}: is damaged or no ONNX file ({first_line(error)}); export it again as one file"
        ) from error
    for tensor in _tensors(graph):
        if tensor.external_data or tensor.data_location == onnx.TensorProto.EXTERNAL:
            places = [entry.value for entry in tensor.external_data if entry.key == "location"]
            raise InputError(
                f"{where}: its tensor {tensor.name!r} is stored in another file ({', '.join(places) or 'unnamed'}), "
                "which no digest covers; load the model where that file is, and write it as one with "
                "onnx.save_model(model, path, save_as_external_data=False)"
            )
    return graph


def _tensors(message: Message) -> Iterator[onnx.TensorProto]:
    import onnx
    from google.protobuf.message import Message

    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in [value] if isinstance(value, Message) else value:
            if isinstance(part, onnx.TensorProto):
                yield part
            else:
                yield from _tensors(part)


def opened_session(content: bytes, threads: int, path: Path | str) -> Any:
    """onnxruntime's session of a graph on the CPU; InputError, naming the file `path`, where it cannot run it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # onnxruntime's errors have no common base class.
    except Exception as error:
        raise InputError(
            f"{path}: onnxruntime {onnxruntime.__version__} cannot open it ({first_line(error)}); export it again as "
            "one file with all weights inside"
        ) from error


def _input_of(session, shape, path):
    # Its name, its batch size (None if any number of images fits), and whether the channels are its last axis.
    inputs = session.get_inputs()
    if len(inputs) != 1:
        raise InputError(
            f"{path}: has inputs {', '.join(i.name for i in inputs) or 'none'}; export it with one, the image"
        )
    (only,) = inputs
    if only.type != "tensor(float)":
        raise InputError(f"{path}: input {only.name!r} is {only.type}; export it for float32 images (n, C, H, W)")

    def fits(needed: tuple[int, ...]) -> bool:
        # Symbolic dimensions are text or None and accept any size.
        sides = zip(only.shape[1:], needed, strict=True)
        return len(only.shape) == 4 and all(not isinstance(has, int) or has == needs for has, needs in sides)

    last = (*shape[1:], shape[0])
    if not fits(shape) and not fits(last):
        raise InputError(
            f"{path}: input {only.name!r} has shape {only.shape}, but image_shape {list(shape)} needs (n, C, H, W) or "
            "(n, H, W, C); correct image_shape, or export the model for images"
        )
    batch = only.shape[0] if isinstance(only.shape[0], int) else None
    return only.name, batch, not fits(shape)


def _output_of(session, wanted, path):
    names = [output.name for output in session.get_outputs()]
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        what = f"output {wanted!r} is not one of" if wanted else "has the outputs"
        raise InputError(f"{path}: {what} {', '.join(names)}; name the logits under `output` in the model's entry")
    return wanted
