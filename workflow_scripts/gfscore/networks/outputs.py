"""What a network returns: the output with the logits among several, and logits from what is not quite logits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.classifier import around
from gfscore.statistics.logits import FLOOR, LOGARITHMS_TAKEN, both_classes, is_one_column, log_probabilities

if TYPE_CHECKING:
    import torch

DEEPEST = 4
"""Levels of tuples, dicts and objects that are looked into."""


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


@dataclass(frozen=True)
class NetworkLogits:
    """How logits (n, K) are made of what a torch network returns.

    Attributes
    ----------
    selected : str or None
        Name of the tensor with the logits, as `tensors_in` has it; None for a network that returns one tensor.
    one_column : bool
        Whether it holds one number per image, which tells two classes apart.
    logarithms : bool
        Whether it holds probabilities, whose logarithms are taken.
    """

    selected: str | None = None
    one_column: bool = False
    logarithms: bool = False

    @property
    def words(self) -> str:
        """What the logits are made of, empty for the output as it is."""
        return output_words(one_column=self.one_column, logarithms=self.logarithms)

    def of(self, network: torch.nn.Module) -> torch.nn.Module:
        """Network of logits for this one, or for a copy of it in another number type."""
        if self.selected is not None:
            network = around(network, _one_of_several(self.selected))
        return with_logits(network, one_column=self.one_column, logarithms=self.logarithms)


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


def tensors_in(value: Any) -> dict[str, torch.Tensor]:
    """Tensors in what a network returns, in their order, by the keys, fields, attributes or places that lead to them.

    A tensor by itself is called "0", one within a dict in a tuple "1.logits".
    """
    import torch

    tensors: dict[str, torch.Tensor] = {}
    if isinstance(value, torch.Tensor):
        return {"0": value}
    _collect(value, "", tensors, DEEPEST)
    return tensors


def _collect(value, name, tensors, levels):
    import torch

    if isinstance(value, torch.Tensor):
        tensors[name] = value
        return
    if levels == 0:
        return
    for key, inside in _members(value):
        _collect(inside, f"{name}.{key}" if name else str(key), tensors, levels - 1)


def _members(value):
    # Parts of a container or of an object, with their names.
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple | list):
        return list(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    if is_dataclass(value) or hasattr(value, "__dict__"):
        names = [name for name in getattr(value, "__dict__", {}) if not name.startswith("_")]
        if "logits" not in names and hasattr(value, "logits"):
            names.append("logits")
        return [(name, getattr(value, name)) for name in names]
    return []


def outputs_in(value: Any) -> list[Output]:
    """Outputs of a network by the tensors in what it returns, in their order."""
    outputs = []
    for place, (name, tensor) in enumerate(tensors_in(value).items()):
        whole_numbers = not tensor.is_floating_point()
        outputs.append(Output(name, place, tuple(tensor.shape), whole_numbers=whole_numbers))
    return outputs


def logits_of_network(
    network: torch.nn.Module, settings: Mapping[str, Any], images: torch.Tensor, *, where: object
) -> NetworkLogits:
    """How logits (n, K) are made of what a network returns.

    `settings`: `output`, name or place of the output with the logits, None where there is only one;
    `allow_probabilities`, "logarithms" for a network that gives probabilities. One output of a binary classifier, (n,)
    or (n, 1), is the logit z of the second class, and gives (0, z). `images` (n, C, H, W) are shown to find out what
    the network returns. Raises InputError, naming `where`, as selected_output and log_probabilities do.
    """
    import torch

    wanted, logarithms = settings.get("output"), settings.get("allow_probabilities") == LOGARITHMS
    try:
        with torch.inference_mode():
            value = network(images)
    # Said by classes_given, in words, which shows it images again.
    except Exception:
        return NetworkLogits()
    tensors = tensors_in(value)
    if not tensors:
        return NetworkLogits()
    selected = None
    if wanted is not None or not isinstance(value, torch.Tensor) or not value.is_floating_point():
        selected = selected_output(outputs_in(value), wanted, where=where, images=len(images)).name
        value = tensors[selected]
    values = value.double().numpy()
    one_column = is_one_column(values)
    if logarithms:
        log_probabilities(both_classes(values, probabilities=True) if one_column else values, source=where)
    return NetworkLogits(selected, one_column, logarithms)


def _one_of_several(name: str) -> Callable[[torch.nn.Module, torch.Tensor], torch.Tensor]:
    def forward(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        return tensors_in(network(images))[name]

    return forward


def with_logits(network: torch.nn.Module, *, one_column: bool, logarithms: bool, flat: bool = False) -> torch.nn.Module:
    """Network of logits (n, K) from one that returns a tensor.

    `one_column`: it returns one number per image; `logarithms`: it returns probabilities; `flat`: it returns the
    logits in another shape. The same network for none of these.
    """
    import torch

    if not (one_column or logarithms or flat):
        return network

    def forward(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        values = network(images)
        if logarithms:
            # Before the floor, which is 0 in smaller number types.
            values = values.float()
        if flat:
            values = values.reshape(len(values), -1)
        if one_column:
            second = values.reshape(-1, 1)
            first = 1 - second if logarithms else torch.zeros_like(second)
            values = torch.cat([first, second], dim=1)
        return values.clamp(min=FLOOR).log() if logarithms else values

    return around(network, forward)


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
