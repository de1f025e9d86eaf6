"""Torch modules that adapt a network: its input from pixels, its output to logits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass

import torch
from torch import Tensor, nn

from gfscore.core.settings import LOGARITHMS
from gfscore.networks.model_source import Settings
from gfscore.networks.outputs import Output, output_words, selected_output
from gfscore.statistics.logits import FLOOR, both_classes, is_one_column, log_probabilities

LEVELS = 4
"""Levels of tuples, dicts and objects in which the output of a network is searched for tensors."""


def wrap(network: nn.Module, forward: Callable[..., Tensor], **constants: Tensor) -> nn.Module:
    """Torch module in eval mode that maps images to forward(network, images, **constants).

    The constants move with the network, but are not in its state dict, since they are settings, not weights.
    """

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            for name, value in constants.items():
                self.register_buffer(name, value, persistent=False)

        def forward(self, images: Tensor) -> Tensor:
            moved = {name: getattr(self, name) for name in constants}
            return forward(self.network, images, **moved)

    return Wrapped().eval()


# Input


def in_blocks(network: nn.Module, size: int) -> nn.Module:
    """Torch module that passes images to a network with a fixed batch size in blocks of that size.

    The last block is filled up with zeros, whose results are dropped.
    """

    def forward(network: nn.Module, images: Tensor) -> Tensor:
        results = []
        for block in images.split(size):
            padding = block.new_zeros((size - len(block), *block.shape[1:]))
            result = network(torch.cat([block, padding]))
            results.append(result[: len(block)])
        return torch.cat(results)

    return wrap(network, forward)


def channels_last(network: nn.Module) -> nn.Module:
    """Torch module of images (n, C, H, W) that passes them to a network as (n, H, W, C)."""

    def forward(network: nn.Module, images: Tensor) -> Tensor:
        return network(images.permute(0, 2, 3, 1))

    return wrap(network, forward)


def in_number_type(network: nn.Module, number_type: str) -> nn.Module:
    """Torch module of preprocessed float32 images for a network that takes another number type; 8 bits are rounded."""
    dtype = getattr(torch, number_type)

    def forward(network: nn.Module, images: Tensor) -> Tensor:
        if number_type == "uint8":
            images = images.round().clamp(0, 255)
        return network(images.to(dtype))

    return wrap(network, forward)


# Output


@dataclass(frozen=True)
class NetworkLogits:
    """How logits (n, K) are computed from the output of a torch network.

    Attributes
    ----------
    selected : str or None
        Name of the tensor with the logits, see `tensors_in`; None for a network that returns one tensor.
    one_column : bool
        Whether that tensor holds one number per image, which tells two classes apart.
    logarithms : bool
        Whether it holds probabilities, whose logarithms are taken.
    """

    selected: str | None = None
    one_column: bool = False
    logarithms: bool = False

    @property
    def words(self) -> str:
        """How the logits are computed from the output, in words; empty where they are the output itself."""
        return output_words(one_column=self.one_column, logarithms=self.logarithms)

    def network(self, network: nn.Module) -> nn.Module:
        """Network of logits for this network, or for a copy of it in another number type."""
        if self.selected is not None:
            name = self.selected
            network = wrap(network, lambda network, images: tensors_in(network(images))[name])
        return with_logits(network, one_column=self.one_column, logarithms=self.logarithms)


def logits_of_network(network: nn.Module, settings: Settings, images: Tensor, *, where: object) -> NetworkLogits:
    """How logits (n, K) are computed from the output of a network, found on images.

    Parameters
    ----------
    network : nn.Module
        A network that fails on the images, or returns no tensors, is left to `class_count`, which explains it.
    settings : mapping
        `output`, name or position of the output with the logits, None where there is only one; `allow_probabilities`,
        "logarithms" for a network that returns probabilities.
    images : Tensor
        Images (n, C, H, W) that the network is shown.
    where : object
        The file of the network, for messages.

    Returns
    -------
    NetworkLogits
        One output of a binary classifier, (n,) or (n, 1), is the logit z of the second class, and stands for (0, z).

    Raises
    ------
    InputError
        See `selected_output` and `log_probabilities`.
    """
    output = settings.get("output")
    logarithms = settings.get("allow_probabilities") == LOGARITHMS
    try:
        with torch.inference_mode():
            value = network(images)
    except Exception:
        return NetworkLogits()
    tensors = tensors_in(value)
    if not tensors:
        return NetworkLogits()

    selected = None
    plain = isinstance(value, Tensor) and value.is_floating_point()
    if output is not None or not plain:
        selected = selected_output(outputs_in(value), output, where=where, images=len(images)).name
        value = tensors[selected]
    values = value.double().numpy()
    one_column = is_one_column(values)
    if logarithms:
        probabilities = both_classes(values, probabilities=True) if one_column else values
        log_probabilities(probabilities, source=where)
    return NetworkLogits(selected, one_column, logarithms)


def with_logits(network: nn.Module, *, one_column: bool, logarithms: bool, flat: bool = False) -> nn.Module:
    """Network of logits (n, K) from a network that returns a tensor.

    Parameters
    ----------
    network : nn.Module
    one_column : bool
        Whether it returns one number per image.
    logarithms : bool
        Whether it returns probabilities.
    flat : bool
        Whether it returns the logits in another shape.
    """
    if not (one_column or logarithms or flat):
        return network

    def forward(network: nn.Module, images: Tensor) -> Tensor:
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
        if logarithms:
            values = values.clamp(min=FLOOR).log()
        return values

    return wrap(network, forward)


def outputs_in(value: object) -> list[Output]:
    """Outputs of a network by the tensors in what it returns, in their order."""
    outputs = []
    for index, (name, tensor) in enumerate(tensors_in(value).items()):
        whole_numbers = not tensor.is_floating_point()
        outputs.append(Output(name, index, tuple(tensor.shape), whole_numbers=whole_numbers))
    return outputs


def tensors_in(value: object) -> dict[str, Tensor]:
    """Tensors in what a network returns, in their order, by the keys, fields, attributes or positions of containers.

    A tensor by itself is called "0", one within a dict in a tuple "1.logits".
    """
    if isinstance(value, Tensor):
        return {"0": value}
    tensors: dict[str, Tensor] = {}
    _collect_tensors(value, "", tensors, LEVELS)
    return tensors


def _collect_tensors(value: object, name: str, tensors: dict[str, Tensor], levels: int) -> None:
    if isinstance(value, Tensor):
        tensors[name] = value
        return
    if levels == 0:
        return
    for key, member in _members(value):
        member_name = f"{name}.{key}" if name else str(key)
        _collect_tensors(member, member_name, tensors, levels - 1)


def _members(value: object) -> list[tuple[object, object]]:
    # Members of a container or an object, with their names.
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple | list):
        fields = getattr(value, "_fields", range(len(value)))
        return list(zip(fields, value, strict=True))
    if is_dataclass(value) or hasattr(value, "__dict__"):
        members: dict[object, object] = {}
        for name in getattr(value, "__dict__", {}):
            if not name.startswith("_"):
                members[name] = getattr(value, name)
        if "logits" not in members and hasattr(value, "logits"):
            members["logits"] = value.logits
        return list(members.items())
    return []
