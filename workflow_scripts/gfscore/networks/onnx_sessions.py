"""TODO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.networks.outputs import (
    FLOAT32,
    Output,
    failed_on,
    first_line,
    logits_of_values,
    output_words,
    selected_output,
)
from gfscore.networks.preprocessing import preprocess

if TYPE_CHECKING:
    pass


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
        Type of the pixels, a value of gfscore.networks.onnx_sessions.INPUTS.
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
        The softmax or the like that the output comes from, a key of gfscore.networks.outputs.HEADS.
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


INPUTS = {
    "tensor(float)": FLOAT32,
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
    "tensor(double)": "float64",
    "tensor(uint8)": "uint8",
}
"""Number types of inputs that images are converted to, by onnxruntime's name."""
