"""What a certificate proves, and what a network answers at a point."""

import numpy as np
from numpy.typing import NDArray

from gfscore.proofs.certificates import Certificate, Claim, image_digest
from gfscore.proofs.checking.bounds import Ball, Bounds, Intervals
from gfscore.proofs.checking.plain_network import Array, PlainNetwork
from gfscore.proofs.checking.trees import Leaf, Refused, leaves_of


def check(certificate: Certificate, claim: Claim, network: PlainNetwork, image: NDArray[np.float32]) -> float:
    """Smallest margin in the ball that a certificate proves, above 0.

    Parameters
    ----------
    certificate : Certificate
    claim : Claim
        What it should prove.
    network : PlainNetwork
        The network of the claim.
    image : ndarray
        (C, H, W) float32, the image of the claim.

    Raises
    ------
    Refused
        Where it does not prove the claim.
    """
    if claim.network != network.digest or claim.image != image_digest(image):
        raise Refused("the claim is about another network or image")
    lower = smallest_margin(certificate, claim, network, image)
    if not lower > 0:
        raise Refused(f"the margin is not proven: its bound is {lower:.3g}")
    return lower


def smallest_margin(
    certificate: Certificate,
    claim: Claim,
    network: PlainNetwork,
    image: NDArray[np.float32],
    *,
    float32: bool = False,
) -> float:
    """Lower bound of z_y - z_j over the ball and all other classes j by the slopes and splits of a certificate.

    Parameters
    ----------
    certificate, claim, network, image
        See `check`.
    float32 : bool
        Whether the bound is about the network computed in float32, by sums of products in any order; else about the
        real function of its weights.

    Raises
    ------
    Refused
        For a certificate of another claim, and for one without a complete tree for every other class.
    """
    different = [name for name, value in vars(claim).items() if getattr(certificate.claim, name) != value]
    if different:
        raise Refused(f"the certificate is for another {' and '.join(different)}")

    other_classes = [k for k in range(network.classes) if k != claim.label]
    rivals = sorted(tree.rival for tree in certificate.trees)
    if rivals != other_classes:
        raise Refused(f"the certificate bounds the margins over the classes {rivals}, not over {other_classes}")

    bounds = Bounds(network, Ball(image, claim.norm, claim.eps), certificate, float32=float32)
    leaves: list[Leaf] = []
    for tree in certificate.trees:
        leaves += leaves_of(tree, len(certificate.layers))
    return bounds.smallest_margin(leaves, claim.label)


def margins_at(
    point: NDArray[np.floating], label: int, network: PlainNetwork, *, float32: bool = False
) -> tuple[Array, Array]:
    """Lower and upper bounds of z_y - z_j at a point.

    Parameters
    ----------
    point : ndarray
        (C, H, W).
    label : int
        y.
    network : PlainNetwork
    float32 : bool
        Whether the bounds hold for logits that are computed in float32, by sums of products in any order; else for
        those of real arithmetic.

    Returns
    -------
    tuple of ndarray
        Two of (K - 1,), in the order of the other classes j. Where an upper one is at most 0, the point is certainly
        not classified as y.
    """
    pixels = point[None].astype(np.float64)
    bounds = Intervals(network, pixels, pixels, float32=float32)
    low = bounds.low[-1].reshape(-1)
    high = bounds.high[-1].reshape(-1)
    rivals = np.arange(network.classes) != label
    lower = low[label] - high[rivals]
    upper = high[label] - low[rivals]
    return np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf)
