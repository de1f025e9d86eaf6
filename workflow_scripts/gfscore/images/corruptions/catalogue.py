"""The fifteen common corruptions at five severities, for images of any size.

Sources: Hendrycks and Dietterich 2019; parameters from the code that made CIFAR-10-C and ImageNet-C. Random numbers are
drawn from the seed in config.yaml, so the pixels differ from those of the published sets (which can be evaluated as
datasets); frost is a substitute, see weather.py.
"""

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions import blur, digital, noise, weather
from gfscore.images.corruptions.parameters import PARAMETERS, parameters_of
from gfscore.statistics.draws import RowGenerators

_MODULES = (noise, blur, weather, digital)
CORRUPTIONS = {name: next(getattr(m, name) for m in _MODULES if hasattr(m, name)) for name in PARAMETERS}
"""Corruption -> function of images (n, C, H, W) float32, parameters and their RowGenerators, which yields the corrupted
images as float64, part by part."""


def corrupt(images: NDArray[np.float32], corruption: str, severity: int, *, rng: RowGenerators) -> NDArray[np.float32]:
    """Corrupted copies of images (n, C, H, W) float32 in [0, 1], rounded to 256 levels like stored images.

    `corruption` is one of CORRUPTIONS, `severity` 1 to 5, `rng` their random numbers.
    """
    parameters = parameters_of(corruption, severity, min(images.shape[2:]))
    corrupted, start = np.empty_like(images), 0
    for part in CORRUPTIONS[corruption](images, parameters, rng):
        levels = np.rint(255 * np.clip(part, 0, 1))
        corrupted[start : start + len(part)] = levels / 255
        start += len(part)
    return corrupted
