"""Proven accuracy: which samples are proven, refuted or open in a ball."""

import time
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gfscore.attacks.attack_lists import attacks_in_turn
from gfscore.attacks.gradient_ascent import Ball, correct
from gfscore.attacks.search import logits_of, on_device
from gfscore.core.errors import InputError
from gfscore.measures.confirmation import confirmed
from gfscore.measures.proven import Proven
from gfscore.measures.samples import SampleColumns
from gfscore.networks.classifier import Classifier
from gfscore.proofs.certificates import Certificate
from gfscore.proofs.checking.check import smallest_margin
from gfscore.proofs.checking.plain_network import PlainNetwork
from gfscore.proofs.checking.trees import Refused
from gfscore.proofs.counterexamples import to_bytes as counterexample_bytes
from gfscore.proofs.graph import graph_of
from gfscore.proofs.layers import LayeredNetwork, layered
from gfscore.proofs.proving import prove, surely_misclassified
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions

SAYING = 5.0
"""Seconds between lines that say how many samples of a batch are proven."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Proven,
    seeds: NDArray[np.uint64],
    cores: int = 1,
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
    cores : int
        Samples for which proofs are searched at once.

    Returns
    -------
    dict
        Arrays (n,): value, 1 where proven, else 0; prediction, on a point that refutes, for others on the image;
        censored, always false; and the columns of the kind, with certificates and counterexamples as bytes.

    Raises
    ------
    InputError
        As `require_bounds` does.
    """
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    right = correct(logits, y).cpu().numpy()
    points, fooled = _attacked(
        classifier, images, labels, right, settings=settings, seeds=seeds, classes=logits.shape[1]
    )
    layers, plain = require_bounds(classifier, images.shape[1:])
    refuted = ~right | fooled
    decided_by = np.full(len(labels), None, dtype=object)
    decided_by[refuted] = np.where(fooled, "attack", "prediction")[refuted]
    status = np.where(refuted, "refuted", "open").astype(object)
    lower = np.full(len(labels), np.nan)
    lower32 = np.full(len(labels), np.nan)
    branches = np.zeros(len(labels), dtype=np.int64)
    evaluations = np.zeros(len(labels), dtype=np.int64)
    certificates = np.full(len(labels), None, dtype=object)

    standing = np.flatnonzero(~refuted)
    proofs = prove(
        layers,
        images[standing],
        labels[standing],
        norm=settings.norm,
        eps=settings.eps,
        budget=settings.budget,
        device=classifier.device,
        cores=cores,
    )
    last_line = time.monotonic()
    for searched, (row, proof) in enumerate(zip(standing, proofs, strict=True)):
        if time.monotonic() > last_line + SAYING:
            print(f"{searched} of {len(standing)} searched: {np.sum(status == 'proven')} proven")
            last_line = time.monotonic()
        branches[row] = proof.branches
        evaluations[row] = proof.evaluations
        if proof.counterexample is not None:
            point, is_wrong = confirmed(
                classifier,
                proof.counterexample[None],
                images[[row]],
                labels[[row]],
                norm=settings.norm,
                eps=settings.eps,
            )
            if is_wrong[0]:
                points[row] = point[0]
                fooled[row] = True
                status[row] = "refuted"
                decided_by[row] = str(proof.decided_by)
                continue
        lower[row] = proof.lower
        if proof.certificate is not None:
            margin, margin32 = _checked_margins(proof.certificate, plain, images[row])
            if not margin > 0:
                lower[row] = np.minimum(proof.lower, margin)
                print(f"sample {row} of the batch stays open: the checker does not confirm its proof")
                continue
            status[row] = "proven"
            decided_by[row] = str(proof.decided_by)
            certificates[row] = proof.certificate.to_bytes()
            lower32[row] = margin32

    refuted = status == "refuted"
    certain = surely_misclassified(layers, points[refuted].astype(np.float64), labels[refuted])
    status[np.flatnonzero(refuted)[~certain]] = "refuted_float32"
    logits = logits_of(network, torch.from_numpy(points).to(x))
    counterexamples = np.full(len(labels), None, dtype=object)
    for row in np.flatnonzero(fooled):
        counterexamples[row] = counterexample_bytes(points[row])
    return {
        "prediction": predictions(logits.cpu().numpy(), labels),
        "value": (status == "proven").astype(np.float64),
        "censored": np.zeros(len(labels), dtype=bool),
        "status": status,
        "lower": lower,
        "lower32": lower32,
        "decided_by": decided_by,
        "branches": branches,
        "evaluations": evaluations,
        "certificate": certificates,
        "counterexample": counterexamples,
    }


def _checked_margins(
    certificate: Certificate, network: PlainNetwork, image: NDArray[np.float32]
) -> tuple[float, float]:
    # Bounds by the checker, in real arithmetic and in float32; the first is -inf where it refuses the certificate.
    try:
        margin32 = smallest_margin(certificate, certificate.claim, network, image, float32=True)
        if margin32 > 0:
            # Holds in real arithmetic too.
            return margin32, margin32
        return smallest_margin(certificate, certificate.claim, network, image), margin32
    except Refused:
        return -np.inf, np.nan


def require_bounds(classifier: Classifier, image_shape: tuple[int, int, int]) -> tuple[LayeredNetwork, PlainNetwork]:
    """The network's layers, between which bounds are propagated, and its operators, for the checker.

    Raises
    ------
    InputError
        For a classifier without gradients, for a network that is too large, and for an operator without bounds, by its
        name.
    """
    if classifier.network is None:
        raise InputError(
            "there are no bounds for this model: it has no torch network; give one of a source with gradients"
        )
    return _layers(classifier.network, image_shape)


@lru_cache(maxsize=1)
def _layers(network: nn.Module, image_shape: tuple[int, int, int]) -> tuple[LayeredNetwork, PlainNetwork]:
    # Once for all batches of a job.
    graph = graph_of(network, image_shape)
    return layered(graph), PlainNetwork(graph.plain())


def _attacked(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    right: NDArray[np.bool_],
    *,
    settings: Proven,
    seeds: NDArray[np.uint64],
    classes: int,
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    # Of each image the counterexample that an attack found, or the image itself, and whether there is one.
    network, x, y = on_device(classifier, images, labels)
    points = images.copy()
    fooled = np.zeros(len(images), dtype=bool)
    attempts = attacks_in_turn(
        settings.attacks,
        network,
        x,
        y,
        standing=torch.from_numpy(np.flatnonzero(right)).to(x.device),
        ball=Ball(norm=settings.norm, eps=settings.eps),
        draws=Draws.of(seeds, x.device, common=settings.seed),
        classes=classes,
        precision=classifier.search,
    )
    for attempt in attempts:
        rows = attempt.rows.cpu().numpy()
        points[rows], fooled[rows] = confirmed(
            classifier,
            attempt.points.cpu().numpy(),
            images[rows],
            labels[rows],
            norm=settings.norm,
            eps=settings.eps,
        )
    points[~fooled] = images[~fooled]
    return points, fooled
