"""Training images in random order: held in memory if they fit, otherwise read from their files batch by batch."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.images.datasets import load_all
from gfscore.images.image_set import ImageSet

HELD_BYTES = 2**31
"""Largest size in bytes of float32 pixels held in memory; CIFAR-10's 50,000 training images take 0.6 GB."""

AHEAD = 2
"""Number of batches that are read in advance."""


@dataclass(frozen=True)
class ReadImages:
    """Images of an ImageSet, read on access: `images[rows]` is (n, C, H, W) float32 in [0, 1]."""

    images: ImageSet

    def __len__(self) -> int:
        """Return the number of images N."""
        return len(self.images)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """(N, C, H, W)."""
        return len(self.images), *self.images.image_shape

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Images of distinct `rows` (n,), in their order."""
        order = np.argsort(rows)
        pixels = np.concatenate(list(self.images.select(rows[order]).batches(len(rows))))
        return pixels[np.argsort(order)]


def training_images(images: ImageSet) -> NDArray[np.float32] | ReadImages:
    """Pixels of an ImageSet for `train_classifier`: an array (N, C, H, W), or ReadImages if that would be too large.

    ReadImages are used only for sources that can skip images (`choose` of an ImageSet: image_folder, celeba, parquet);
    other sources hold their images in memory anyway.
    """
    held = 4 * len(images) * int(np.prod(images.image_shape)) <= HELD_BYTES
    return load_all(images)[0] if held or images.choose is None else ReadImages(images)


def in_batches(
    images: NDArray[np.float32] | ReadImages, batches: Iterable[NDArray[np.int64]]
) -> Iterator[NDArray[np.float32]]:
    """Yield images[rows], (n, C, H, W) float32, for each of `batches` of rows (n,); ReadImages are read in advance."""
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
            # After an error, or when the reader stops early.
            for future in waiting:
                future.cancel()
