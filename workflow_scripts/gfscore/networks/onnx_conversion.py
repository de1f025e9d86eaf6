"""Conversion of an ONNX graph to a torch network, which has gradients."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from gfscore.core.errors import InputError
from gfscore.networks.classifier import around, first_line

if TYPE_CHECKING:
    import onnx
    import torch


def converter() -> str:
    """Library that converts, with its version."""
    return f"onnx2fx {version('onnx2fx')}"


def converted(graph: onnx.ModelProto, output: str, *, where: Path | str) -> torch.nn.Module:
    """Torch network of an ONNX graph, from its only input to the output of this name, in eval mode.

    Raises InputError, naming the file `where`, for a graph with operators or types that have no counterpart.
    """
    import onnx2fx

    position = [given.name for given in graph.graph.output].index(output)
    try:
        network = onnx2fx.convert(graph)
    # Graphs of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{where}: {converter()} cannot make a torch network of it ({first_line(error)}); set gradients: false and "
            "leave out measures that need gradients, or name the weights and the architecture that it was exported from"
        ) from error

    def one_output(network: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        outputs = network(images)
        return outputs[position] if isinstance(outputs, tuple | list) else outputs

    return around(network, one_output)


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
