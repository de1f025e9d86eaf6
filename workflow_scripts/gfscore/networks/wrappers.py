"""TODO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

from gfscore.core.settings import LOGARITHMS
from gfscore.networks.outputs import Output, output_words, selected_output
from gfscore.statistics.logits import FLOOR, both_classes, is_one_column, log_probabilities

if TYPE_CHECKING:
    import torch


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


def in_blocks(network: torch.nn.Module, size: int) -> torch.nn.Module:
    """Torch network that gives images to `network`, whose batch size is fixed, in blocks of that size.

    The last block is filled up with zeros, whose results are dropped.
    """
    import torch

    def forward(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        blocks = []
        for block in images.split(size):
            padding = block.new_zeros((size - len(block), *block.shape[1:]))
            blocks.append(network(torch.cat([block, padding]))[: len(block)])
        return torch.cat(blocks)

    return around(network, forward)


def channels_last(network: torch.nn.Module) -> torch.nn.Module:
    """Torch network of images (n, C, H, W) that gives them to `network` as (n, H, W, C)."""
    return around(network, lambda network, images: network(images.permute(0, 2, 3, 1)))


def given_pixels(network: torch.nn.Module, number_type: str) -> torch.nn.Module:
    """Network of preprocessed float32 images for one that takes them in another number type; 8 bits are rounded."""
    import torch

    dtype = getattr(torch, number_type)

    def forward(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        pixels = images.round().clamp(0, 255) if number_type == "uint8" else images
        return network(pixels.to(dtype))

    return around(network, forward)


DEEPEST = 4
"""Levels of tuples, dicts and objects that are looked into."""


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
