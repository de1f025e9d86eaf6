"""Pictures of a mapper: reconstructions, and traversals of its latent dimensions. Needs no torch to be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.core.files import atomic
from gfscore.tables.numpy_files import opened, whole_array

if TYPE_CHECKING:
    from gfscore.projection.mappers.stored import Mapper

POSITIONS = np.linspace(-1, 1, 9)
"""Moves shown in a traversal, in units of sigma: the range that the search covers."""

PICTURED, TRAVERSED = 8, 2
"""Samples whose reconstructions, and whose traversals, are pictured."""

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
    none of them is pictured: S = 0, and the one traversal starts from the mean code of all.
    """
    if of_images:
        rows = np.unique(np.linspace(0, len(images) - 1, PICTURED).round().astype(int))
        originals, codes = (
            images[rows],
            mapper.encode(images[rows], None if conditions is None else conditions[rows])[0],
        )
        arrays, starts = {"originals": originals, "reconstructions": mapper.decode(codes)}, codes[:TRAVERSED]
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
    """Arrays that write_pictures stored, by name. Raises InputError, naming the file, when it is missing or damaged."""
    try:
        with opened(path) as file:
            return {name: whole_array(file, name) for name in ARRAYS}
    # A damaged archive fails inside zipfile or numpy in many ways.
    except Exception as error:
        raise InputError(
            f"{path}: no pictures of a mapper ({error}); delete it, so that they are drawn again"
        ) from error


def moved(mapper: Mapper, codes: NDArray[np.float32], dimension: int, side: float) -> NDArray[np.float32]:
    """Codes (n, Z) with one dimension moved by `side` (-1 to 1) sigma; a condition, to that place within its range."""
    changed = codes.copy()
    if mapper.limits is None:
        changed[:, dimension] += side * mapper.sigma[dimension]
    else:
        # From one end of the range to the other, wherever the sample itself stands.
        changed[:, dimension] = np.interp(side, (-1, 1), mapper.limits)
    return changed
