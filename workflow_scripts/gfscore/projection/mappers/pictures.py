"""Pictures of a mapper: reconstructions, and traversals of its latent dimensions. Reading them needs no torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.tables.binary_files import opened, whole_array

if TYPE_CHECKING:
    from gfscore.projection.mappers.fitting import Mapper

POSITIONS = np.linspace(-1, 1, 9)
"""Moves shown in a traversal, in units of sigma, over the range of the search."""

PICTURED, TRAVERSED = 8, 2
"""Numbers of samples whose reconstructions, and whose traversals, are shown."""

ARRAYS = ("originals", "reconstructions", "traversals", "positions", "names")


def write_pictures(
    path: Path | str,
    mapper: Mapper,
    images: NDArray[np.float32],
    conditions: NDArray[np.float32] | None = None,
    *,
    of_images: bool,
) -> None:
    """Write reconstructions and traversals as .npz, atomically; equal arguments give equal bytes.

    `originals` and `reconstructions` (S, C, H, W), `traversals` (T, D, P, C, H, W), all uint8; `positions` (P,) the
    moves in units of sigma; `names` (D,) str. With `of_images` the samples are spread evenly over the images; without,
    no image is shown: S = 0, and the only traversal starts from the mean code.
    """
    if of_images:
        rows = np.unique(np.linspace(0, len(images) - 1, PICTURED).round().astype(int))
        codes = mapper.encode(images[rows], None if conditions is None else conditions[rows])[0]
        arrays, starts = {"originals": images[rows], "reconstructions": mapper.decode(codes)}, codes[:TRAVERSED]
    else:
        arrays = {"originals": images[:0], "reconstructions": images[:0]}
        starts = mapper.encode(images, conditions)[0].mean(axis=0, keepdims=True)
    arrays["traversals"] = [
        [[mapper.decode(moved(mapper, code[None], d, at))[0] for at in POSITIONS] for d in range(len(mapper.names))]
        for code in starts
    ]
    pixels: dict[str, Any] = {
        name: np.round(255 * np.asarray(values)).astype(np.uint8) for name, values in arrays.items()
    }
    with atomic(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **pixels, positions=POSITIONS, names=np.array(mapper.names, dtype=str))


def read_pictures(path: Path | str) -> dict[str, NDArray[Any]]:
    """Arrays written by write_pictures, by name. Raises InputError, naming the file, if it is missing or damaged."""
    try:
        with opened(path) as file:
            return {name: whole_array(file, name) for name in ARRAYS}
    # Damaged archives raise errors of many types.
    except Exception as error:
        raise InputError(f"{path}: no pictures of a mapper ({error}); delete it and run again") from error


def read_all_pictures(paths: Iterable[Path | str]) -> dict[str, dict[str, NDArray[Any]]]:
    """Arrays of several mappers, by the name of the mapper, that of its file."""
    return {Path(path).stem: read_pictures(path) for path in paths}


def moved(mapper: Mapper, codes: NDArray[np.float32], dimension: int, side: float) -> NDArray[np.float32]:
    """Codes (n, Z) with one dimension moved by `side` (-1 to 1) sigma; a condition is set to that place."""
    changed = codes.copy()
    if mapper.limits is None:
        changed[:, dimension] += side * mapper.sigma[dimension]
    else:
        # The range is traversed independently of the condition of the sample.
        changed[:, dimension] = np.interp(side, (-1, 1), mapper.limits)
    return changed
