"""What a network returns: which output holds the logits, and logits from outputs that are not quite logits.

Imports no torch: an audit of logits alone, and the reading of ONNX graphs, use this module too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.logits import FLOOR, LOGARITHMS_TAKEN, both_classes, is_one_column

Images = NDArray[np.float32]
"""Images (n, C, H, W) float32, pixels in [0, 1] unless preprocessed."""

StoredPixels = NDArray[np.uint8]
"""Images (n, H, W, C) uint8, whose pixels are 255 times those of `Images`."""

Logits = NDArray[np.float32]
"""Logits (n, K) float32."""

Run = Callable[[Images], Logits]
"""A classifier without gradients: from images to logits."""


class LabelledImages(Protocol):
    """N labelled images in a fixed order, read in batches: gfscore.images.image_set.ImageSet, as networks use it."""

    @property
    def sample_id(self) -> NDArray[np.str_]:
        """Identifiers (N,)."""

    @property
    def labels(self) -> NDArray[np.int32]:
        """True classes (N,), 0..K-1."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""

    def __len__(self) -> int:
        """Number of samples N."""

    def batches(self, batch_size: int) -> Iterator[Images]:
        """Yield the images in their order, at most `batch_size` at a time."""

    def stored_batches(self, batch_size: int) -> Iterator[Images | StoredPixels]:
        """Yield batches of pixels (n, H, W, C) uint8 where images are stored so; else see `batches`."""

    def select(self, rows: NDArray[np.int64]) -> LabelledImages:
        """Images of some rows, ascending."""


FLOAT32 = "float32"
"""Number type of the images, and of most networks."""

GREY_ARRAYS = (
    "files of images are read in colour, so give grey images as arrays (n, H, W) with their labels, in an .npz file"
)
"""Remedy for a network of one channel that was shown colours."""


def prevailing_type(sizes: Iterable[tuple[str, int]]) -> str:
    """Number type of most numbers, from the type and the size of each tensor; "float32" where there is none."""
    counts: Counter[str] = Counter()
    for number_type, size in sizes:
        counts[number_type] += size
    if not counts:
        return FLOAT32
    return counts.most_common(1)[0][0]


# Outputs and their selection


@dataclass(frozen=True)
class Output:
    """One of the arrays that a network returns.

    Attributes
    ----------
    name : str
    index : int
        Its position among the outputs, from 0.
    shape : tuple of int
        Shape for a batch of images.
    whole_numbers : bool
        Whether it holds integers.
    """

    name: str
    index: int
    shape: tuple[int, ...]
    whole_numbers: bool = False

    def classes(self, images: int) -> int | None:
        """Number of classes K whose logits the output may hold for `images` images; None for an unsuitable shape.

        K of (n, K); 2 of (n, 1) and (n,), unless these are predicted classes.
        """
        if self.predicts_classes:
            return None
        if self.shape in ((images, 1), (images,)):
            return 2
        if len(self.shape) == 2 and self.shape[0] == images and self.shape[1] > 1:
            return self.shape[1]
        return None

    @property
    def predicts_classes(self) -> bool:
        """Whether the output is one integer for each image: the predicted class."""
        return self.whole_numbers and len(self.shape) > 0 and self.shape[1:] in ((), (1,))

    def __str__(self) -> str:
        """Name and shape, in which n stands for the number of images."""
        if not self.shape:
            return f"{self.name} ()"
        sides = ", ".join(["n", *map(str, self.shape[1:])])
        comma = "," if len(self.shape) == 1 else ""
        return f"{self.name} ({sides}{comma})"


class SeveralOutputs(InputError):
    """A network returns several arrays, and its settings do not name the one with the logits.

    Attributes
    ----------
    outputs : tuple of Output
    images : int
        Number of images that the network was shown.
    """

    def __init__(self, where: object, outputs: Sequence[Output], images: int) -> None:
        """Error that names the file `where` and its outputs."""
        self.outputs = tuple(outputs)
        self.images = images
        listed = ", ".join(map(str, outputs))
        super().__init__(
            f"{where}: has {len(outputs)} outputs: {listed}; name the one with the logits under "
            "`output` in the model's entry, or its place from 0"
        )


