"""Batches in parts that a processor's cache holds, which is faster, and needs little memory beside the result."""

from functools import wraps

import numpy as np

PART = 1 << 18
"""Values of a part, if an image has fewer: one image of 224 pixels and three channels, or 85 of 32."""


def parts_of(images):
    """Yield slices of the rows of images (n, C, H, W) float32, and a copy of each as float64."""
    size = max(1, PART // images[0].size)
    for start in range(0, len(images), size):
        rows = slice(start, start + size)
        yield rows, images[rows].astype(np.float64)


def by_parts(function):
    """Corruption of a batch made of that of a part, where what is drawn at random is drawn image after image."""

    @wraps(function)
    def corrupted(images, parameters, rng):
        for _, part in parts_of(images):
            yield function(part, parameters, rng)

    return corrupted
