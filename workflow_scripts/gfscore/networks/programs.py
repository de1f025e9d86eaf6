"""Classifiers of the source `program`: files of TorchScript and torch.export, whose code is run."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from torch import fx, nn
from torch.utils._pytree import TreeSpec, tree_unflatten

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.model_source import Settings
from gfscore.networks.number_types import all_in_float32_where_most, with_float32_images
from gfscore.networks.outputs import (
    Head,
    Images,
    Logits,
    first_line,
    missing_head_error,
    output_words,
    probe_images,
    require_head,
    selected_output,
)
from gfscore.networks.torch_models import with_preprocessing
from gfscore.networks.wrappers import in_blocks, outputs_in

KINDS = {"script": "TorchScript", "export": "torch.export"}

HEAD_OPERATORS = {
    "softmax": "softmax",
    "_softmax": "softmax",
    "log_softmax": "log_softmax",
    "_log_softmax": "log_softmax",
    "sigmoid": "sigmoid",
}
"""Operators of torch that are heads, with their name among gfscore.networks.outputs.HEADS."""

SAME_VALUES = {
    "view",
    "reshape",
    "flatten",
    "squeeze",
    "alias",
    "clone",
    "contiguous",
    "dropout",
    "_to_copy",
    "to",
}
"""Operators that may follow a head: they change no value."""


def open_classifier(
    settings: Settings, path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier in a file of TorchScript or torch.export with one image input (n, C, H, W) float32.

    A program of torch.export may also take (n, H, W, C).

    Opening runs code of the file, whose digest was verified before. A program with a fixed batch size gets blocks of
    that size.

    Parameters
    ----------
    settings : mapping
        `trust_pickle` and `sha256`, which must both be set; `image_shape` (C, H, W) and the preprocessing (see
        gfscore.networks.preprocessing); `output` and `allow_probabilities` (see gfscore.networks.wrappers); `head`, the
        operator before which the logits of a program of torch.export are taken.
    path : Path or str
        The file.
    image_shape, classes, threads
        Not used, since the program determines them.

    Raises
    ------
    InputError
        Naming file and remedy: for other files, compiled code, and networks that do not fit.
    """
    del image_shape, classes, threads
    network, batch = opened(settings, path, any_number_type=True)
    architecture = KINDS[require_usable(path)]
    head_name = settings.get("head")
    if not head_name:
        return with_preprocessing(network, settings, path, architecture=architecture, batch=batch)

    # The file is opened twice: with its head, and without.
    settings_with_head = {**settings, "allow_probabilities": None}
    with_head = with_preprocessing(network, settings_with_head, path, architecture="", batch=batch)
    shortened, _ = opened(settings, path, any_number_type=True)
    remove_head(shortened, output_position(network, settings, batch, path), head_name, where=path)
    classifier = with_preprocessing(shortened, settings, path, architecture=architecture, batch=batch)

    # Of one output z the logits are (0, z), and the head belongs to z alone.
    columns = slice(1, None) if classifier.one_column else slice(None)

    def logits_and_output(images: Images) -> tuple[Logits, Logits]:
        return classifier.logits(images)[:, columns], with_head.logits(images)[:, columns]

    head = Head(head_name, logits_and_output, classifier.number_type)
    require_head(head, probe_images(settings["image_shape"]), where=path)
    words = output_words(one_column=classifier.one_column, logarithms=False, head=head_name)
    return replace(classifier, head=head, outputs=words)


def open_program(settings: Settings, path: Path | str) -> nn.Module:
    """The network in a file of TorchScript or torch.export, whose code is run; InputError as open_classifier."""
    network, batch = opened(settings, path, any_number_type=False)
    return in_blocks(network, batch) if batch else network


def head_of(settings: Settings, path: Path | str) -> str | None:
    """Head that ends a program of torch.export; None for TorchScript, and for a program of logits.

    `settings` as for open_classifier; code of the file is run. Raises InputError as open_classifier.
    """
    network, batch = opened(settings, path, any_number_type=True)
    return program_head(network, output_position(network, settings, batch, path))


def output_position(network: nn.Module, settings: Settings, batch: int | None, path: Path | str) -> int:
    """Position from 0 of the output with the logits among the tensors that a program returns.

    `settings` as for open_classifier; `batch` as `opened` returns it. Raises InputError as `selected_output`.
    """
    images = torch.full((batch or 2, *settings["image_shape"]), 0.5)
    with torch.inference_mode():
        outputs = outputs_in(with_float32_images(network, images)(images))
    return selected_output(outputs, settings.get("output"), where=path, images=len(images)).index


# Files


