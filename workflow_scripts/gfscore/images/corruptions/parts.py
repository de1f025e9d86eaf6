"""Processing of a batch of images in parts that fit into the processor's cache."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

PART = 1 << 18
"""Values per part: one image of 224 pixels and three channels, or 85 of 32 pixels."""


def parts_of(images: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of the rows of images (n, C, H, W) float32, each with a float64 copy of its images."""
    size = max(1, PART // images[0].size)
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield rows, images[rows].astype(np.float64)


def by_parts(
    function: Callable[[NDArray[np.float64], Any, np.random.Generator], NDArray[np.floating]],
) -> Callable[[NDArray[np.float32], Any, np.random.Generator], Iterator[NDArray[np.floating]]]:
    """Decorator that applies the corruption of a part to all parts of a batch.

    For corruptions whose random numbers are drawn image by image, so that the division into parts does not matter.
    """

    @wraps(function)
    def corrupted(
        images: NDArray[np.float32], parameters: Any, rng: np.random.Generator
    ) -> Iterator[NDArray[np.floating]]:
        for _, part in parts_of(images):
            yield function(part, parameters, rng)

    return corrupted
