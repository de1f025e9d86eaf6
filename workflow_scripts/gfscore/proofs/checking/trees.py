"""The parts that a certificate splits a ball into."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.proofs.certificates import TreeProof
from gfscore.proofs.checking.plain_network import Array


class Refused(InputError):
    """A certificate that does not prove its claim; the message says why."""


@dataclass(frozen=True)
class Leaf:
    """A part of the ball in which one bound of a margin z_y - z_j must hold.

    Attributes
    ----------
    rival : int
        The class j.
    units : list of int
        Units of the certificate whose inputs have one sign in this part, one for each split on the way to it.
    signs : list of int
        These signs, 1 or -1.
    multipliers : ndarray
        Lagrange multipliers of the splits, at least 0.
    slopes : ndarray
        Slopes of the lines below the certificate's units, in 255ths; empty where CROWN's slopes are used.
    """

    rival: int
    units: list[int]
    signs: list[int]
    multipliers: Array
    slopes: NDArray[np.uint8]


def leaves_of(tree: TreeProof, units: int) -> Iterator[Leaf]:
    """Parts that are not split, in the order of the nodes; Refused for a tree that is not whole or not of `units`."""
    count = len(tree.units)
    if count == 0 or len(tree.children) != count:
        raise Refused("the certificate holds no tree for a class")
    # Units and signs on the way to each node; every split must have both children.
    paths: list[tuple[list[int], list[int]] | None] = [None] * count
    paths[0] = ([], [])
    leaf_paths = []
    for node in range(count):
        path = paths[node]
        unit = int(tree.units[node])
        first = int(tree.children[node])
        if path is None:
            raise Refused("the certificate holds a part that no split makes")
        if unit < 0:
            leaf_paths.append(path)
            continue
        has_children = node < first < count - 1
        if not has_children or paths[first] is not None or paths[first + 1] is not None:
            raise Refused("the certificate lacks a part of a split")
        split_units, signs = path
        if unit in split_units or unit >= units:
            raise Refused("the certificate splits a part by a unit that it does not list, or twice by the same unit")
        paths[first] = ([*split_units, unit], [*signs, 1])
        paths[first + 1] = ([*split_units, unit], [*signs, -1])

    leaves = len(leaf_paths)
    multipliers = tree.multipliers.astype(np.float64)
    ends = np.cumsum([len(leaf_units) for leaf_units, _ in leaf_paths])
    if len(multipliers) != ends[-1] or tree.slopes.shape not in ((leaves, units), (leaves, 0)):
        raise Refused("the certificate holds another number of slopes or multipliers than leaves and splits")
    if not (multipliers >= 0).all() or not np.isfinite(multipliers).all():
        raise Refused("the certificate holds multipliers that are negative or not finite")
    for (leaf_units, signs), end, slopes in zip(leaf_paths, ends, tree.slopes, strict=True):
        yield Leaf(tree.rival, leaf_units, signs, multipliers[end - len(leaf_units) : end], slopes)
