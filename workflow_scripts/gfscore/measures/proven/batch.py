"""Proven accuracy: which samples are proven, refuted or open in a ball."""

from __future__ import annotations

import time
from dataclasses import dataclass
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
from gfscore.proofs.proving import Method, Proof, prove, surely_misclassified
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions

SAYING = 5.0
"""Seconds between lines that say how many samples of a batch are proven."""

OPEN, PROVEN, REFUTED, REFUTED_FLOAT32 = "open", "proven", "refuted", "refuted_float32"
"""Values of the column `status`."""


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
        See `require_bounds`.
    """
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    right = correct(logits, y).cpu().numpy()
    points, fooled = _attacked(
        classifier, images, labels, right, settings=settings, seeds=seeds, classes=logits.shape[1]
    )
    layers, plain = require_bounds(classifier, images.shape[1:])

    outcomes = Outcomes.of_attacks(points, right, fooled)
    standing = np.flatnonzero(outcomes.status == OPEN)
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
    for searched, (row, proof) in enumerate(zip(standing.tolist(), proofs, strict=True)):
        if time.monotonic() > last_line + SAYING:
            print(f"{searched} of {len(standing)} searched: {np.sum(outcomes.status == PROVEN)} proven")
            last_line = time.monotonic()
        outcomes.branches[row] = proof.branches
        outcomes.evaluations[row] = proof.evaluations

        point = _confirmed_counterexample(classifier, proof, images[[row]], labels[[row]], settings)
        if point is not None:
            outcomes.refute(row, point, proof.decided_by)
            continue
        outcomes.lower[row] = proof.lower
        if proof.certificate is None:
            continue
        margin, margin32 = _checked_margins(proof.certificate, plain, images[row])
        if margin > 0:
            outcomes.prove(row, proof.certificate, margin32, proof.decided_by)
        else:
            outcomes.lower[row] = np.minimum(proof.lower, margin)
            print(f"sample {row} of the batch stays open: the checker does not confirm its proof")

    refuted = np.flatnonzero(outcomes.status == REFUTED)
    certain = surely_misclassified(layers, outcomes.points[refuted].astype(np.float64), labels[refuted])
    outcomes.status[refuted[~certain]] = REFUTED_FLOAT32
    logits = logits_of(network, torch.from_numpy(outcomes.points).to(x))
    return {"prediction": predictions(logits.cpu().numpy(), labels), **outcomes.columns()}


@dataclass
class Outcomes:
    """Outcomes of n samples while proofs are searched.

    Attributes
    ----------
    points : ndarray
        (n, C, H, W) float32, the counterexample of a sample, or the image itself.
    fooled : ndarray
        (n,) bool, whether the point is a counterexample.
    status, decided_by : ndarray
        (n,) str, and str or None where the sample is open.
    lower, lower32 : ndarray
        (n,) float64, bounds of the smallest margin in real arithmetic and in float32; NaN where none is known.
    branches, evaluations : ndarray
        (n,) int64, work of the search.
    certificates : ndarray
        (n,) bytes, or None without a proof.
    """

    points: NDArray[np.float32]
    fooled: NDArray[np.bool_]
    status: NDArray[np.object_]
    decided_by: NDArray[np.object_]
    lower: NDArray[np.float64]
    lower32: NDArray[np.float64]
    branches: NDArray[np.int64]
    evaluations: NDArray[np.int64]
    certificates: NDArray[np.object_]

    @classmethod
    def of_attacks(cls, points: NDArray[np.float32], right: NDArray[np.bool_], fooled: NDArray[np.bool_]) -> Outcomes:
        """Refuted where the image is misclassified or an attack succeeded, else open."""
        n = len(points)
        refuted = ~right | fooled
        decided_by = np.full(n, None, dtype=object)
        decided_by[refuted] = np.where(fooled, "attack", str(Method.PREDICTION))[refuted]
        return cls(
            points=points,
            fooled=fooled,
            status=np.where(refuted, REFUTED, OPEN).astype(object),
            decided_by=decided_by,
            lower=np.full(n, np.nan),
            lower32=np.full(n, np.nan),
            branches=np.zeros(n, dtype=np.int64),
            evaluations=np.zeros(n, dtype=np.int64),
            certificates=np.full(n, None, dtype=object),
        )

    def refute(self, row: int, point: NDArray[np.float32], decided_by: Method | None) -> None:
        """Record a counterexample (C, H, W)."""
        self.points[row] = point
        self.fooled[row] = True
        self.status[row] = REFUTED
        self.decided_by[row] = str(decided_by)

    def prove(self, row: int, certificate: Certificate, margin32: float, decided_by: Method | None) -> None:
        """Record a proof that the checker confirms."""
        self.status[row] = PROVEN
        self.decided_by[row] = str(decided_by)
        self.certificates[row] = certificate.to_bytes()
        self.lower32[row] = margin32

    def columns(self) -> SampleColumns:
        """Columns of the samples table but the prediction."""
        counterexamples = np.full(len(self.points), None, dtype=object)
        for row in np.flatnonzero(self.fooled):
            counterexamples[row] = counterexample_bytes(self.points[row])
        return {
            "value": (self.status == PROVEN).astype(np.float64),
            "censored": np.zeros(len(self.points), dtype=bool),
            "status": self.status,
            "lower": self.lower,
            "lower32": self.lower32,
            "decided_by": self.decided_by,
            "branches": self.branches,
            "evaluations": self.evaluations,
            "certificate": self.certificates,
            "counterexample": counterexamples,
        }


def _confirmed_counterexample(
    classifier: Classifier,
    proof: Proof,
    image: NDArray[np.float32],
    label: NDArray[np.int64],
    settings: Proven,
) -> NDArray[np.float32] | None:
    # The search's counterexample (C, H, W) moved into the ball, if the classifier itself misclassifies it there; of one
    # image (1, C, H, W) and its label (1,).
    if proof.counterexample is None:
        return None
    points, misclassified = confirmed(
        classifier, proof.counterexample[None], image, label, norm=settings.norm, eps=settings.eps
    )
    return points[0] if misclassified[0] else None


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
    # Points (n, C, H, W), the counterexample of an image that an attack found or the image itself, and whether there is
    # one, (n,).
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
