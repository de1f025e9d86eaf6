"""Classifiers of the source `program`: files of TorchScript and torch.export, whose code is run."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier
from gfscore.networks.number_types import in_float32_unless_other, taking_float32
from gfscore.networks.outputs import (
    Head,
    _no_head,
    first_line,
    output_words,
    probe_images,
    require_head,
    selected_output,
)
from gfscore.networks.torch_models import with_preprocessing
from gfscore.networks.wrappers import in_blocks, outputs_in

if TYPE_CHECKING:
    import torch
    from torch import nn

KINDS = {"script": "TorchScript", "export": "torch.export"}


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier in a file of TorchScript or torch.export with one image input (n, C, H, W) float32.

    `settings`: `trust_pickle`, `sha256`, `image_shape` (C, H, W) and the preprocessing (see
    gfscore.networks.preprocessing), `output` and `allow_probabilities` (see gfscore.networks.outputs), and `head`, the
    softmax or the like before which the logits of a program of torch.export are taken (see gfscore.networks.outputs).
    Opening runs code of the file, so both of the first must be given; the digest is verified before. A program with a
    fixed batch size gets blocks of that size. Raises InputError, naming file and remedy, for other files, compiled
    code, and networks that do not fit.
    """
    del image_shape, classes, threads
    network, batch = _opened(settings, path, any_number_type=True)
    architecture = KINDS[require_usable(path)]
    if not settings.get("head"):
        return with_preprocessing(network, settings, path, architecture=architecture, batch=batch)
    return _before_head(network, settings, path, architecture=architecture, batch=batch)


def head_of(settings: Mapping[str, Any], path: Path | str) -> str | None:
    """Softmax or the like that ends a program of torch.export; None for TorchScript, and for logits.

    `settings` as for open_classifier; code of the file is run. Raises InputError as open_classifier.
    """
    network, batch = _opened(settings, path, any_number_type=True)
    return program_head(network, _place_of_output(network, settings, batch, path))


def _place_of_output(network: nn.Module, settings: Mapping[str, Any], batch: int | None, path: Path | str) -> int:
    import torch

    images = torch.full((batch or 2, *settings["image_shape"]), 0.5)
    with torch.inference_mode():
        outputs = outputs_in(taking_float32(network, images)(images))
    return selected_output(outputs, settings.get("output"), where=path, images=len(images)).place


def _before_head(
    network: nn.Module, settings: Mapping[str, Any], path: Path | str, *, architecture: str, batch: int | None
) -> Classifier:
    # The same file twice: as it is, and without its head.
    whole = with_preprocessing(network, {**settings, "allow_probabilities": None}, path, architecture="", batch=batch)
    shortened, _ = _opened(settings, path, any_number_type=True)
    remove_head(shortened, _place_of_output(network, settings, batch, path), settings["head"], where=path)
    classifier = with_preprocessing(shortened, settings, path, architecture=architecture, batch=batch)
    # Of one output z there are the logits (0, z), and the head belongs to z alone.
    columns = slice(1, None) if classifier.one_column else slice(None)
    head = Head(
        settings["head"],
        lambda images: (classifier.logits(images)[:, columns], whole.logits(images)[:, columns]),
        classifier.number_type,
    )
    require_head(head, probe_images(settings["image_shape"]), where=path)
    words = output_words(one_column=classifier.one_column, logarithms=False, head=settings["head"])
    return replace(classifier, head=head, outputs=words)


def open_program(settings: Mapping[str, Any], path: Path | str) -> nn.Module:
    """The network in a file of TorchScript or torch.export, whose code is run; InputError as open_classifier."""
    network, batch = _opened(settings, path)
    return in_blocks(network, batch) if batch else network


def _opened(
    settings: Mapping[str, Any], path: Path | str, *, any_number_type: bool = False
) -> tuple[nn.Module, int | None]:
    # The network as it is in the file, and its batch size, None for any. Weights of TorchScript become float32; with
    # `any_number_type` only unless most of them are of another type.
    if not settings.get("trust_pickle") or not settings.get("sha256"):
        raise InputError(f"{path}: is code; if you trust it, set trust_pickle: true and give its sha256")
    kind = require_usable(path)
    try:
        return (_script(path, any_number_type), None) if kind == "script" else _exported(path)
    # Code of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{path}: this version of torch cannot open it as {KINDS[kind]} ({first_line(error)}); save it again for "
            "the CPU with a version that is no newer"
        ) from error


def require_usable(path: str | Path) -> str:
    """What a file is, a key of KINDS; nothing in it is run.

    Raises InputError for a file that is none of them, and for one with compiled code, which no network can be made of.
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


def _script(path, any_number_type):
    import torch

    network = torch.jit.load(str(path), map_location="cpu")
    return (in_float32_unless_other(network) if any_number_type else network.float()).eval()


def _exported(path):
    import torch

    program = torch.export.load(str(path))
    given = program.graph_signature.user_inputs
    shapes = [node.meta["val"].shape for node in program.graph.nodes if node.name in given]
    network: Any = program.module()
    # It has one mode, in which it was exported, and raises when it is asked for another.
    network.train = lambda _mode=True: network
    batch = shapes[0][0] if len(shapes) == 1 and shapes[0] else None
    return network, batch if isinstance(batch, int) else None


ATEN_HEADS = {"softmax": "softmax", "_softmax": "softmax", "log_softmax": "log_softmax", "_log_softmax": "log_softmax",
              "sigmoid": "sigmoid"}  # fmt: skip


ATEN_SAME_VALUES = {
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


def program_head(network: torch.nn.Module, place: int) -> str | None:
    """Head that an output of a program of torch.export comes from, by its place from 0; None for no head."""
    node = _head_node(network, place)
    return None if node is None else ATEN_HEADS[_operator(node)]


def remove_head(network: torch.nn.Module, place: int, head: str, *, where: object) -> None:
    """Make a program of torch.export return the input of a head in place of its output.

    Raises InputError, naming `where`, if the output does not come from this head.
    """
    node = _head_node(network, place)
    if node is None or ATEN_HEADS[_operator(node)] != head:
        raise _no_head(head, where)
    program: Any = network
    node.replace_all_uses_with(node.args[0])
    program.graph.erase_node(node)
    program.recompile()


def _head_node(network, place):
    outputs = _output_nodes(network)
    node = outputs[place] if place < len(outputs) else None
    while node is not None and node.op == "call_function":
        name = _operator(node)
        if name in ATEN_HEADS:
            return node if name == "sigmoid" or node.args[1] != 0 else None
        if name not in ATEN_SAME_VALUES:
            return None
        node = node.args[0]
    return None


def _output_nodes(network):
    # Nodes of the tensors that it returns, in their order.
    import torch

    if not isinstance(network, torch.fx.GraphModule):
        return []
    values = list(network.graph.nodes)[-1].args[0]
    flat = values if isinstance(values, tuple | list) else [values]
    return [one for one in flat if isinstance(one, torch.fx.Node)]


def _operator(node):
    # "softmax" of torch.ops.aten.softmax.int.
    return str(getattr(node.target, "_opname", node.target))
