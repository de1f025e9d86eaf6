"""Points of a ball that a classifier gets wrong: kept, and checked again."""

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.proofs.packing import packed, unpacked

HALF_UNIT = 2.0**-25
"""Largest rounding error of a number up to 1 in float32."""


def moved_inside(
    points: NDArray[np.float32], images: NDArray[np.float32], norm: str, eps: float
) -> NDArray[np.float32]:
    """Points moved by less than float32 resolves, so that they lie in the ball and in [0, 1] exactly.

    Parameters
    ----------
    points, images : ndarray
        (n, C, H, W) float32; images in [0, 1], points in their balls up to rounding.
    norm : str
        "linf" or "l2".
    eps : float
        Radius.

    Returns
    -------
    ndarray
        (n, C, H, W) float32, at a `distance` of at most eps.
    """
    centres = images.astype(np.float64)
    offsets = np.clip(points, 0, 1).astype(np.float64) - centres
    if norm == "linf":
        moved = (centres + np.clip(offsets, -eps, eps)).astype(np.float32)
        outside = np.abs(moved.astype(np.float64) - centres) > eps
        return np.where(outside, np.nextafter(moved, images), moved)
    # Half a unit in each of d numbers is sqrt(d) times as much in l2.
    pixels = int(np.prod(images.shape[1:]))
    reach = max(eps - 1.01 * HALF_UNIT * pixels**0.5, 0)
    lengths = np.linalg.norm(offsets.reshape(-1, pixels), axis=1).reshape(-1, *[1] * (images.ndim - 1))
    shares = np.where(lengths > reach, reach / np.maximum(lengths, 1e-300), 1)
    return np.where(shares < 1, centres + shares * offsets, points).clip(0, 1).astype(np.float32)


def distance(point: NDArray[np.float32], image: NDArray[np.float32], norm: str) -> float:
    """Distance of two images in a norm, in float64."""
    offset = (point.astype(np.float64) - image.astype(np.float64)).reshape(-1)
    return float(np.abs(offset).max() if norm == "linf" else np.linalg.norm(offset))


def to_bytes(point: NDArray[np.float32]) -> bytes:
    """Pixels as compressed bytes."""
    return packed(np.ascontiguousarray(point, dtype="<f4").tobytes())


def from_bytes(content: bytes, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Pixels (C, H, W) of what `to_bytes` wrote; raises InputError for anything else."""
    size = 4 * int(np.prod(shape))
    pixels = unpacked(content, "counterexample", largest=size)
    if len(pixels) != size:
        raise InputError(f"the counterexample has {len(pixels)} bytes, not those of an image of {shape}")
    return np.frombuffer(pixels, dtype="<f4").reshape(shape).astype(np.float32)
