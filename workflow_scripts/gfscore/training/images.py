"""Images of a training, a batch of any rows at a time: in memory where they fit, read from their files otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.images.datasets import load_all
from gfscore.images.image_set import ImageSet

HELD_BYTES = 2**31
"""Most bytes of float32 pixels that are held in memory: CIFAR-10's 50,000 training images take 0.6 GB."""

AHEAD = 2
"""Batches that are read while the network is busy with earlier ones."""


@dataclass(frozen=True)
class ReadImages:
    """Images of an ImageSet, read when they are asked for: `images[rows]` gives (n, C, H, W) float32 in [0, 1]."""

    images: ImageSet

    def __len__(self) -> int:
        """Return the number of images N."""
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W)."""
        return len(self.images), *self.images.image_shape

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Images of `rows` (n,), each once, in their order."""
        order = np.argsort(rows)
        pixels = np.concatenate(list(self.images.select(rows[order]).batches(len(rows))))
        return pixels[np.argsort(order)]


def training_images(images: ImageSet) -> NDArray[np.float32] | ReadImages:
    """Pixels of an ImageSet for `train_classifier`: an array (N, C, H, W), or ReadImages where that would be too large.

    Only sources that can skip what is not asked for are read anew (`choose` of an ImageSet: image_folder, celeba,
    parquet, which reads whole row groups and so is slow at it); the others hold their images in any case.
    """
    held = 4 * len(images) * int(np.prod(images.image_shape)) <= HELD_BYTES
    return load_all(images)[0] if held or images.choose is None else ReadImages(images)


def in_batches(
    images: NDArray[np.float32] | ReadImages, batches: Iterable[NDArray[np.int64]]
) -> Iterator[NDArray[np.float32]]:
    """Yield images[rows], (n, C, H, W) float32, for each of a sequence of rows (n,); ReadImages are read ahead."""
    if not isinstance(images, ReadImages):
        yield from (images[rows] for rows in batches)
        return
    with ThreadPoolExecutor(1) as pool:
        waiting = []
        try:
            for rows in batches:
                waiting.append(pool.submit(images.__getitem__, rows))
                if len(waiting) > AHEAD:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            # After an error, or when the reader stops early, the rest is not read for nothing.
            for future in waiting:
                future.cancel()
