"""Whether proofs are worth their time for a model: a trial on a few images before the audit is planned."""

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.nn import Module

from gfscore.attacks.declaration import ball_words
from gfscore.core.errors import InputError
from gfscore.measures.proven import Proven, forward_passes
from gfscore.networks.batch_invariance import spread_over
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import layered
from gfscore.proofs.operators.declaration import Activation
from gfscore.proofs.proving import prove

TRIAL_IMAGES = 12
"""Images for which a proof is searched."""

TRIAL_SECONDS = 20.0
"""Time after which the search starts with no further image."""

MOST_ACTIVATIONS = 20_000
"""Most inputs of activations of a network for a trial: with more, the matrices of the network would take minutes."""


@dataclass(frozen=True)
class TriedProofs:
    """Result of a trial: proofs searched for a few images.

    Attributes
    ----------
    tried, proven : int
        Images tried, and images proven.
    seconds : float
        Mean time of an image in the audit: an attack, and the search, which misclassified images do not need.
    obstacle : str
        Why proofs are not worth their time for this model; empty if they may be.
    """

    tried: int = 0
    proven: int = 0
    seconds: float = 0.0
    obstacle: str = ""


def try_proofs(
    network: Module,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    correct: NDArray[np.bool_],
    *,
    settings: Proven,
    pass_seconds: float,
) -> TriedProofs:
    """Search for proofs of a few images.

    Parameters
    ----------
    network : Module
        From images in [0, 1] to the logits of the classes, on the CPU.
    images, labels : ndarray
        (n, C, H, W) float32 in [0, 1], and (n,) int64.
    correct : ndarray
        (n,) bool: whether the network classifies the image correctly.
    settings : Proven
        The measure that the audit would have.
    pass_seconds : float
        Time of a forward pass of one image.
    """
    rows = np.flatnonzero(correct)
    rows = rows[spread_over(len(rows), TRIAL_IMAGES)]
    try:
        graph = graph_of(network, images.shape[1:])
        activations = sum(int(np.prod(node.shape)) for node in graph.nodes if isinstance(node.operator, Activation))
        if activations > MOST_ACTIVATIONS:
            return TriedProofs(obstacle=f"{activations:,} inputs of activations; up to {MOST_ACTIVATIONS:,} are tried")
        layers = layered(graph)
    except InputError as error:
        return TriedProofs(obstacle=str(error).split(";", maxsplit=1)[0])

    proven = tried = 0
    started = time.process_time()
    for row in rows:
        (proof,) = prove(
            layers,
            images[row : row + 1],
            labels[row : row + 1],
            norm=settings.norm,
            eps=settings.eps,
            budget=settings.budget,
        )
        proven += proof.proven
        tried += 1
        if time.process_time() - started > TRIAL_SECONDS:
            break
    search_seconds = (time.process_time() - started) / max(tried, 1) * correct.mean()
    attack_seconds = forward_passes(settings.model_copy(update={"budget": 0}), graph.classes) * pass_seconds
    obstacle = ""
    if not proven:
        ball = ball_words(settings.norm, settings.eps)
        obstacle = f"none of {tried} images was proven within {ball}; with a smaller --eps some may be"
    return TriedProofs(tried, proven, float(search_seconds + attack_seconds), obstacle)
