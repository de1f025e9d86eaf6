"""Passes of images through networks in batches: batch size, loading in advance, and what to do without memory."""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from gfscore.networks.classifier import Classifier
from gfscore.networks.devices import GPU_SHARE, ONE_IMAGE, out_of_memory

Item = TypeVar("Item")

ITEMS_AHEAD = 2
"""Number of items that are computed in advance."""

MOST_IMAGES = {"cpu": 256, "cuda": 1024}
"""Largest number of images per pass by device; more are not faster."""

CACHE_BYTES = 32 << 20
"""Bytes that the largest layer may read and write per pass on a CPU: they should stay in its caches."""

LAYERS_IN_MEMORY = 8
"""Number of layers of the largest size that a GPU's memory must hold at the same time."""

TYPICAL_LAYER = 10
"""Assumed size of the largest layer relative to the image, for classifiers without a torch network."""


class Sliceable(Protocol):
    """An array or a tensor of images."""

    def __len__(self) -> int:
        """Number of images."""

    def __getitem__(self, rows: slice, /) -> Self:
        """Some of the images."""


Block = TypeVar("Block", bound=Sliceable)


class BatchedClassifier:
    """A classifier of any number of images that passes at most `batch_size` at a time through the network.

    If memory runs out, the batch size is halved for all later passes. It changes the logits only by rounding.

    Parameters
    ----------
    classifier : Classifier
        With or without gradients.
    batch_size : int
        Images per pass.
    """

    def __init__(self, classifier: Classifier, *, batch_size: int) -> None:
        self.classifier = classifier
        self.batch_size = batch_size
        self.device = torch.device(classifier.device)

    def logits(self, images: Tensor) -> Tensor:
        """Logits (n, K) float32 of a tensor of images (n, C, H, W), on the device; no gradients."""
        blocks, self.batch_size = in_batches(self._forward, images, self.batch_size)
        return blocks[0] if len(blocks) == 1 else torch.cat(blocks)

    def _forward(self, images: Tensor) -> Tensor:
        if self.classifier.network is None:
            return torch.from_numpy(self.classifier.logits(images.numpy()))
        with torch.no_grad():
            return self.classifier.network(images).float()


def in_batches(run: Callable[[Block], Item], images: Block, size: int) -> tuple[list[Item], int]:
    """Results of a function on batches of images, and the batch size in the end: it is halved when memory runs out.

    A single image may take more than the share of this process, up to all free memory of the GPU.

    Parameters
    ----------
    run : callable
        Function of at most `size` images.
    images : array or tensor
        (n, C, H, W).
    size : int
        Images per batch at the start.
    """
    results: list[Item] = []
    start = 0
    while start < len(images):
        batch = images[start : start + size]
        try:
            results.append(run(batch))
            start += size
        # onnxruntime's errors derive from Exception alone.
        except Exception as error:
            if not out_of_memory(error):
                raise
            if len(batch) == 1 and not GPU_SHARE.lift_limit(ONE_IMAGE):
                raise
            size = (len(batch) + 1) // 2
    return results, size


def computed_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items of an iterator, computed by another thread up to ITEMS_AHEAD items in advance."""
    with ThreadPoolExecutor(1) as pool:
        pending = deque(pool.submit(next, items, None) for _ in range(ITEMS_AHEAD))
        while (item := pending.popleft().result()) is not None:
            pending.append(pool.submit(next, items, None))
            yield item


# Batch size


def fitting_batch_size(classifier: Classifier, image_shape: tuple[int, ...], device: str) -> int:
    """Number of images per forward pass, by the size of the network.

    A power of two from 1 to MOST_IMAGES[device]; of a network with a fixed batch size a multiple of that.

    The sizes of the layers are measured on a grey image. On a GPU the result also depends on the total memory, but not
    on the free memory: that varies, and another batch size changes the rounding of the logits.

    Parameters
    ----------
    classifier : Classifier
        With its network, if any, on the device.
    image_shape : tuple of int
        (C, H, W).
    device : str
        "cpu" or "cuda".
    """
    available = CACHE_BYTES
    if device != "cpu":
        _, total = torch.cuda.mem_get_info()
        available = total // LAYERS_IN_MEMORY
    fitting = available // _bytes_of_largest_layer(classifier, image_shape)
    batch_size = min(max(fitting, 1), MOST_IMAGES[device])
    if classifier.batch > 1:
        return max(batch_size // classifier.batch, 1) * classifier.batch
    return 1 << int(math.log2(batch_size))


def _bytes_of_largest_layer(classifier: Classifier, image_shape: tuple[int, ...]) -> int:
    # Bytes that the largest layer reads and writes per image.
    typical = TYPICAL_LAYER * 4 * math.prod(image_shape)
    if classifier.network is None:
        return typical
    sizes: list[int] = []

    def record(_layer: nn.Module, inputs: Sequence[object], output: object) -> None:
        size = 0
        for value in (*inputs, output):
            if isinstance(value, Tensor):
                size += value.numel() * value.element_size()
        sizes.append(size)

    hooks = []
    for layer in classifier.network.modules():
        # TorchScript takes no hooks: a network of TorchScript alone counts with TYPICAL_LAYER.
        is_leaf = next(layer.children(), None) is None
        if is_leaf and not isinstance(layer, torch.jit.ScriptModule):
            hooks.append(layer.register_forward_hook(record))
    try:
        in_batches(classifier.logits, np.full((1, *image_shape), 0.5, dtype=np.float32), 1)
    finally:
        for hook in hooks:
            hook.remove()
    # The one image was filled up to a batch.
    return math.ceil(max(sizes) / classifier.batch) if sizes else typical
