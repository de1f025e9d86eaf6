"""Pictures of a mapper: reconstructions, and traversals of its latent dimensions. Reading them needs no torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.tables.binary_files import opened, whole_array

if TYPE_CHECKING:
    from gfscore.projection.mappers.fitting import Mapper

POSITIONS = np.linspace(-1, 1, 9)
"""Moves shown in a traversal, in units of sigma, over the range of the search."""

RECONSTRUCTED = 8
"""Number of samples whose reconstructions are shown."""

TRAVERSED = 2
"""Number of samples whose traversals are shown."""

ARRAYS = ("originals", "reconstructions", "traversals", "positions", "names")

Pictures = dict[str, NDArray[np.generic]]
"""ARRAYS by name."""


def write_pictures(
    path: Path | str,
    mapper: Mapper,
    images: NDArray[np.float32],
    conditions: NDArray[np.float32] | None = None,
    *,
    of_images: bool,
) -> None:
    """Write reconstructions and traversals as .npz, atomically; equal arguments give equal bytes.

    The arrays are `originals` and `reconstructions` (S, C, H, W) and `traversals` (T, D, P, C, H, W), all uint8;
    `positions` (P,), the moves in units of sigma; `names` (D,) str.

    Parameters
    ----------
    path : path or str
        File to write.
    mapper : Mapper
        The mapper.
    images : ndarray of shape (N, C, H, W), float32
        Samples are spread evenly over them.
    conditions : ndarray of shape (N, A), float32, or None
        Their conditions.
    of_images : bool
        Whether images are shown; else S = 0, and the only traversal starts from the mean code.
    """
    if of_images:
        rows = np.unique(np.linspace(0, len(images) - 1, RECONSTRUCTED).round().astype(int))
        originals = images[rows]
        codes, _ = mapper.encode(originals, None if conditions is None else conditions[rows])
        reconstructions = mapper.decode(codes)
        starts = codes[:TRAVERSED]
    else:
        originals = images[:0]
        reconstructions = images[:0]
        codes, _ = mapper.encode(images, conditions)
        starts = codes.mean(axis=0, keepdims=True)

    traversals = []
    for code in starts:
        for dimension in range(len(mapper.names)):
            for position in POSITIONS:
                traversals.append(mapper.decode(moved(mapper, code[None], dimension, position)))
    images_of_traversals = np.concatenate(traversals)
    shape = (len(starts), len(mapper.names), len(POSITIONS), *images_of_traversals.shape[1:])
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            originals=_levels(originals),
            reconstructions=_levels(reconstructions),
            traversals=_levels(images_of_traversals.reshape(shape)),
            positions=POSITIONS,
            names=np.array(mapper.names, dtype=str),
        )


def _levels(images: NDArray[np.float32]) -> NDArray[np.uint8]:
    return np.round(255 * images).astype(np.uint8)


def read_pictures(path: Path | str) -> Pictures:
    """Arrays written by write_pictures, by name. Raises InputError, naming the file, if it is missing or damaged."""
    try:
        with opened(path) as file:
            return {name: whole_array(file, name) for name in ARRAYS}
    # Damaged archives raise errors of many types.
    except Exception as error:
        raise InputError(f"{path}: no pictures of a mapper ({error}); delete it and run again") from error


def read_all_pictures(paths: Iterable[Path | str]) -> dict[str, Pictures]:
    """Arrays of several mappers, by the name of the mapper, the stem of its file."""
    return {Path(path).stem: read_pictures(path) for path in paths}


def moved(mapper: Mapper, codes: NDArray[np.float32], dimension: int, position: float) -> NDArray[np.float32]:
    """Codes (n, Z) with one dimension moved by `position` (-1 to 1) sigma; a condition is set to that place."""
    changed = codes.copy()
    if mapper.limits is None:
        changed[:, dimension] += position * mapper.sigma[dimension]
    else:
        # The range is traversed independently of the condition of the sample.
        changed[:, dimension] = np.interp(position, (-1, 1), mapper.limits)
    return changed
