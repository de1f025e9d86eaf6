"""Targeted attacks: which samples can be turned into which other class within a ball."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gfscore.attacks.ball_attacks import pgd
from gfscore.attacks.declaration import ball_of
from gfscore.attacks.goals import INTO_TARGET, target_reached
from gfscore.attacks.gradient_ascent import assert_allowed
from gfscore.attacks.search import confirmed_attack, distances, logits_of, on_device
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions

TARGETS_AT_ONCE = 9
"""Copies of the batch that are attacked together, each towards another class; a batch is chosen with the memory of one
copy in mind, and halved where that does not do."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
) -> dict[str, NDArray[Any]]:
    """Targeted projected gradient descent on each sample towards each other class: n (K - 1) rows.

    Arguments as in gfscore.measures.job; `settings` norm, eps, steps, step_size and restarts. The attack lowers the
    cross-entropy to the target and ends where the target is predicted; misclassified samples are attacked too. Returns
    arrays (n (K - 1),), the targets of a sample one after the other: row, its place in the batch; target; prediction on
    the end of the attack; value, 0 where it is the target, else 1; distance, norm of the perturbation, successful or
    not. A value of 1 proves nothing. Guaranteed, and asserted: the perturbed images lie in the ball and in [0, 1].
    Raises InputError for a classifier without gradients. Source: Madry et al. 2018, section 2.1.
    """
    import torch

    ball: Any = ball_of(settings)
    network, x, y = on_device(classifier, images, labels)
    classes = logits_of(network, x[:1]).shape[1]
    row, target = other_classes(np.asarray(labels), classes)
    # A copy for each class, so that a target's starts do not depend on the others.
    draws = Draws.of(seeds, x.device).copies(classes)
    attack = {name: settings[name] for name in ("steps", "step_size", "restarts")}
    search = confirmed_attack(pgd, target_reached, precision=classifier.search)
    parts = []
    for start in range(0, len(row), TARGETS_AT_ONCE * len(images)):
        part = slice(start, start + TARGETS_AT_ONCE * len(images))
        of = torch.from_numpy(row[part]).to(x.device)
        aims = torch.stack([y[of], torch.from_numpy(target[part]).to(x.device)], dim=1)
        own = draws[of * classes + aims[:, 1]]
        points, _ = search(network, x[of], aims, ball=ball, draws=own, goal=INTO_TARGET, **attack)
        assert_allowed(points, x[of], **ball)
        parts.append((logits_of(network, points).cpu().numpy(), distances(points, x[of], ball["norm"]).cpu().numpy()))
    logits, distance = (np.concatenate(column) for column in zip(*parts, strict=True))
    prediction = predictions(logits, np.asarray(labels)[row])
    return {
        "row": row,
        "target": target.astype(np.int32),
        "prediction": prediction,
        "value": (prediction != target).astype(np.float64),
        "distance": distance,
        "censored": np.zeros(len(row), dtype=bool),
    }


def other_classes(labels: ArrayLike, classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every other class of every sample: `row` and `target`, (n (K - 1),) int64, sorted."""
    own = np.asarray(labels)[:, None]
    row, target = np.nonzero(np.arange(classes) != own)
    return row, target
