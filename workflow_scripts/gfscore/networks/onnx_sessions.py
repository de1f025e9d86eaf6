"""ONNX graphs in onnxruntime: their input, the output with the logits, and the logits of images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.model_source import Settings
from gfscore.networks.onnx_content import serialize_model
from gfscore.networks.onnx_graphs import graph_before_head
from gfscore.networks.outputs import (
    FLOAT32,
    GREY_ARRAYS,
    Images,
    Logits,
    Output,
    class_count,
    failed_network_error,
    first_line,
    logits_of_values,
    output_words,
    probe_images,
    selected_output,
)
from gfscore.networks.preprocessing import image_shape_of, preprocess
from gfscore.statistics.logits import both_classes, is_one_column, log_probabilities

INPUTS = {
    "tensor(float)": FLOAT32,
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
}
"""Number types of inputs that images are converted to, by onnxruntime's name."""

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
        Type of the pixels, a value of INPUTS.
    """

    name: str
    batch: int | None
    channels_last: bool
    number_type: str

    def pixels(self, images: Images) -> NDArray[np.generic]:
        """Preprocessed images in the number type of the input, rounded where it has 8 bits."""
        if self.number_type == "uint8":
            return np.rint(images).clip(0, 255).astype(np.uint8)
        return images.astype(self.number_type, copy=False)

    def grey_images(self, image_shape: tuple[int, int, int]) -> NDArray[np.generic]:
        """Grey images of shape (C, H, W) in the layout and number type of the input."""
        channels, height, width = image_shape
        shape = (height, width, channels) if self.channels_last else image_shape
        grey = np.full((self.batch or 2, *shape), 0.5, dtype=np.float32)
        return self.pixels(grey)


@dataclass(frozen=True)
class GraphLogits:
    """Where the logits of a graph are, and what they are made of.

    Attributes
    ----------
    output : str
        Name of the output of the file.
    head : str or None
        The operator that the output comes from, a key of gfscore.networks.outputs.HEADS.
    logarithms : bool
        Whether the output holds probabilities, whose logarithms are taken.
    tensor : str
        Name of the tensor with the logits: the output, or the input of its head.
    one_column : bool
        Whether that tensor holds one number per image, which tells two classes apart.
    """

    output: str
    head: str | None
    logarithms: bool
    tensor: str
    one_column: bool = False

    @property
    def words(self) -> str:
        """How the logits are computed from the output, in words; empty where they are the output itself."""
        return output_words(one_column=self.one_column, logarithms=self.logarithms, head=self.head)


@dataclass(frozen=True)
class GraphSession:
    """A graph in onnxruntime.

    Attributes
    ----------
    session : onnxruntime.InferenceSession
    image_input : GraphInput
        The images that it takes.
    settings : mapping
        Settings of the model: image shape and preprocessing.
    path : Path
        The ONNX file.
    """

    session: onnxruntime.InferenceSession
    image_input: GraphInput
    settings: Settings
    path: Path

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Shape (C, H, W) of the images."""
        return image_shape_of(self.settings)

    def values(self, images: Images, names: Sequence[str]) -> list[NDArray[np.float32]]:
        """Values of tensors for images.

        Parameters
        ----------
        images : ndarray of float32
            (n, C, H, W), pixels in [0, 1].
        names : sequence of str
            Names of the tensors.

        Returns
        -------
        list of ndarray
            For each tensor its values (n, ...) float32.
        """
        pixels = self.image_input.pixels(preprocess(images, self.settings, where=self.path))
        if self.image_input.channels_last:
            pixels = np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))

        size = self.image_input.batch or max(1, len(pixels))
        blocks: list[list[NDArray[np.generic]]] = [[] for _ in names]
        for start in range(0, len(pixels), size):
            block = pixels[start : start + size]
            # Only a graph with a fixed batch size has a last block that is not full.
            padding = np.zeros((size - len(block), *block.shape[1:]), dtype=block.dtype)
            feed = {self.image_input.name: np.concatenate([block, padding])}
            block_values = self.session.run(list(names), feed)
            for tensor_blocks, value in zip(blocks, block_values, strict=True):
                tensor_blocks.append(value[: len(block)])
        return [np.concatenate(tensor_blocks).astype(np.float32) for tensor_blocks in blocks]

    def logits(self, images: Images, logits: GraphLogits) -> Logits:
        """Logits (n, K) float32 of images (n, C, H, W) in [0, 1]."""
        (values,) = self.values(images, [logits.tensor])
        if logits.head:
            # Between the logits and the output of the file there may be a change of shape.
            values = values.reshape(len(values), -1)
        return logits_of_values(values, logarithms=logits.logarithms)


