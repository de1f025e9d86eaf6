"""Proven accuracy: which samples are proven, refuted or open in a ball."""

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gfscore.attacks.attack_lists import attacks_in_turn
from gfscore.attacks.gradient_ascent import Ball, correct, misclassified
from gfscore.attacks.search import logits_of, on_device
from gfscore.measures.proven import Proven
from gfscore.measures.samples import SampleColumns
from gfscore.networks.classifier import Classifier
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import LayeredNetwork, layered
from gfscore.proofs.proving import prove, surely_misclassified
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions

INWARDS = 1 - 1e-12
"""Factor of an l2 perturbation that is moved into its ball in float64."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Proven,
    seeds: NDArray[np.uint64],
) -> SampleColumns:
    """Attacks first, then proofs for what survives them.

    Parameters
    ----------
    classifier : Classifier
        With gradients, of operators that have bounds.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Proven
        The ball, the attacks, and the budget of bounds for one sample.
    seeds : ndarray
        Seed of each sample, (n,) uint64.

    Returns
    -------
    dict
        Arrays (n,): value, 1 where proven, else 0; prediction, on a point that refutes, for others on the image;
        censored, always false; and the columns of the kind.

    Raises
    ------
    InputError
        For a classifier without gradients, and for an operator without bounds, which it names.
    """
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    right = correct(logits, y)
    points, fooled = _attacked(
        classifier, network, x, y, right, settings=settings, seeds=seeds, classes=logits.shape[1]
    )
    assert classifier.network is not None
    layers = _layers(classifier.network, images.shape[1:])
    fooled_rows = fooled.cpu().numpy()
    refuted = ~right.cpu().numpy() | fooled_rows
    decided_by = np.full(len(labels), None, dtype=object)
    decided_by[refuted] = np.where(fooled_rows, "attack", "prediction")[refuted]
    status = np.where(refuted, "refuted", "open").astype(object)
    refuting = points.cpu().numpy()
    lower = np.full(len(labels), np.nan)
    branches = np.zeros(len(labels), dtype=np.int64)
    evaluations = np.zeros(len(labels), dtype=np.int64)

    standing = np.flatnonzero(~refuted)
    proofs = prove(
        layers,
        images[standing],
        labels[standing],
        norm=settings.norm,
        eps=settings.eps,
        budget=settings.budget,
        device=classifier.device,
    )
    for row, proof in zip(standing, proofs, strict=True):
        decided_by[row] = proof.decided_by or None
        branches[row] = proof.branches
        evaluations[row] = proof.evaluations
        if proof.counterexample is not None:
            status[row] = "refuted"
            refuting[row] = proof.counterexample
            continue
        lower[row] = proof.lower
        if proof.proven:
            status[row] = "proven"

    refuted = status == "refuted"
    certain = surely_misclassified(layers, _inside(refuting[refuted], images[refuted], settings), labels[refuted])
    status[np.flatnonzero(refuted)[~certain]] = "refuted_float32"
    logits = logits_of(network, torch.from_numpy(refuting).to(x))
    return {
        "prediction": predictions(logits.cpu().numpy(), labels),
        "value": (status == "proven").astype(np.float64),
        "censored": np.zeros(len(labels), dtype=bool),
        "status": status,
        "lower": lower,
        "decided_by": decided_by,
        "branches": branches,
        "evaluations": evaluations,
    }


@lru_cache(maxsize=1)
def _layers(network: nn.Module, image_shape: tuple[int, int, int]) -> LayeredNetwork:
    # Once for all batches of a job.
    return layered(graph_of(network, image_shape))


def _attacked(
    classifier: Classifier,
    network: nn.Module,
    images: Tensor,
    labels: Tensor,
    right: Tensor,
    *,
    settings: Proven,
    seeds: NDArray[np.uint64],
    classes: int,
) -> tuple[Tensor, Tensor]:
    # The point of each image that an attack ended at, or the image, and whether it is misclassified.
    points = images.clone()
    fooled = torch.zeros_like(right)
    attempts = attacks_in_turn(
        settings.attacks,
        network,
        images,
        labels,
        standing=right.nonzero().flatten(),
        ball=Ball(norm=settings.norm, eps=settings.eps),
        draws=Draws.of(seeds, images.device, common=settings.seed),
        classes=classes,
        precision=classifier.search,
    )
    for attempt in attempts:
        broken = misclassified(attempt.logits, labels[attempt.rows])
        rows = attempt.rows[broken]
        points[rows] = attempt.points[broken]
        fooled[rows] = True
    return points, fooled


def _inside(points: NDArray[np.float32], images: NDArray[np.float32], settings: Proven) -> NDArray[np.float64]:
    # Points of attacks moved into the ball in float64: in float32 they may be outside by a unit in the last place.
    centres = images.astype(np.float64)
    offsets = points.astype(np.float64) - centres
    eps = np.nextafter(settings.eps, 0)
    if settings.norm == "linf":
        low = np.nextafter(centres - eps, np.inf)
        high = np.nextafter(centres + eps, -np.inf)
        return np.clip(np.clip(centres + offsets, low, high), 0, 1)
    lengths = np.linalg.norm(offsets.reshape(len(offsets), -1), axis=1).reshape(-1, 1, 1, 1)
    share = np.minimum(eps / np.maximum(lengths, eps), 1) * INWARDS
    return np.clip(centres + share * offsets, 0, 1)
