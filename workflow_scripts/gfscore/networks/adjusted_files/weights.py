"""Weights with offsets: in the last bias of the network, or, without one, in a network around the original."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from gfscore.core.errors import InputError
from gfscore.networks.adjusted_files.shift import AdjustedFiles, output_shift
from gfscore.networks.architecture_files import PACKAGE
from gfscore.networks.checkpoints import stored_weights
from gfscore.networks.model_source import Settings, module_of
from gfscore.networks.number_types import with_float32_images
from gfscore.networks.outputs import probe_images
from gfscore.networks.sources.transformers import CONFIGURATION, INDEX, WEIGHTS
from gfscore.networks.wrappers import NetworkLogits, logits_of_network, tensors_in

PASSED_ON = {
    "ViewBackward0",
    "UnsafeViewBackward0",
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SqueezeBackward1",
    "MeanBackward1",
    "AdaptiveAvgPool2DBackward0",
}
"""Operators, as torch's graph of gradients calls them, that add to their output what is added to all of their input."""

BIASES = {"AddmmBackward0": 0, "ConvolutionBackward0": 2}
"""Operators of a linear and a convolutional layer, and the place of the bias among their inputs."""

CODE = '''\
"""A network with offsets of its classes, the weights `offsets`, added to its logits; written by gfscore adjust."""

import torch
from torch import nn

{imports}


class Adjusted(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = {network}
        self.register_buffer("offsets", torch.zeros({columns}))

    def forward(self, images):
        values = self.network(images)
        return {result}
'''
"""Architecture of a network around the original."""

RESULTS = {
    "logits": "values + self.offsets",
    "probabilities": "torch.softmax(values.log() + self.offsets, dim=1)",
    "one probability": "torch.sigmoid(torch.logit(values) + self.offsets)",
}
"""Expression that the network with offsets returns, by what the original returns."""


def write_adjusted(
    settings: Settings,
    path: Path | str,
    offsets: NDArray[np.float64],
    target: Path,
    *,
    image_shape: Sequence[int],
    classes: int,
) -> AdjustedFiles:
    """Write weights of a network whose logits have offsets.

    Where the last operator is a linear or convolutional layer with a bias of its own, which torch's graph of gradients
    shows, the offsets go there. Otherwise they are weights of a network around the original, whose architecture is
    written beside them. Of a checkpoint only the weights are written, not an optimiser's state.

    Parameters
    ----------
    settings, path, offsets, target, image_shape, classes
        See gfscore.networks.adjusted_files.

    Raises
    ------
    InputError
        Naming file and remedy, for a network without a last bias of which no architecture can be made: one of
        transformers, one that the workflow trained, and one that returns several tensors.
    """
    path = Path(path)
    network = module_of(settings["source"]).open_network(settings, path, classes=classes).requires_grad_()
    images = torch.from_numpy(probe_images(settings.get("image_shape") or image_shape))
    taking_images = with_float32_images(network, images)
    logits = logits_of_network(taking_images, settings, images, where=path)
    with torch.enable_grad():
        returned = taking_images(images)
    value = returned if logits.selected is None else tensors_in(returned)[logits.selected]
    columns = value[0].numel()
    shift = torch.from_numpy(output_shift(offsets, settings, columns=columns, where=path))

    name = None if logits.logarithms else last_bias(value, network)
    weights = stored_weights(settings, path, which=settings.get("weights", "model"))
    key = _key_of(name, weights) if name else None
    unpinned = {**settings, "path": str(target), "sha256": None, "trust_pickle": False, "weights": "model"}
    if name and key and network.get_parameter(name).numel() == columns:
        bias = network.get_parameter(name)
        weights[key] = (bias.detach().double() + shift).to(bias.dtype)
        _save(weights, target, like=path)
        # A folder of timm or transformers is one with its configuration and preprocessing.
        if path.with_name(CONFIGURATION).is_file() and target.name == WEIGHTS:
            for file in sorted(path.parent.glob("*.json")):
                if not file.name.endswith(INDEX):
                    shutil.copyfile(file, target.with_name(file.name))
        return AdjustedFiles(unpinned, f"in the last bias, {key}")
    if settings["source"] not in RECIPES or logits.selected is not None:
        raise InputError(
            f"{path}: does not end in a layer with a bias, which the offsets could be added to; export it as ONNX, or "
            "add them to its logits where it is made"
        )
    code = _write_architecture(logits, settings, target, columns=columns)
    around = {"offsets": shift.float()}
    for name, value in network.state_dict().items():
        around[f"network.{name}"] = value.detach().clone()
    _save(around, target, like=path)
    architecture = f"{PACKAGE}.{code.stem}:Adjusted"
    entry = {**unpinned, "source": "torch", "architecture": architecture, "arguments": {}}
    return AdjustedFiles(entry, "in a network around the original", code)