def opened_session(
    content: bytes,
    threads: int,
    path: Path | str,
    *,
    data: Mapping[str, bytes] = MappingProxyType({}),
) -> onnxruntime.InferenceSession:
    """Session of a graph on the CPU.

    Parameters
    ----------
    content : bytes
        The graph, serialized.
    threads : int
        Threads of one operator.
    path : Path or str
        Its file, for messages.
    data : mapping of str to bytes
        Content of the files that its tensors are stored in, by name; no file is opened.

    Raises
    ------
    InputError
        Where onnxruntime cannot run the graph.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if data:
        names, contents = list(data), list(data.values())
        sizes = [len(values) for values in contents]
        options.add_external_initializers_from_files_in_memory(names, contents, sizes)
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    # onnxruntime's errors have no common base class.
    except Exception as error:
        raise InputError(
            f"{path}: onnxruntime {onnxruntime.__version__} cannot open it ({first_line(error)}); export it again as "
            "one file with all weights inside"
        ) from error


def session_for_logits(
    session: onnxruntime.InferenceSession,
    graph: onnx.ModelProto,
    settings: Settings,
    threads: int,
    path: Path | str,
    *,
    data: Mapping[str, bytes] = MappingProxyType({}),
) -> tuple[GraphSession, GraphLogits]:
    """Session that gives the logits of a model, and where these are.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        Session of `graph`. Where the logits are inside the graph, another one is opened with them as an output.
    graph : onnx.ModelProto
    settings : mapping
        `image_shape`, `output`, `head`, `allow_probabilities` and the preprocessing of the model.
    threads, path, data
        See `opened_session`.

    Raises
    ------
    InputError
        Naming file and remedy, for unsuitable inputs and outputs, and for a graph that fails on images.
    """
    shape = image_shape_of(settings)
    image_input = _image_input(session, shape, path)
    output = _logits_output(session, settings.get("output"), image_input.grey_images(shape), path)

    head = settings.get("head")
    tensor = output
    if head:
        extended, tensor = graph_before_head(graph, output, head, where=path)
        session = opened_session(serialize_model(extended, path), threads, path, data=data)
    logarithms = settings.get("allow_probabilities") == LOGARITHMS
    logits = GraphLogits(output, head, logarithms, tensor)
    graph_session = GraphSession(session, image_input, settings, Path(path))

    # Explains what is wrong with a graph that fails, or has no logits.
    class_count(lambda images: graph_session.logits(images, logits), shape, where=path)

    (values,) = graph_session.values(probe_images(shape), [tensor])
    one_column = is_one_column(values.reshape(len(values), -1))
    if logarithms:
        probabilities = both_classes(values, probabilities=True) if one_column else values
        log_probabilities(probabilities, source=path)
    return graph_session, replace(logits, one_column=one_column)


def _image_input(
    session: onnxruntime.InferenceSession, image_shape: tuple[int, int, int], path: Path | str
) -> GraphInput:
    inputs = session.get_inputs()
    if len(inputs) != 1:
        names = ", ".join(tensor.name for tensor in inputs) or "none"
        raise InputError(f"{path}: has inputs {names}; export it with one, the image")
    (image,) = inputs
    if image.type not in INPUTS:
        raise InputError(
            f"{path}: input {image.name!r} is {image.type}; export it for float32 images (n, C, H, W), other types "
            f"that are read are {', '.join(INPUTS)}"
        )

    channels, height, width = image_shape
    layouts = []
    for channels_last, sizes in ((False, (channels, height, width)), (True, (height, width, channels))):
        if _fits(image.shape, sizes):
            batch = image.shape[0] if isinstance(image.shape[0], int) else None
            layouts.append(GraphInput(image.name, batch, channels_last, INPUTS[image.type]))
    if not layouts:
        remedy = "correct image_shape, or export the model for images"
        if channels == 3 and 1 in image.shape[1:]:
            remedy = GREY_ARRAYS
        raise InputError(
            f"{path}: input {image.name!r} has shape {image.shape}, but image_shape {list(image_shape)} needs "
            f"(n, C, H, W) or (n, H, W, C); {remedy}"
        )
    # Of a graph that states no sizes, the layout that it runs on; a graph that runs on none is explained later.
    for layout in layouts:
        if len(layouts) == 1 or _runs(session, layout, image_shape):
            return layout
    return layouts[0]


def _runs(session: onnxruntime.InferenceSession, layout: GraphInput, image_shape: tuple[int, int, int]) -> bool:
    try:
        session.run(None, {layout.name: layout.grey_images(image_shape)})
    # onnxruntime's errors have no common base class.
    except Exception:
        return False
    return True


def _fits(input_shape: Sequence[int | str | None], image_shape: tuple[int, int, int]) -> bool:
    # Symbolic dimensions are text or None, and accept any size.
    if len(input_shape) != 4:
        return False
    for size, image_size in zip(input_shape[1:], image_shape, strict=True):
        if isinstance(size, int) and size != image_size:
            return False
    return True


def _logits_output(
    session: onnxruntime.InferenceSession, name: str | int | None, images: NDArray[np.generic], path: Path | str
) -> str:
    # The graph is run on images, since files need not state the shapes of outputs.
    names = [output.name for output in session.get_outputs()]
    real = session.get_outputs()[0].type in REAL_NUMBERS
    if len(names) == 1 and name in (None, names[0]) and real:
        return names[0]
    try:
        values = session.run(names, {session.get_inputs()[0].name: images})
    # onnxruntime's errors have no common base class.
    except Exception as error:
        raise failed_network_error(images.shape[1:], error, where=path) from error

    outputs = []
    for index, (output_name, value) in enumerate(zip(names, values, strict=True)):
        whole_numbers = np.asarray(value).dtype.kind in "iub"
        outputs.append(Output(output_name, index, np.shape(value), whole_numbers=whole_numbers))
    return selected_output(outputs, name, where=path, images=len(images)).name
