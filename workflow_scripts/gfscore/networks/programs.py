"""Classifiers of the source `program`: files of TorchScript and torch.export, whose code is run."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks.classifier import Classifier, first_line
from gfscore.networks.number_types import in_float32_unless_other
from gfscore.networks.onnx_conversion import in_blocks
from gfscore.networks.torch_models import with_preprocessing

if TYPE_CHECKING:
    from torch import nn

KINDS = {"script": "TorchScript", "export": "torch.export"}


def open_classifier(
    settings: Mapping[str, Any], path: Path | str, *, image_shape: tuple[int, int, int], classes: int, threads: int
) -> Classifier:
    """Classifier in a file of TorchScript or torch.export with one image input (n, C, H, W) float32.

    `settings`: `trust_pickle`, `sha256`, `image_shape` (C, H, W) and the preprocessing (see
    gfscore.networks.preprocessing). Opening runs code of the file, so both must be given; the digest is verified
    before. A program with a fixed batch size gets blocks of that size. Raises InputError, naming file and remedy, for
    other files, compiled code, and networks that do not fit.
    """
    del image_shape, classes, threads
    network = open_program(settings, path, any_number_type=True)
    return with_preprocessing(network, settings, path, architecture=KINDS[require_usable(path)])


def open_program(settings: Mapping[str, Any], path: Path | str, *, any_number_type: bool = False) -> nn.Module:
    """The network in a file of TorchScript or torch.export, whose code is run; InputError as open_classifier.

    Weights of TorchScript become float32; with `any_number_type` only unless most of them are of another type.
    """
    if not settings.get("trust_pickle") or not settings.get("sha256"):
        raise InputError(f"{path}: is code; if you trust it, set trust_pickle: true and give its sha256")
    kind = require_usable(path)
    try:
        return _script(path, any_number_type) if kind == "script" else _exported(path)
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
    return in_blocks(network, batch) if isinstance(batch, int) else network
