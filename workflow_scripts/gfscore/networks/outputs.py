"""What a network returns: the output with the logits among several, and logits from what is not quite logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.statistics.logits import FLOOR, LOGARITHMS_TAKEN, both_classes, is_one_column

if TYPE_CHECKING:
    pass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Output:
    """One of the arrays that a network returns: its name, its place from 0, and its shape for a batch of images.

    `whole_numbers`: whether it holds integers.
    """

    name: str
    place: int
    shape: tuple[int, ...]
    whole_numbers: bool = False

    def classes(self, images: int) -> int | None:
        """Number of classes whose logits it may hold for so many images; None for another shape.

        K of (n, K), and 2 of (n, 1) and (n,) unless they are the classes that are predicted.
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
        """Whether it is one integer for each image: the class that is predicted."""
        return self.whole_numbers and self.shape[1:] in ((), (1,))

    def __str__(self) -> str:
        """Name and shape, in which n stands for the number of images."""
        sides = ", ".join(["n", *map(str, self.shape[1:])])
        return f"{self.name} ({sides}{',' if len(self.shape) == 1 else ''})"


class SeveralOutputs(InputError):
    """A network returns several arrays, and nothing says which of them holds the logits."""

    def __init__(self, where: object, outputs: Sequence[Output], images: int) -> None:
        """Error that names the file, and the outputs for so many `images`."""
        self.outputs, self.images = tuple(outputs), images
        super().__init__(
            f"{where}: has {len(outputs)} outputs: {', '.join(map(str, outputs))}; name the one with the logits under "
            "`output` in the model's entry, or its place from 0"
        )


def selected_output(outputs: Sequence[Output], wanted: str | int | None, *, where: object, images: int) -> Output:
    """Output of a name, or of a place from 0 where no output has that name; the only one if nothing is wanted.

    Raises SeveralOutputs if nothing is wanted and there are several, InputError, naming `where` and all outputs, for
    one that does not exist, and for predicted classes in place of logits.
    """
    if wanted is None:
        if len(outputs) != 1:
            raise SeveralOutputs(where, outputs, images)
        return _require_logits(outputs[0], where)
    place = place_of([output.name for output in outputs], wanted)
    if place is not None:
        return _require_logits(outputs[place], where)
    raise InputError(
        f"{where}: no output {wanted!r}; it has {', '.join(map(str, outputs))}; correct `output` (gfscore audit: "
        "--output)"
    )


def _require_logits(output: Output, where: object) -> Output:
    if output.predicts_classes:
        raise InputError(
            f"{where}: its output {output} is a whole number for each image, the class that it predicts; export the "
            "logits, from which that was chosen, or name another output (gfscore audit: --output)"
        )
    return output


def place_of(names: Sequence[str], wanted: str | int) -> int | None:
    """Place from 0 of a name, or of the place itself where no output has it as its name; None where there is none."""
    if str(wanted) in names:
        return list(names).index(str(wanted))
    place = int(wanted) if str(wanted).isdecimal() else len(names)
    return place if place < len(names) else None


def logits_of_values(values: NDArray[np.float32], *, logarithms: bool) -> NDArray[np.float32]:
    """Logits (n, K) of the values that a graph gives, (n, K), (n, 1) or (n,), as logits_of_network makes them."""
    if is_one_column(values):
        values = both_classes(values, probabilities=logarithms)
    return np.log(np.maximum(values, np.float32(FLOOR))) if logarithms else values


def output_words(*, one_column: bool, logarithms: bool, head: str | None = None) -> str:
    """What the logits are made of, in words; empty for the network's output as it is."""
    words = []
    if head:
        words.append(f"logits before the {head} that ends the graph")
    if logarithms:
        words.append(LOGARITHMS_TAKEN)
    if one_column:
        meaning = "p, as the probabilities (1 - p, p)" if logarithms else "z, as the logits (0, z)"
        words.append(f"one output {meaning}")
    return "; ".join(words)


# ---- Softmax, log-softmax or sigmoid at the end of a graph: the logits are the input of that operator.


Array = NDArray[np.floating]

