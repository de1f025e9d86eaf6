"""Processing of a batch of images in parts that fit into the processor's cache."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.draws import RowGenerators

PART = 1 << 18
"""Values per part: one image of 224 pixels and three channels, or 85 of 32 pixels."""


def parts_of(images: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of the rows of images (n, C, H, W) float32, each with a float64 copy of its images."""
    size = max(1, PART // images[0].size)
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield rows, images[rows].astype(np.float64)


def by_parts(
    function: Callable[[NDArray[np.float64], Any, RowGenerators], NDArray[np.floating]],
) -> Callable[[NDArray[np.float32], Any, RowGenerators], Iterator[NDArray[np.floating]]]:
    """Corruption of a batch made of that of a part."""

    @wraps(function)
    def corrupted(images: NDArray[np.float32], parameters: Any, rng: RowGenerators) -> Iterator[NDArray[np.floating]]:
        for rows, part in parts_of(images):
            yield function(part, parameters, rng[rows])

    return corrupted
