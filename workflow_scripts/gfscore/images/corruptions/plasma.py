"""Cloud-like noise by the diamond-square algorithm."""

import numpy as np
from numpy.typing import NDArray

from gfscore.statistics.draws import RowGenerators


def plasma(number: int, side: int, *, decay: float, rng: RowGenerators) -> NDArray[np.float64]:
    """Height maps (number, side, side) in [0, 1], periodic, rougher for a smaller `decay`.

    Midpoints of successively halved squares are the mean of the corners plus noise whose range is divided by decay^2 at
    each step, as in the code that made CIFAR-10-C and ImageNet-C, where a factor and a range both fall by `decay`.
    Source: Fournier et al. 1982.
    """
    size = 1 << max(1, int(np.ceil(np.log2(side))))
    heights = np.zeros((number, size, size))
    # One for each height but the corner's, drawn at once.
    drawn, used = rng.uniform(-1, 1, (number, size * size - 1)), 0
    step, spread = size, 100.0
    while step >= 2:
        half = step // 2
        corners = heights[:, ::step, ::step]
        shape = corners.shape

        def around(
            values: NDArray[np.float64], *, spread: float = spread, shape: tuple[int, ...] = shape
        ) -> NDArray[np.float64]:
            nonlocal used
            start, used = used, used + shape[1] * shape[2]
            return values / 4 + spread * drawn[:, start:used].reshape(shape)

        below, right = np.roll(corners, -1, axis=1), np.roll(corners, -1, axis=2)
        heights[:, half::step, half::step] = around(corners + below + right + np.roll(below, -1, axis=2))
        middles = heights[:, half::step, half::step]
        heights[:, ::step, half::step] = around(corners + right + middles + np.roll(middles, 1, axis=1))
        heights[:, half::step, ::step] = around(corners + below + middles + np.roll(middles, 1, axis=2))
        step, spread = half, spread / decay**2
    heights -= heights.min(axis=(1, 2), keepdims=True)
    return (heights / heights.max(axis=(1, 2), keepdims=True))[:, :side, :side]
