"""Files of TorchScript and torch.export with offsets: the program with a further operator, saved again."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from gfscore.core.digests import sha256_of_file
from gfscore.core.errors import InputError
from gfscore.core.settings import LOGARITHMS
from gfscore.networks.adjusted_files.shift import AdjustedFiles, output_shift
from gfscore.networks.model_source import Settings
from gfscore.networks.number_types import with_float32_images
from gfscore.networks.outputs import first_line
from gfscore.networks.programs import KINDS, logits_node, opened, output_position, require_usable
from gfscore.networks.wrappers import tensors_in

BUFFER = "gfscore_offsets"
"""Name of the operator in a program; of a second one with a line behind it."""


def write_adjusted(
    settings: Settings,
    path: Path | str,
    offsets: NDArray[np.float64],
    target: Path,
    *,
    image_shape: Sequence[int],
    classes: int,
) -> AdjustedFiles:
    """Write a program whose logits have offsets, of the kind of the original.

    Where the network returns probabilities, and no head can be removed, it returns the probabilities of the adjusted
    logits.

    Parameters
    ----------
    settings, path, offsets, target, image_shape, classes
        See gfscore.networks.adjusted_files.

    Raises
    ------
    InputError
        Naming file and remedy, for a program of TorchScript that returns more than one tensor, and one that torch
        cannot save again.
    """
    del image_shape, classes
    kind = require_usable(path)
    network, batch = opened(settings, path, any_number_type=True)
    position = output_position(network, settings, batch, path)
    with torch.no_grad():
        images = torch.full((batch or 2, *settings["image_shape"]), 0.5)
        returned = with_float32_images(network, images)(images)
    outputs = list(tensors_in(returned).values())
    columns = outputs[position][0].numel()
    shift = torch.from_numpy(output_shift(offsets, settings, columns=columns, where=path)).float()
    operator = _Shifted(shift, probabilities=settings.get("allow_probabilities") == LOGARITHMS)

    if kind == "script" and not isinstance(returned, Tensor):
        raise InputError(
            f"{path}: returns several tensors, of which TorchScript cannot replace one; save a program that returns "
            "the logits alone, or export the network with torch.export or as ONNX"
        )

    try:
        if kind == "script":
            torch.jit.script(nn.Sequential(network, operator).eval()).save(str(target))
        else:
            node = logits_node(network, position, settings.get("head"), where=path)
            torch.export.save(_exported_again(cast(fx.GraphModule, network), node, operator), target)
    except InputError:
        raise
    # Programs of others may fail in any way.
    except Exception as error:
        raise InputError(
            f"{path}: this version of torch cannot save it again as {KINDS[kind]} with offsets ({first_line(error)}); "
            "add them to its logits where it is made"
        ) from error
    place = f"before its {settings['head']}" if settings.get("head") else "behind its logits"
    entry = {**settings, "path": str(target), "sha256": sha256_of_file(target)}
    return AdjustedFiles(entry, f"an operator {place}")


class _Shifted(nn.Module):
    # Outputs (n, ...) with a shift of each, or probabilities of logits with such a shift.

    def __init__(self, shift: Tensor, *, probabilities: bool) -> None:
        super().__init__()
        self.register_buffer("shift", shift)
        self.probabilities = probabilities
        self.one_column = len(shift) == 1

    def forward(self, values: Tensor) -> Tensor:
        # TorchScript knows no cast.
        shift = self.shift.to(values.dtype).reshape(values.shape[1:])  # type: ignore[operator]
        if not self.probabilities:
            return values + shift
        scaled = values * shift.exp()
        if self.one_column:
            return scaled / (1 - values + scaled)
        return scaled / scaled.sum(1, keepdim=True)


def _exported_again(program: fx.GraphModule, node: fx.Node, operator: _Shifted) -> torch.export.ExportedProgram:
    # Whatever reads the logits, a head or another output, reads the adjusted ones.
    name = BUFFER
    while hasattr(program, name):
        name += "_"
    program.add_submodule(name, operator)
    with program.graph.inserting_after(node):
        adjusted = program.graph.call_module(name, (node,))
    node.replace_all_uses_with(adjusted, delete_user_cb=lambda user: user is not adjusted)
    program.recompile()

    (image,) = [placeholder for placeholder in program.graph.nodes if placeholder.op == "placeholder"]
    value = image.meta["val"]
    symbolic = not isinstance(value.shape[0], int)
    example = torch.zeros((2 if symbolic else value.shape[0], *value.shape[1:]), dtype=value.dtype)
    shapes = ({0: torch.export.Dim.DYNAMIC},) if symbolic else None
    return torch.export.export(program, (example,), dynamic_shapes=shapes)
