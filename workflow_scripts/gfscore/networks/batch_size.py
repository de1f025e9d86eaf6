"""How many images a forward pass takes, found from the network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier

MOST = {"cpu": 256, "cuda": 1024}
"""Images per pass at most, by device: more are no faster."""

NEAR = 32 << 20
"""Bytes that the largest layer reads and writes per pass on a processor, so that they stay near it."""

SHARE = 8
"""On a GPU the largest layer may take one in so many bytes of its memory: others live at the same time."""

TYPICAL = 10
"""Size of a usual network's largest layer, in images, where the network cannot be asked."""


def fitting_batch_size(classifier: Classifier, image_shape: tuple[int, ...], device: str) -> int:
    """Images per forward pass that suit a network: a power of two from 1 to MOST[device].

    `classifier` is a Classifier whose network, if it has one, is on the device ("cpu" or "cuda");
    `image_shape` (C, H, W). One grey image is classified to see how large the layers are. On a processor the answer
    depends on the network alone, on a GPU on the size of its memory too, whatever else runs there: what is left free
    would give other batches, and so other last digits, from run to run.
    """
    import torch

    room = NEAR if device == "cpu" else torch.cuda.mem_get_info()[1] // SHARE
    fits = room // _largest_layer(classifier, image_shape)
    return 1 << int(math.log2(min(max(fits, 1), MOST[device])))


def _largest_layer(classifier, image_shape):
    # Bytes that one image's largest layer reads and writes.
    import torch

    sizes = [TYPICAL * 4 * math.prod(image_shape)]
    if classifier.network is None:
        return sizes[0]

    def note(_layer: torch.nn.Module, given: tuple[Any, ...], output: Any) -> None:
        tensors = [value for value in (*given, output) if isinstance(value, torch.Tensor)]
        sizes.append(sum(value.numel() * value.element_size() for value in tensors))

    layers = [layer for layer in classifier.network.modules() if not any(True for _ in layer.children())]
    hooks = [layer.register_forward_hook(note) for layer in layers]
    try:
        classifier.logits(np.full((1, *image_shape), 0.5, dtype=np.float32))
    finally:
        for hook in hooks:
            hook.remove()
    return max(sizes[1:], default=sizes[0])