def selected_output(outputs: Sequence[Output], name: str | int | None, *, where: object, images: int) -> Output:
    """Output with the logits.

    Parameters
    ----------
    outputs : sequence of Output
        All outputs of the network.
    name : str, int or None
        Name of the output, or its position from 0 where no output has that name; None for the only one.
    where : object
        File of the network, for messages.
    images : int
        Number of images that the network was shown.

    Raises
    ------
    SeveralOutputs
        Without a name, where there are several outputs.
    InputError
        For an output that does not exist, and for predicted classes in place of logits.
    """
    if name is None:
        if len(outputs) != 1:
            raise SeveralOutputs(where, outputs, images)
        output = outputs[0]
    else:
        index = output_index([output.name for output in outputs], name)
        if index is None:
            listed = ", ".join(map(str, outputs))
            raise InputError(
                f"{where}: no output {name!r}; it has {listed}; correct `output` (gfscore audit: --output)"
            )
        output = outputs[index]

    if output.predicts_classes:
        raise InputError(
            f"{where}: its output {output} is a whole number for each image, the class that it predicts; export the "
            "logits, from which that was chosen, or name another output (gfscore audit: --output)"
        )
    return output


def output_index(names: Sequence[str], name: str | int) -> int | None:
    """Position from 0 of an output by its name, or by the position itself where no output has that name."""
    text = str(name)
    if text in names:
        return list(names).index(text)
    if text.isdecimal() and int(text) < len(names):
        return int(text)
    return None


# Logits from values


def logits_of_values(values: NDArray[np.float32], *, logarithms: bool) -> Logits:
    """Logits (n, K) of an output (n, K), (n, 1) or (n,).

    Parameters
    ----------
    values : ndarray of float32
        One number z per image stands for the logits (0, z), or, with `logarithms`, for the probabilities (1 - z, z).
    logarithms : bool
        Whether the values are probabilities, whose logarithms are the logits.
    """
    if is_one_column(values):
        values = both_classes(values, probabilities=logarithms)
    if logarithms:
        return np.log(np.maximum(values, np.float32(FLOOR)))
    return values


def output_words(*, one_column: bool, logarithms: bool, head: str | None = None) -> str:
    """How logits are computed from a network's output, in words; empty where they are the output itself."""
    words = []
    if head:
        words.append(f"logits before the {head} that ends the graph")
    if logarithms:
        words.append(LOGARITHMS_TAKEN)
    if one_column:
        meaning = "p, as the probabilities (1 - p, p)" if logarithms else "z, as the logits (0, z)"
        words.append(f"one output {meaning}")
    return "; ".join(words)


# Heads: softmax, log-softmax or sigmoid at the end of a graph, whose input are the logits

TOLERANCE = {"float32": 1e-4, "float64": 1e-4, "uint8": 1e-4, "float16": 2e-3, "bfloat16": 2e-2}
"""Largest difference between a head applied to the logits and the output, relative to the largest output or 1, by the
number type of the network, since the output is rounded to it."""


@dataclass(frozen=True)
class Head:
    """The operator that ends a graph.

    Attributes
    ----------
    name : str
        A key of HEADS.
    logits_and_output : callable
        From images to the logits before the operator and to the output of the graph.
    number_type : str
        Number type of the output, a key of TOLERANCE.
    """

    name: str
    logits_and_output: Callable[[Images], tuple[NDArray[np.floating], NDArray[np.floating]]]
    number_type: str


def softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """Softmax of logits (n, K) over the classes."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def log_softmax(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """Logarithm of the softmax of logits (n, K)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def sigmoid(logits: NDArray[np.floating]) -> NDArray[np.floating]:
    """Sigmoid of each logit."""
    # Written so that the power does not overflow.
    powers = np.exp(-np.abs(logits))
    return np.where(logits < 0, powers, 1) / (1 + powers)


HEADS: Mapping[str, Callable[[NDArray[np.floating]], NDArray[np.floating]]] = {
    "softmax": softmax,
    "log_softmax": log_softmax,
    "sigmoid": sigmoid,
}


def require_head(head: Head, images: Images, *, where: object) -> None:
    """Refuse a head that, applied to the logits of images, does not give the output of the file.

    Compared for every image and class, to TOLERANCE.

    Raises
    ------
    InputError
        Naming `where`, the file.
    """
    logits, outputs = head.logits_and_output(images)
    logits = np.asarray(logits, dtype=np.float64).reshape(len(logits), -1)
    outputs = np.asarray(outputs, dtype=np.float64).reshape(len(outputs), -1)

    applied = HEADS[head.name](logits)
    distance = np.inf
    if applied.shape == outputs.shape:
        distance = float(np.abs(applied - outputs).max())

    allowed = TOLERANCE[head.number_type] * max(1.0, float(np.abs(outputs).max()))
    # NaN, for which every comparison is false, must be refused too.
    if not distance <= allowed:
        raise InputError(
            f"{where}: its {head.name}, applied to the values before it, differs from the output of the file by "
            f"{distance:.1e}, above {allowed:.1e}; export the network without its last {head.name}, so that it gives "
            "logits"
        )


def missing_head_error(name: str, where: object) -> InputError:
    """Error for a graph in the file `where` that does not end in the head that its settings name."""
    return InputError(
        f"{where}: `head` is {name}, but the graph does not end in one; correct `head`, or leave it out for logits"
    )


def probe_images(shape: Sequence[int]) -> Images:
    """Two images (2, C, H, W) of noise, always the same, on which a head is checked when a network is opened."""
    return np.random.default_rng(0).random((2, *shape), dtype=np.float32)


# Checks of a network on images


def class_count(run: Callable[[Images], object], image_shape: Sequence[int], *, where: object) -> int:
    """Number of classes K of a classifier, from its logits for two grey images.

    Parameters
    ----------
    run : callable
        From images (2, C, H, W) float32 in [0, 1] to what the classifier returns.
    image_shape : sequence of int
        (C, H, W).
    where : object
        The classifier, for messages.

    Raises
    ------
    InputError
        If it fails on such images, or does not return one row of at least 2 logits per image.
    """
    try:
        output = run(np.full((2, *image_shape), 0.5, dtype=np.float32))
    # The code of a model may raise anything.
    except Exception as error:
        raise failed_network_error(image_shape, error, where=where) from error

    shape = getattr(output, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != 2 or shape[1] < 2:
        kind = type(output).__name__ if shape is None else f"shape {tuple(shape)}"
        raise InputError(
            f"{where}: returns {kind} for 2 images; export or name a network that returns only logits, of shape (2, K)"
        )
    return int(shape[1])


def failed_network_error(image_shape: Sequence[int], error: Exception, *, where: object) -> InputError:
    """Error for a network, named `where`, that fails on images of a shape (C, H, W)."""
    remedy = (
        "correct image_shape, for gfscore audit by --size (make: SIZE=), or the arguments of the architecture, or "
        "write a network that takes nothing but images (n, C, H, W)"
    )
    if image_shape[0] == 3 and "to have 1 channels" in str(error):
        remedy = GREY_ARRAYS
    return InputError(f"{where}: fails on images of shape {tuple(image_shape)} ({first_line(error)}); {remedy}")


def first_line(error: BaseException) -> str:
    """First line of an exception's text, or its type if the text is empty; at most 300 characters."""
    lines = str(error).strip().splitlines()
    line = lines[0] if lines else type(error).__name__
    return line[:300]
