"""Adversarial accuracy: which samples survive the worst of several attacks within a ball.

Auto-PGD and PGD are our own and FAB and Square are pyautoattack's; gfscore.attacks.libraries says why.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.declaration import ball_of
from gfscore.attacks.gradient_ascent import assert_allowed, correct, misclassified
from gfscore.attacks.registry import BALL_ATTACKS, expand
from gfscore.attacks.search import confirmed_attack, distances, logits_of, on_device
from gfscore.core.tensors import Tensor
from gfscore.measures.samples import ALREADY_WRONG
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import Draws
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
) -> dict[str, NDArray[Any]]:
    """Pointwise worst case of several attacks: a sample survives when it is right and every attack fails.

    Arguments as in gfscore.measures.job; `settings` norm, eps and attacks, which run in this order on the samples that
    still stand. Returns arrays (n,): value, 1 for a survivor, else 0; prediction on the adversarial example, for others
    on the image; attack, the first that succeeded, "clean" for a sample that is wrong without one, None for a survivor;
    distance, norm of the perturbation, 0 for "clean", NaN for a survivor; steps, forward passes. Surviving proves
    nothing: the mean is an upper bound on the share of robust samples. Guaranteed, and asserted: what an attack returns
    lies in the ball and in [0, 1]; a success is one in a pass of its own, a tie at the top being an error. Raises
    InputError for a classifier without gradients, and as `expand` does.
    """
    ball = ball_of(settings)
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    result = _Worst(logits, y)
    draws = Draws.of(seeds, x.device, common=settings.get("seed", 0))
    for number, entry in enumerate(expand(settings["attacks"], logits.shape[1])):
        rows = result.standing
        if len(rows) == 0:
            break
        options = {key: value for key, value in entry.items() if key != "name"}
        attack = confirmed_attack(BALL_ATTACKS[entry["name"]].load(), misclassified, precision=classifier.search)
        # Of its own for each attack, so that one that leaves the list changes no other.
        points, passes = attack(network, x[rows], y[rows], ball=ball, draws=draws.stream(number)[rows], **options)
        points = points.detach()
        assert_allowed(points, x[rows], **ball)
        result.add(entry["name"], logits_of(network, points), distances(points, x[rows], ball["norm"]), passes + 1)
    return result.columns()


class _Worst:
    """What has been found of each sample so far."""

    def __init__(self, logits: Tensor, labels: Tensor) -> None:
        right = correct(logits, labels)
        self._labels = labels
        self._found = logits.clone()
        already = right.cpu().numpy()
        self._attack = np.where(already, None, ALREADY_WRONG).astype(object)  # type: ignore[call-overload]
        self._distance = np.where(already, np.nan, 0.0)
        self._steps = np.ones(len(labels), dtype=np.int64)
        self.standing = right.nonzero().flatten()

    def add(self, name: str, logits: Tensor, lengths: Tensor, passes: Tensor) -> None:
        """Take what an attack did to the standing samples."""
        rows = self.standing.cpu().numpy()
        fooled = misclassified(logits, self._labels[self.standing])
        self._found[self.standing[fooled]] = logits[fooled]
        here = fooled.cpu().numpy()
        self._attack[rows[here]] = name
        self._distance[rows[here]] = lengths.cpu().numpy()[here]
        self._steps[rows] += passes.cpu().numpy()
        self.standing = self.standing[~fooled]

    def columns(self) -> dict[str, NDArray[Any]]:
        survived = np.zeros(len(self._labels), dtype=np.float64)
        survived[self.standing.cpu().numpy()] = 1
        return {
            "prediction": predictions(self._found.cpu().numpy(), self._labels.cpu().numpy()),
            "value": survived,
            "censored": np.zeros(len(survived), dtype=bool),
            "attack": self._attack,
            "distance": self._distance,
            "steps": self._steps,
        }
