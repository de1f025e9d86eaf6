"""Adversarial accuracy: which samples survive the worst of several attacks within a ball.

Auto-PGD and PGD are our own and FAB and Square are pyautoattack's; gfscore.attacks.libraries says why.
"""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gfscore.attacks.attack_lists import ListedAttack, attacks_in_turn
from gfscore.attacks.gradient_ascent import Ball, correct, margins, misclassified
from gfscore.attacks.search import distances, logits_of, on_device
from gfscore.measures.adversarial import Adversarial
from gfscore.measures.confirmation import confirmed
from gfscore.measures.samples import ALREADY_WRONG, SampleColumns
from gfscore.networks.classifier import Classifier
from gfscore.proofs.counterexamples import to_bytes
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Adversarial,
    seeds: NDArray[np.uint64],
) -> SampleColumns:
    """Pointwise worst case of several attacks: a sample survives when it is right and every attack fails.

    Surviving proves nothing: the mean is an upper bound on the share of robust samples. Asserted: what an attack
    returns lies in the ball and in [0, 1]. Its success is judged by a further forward pass at that point, where a tie
    for the largest logit is an error.

    Parameters
    ----------
    classifier : Classifier
        With gradients.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Adversarial
        The ball, and the attacks, which run in their order on the samples that still stand.
    seeds : ndarray
        Seed of each sample, (n,) uint64.

    Returns
    -------
    dict
        Arrays (n,): value, 1 for a survivor, else 0; prediction on the adversarial example, for others on the image;
        censored, always false; attack, the first that succeeded, "clean" for a sample that is wrong without one, None
        for a survivor; distance, norm of the perturbation, 0 for "clean", NaN for a survivor; steps, forward passes;
        where the settings ask for it counterexample, the points as bytes.

    Raises
    ------
    InputError
        For a classifier without gradients, and for an attack that needs more classes.
    """
    worst = worst_case(classifier, images, labels, settings=settings, seeds=seeds)
    columns = worst.columns()
    if not settings.counterexamples:
        return columns

    # Moved into the ball to the last bit, and kept where float32 still confirms them; None elsewhere.
    counterexamples = np.full(len(images), None, dtype=object)
    rows = worst.fooled
    if len(rows):
        points, is_wrong = confirmed(
            classifier,
            worst.points[rows].cpu().numpy(),
            images[rows],
            labels[rows],
            norm=settings.norm,
            eps=settings.eps,
        )
        for row, point in zip(rows[is_wrong], points[is_wrong], strict=True):
            counterexamples[row] = to_bytes(point)
    columns["counterexample"] = counterexamples
    return columns


def worst_case(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Adversarial,
    seeds: NDArray[np.uint64],
) -> "WorstCase":
    """Worst case of the attacks of a list on a batch; parameters, assertions and errors as of `measure_batch`."""
    ball = Ball(norm=settings.norm, eps=settings.eps)
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    worst = WorstCase(x, logits, y)
    attempts = attacks_in_turn(
        settings.attacks,
        network,
        x,
        y,
        standing=worst.standing,
        ball=ball,
        draws=Draws.of(seeds, x.device, common=settings.seed),
        classes=logits.shape[1],
        precision=classifier.search,
    )
    for attempt in attempts:
        norms = distances(attempt.points, x[attempt.rows], settings.norm)
        worst.add(attempt, norms)
    return worst


class WorstCase:
    """The result of the attacks so far on n samples.

    Parameters
    ----------
    images : Tensor
        The undisturbed samples, (n, C, H, W).
    logits : Tensor
        Their logits (n, K).
    labels : Tensor
        (n,) int64.

    Attributes
    ----------
    standing : Tensor
        Indices (m,) int64 of the samples that are right and that no attack has fooled.
    worst_logits : Tensor
        Logits (n, K) at the worst point of each sample: at its adversarial example; for a sample that stands, where an
        attack ended with the smallest margin; for one that is wrong without an attack, at the sample.
    points : Tensor
        (n, C, H, W): the adversarial example of a sample that an attack fooled, else the sample itself.
    steps : ndarray
        Forward passes of each sample, (n,) int64.
    """

    def __init__(self, images: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Begin with the samples that are right."""
        right = correct(logits, labels)
        is_right = right.cpu().numpy()
        self._labels = labels
        self._logits = logits.clone()
        self._attack = np.where(is_right, None, ALREADY_WRONG).astype(object)  # type: ignore[call-overload]
        self._distance = np.where(is_right, np.nan, 0.0)
        self.worst_logits = logits.clone()
        self.points = images.clone()
        self.steps = np.ones(len(labels), dtype=np.int64)
        self.standing = right.nonzero().flatten()

    @property
    def fooled(self) -> NDArray[np.int64]:
        """Indices (m,) of the samples that an attack fooled."""
        return np.flatnonzero([name not in (None, ALREADY_WRONG) for name in self._attack])

    def add(self, attempt: ListedAttack, norms: Tensor) -> None:
        """Add an attack on the standing samples, and the norms (m,) of its perturbations."""
        logits = attempt.logits
        rows = self.standing.cpu().numpy()
        standing_labels = self._labels[self.standing]
        fooled = misclassified(logits, standing_labels)
        self._logits[self.standing[fooled]] = logits[fooled]
        self.points[self.standing[fooled]] = attempt.points[fooled]
        worst_so_far = self.worst_logits[self.standing]
        worse = margins(logits, standing_labels) < margins(worst_so_far, standing_labels)
        self.worst_logits[self.standing[worse]] = logits[worse]
        is_fooled = fooled.cpu().numpy()
        self._attack[rows[is_fooled]] = attempt.name
        self._distance[rows[is_fooled]] = norms.cpu().numpy()[is_fooled]
        self.steps[rows] += attempt.passes.cpu().numpy() + 1
        self.standing = self.standing[~fooled]

    def columns(self) -> SampleColumns:
        """Columns of the samples table, as `measure_batch` describes them."""
        survived = np.zeros(len(self._labels), dtype=np.float64)
        survived[self.standing.cpu().numpy()] = 1
        return {
            "prediction": predictions(self._logits.cpu().numpy(), self._labels.cpu().numpy()),
            "value": survived,
            "censored": np.zeros(len(survived), dtype=bool),
            "attack": self._attack,
            "distance": self._distance,
            "steps": self.steps,
        }
