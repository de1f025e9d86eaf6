"""Generators of images conditional on the class, in files of users: opened as models of the same formats are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gfscore.core.errors import InputError
from gfscore.networks.callables import build_architecture
from gfscore.networks.model_source import Settings
from gfscore.networks.onnx_content import graph_in
from gfscore.networks.onnx_sessions import opened_session
from gfscore.networks.programs import open_program
from gfscore.networks.torch_models import with_weights

Generate = Callable[[Tensor, Tensor], Any]
"""Images of latents (n, ...) float32 and classes, (n,) int64 or (n, K) float32."""

ONNX_TYPES = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32"}
"""Number types of inputs, by onnxruntime's name."""


def open_generator(settings: Settings, path: Path | str) -> Generate:
    """Generator in a file: an ONNX graph, weights of an architecture, or a program of torch.

    Parameters
    ----------
    settings : mapping
        Those of the source generator_file: `architecture` and `arguments` (None for a program), `device`, and the
        settings of a model of the same format.
    path : Path or str
        The file, whose digest must have been compared before.

    Raises
    ------
    InputError
        Naming the file, as models of the same formats do, and for a graph without two inputs and one output.
    """
    if str(path).lower().endswith(".onnx"):
        return _onnx_generator(path)
    if settings["architecture"]:
        network = build_architecture(settings["architecture"], settings["arguments"])
        network = with_weights(network, settings, path)
    else:
        network = open_program(settings, path)
    return network.to(settings["device"])


def _onnx_generator(path: Path | str) -> Generate:
    content = Path(path).read_bytes()
    graph_in(content, where=path)
    session = opened_session(content, 1, path)
    inputs, outputs = session.get_inputs(), session.get_outputs()
    number_types = [ONNX_TYPES.get(tensor.type) for tensor in inputs]
    if len(inputs) != 2 or len(outputs) != 1 or None in number_types:
        listed = ", ".join(f"{tensor.name} {tensor.type}" for tensor in inputs) or "none"
        raise InputError(
            f"{path}: has inputs {listed} and {len(outputs)} outputs; export it with two inputs of float32, int64 or "
            "int32, the latent and the class, and one output, the images"
        )

    def generate(latents: Tensor, classes: Tensor) -> Tensor:
        feed = {}
        for tensor, values, number_type in zip(inputs, (latents, classes), number_types, strict=True):
            feed[tensor.name] = values.numpy().astype(number_type)
        (images,) = session.run(None, feed)
        return torch.from_numpy(images)

    return generate
