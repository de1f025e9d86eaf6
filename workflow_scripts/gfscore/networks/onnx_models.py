"""Classifiers of the source `onnx`: networks run by onnxruntime on the CPU, or converted to torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.classifier import Classifier, Original, classes_given, failed_on, first_line
from gfscore.networks.heads import Head, graph_before_head, onnx_head, probe_images, require_head
from gfscore.networks.onnx_conversion import channels_last, converted, converter, in_blocks
from gfscore.networks.outputs import Output, logits_of_values, output_words, place_of, selected_output, with_logits
from gfscore.networks.preprocessing import description, preprocess, preprocessed
from gfscore.statistics.logits import both_classes, is_one_column, log_probabilities

if TYPE_CHECKING:
    import onnx
    from google.protobuf.message import Message


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier in an ONNX file with one image input, float32 (n, C, H, W) or (n, H, W, C).

    `settings`: `image_shape` (C, H, W), `output` (name of the output with the logits, or its place from 0, None if
    there is only one), `head` (the softmax or the like before which the logits are taken, see gfscore.networks.heads),
    `allow_probabilities` (see gfscore.networks.outputs), `gradients` (whether to convert the graph to a torch network)
    and the preprocessing (see gfscore.networks.preprocessing). A file with a fixed batch size gets blocks of that size,
    the last one padded. `threads` are those of one operator of onnxruntime. Raises InputError, naming file and remedy,
    for a damaged file, weights stored in other files, unsuitable inputs or outputs, and a graph that cannot be
    converted.
    """
    del image_shape, classes
    content = Path(path).read_bytes()
    graph = graph_in(content, where=path)
    session = opened_session(content, threads, path)
    shape = tuple(settings["image_shape"])
    name, batch, last = _input_of(session, shape, path)
    output = _output_of(session, settings.get("output"), _input_images(shape, batch, last), path)
    logarithms, head = settings.get("allow_probabilities") == LOGARITHMS, settings.get("head")
    logits_name = output
    if head:
        graph, logits_name = graph_before_head(graph, output, head, where=path)
        session = opened_session(graph.SerializeToString(), threads, path)

    def run_all(images: NDArray[np.float32], names: Sequence[str]) -> list[NDArray[np.float32]]:
        images = preprocess(images, settings, where=path)
        if last:
            images = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
        size = batch or max(1, len(images))
        blocks: list[list[NDArray[np.float32]]] = []
        for start in range(0, len(images), size):
            block = images[start : start + size]
            padding = np.zeros((size - len(block) if batch else 0, *block.shape[1:]), dtype=np.float32)
            values = session.run(list(names), {name: np.concatenate([block, padding])})
            blocks.append([value[: len(block)] for value in values])
        return [np.concatenate(values).astype(np.float32) for values in zip(*blocks, strict=True)]

    def run(images: NDArray[np.float32]) -> NDArray[np.float32]:
        (values,) = run_all(images, [logits_name])
        # Between the logits and the output of the file there may be a change of shape.
        values = values.reshape(len(values), -1) if head else values
        return logits_of_values(values, logarithms=logarithms)

    def run_both(images: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        logits, values = run_all(images, [logits_name, output])
        return logits, values

    number_of_classes = classes_given(run, shape, where=path)
    (shown,) = run_all(probe_images(shape), [logits_name])
    one_column = number_of_classes == 2 and is_one_column(shown.reshape(len(shown), -1))
    if logarithms:
        log_probabilities(both_classes(shown, probabilities=True) if one_column else shown, source=path)
    removed = None
    if head:
        removed = Head(head, run_both)
        require_head(removed, probe_images(shape), where=path)
    classifier = Classifier(
        architecture="ONNX graph",
        image_shape=shape,
        classes=number_of_classes,
        network=None,
        run=run,
        preprocessing=description(settings),
        outputs=output_words(one_column=one_column, logarithms=logarithms, head=head),
        head=removed,
    )
    if not settings.get("gradients"):
        return classifier
    network = converted(graph, logits_name, where=path)
    network = with_logits(network, one_column=one_column, logarithms=logarithms, flat=bool(head))
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


def _input_images(shape, batch, last):
    # Grey images in the layout of the graph's input.
    sides = (*shape[1:], shape[0]) if last else shape
    return np.full((batch or 2, *sides), 0.5, dtype=np.float32)


def _output_of(session, wanted, images, path):
    # Name of the output with the logits. It is run on images, since files need not state the shapes of outputs.
    names = [output.name for output in session.get_outputs()]
    if len(names) == 1 and wanted in (None, names[0]):
        return names[0]
    try:
        values = session.run(names, {session.get_inputs()[0].name: images})
    # onnxruntime's errors have no common base class.
    except Exception as error:
        raise failed_on(images.shape[1:], error, where=path) from error
    outputs = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        outputs.append(Output(name, place, np.shape(value)))
    return selected_output(outputs, wanted, where=path, images=len(images)).name


def head_of(settings: Mapping[str, Any], path: Path | str) -> str | None:
    """Softmax or the like that ends the graph, a key of gfscore.networks.heads.HEADS; None for a graph of logits.

    `settings`: `output` as for open_classifier. Nothing is executed.
    """
    graph = graph_in(Path(path).read_bytes(), where=path)
    names = [output.name for output in graph.graph.output]
    wanted = settings.get("output")
    place = 0 if wanted is None else place_of(names, wanted)
    ending = None if place is None else onnx_head(graph, names[place])
    return ending[0] if ending else None