def opened(settings: Settings, path: Path | str, *, any_number_type: bool) -> tuple[nn.Module, int | None]:
    """The network as it is in the file, in eval mode, and its batch size, None for any; InputError as open_classifier.

    Weights of TorchScript become float32; with `any_number_type` only unless most of them are of another type.
    """
    if not settings.get("trust_pickle") or not settings.get("sha256"):
        raise InputError(f"{path}: is code; if you trust it, set trust_pickle: true and give its sha256")
    kind = require_usable(path)
    try:
        if kind == "script":
            script = torch.jit.load(str(path), map_location="cpu")
            script = all_in_float32_where_most(script) if any_number_type else script.float()
            return script.eval(), None
        program = torch.export.load(str(path))
        inputs = program.graph_signature.user_inputs
        shapes = [node.meta["val"].shape for node in program.graph.nodes if node.name in inputs]
        network = program.module()
        if len(shapes) == 1:
            _pass_images_as_exported(network, inputs, program.call_spec.in_spec, shapes[0])
        # It has one mode, in which it was exported, and raises when another one is set.
        network.train = lambda _mode=True: network  # type: ignore[method-assign,assignment]
        batch = shapes[0][0] if len(shapes) == 1 and shapes[0] else None
        return network, batch if isinstance(batch, int) else None
    # Code of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{path}: this version of torch cannot open it as {KINDS[kind]} ({first_line(error)}); save it again for "
            "the CPU with a version that is no newer"
        ) from error


def _pass_images_as_exported(
    network: nn.Module, inputs: Sequence[object], structure: TreeSpec, shape: Sequence[object]
) -> None:
    # The images in the order of axes and by the keyword under which they were exported, and constants beside them;
    # tensors are named by text. Sides that are not fixed are symbols, which are equal to no number.
    is_channels_last = len(shape) == 4 and _is_channels(shape[3]) and not _is_channels(shape[1])

    def arguments(_: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, object]) -> Any:
        images = args[0]
        if is_channels_last and images.shape[3] != shape[3]:
            images = images.permute(0, 2, 3, 1)
        leaves = [images if isinstance(value, str) else value for value in inputs]
        return tree_unflatten(leaves, structure)

    network.register_forward_pre_hook(arguments, with_kwargs=True, prepend=True)


def _is_channels(side: object) -> bool:
    return isinstance(side, int) and side in (1, 3)


def require_usable(path: str | Path) -> str:
    """Kind of a program in a file, a key of KINDS; nothing in it is run.

    Raises InputError for any other file, and for one with compiled code, which no network can be made of.
    """
    kind = kind_of_program(path)
    if kind is None:
        raise InputError(
            f"{path}: is neither TorchScript nor a program of torch.export; for weights name their architecture"
        )
    if kind == "compiled":
        raise InputError(f"{path}: holds compiled code, which has no gradients; save it with torch.export.save")
    return kind


def kind_of_program(path: str | Path) -> str | None:
    """A key of KINDS, "compiled" for code of AOTInductor, None for any other file; by names in the archive alone."""
    try:
        with zipfile.ZipFile(path) as file:
            names = [name.partition("/")[2] for name in file.namelist()]
    except (zipfile.BadZipFile, OSError):
        return None
    if any(name.startswith("data/aotinductor/") or name.endswith(".so") for name in names):
        return "compiled"
    if "archive_format" in names and any(name.startswith("models/") for name in names):
        return "export"
    if "constants.pkl" in names and any(name.startswith("code/") for name in names):
        return "script"
    return None


# Heads


def program_head(network: nn.Module, index: int) -> str | None:
    """Head that the output at a position from 0 of a program comes from; None for an output of logits."""
    node = _head_node(network, index)
    return None if node is None else HEAD_OPERATORS[_operator(node)]


def remove_head(network: nn.Module, index: int, head: str, *, where: object) -> None:
    """Make a program of torch.export return the input of a head in place of its output at a position from 0.

    Raises InputError, naming the file `where`, if the output does not come from this head.
    """
    program = cast(fx.GraphModule, network)
    node = _required_head(network, index, head, where)
    node.replace_all_uses_with(cast(fx.Node, node.args[0]))
    program.graph.erase_node(node)
    program.recompile()


def logits_node(network: nn.Module, index: int, head: str | None, *, where: object) -> fx.Node:
    """Node of a program of torch.export whose values are the logits: its output at a position from 0.

    With a head, the input of that. Raises InputError, naming the file `where`, if the output does not come from it.
    """
    if head is None:
        return _output_nodes(network)[index]
    return cast(fx.Node, _required_head(network, index, head, where).args[0])


def _required_head(network: nn.Module, index: int, head: str, where: object) -> fx.Node:
    node = _head_node(network, index)
    if node is None or HEAD_OPERATORS[_operator(node)] != head:
        raise missing_head_error(head, where)
    return node


def _head_node(network: nn.Module, index: int) -> fx.Node | None:
    outputs = _output_nodes(network)
    node: object = outputs[index] if index < len(outputs) else None
    while isinstance(node, fx.Node) and node.op == "call_function":
        name = _operator(node)
        if name == "sigmoid":
            return node
        if name in HEAD_OPERATORS:
            # Only a head over the classes, not over the images of a batch.
            return node if node.args[1] != 0 else None
        if name not in SAME_VALUES:
            return None
        node = node.args[0]
    return None


def _output_nodes(network: nn.Module) -> list[fx.Node]:
    # Nodes of the tensors that it returns, in their order.
    if not isinstance(network, fx.GraphModule):
        return []
    (values,) = list(network.graph.nodes)[-1].args[:1]
    outputs = values if isinstance(values, tuple | list) else [values]
    return [output for output in outputs if isinstance(output, fx.Node)]


def _operator(node: fx.Node) -> str:
    # "softmax" of torch.ops.aten.softmax.int.
    return str(getattr(node.target, "_opname", node.target))
