"""Generators of images conditional on the class, in files of users: opened as models of the same formats are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks.callables import build_architecture
from gfscore.networks.onnx_content import graph_in
from gfscore.networks.onnx_sessions import opened_session
from gfscore.networks.programs import open_program
from gfscore.networks.torch_models import loaded

if TYPE_CHECKING:
    from torch import Tensor

Generate = Callable[["Tensor", "Tensor"], Any]
"""Images of latents (n, ...) float32 and classes, (n,) int64 or (n, K) float32."""

ONNX_TYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32"}


def open_generator(settings: Mapping[str, Any], path: Path | str) -> Generate:
    """Generator in a file: an ONNX graph, weights of an `architecture`, or a program of torch, by `settings`.

    `settings` are those of the source generator_file; the digest of the file must have been compared before. Raises
    InputError, naming the file, as models of the same formats do, and for a graph that has not two inputs and one
    output.
    """
    if str(path).lower().endswith(".onnx"):
        return _of_graph(path)
    if settings["architecture"]:
        network = loaded(build_architecture(settings["architecture"], settings["arguments"]), settings, path)
    else:
        network = open_program(settings, path)
    return network.to(settings["device"])


def _of_graph(path):
    import torch

    content = Path(path).read_bytes()
    graph_in(content, where=path)
    session = opened_session(content, 1, path)
    given, outputs = session.get_inputs(), session.get_outputs()
    types = [ONNX_TYPES.get(one.type) for one in given]
    if len(given) != 2 or len(outputs) != 1 or None in types:
        raise InputError(
            f"{path}: has inputs {', '.join(f'{one.name} {one.type}' for one in given) or 'none'} and "
            f"{len(outputs)} outputs; export it with two inputs of float32, int64 or int32, the latent and the class, "
            "and one output, the images"
        )

    def generate(latents: Tensor, classes: Tensor) -> Tensor:
        values = zip(given, (latents, classes), types, strict=True)
        fed = {one.name: value.numpy().astype(dtype) for one, value, dtype in values}
        return torch.from_numpy(session.run(None, fed)[0])

    return generate