def last_bias(value: Tensor, network: nn.Module) -> str | None:
    """Name of the parameter that a network adds to its output at last, and uses nowhere else; None without one.

    Parameters
    ----------
    value : Tensor
        Output (n, K) of the network for images, with its graph of gradients.
    network : nn.Module
        The network, whose parameters require gradients.
    """
    node = value.grad_fn
    while node is not None and node.name() in PASSED_ON:
        node = node.next_functions[0][0]
    if node is None or node.name() not in BIASES:
        return None
    bias = node.next_functions[BIASES[node.name()]][0]

    # Number of operators behind the value that read the bias.
    uses = 0
    waiting: list[Any] = [value.grad_fn]
    visited = set(waiting)
    while waiting:
        for source, _ in waiting.pop().next_functions:
            uses += source is bias
            if source is not None and source not in visited:
                visited.add(source)
                waiting.append(source)
    if uses > 1:
        return None

    variable = getattr(bias, "variable", None)
    for name, parameter in network.named_parameters():
        if parameter is variable:
            return name
    return None


def _key_of(name: str, weights: Mapping[str, Tensor]) -> str | None:
    # Wrappers put prefixes before the names, in the file or in the network.
    keys = []
    for key in weights:
        if f".{key}".endswith(f".{name}") or f".{name}".endswith(f".{key}"):
            keys.append(key)
    return min(keys, key=lambda key: abs(len(key) - len(name)), default=None)


def _save(weights: Mapping[str, Tensor], target: Path, *, like: Path) -> None:
    with like.open("rb") as file:
        is_safetensors = file.read(9)[8:] == b"{"
    if not is_safetensors and target.name != WEIGHTS:
        torch.save(dict(weights), target)
        return
    metadata = {"format": "pt"}
    if is_safetensors:
        with safe_open(like, framework="pt") as original:
            metadata = original.metadata()
    save_file({name: value.contiguous() for name, value in weights.items()}, target, metadata=metadata)


# A network around the original


def _torch_recipe(settings: Settings, columns: int) -> tuple[str, dict[str, Any]]:
    module, _, name = settings["architecture"].partition(":")
    return f"from {module} import {name} as build", dict(settings["arguments"])


def _timm_recipe(settings: Settings, columns: int) -> tuple[str, dict[str, Any]]:
    arguments = {"model_name": settings["architecture"], "num_classes": columns, "in_chans": settings["image_shape"][0]}
    return "from timm import create_model as build", {**arguments, **settings["arguments"]}


RECIPES = {"torch": _torch_recipe, "timm": _timm_recipe}
"""Import of what builds the original, and its arguments, by the source."""


def _write_architecture(logits: NetworkLogits, settings: Settings, target: Path, *, columns: int) -> Path:
    imports, arguments = RECIPES[settings["source"]](settings, columns)
    words = [f"{key}={value!r}" for key, value in arguments.items()]
    kind = "logits"
    if logits.logarithms:
        kind = "one probability" if logits.one_column else "probabilities"
    text = CODE.format(imports=imports, network=f"build({', '.join(words)})", columns=columns, result=RESULTS[kind])
    code = target.with_name(re.sub(r"\W", "_", target.stem) + ".py")
    code.write_text(text, encoding="utf-8")
    return code
