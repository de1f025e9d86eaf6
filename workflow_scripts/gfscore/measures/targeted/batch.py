"""Targeted attacks: which samples can be turned into which other class within a ball."""

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gfscore.attacks.ball_attacks import pgd
from gfscore.attacks.goals import TARGETED_LOG_ODDS, target_reached
from gfscore.attacks.gradient_ascent import Ball, assert_allowed, per_image
from gfscore.attacks.search import confirmed_attack, distances, logits_of, on_device
from gfscore.measures.samples import SampleColumns
from gfscore.measures.targeted import TARGETS_AT_ONCE, Targeted
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Targeted,
    seeds: NDArray[np.uint64],
) -> SampleColumns:
    """Targeted projected gradient descent on each sample towards each other class: n (K - 1) rows.

    The attack lowers the cross-entropy to the target and ends where the target is predicted, which may be on the image
    itself; misclassified samples are attacked too. A value of 1 proves nothing. Asserted: the perturbed images lie in
    the ball and in [0, 1].

    Parameters
    ----------
    classifier : Classifier
        With gradients.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Targeted
        The ball, and steps, step size and restarts of the attack.
    seeds : ndarray
        Seed of each sample, (n,) uint64.

    Returns
    -------
    dict
        Arrays (n (K - 1),), the targets of a sample one after the other: row, its place in the batch; target;
        prediction on the end of the attack; value, 0 where it is the target, else 1; distance, norm of the
        perturbation, successful or not; censored, always false.

    Raises
    ------
    InputError
        For a classifier without gradients.

    References
    ----------
    Madry et al. 2018, section 2.1.
    """
    ball = Ball(norm=settings.norm, eps=settings.eps)
    network, x, y = on_device(classifier, images, labels)
    clean_logits = logits_of(network, x)
    classes = clean_logits.shape[1]
    row, target = other_classes(np.asarray(labels), classes)
    # A copy for each class, so that a target's starts do not depend on the others.
    draws = Draws.of(seeds, x.device).copies(classes)
    search = confirmed_attack(pgd, target_reached, precision=classifier.search)

    logits = []
    distance = []
    pairs_at_once = TARGETS_AT_ONCE * len(images)
    for start in range(0, len(row), pairs_at_once):
        pairs = slice(start, start + pairs_at_once)
        image = torch.from_numpy(row[pairs]).to(x.device)
        aims = torch.stack([y[image], torch.from_numpy(target[pairs]).to(x.device)], dim=1)
        points, _ = search(
            network,
            x[image],
            aims,
            ball=ball,
            draws=draws[image * classes + aims[:, 1]],
            goal=TARGETED_LOG_ODDS,
            steps=settings.steps,
            step_size=settings.step_size,
            restarts=settings.restarts,
        )
        already_reached = target_reached(clean_logits[image], aims)
        points = torch.where(per_image(already_reached, points), x[image], points)
        assert_allowed(points, x[image], **ball)
        logits.append(logits_of(network, points).cpu().numpy())
        distance.append(distances(points, x[image], settings.norm).cpu().numpy())

    prediction = predictions(np.concatenate(logits), np.asarray(labels)[row])
    return {
        "row": row,
        "target": target.astype(np.int32),
        "prediction": prediction,
        "value": (prediction != target).astype(np.float64),
        "distance": np.concatenate(distance),
        "censored": np.zeros(len(row), dtype=bool),
    }


def other_classes(labels: ArrayLike, classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every other class of every sample: `row` and `target`, (n (K - 1),) int64, sorted."""
    label_column = np.asarray(labels)[:, None]
    row, target = np.nonzero(np.arange(classes) != label_column)
    return row, target
