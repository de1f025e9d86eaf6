"""Batches in parts that a processor's cache holds, which is faster, and needs little memory beside the result."""

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.draws import RowGenerators

PART = 1 << 18
"""Values of a part, if an image has fewer: one image of 224 pixels and three channels, or 85 of 32."""


def parts_of(images: NDArray[np.float32]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yield slices of the rows of images (n, C, H, W) float32, and a copy of each as float64."""
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
