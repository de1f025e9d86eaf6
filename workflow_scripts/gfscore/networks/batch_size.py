"""Choice of the number of images per forward pass from the size of the network."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

    from gfscore.networks.classifier import Classifier

MOST = {"cpu": 256, "cuda": 1024}
"""Largest number of images per pass by device; more are not faster."""

NEAR = 32 << 20
"""Bytes that the largest layer may read and write per pass on a CPU, so that they stay in its caches."""

SHARE = 8
"""The largest layer may take 1/SHARE of a GPU's memory, since several layers are in memory at the same time."""

TYPICAL = 10
"""Typical size of a network's largest layer relative to the image, used if there is no torch network."""


def fitting_batch_size(classifier: Classifier, image_shape: tuple[int, ...], device: str) -> int:
    """Number of images per forward pass, a power of two from 1 to MOST[device].

    `classifier` is a Classifier whose network, if any, is on the device ("cpu" or "cuda"); `image_shape` (C, H, W). A
    grey image is classified to measure the sizes of the layers. On a CPU the result depends on the network alone, on a
    GPU also on its total memory; the free memory is not used, since it varies and the batch size changes rounding.
    """
    import torch

    room = NEAR if device == "cpu" else torch.cuda.mem_get_info()[1] // SHARE
    fits = room // _largest_layer(classifier, image_shape)
    return 1 << int(math.log2(min(max(fits, 1), MOST[device])))


def _largest_layer(classifier, image_shape):
    # Bytes that the largest layer reads and writes per image.
    import torch

    sizes = [TYPICAL * 4 * math.prod(image_shape)]
    if classifier.network is None:
        return sizes[0]

    def record(_layer: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        tensors = [value for value in (*inputs, output) if isinstance(value, torch.Tensor)]
        sizes.append(sum(value.numel() * value.element_size() for value in tensors))

    leaves = [layer for layer in classifier.network.modules() if not any(True for _ in layer.children())]
    # TorchScript takes no hooks: where it is the whole network, its layers count as TYPICAL.
    layers = [layer for layer in leaves if not isinstance(layer, torch.jit.ScriptModule)]
    hooks = [layer.register_forward_hook(record) for layer in layers]
    try:
        classifier.logits(np.full((1, *image_shape), 0.5, dtype=np.float32))
    finally:
        for hook in hooks:
            hook.remove()
    return max(sizes[1:], default=sizes[0])
