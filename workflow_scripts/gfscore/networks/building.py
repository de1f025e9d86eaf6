"""Construction of the networks that the workflow trains, by name.

A new architecture is one function in architectures.py, named in its ARCHITECTURES. Every network of the timm
collection is available, untrained, as timm/<name>.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gfscore.core.errors import InputError
from gfscore.networks.timm_models import build_timm

if TYPE_CHECKING:
    from torch import nn

TIMM = "timm/"
"""Prefix of the names of timm's networks."""

SMALLEST_SIDE = 8


def build_network(
    name: str, *, in_channels: int, image_size: Sequence[int], classes: int, seed: int = 0, **arguments: Any
) -> nn.Module:
    """Newly initialised torch module from images (n, C, H, W) in [0, 1] to logits (n, K).

    `name` is a key of ARCHITECTURES or timm/<name> (see `_of_timm`), `in_channels` C, `image_size` (H, W) with both at
    least 8, `classes` K, `seed` that of the weights, `arguments` those of the architecture. The attribute `recipe` of
    the result holds the arguments to build it again. Raises InputError for an unknown name or argument, and for smaller
    images.
    """
    import torch

    from gfscore.networks.architectures import ARCHITECTURES

    timm = name.startswith(TIMM)
    if not timm and name not in ARCHITECTURES:
        raise InputError(f"architecture {name!r} is unknown; choose one of {', '.join(ARCHITECTURES)}, {TIMM}<name>")
    height, width = image_size
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"architecture {name!r} needs images of at least 8x8 pixels, got {height}x{width}")
    if not timm:
        _require_known(name, ARCHITECTURES[name], arguments)
    # The initialisation uses torch's global CPU generator, which is forked so that other draws do not change.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if timm:
            network: Any = _of_timm(name, in_channels, classes, arguments)
        else:
            network = ARCHITECTURES[name](in_channels, (height, width), classes, **arguments)
    network.recipe = {
        "architecture": name,
        "in_channels": in_channels,
        "image_size": [height, width],
        "classes": classes,
        "arguments": arguments,
    }
    return network


def _require_known(name, function, arguments):
    known = [*inspect.signature(function).parameters][3:]
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        raise InputError(f"architecture {name!r} has no argument {unknown[0]!r}; it knows {', '.join(known)}")


def _of_timm(name, in_channels, classes, arguments):
    # `arguments` are those of timm.create_model (drop_path_rate, img_size of a transformer, ...). Pixels are rescaled
    # to [-1, 1], as most of these networks expect. Many use batch statistics, which attacks during training update too.
    from torch import nn

    from gfscore.networks.architectures import Centred

    settings = {"architecture": name.removeprefix(TIMM), "arguments": arguments, "image_shape": [in_channels]}
    return nn.Sequential(Centred(), build_timm(settings, f"architecture {name}", classes=classes))
