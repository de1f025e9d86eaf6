"""Mappers: an encoder from images to latent codes and a decoder U back, whose dimensions can be moved one by one.

A kind is one file in this folder: a declaration, `KIND` (see gfscore.projection.mappers.declared), and a function
`build(image_shape, names, **arguments)` that returns a torch module. That module has

- `names`: the D latent dimensions that are moved, the first D columns of its codes;
- `limits`: (low, high) between which they are moved, or None;
- `encode(images, conditions)`: images (n, C, H, W) in [0, 1] and conditions (n, A) or None to codes (n, Z) and the
  posterior standard deviation of the moved dimensions (n, D);
- `decode(codes)`: codes (n, Z) to images (n, C, H, W) in [0, 1];
- `trainer(learning_rate, generator)`: an object with `step(images, conditions)`, which takes one training step and
  returns its losses, `losses`, their names, and `parts`, what has to be kept to go on (modules, optimisers).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gfscore.core.errors import InputError, unknown
from gfscore.projection.mappers.declared import mapper_kinds

SMALLEST_SIDE = 8


def build_mapper(
    kind: str, image_shape: Sequence[int], *, names: Sequence[str] | None = None, seed: int = 0, **arguments: Any
) -> Any:
    """Freshly initialised mapper for images (C, H, W) with sides of at least 8 pixels, a torch module.

    `kind` is that of a declaration; `names` are those of the conditions (A,) where it has any; `seed` determines the
    weights, `arguments` are the kind's own. The attribute `recipe` of the result holds what is needed to build it
    again. Raises InputError for an unknown kind and for smaller images.
    """
    import torch

    if kind not in mapper_kinds():
        raise InputError(unknown("kind of mapper", kind, mapper_kinds()))
    _, height, width = image_shape
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"mapper kind {kind!r} needs images of at least 8x8 pixels, got {height}x{width}")
    # The initialisation draws from torch's global generator: fork it, so that nobody else's draws move.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = import_module(f"gfscore.projection.mappers.{kind}").build(tuple(image_shape), names, **arguments)
    network.recipe = {"kind": kind, "image_shape": list(image_shape), "names": names, "arguments": arguments}
    return network
