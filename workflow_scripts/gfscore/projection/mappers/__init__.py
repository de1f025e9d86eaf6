"""Mappers: an encoder from images to latent codes and a decoder U, whose latent dimensions can be moved one by one.

A kind is one module in this folder with a declaration `KIND` (see gfscore.projection.mappers.declared), and a function
`build(image_shape, names, **arguments)` that returns a torch module with

- `names`: the D latent dimensions that are moved, the first D columns of its codes;
- `limits`: (low, high), the range of their values, or None;
- `encode(images, conditions)`: images (n, C, H, W) in [0, 1] and conditions (n, A) or None to codes (n, Z) and the
  posterior standard deviation of the moved dimensions (n, D);
- `decode(codes)`: codes (n, Z) to images (n, C, H, W) in [0, 1];
- `trainer(learning_rate, generator)`: an object with `step(images, conditions)`, which makes one training step and
  returns its losses, `losses`, their names, and `parts`, the modules and optimisers to save for resumption.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from gfscore.core.errors import InputError, unknown
from gfscore.projection.mappers.declared import mapper_kinds

SMALLEST_SIDE = 8


def build_mapper(
    kind: str, image_shape: Sequence[int], *, names: Sequence[str] | None = None, seed: int = 0, **arguments: Any
) -> Any:
    """Newly initialised mapper for images (C, H, W) with sides of at least 8 pixels, a torch module.

    `kind` is the name of a declaration; `names` are those of the conditions (A,), if any; `seed` that of the weights,
    `arguments` those of the kind. The attribute `recipe` of the result holds the arguments to build it again. Raises
    InputError for an unknown kind and for smaller images.
    """
    import torch

    if kind not in mapper_kinds():
        raise InputError(unknown("kind of mapper", kind, mapper_kinds()))
    _, height, width = image_shape
    if min(height, width) < SMALLEST_SIDE:
        raise InputError(f"mapper kind {kind!r} needs images of at least 8x8 pixels, got {height}x{width}")
    # The initialisation uses torch's global generator, which is forked so that other draws do not change.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = import_module(f"gfscore.projection.mappers.{kind}").build(tuple(image_shape), names, **arguments)
    network.recipe = {"kind": kind, "image_shape": list(image_shape), "names": names, "arguments": arguments}
    return network