TOLERANCE = {"float32": 1e-4, "float64": 1e-4, "uint8": 1e-4, "float16": 2e-3, "bfloat16": 2e-2}
"""Largest difference between a head applied to the logits and the output, relative to the largest output or 1, by the
number type of the network, in which the output is rounded."""


@dataclass(frozen=True)
class Head:
    """The operator that ends a graph, and its effect: `both` maps images to the logits before it and to the output.

    `number_type` is that of the output.
    """

    name: str
    both: Callable[[NDArray[np.float32]], tuple[Array, Array]]
    number_type: str


def softmax(logits: Array) -> Array:
    """Softmax of logits (n, K) over the classes."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def log_softmax(logits: Array) -> Array:
    """Logarithm of the softmax of logits (n, K)."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def sigmoid(logits: Array) -> Array:
    """Sigmoid of each logit."""
    # Of the side on which the power does not overflow.
    powers = np.exp(-np.abs(logits))
    return np.where(logits < 0, powers, 1) / (1 + powers)


HEADS: Mapping[str, Callable[[Array], Array]] = {"softmax": softmax, "log_softmax": log_softmax, "sigmoid": sigmoid}


def require_head(head: Head, images: NDArray[np.float32], *, where: object) -> None:
    """Raise InputError, naming `where`, unless the head, applied to the logits of images, gives the file's output.

    Compared for every image and class, to TOLERANCE.
    """
    tolerance = TOLERANCE[head.number_type]
    logits, outputs = head.both(images)
    applied = HEADS[head.name](_rows(logits))
    outputs = _rows(outputs)
    distance = float(np.abs(applied - outputs).max()) if applied.shape == outputs.shape else np.inf
    # NaN, for which every comparison is false, must be refused too.
    if not distance <= tolerance * max(1.0, float(np.abs(outputs).max())):
        raise InputError(
            f"{where}: its {head.name}, applied to the values before it, differs from the output of the file by "
            f"{distance:.1e}, above {tolerance:g}; export the network without its last {head.name}, so that it gives "
            "logits"
        )


def probe_images(shape: Sequence[int]) -> NDArray[np.float32]:
    """Two images of noise, always the same, that a head is checked on wherever a network is opened."""
    return np.random.default_rng(0).random((2, *shape), dtype=np.float32)


def _rows(values):
    return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def _no_head(name, where):
    return InputError(
        f"{where}: `head` is {name}, but the graph does not end in one; correct `head`, or leave it out for logits"
    )


# ---- ONNX ----


# ---- torch.export ----


FLOAT32 = "float32"
"""Number type of the images, and of most networks."""


def classes_given(run: Callable[[NDArray[np.float32]], Any], image_shape: Sequence[int], *, where: object) -> int:
    """Number of classes K of a classifier, from the logits of two grey images.

    `run` maps (2, C, H, W) float32 in [0, 1] to the classifier's output, `where` names the classifier in errors. Raises
    InputError if it fails on images of `image_shape`, or does not return one row of at least 2 logits per image.
    """
    try:
        output = run(np.full((2, *image_shape), 0.5, dtype=np.float32))
    # The code of a model may raise anything.
    except Exception as error:
        raise failed_on(image_shape, error, where=where) from error
    shape = getattr(output, "shape", None)
    if shape is None or len(shape) != 2 or shape[0] != 2 or shape[1] < 2:
        kind = type(output).__name__ if shape is None else f"shape {tuple(shape)}"
        raise InputError(
            f"{where}: returns {kind} for 2 images; export or name a network that returns only logits, of shape (2, K)"
        )
    return int(shape[1])


def failed_on(image_shape: Sequence[int], error: Exception, *, where: object) -> InputError:
    """Error for a network that fails on images (n, C, H, W) of a shape (C, H, W); `where` names it."""
    return InputError(
        f"{where}: fails on images of shape {tuple(image_shape)} ({first_line(error)}); correct image_shape, or "
        "the arguments of the architecture"
    )


def first_line(error: BaseException) -> str:
    """First line of an exception's text, or its type if the text is empty; at most 300 characters."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300]
