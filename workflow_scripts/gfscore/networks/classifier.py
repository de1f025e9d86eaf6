"""Classifier, the common interface of all model sources: a function from images to logits, maybe with gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError

if TYPE_CHECKING:
    import torch

    from gfscore.networks.heads import Head


FLOAT32 = "float32"
"""Number type of the images, and of most networks."""


@dataclass(frozen=True)
class Original:
    """What a network was converted from: `run` by the library `by`, from images to logits; `converter` in words."""

    run: Callable[[NDArray[np.float32]], NDArray[np.float32]]
    by: str
    converter: str


@dataclass(frozen=True)
class Classifier:
    """Image classifier from (n, C, H, W) float32 in [0, 1] to logits (n, K) float32.

    `architecture` in words; `image_shape` (C, H, W) and `classes` K, None if the source does not state them; `network`
    a torch module of the same function, preprocessing included, so that attacks differentiate through it, or None if
    there are no gradients; `run` the function if there is no network; `preprocessing` the classifier's preprocessing in
    words, empty for none; `original` what the network was converted from, None if it was not; `number_type` that of
    its answers, where gradients are always those of float32 (see gfscore.networks.number_types); `outputs` what the
    logits are made of in words, empty for the output as it is; `one_column`: whether that is one number, which tells
    two classes apart; `head` the operator after the logits that was left out, if any; `search` the arithmetic in which
    attacks search (see gfscore.attacks.search).
    """

    architecture: str
    image_shape: tuple[int, int, int] | None
    classes: int | None
    network: torch.nn.Module | None
    run: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None
    preprocessing: str = ""
    original: Original | None = None
    number_type: str = FLOAT32
    outputs: str = ""
    one_column: bool = False
    head: Head | None = None
    search: str = "float32"

    @property
    def in_words(self) -> dict[str, str]:
        """What is done to pixels and to outputs, and the number type, for the identity of logits."""
        return {"preprocessing": self.preprocessing, "outputs": self.outputs, "number_type": self.number_type}

    @property
    def device(self) -> str:
        """Torch device of the first weight of the network, "cpu" without weights."""
        values = () if self.network is None else chain(self.network.parameters(), self.network.buffers())
        return next((str(value.device) for value in values), "cpu")

    def logits(self, images: NDArray[np.float32], *, device: str | None = None) -> NDArray[np.float32]:
        """Logits (n, K) float32 of images (n, C, H, W) float32 in [0, 1], computed on the device of the network.

        Raises InputError for a network whose output is no tensor of real numbers. Passing the known `device`, and
        calling in torch's inference mode, makes small networks 4% and 1% faster.
        """
        if self.network is None:
            assert self.run is not None  # without a network there is a function
            return self.run(images)
        import torch

        with nullcontext() if torch.is_inference_mode_enabled() else torch.inference_mode():
            logits = self.network(torch.from_numpy(images).to(device or self.device))
            if not isinstance(logits, torch.Tensor) or logits.is_complex():
                kind = logits.dtype if isinstance(logits, torch.Tensor) else type(logits).__name__
                raise InputError(
                    f"the classifier ({self.architecture or type(self.network).__name__}) returns a {kind}; make it "
                    "return only a tensor of real logits (n, K)"
                )
            return logits.float().cpu().numpy()


def from_network(
    network: torch.nn.Module,
    *,
    architecture: str = "",
    image_shape: tuple[int, int, int] | None = None,
    classes: int | None = None,
    preprocessing: str = "",
    number_type: str = FLOAT32,
    outputs: str = "",
    one_column: bool = False,
) -> Classifier:
    """Classifier of a torch module from images (n, C, H, W) in [0, 1] to logits (n, K), which is set to eval mode."""
    return Classifier(
        architecture,
        image_shape,
        classes,
        network.eval(),
        preprocessing=preprocessing,
        number_type=number_type,
        outputs=outputs,
        one_column=one_column,
    )


def with_outputs(classifier: Classifier, outputs: Sequence[int], *, where: object) -> Classifier:
    """Classifier with these outputs of another, K' distinct indices from 0, in this order.

    Raises InputError, naming `where`, for an index that it has not.
    """
    import torch

    if classifier.classes is not None and max(outputs) >= classifier.classes:
        raise InputError(f"{where}: has outputs 0 to {classifier.classes - 1}, not {max(outputs)}; correct `outputs`")
    network, run, original, indices = classifier.network, classifier.run, classifier.original, list(outputs)

    def selected(of: Callable[[NDArray[np.float32]], NDArray[np.float32]]) -> Callable[..., NDArray[np.float32]]:
        return lambda images: of(images)[:, indices]

    return replace(
        classifier,
        classes=len(indices),
        network=network and around(network, _select, indices=torch.tensor(indices)),
        run=run and selected(run),
        original=original and replace(original, run=selected(original.run)),
    )


def _select(network, images, indices):
    return network(images).index_select(1, indices)


def around(
    network: torch.nn.Module, forward: Callable[..., torch.Tensor], **constants: torch.Tensor
) -> torch.nn.Module:
    """Torch module in eval mode that maps images to forward(network, images, **constants).

    The constants move with the network, but are not in its state dict, since they are settings, not weights.
    """
    import torch

    class Around(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            for name, value in constants.items():
                self.register_buffer(name, value, persistent=False)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            return forward(self.network, images, **{name: getattr(self, name) for name in constants})

    return Around().eval()


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
