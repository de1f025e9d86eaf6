"""Certificates: what a proof consists of, so that it can be checked without searching again."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gfscore.core.errors import InputError
from gfscore.proofs.packing import arrays_of, packed, unpacked

FORMAT = 2
"""Raised when the meaning of an entry changes."""


@dataclass(frozen=True)
class Claim:
    """What a certificate proves: that no point of a ball is classified otherwise.

    Attributes
    ----------
    network, image : str
        SHA-256 of the network's graph, and of the image's pixels as float32.
    label : int
    norm : str
        "linf" or "l2".
    eps : float
        Radius of the ball, which is cut with [0, 1].
    """

    network: str
    image: str
    label: int
    norm: str
    eps: float


@dataclass(frozen=True)
class LayerProof:
    """Slopes for the bounds of some inputs of one activation.

    Attributes
    ----------
    places : ndarray
        (m,) int64, places of the inputs among all of the layer.
    lower, upper : ndarray
        (m, M) uint8: slopes, times 255, of lines below the units of earlier layers; the M first ones of all units.
    """

    places: NDArray[np.int64]
    lower: NDArray[np.uint8]
    upper: NDArray[np.uint8]


@dataclass(frozen=True)
class TreeProof:
    """How the ball is split to prove the margin over one class.

    Attributes
    ----------
    rival : int
        The other class.
    units : ndarray
        (n,) int64, by node the unit whose sign splits it, -1 for a leaf; node 0 is the whole ball.
    children : ndarray
        (n,) int64, by node the first child, where the unit's input is at least 0; the next node is the second one.
    slopes : ndarray
        (leaves, M) uint8, by leaf in the order of the nodes: slopes times 255; none where CROWN's slopes are used.
    multipliers : ndarray
        float32: of each leaf one for each split on its way from the whole ball, one leaf after the other.
    """

    rival: int
    units: NDArray[np.int64]
    children: NDArray[np.int64]
    slopes: NDArray[np.uint8]
    multipliers: NDArray[np.float32]

    @classmethod
    def of_whole_ball(cls, rival: int) -> TreeProof:
        """Without a split, by the slopes of CROWN."""
        leaf = np.array([-1])
        return cls(rival, leaf, leaf, np.zeros((1, 0), dtype=np.uint8), np.zeros(0, dtype=np.float32))


@dataclass(frozen=True)
class Certificate:
    """A proof that a sample is robust in a ball.

    Attributes
    ----------
    claim : Claim
    layers, places : ndarray
        (M,) int64: layer and place of each unit that pairs, slopes, multipliers and splits refer to.
    pairs : ndarray
        (P, 2) int64: units of one layer whose lines above are bounded together.
    proofs : dict of int to LayerProof
        By layer. All other inputs have bounds by intervals and by CROWN.
    trees : tuple of TreeProof
        One for each other class.
    lower : float
        The smallest margin that is proven.
    """

    claim: Claim
    layers: NDArray[np.int64]
    places: NDArray[np.int64]
    pairs: NDArray[np.int64]
    proofs: dict[int, LayerProof]
    trees: tuple[TreeProof, ...]
    lower: float

    def to_bytes(self) -> bytes:
        """The certificate as a compressed file."""
        claim = self.claim
        facts = {
            "format": FORMAT,
            "network": claim.network,
            "image": claim.image,
            "label": claim.label,
            "norm": claim.norm,
            "eps": claim.eps,
            "lower": self.lower,
            "rivals": [tree.rival for tree in self.trees],
            "proofs": sorted(self.proofs),
        }
        arrays: dict[str, NDArray[np.generic]] = {}
        for name in ("layers", "places", "pairs"):
            arrays[name] = getattr(self, name)
        for number, proof in self.proofs.items():
            for name, values in vars(proof).items():
                arrays[f"proof{number}_{name}"] = values
        for number, tree in enumerate(self.trees):
            for name in ("units", "children", "slopes", "multipliers"):
                arrays[f"tree{number}_{name}"] = getattr(tree, name)
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, facts=np.array(json.dumps(facts)), **arrays)
        return packed(content.getvalue())

    @classmethod
    def from_bytes(cls, content: bytes) -> Certificate:
        """Read what `to_bytes` wrote.

        Raises
        ------
        InputError
            For anything else.
        """
        try:
            arrays = arrays_of(unpacked(content, "certificate"))
            facts = json.loads(str(arrays["facts"]))
            if facts["format"] != FORMAT:
                raise InputError(
                    f"the certificate has the format {facts['format']}, not {FORMAT}; prove the sample again"
                )
            claim = Claim(facts["network"], facts["image"], facts["label"], facts["norm"], facts["eps"])
            proofs = {}
            for number in facts["proofs"]:
                members = [arrays[f"proof{number}_{name}"] for name in ("places", "lower", "upper")]
                proofs[number] = LayerProof(*members)
            trees = []
            for number, rival in enumerate(facts["rivals"]):
                members = [arrays[f"tree{number}_{name}"] for name in ("units", "children", "slopes", "multipliers")]
                trees.append(TreeProof(rival, *members))
            layers, places, pairs = arrays["layers"], arrays["places"], arrays["pairs"]
            return cls(claim, layers, places, pairs, proofs, tuple(trees), facts["lower"])
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, EOFError, OSError) as error:
            raise InputError(f"the certificate is damaged ({error}); prove the sample again") from error


def image_digest(image: NDArray[np.float32]) -> str:
    """SHA-256 of an image's pixels."""
    return hashlib.sha256(np.ascontiguousarray(image, dtype="<f4").tobytes()).hexdigest()
