"""Distance of each sample to the nearest adversarial example that attacks find."""

import math
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from gfscore.attacks.gradient_ascent import correct, misclassified
from gfscore.attacks.minimal_norm import refine
from gfscore.attacks.registry import MINIMAL_ATTACKS
from gfscore.attacks.search import confirmed_attack, distances, logits_of, on_device
from gfscore.measures.minimal import PASSES_AROUND, Minimal
from gfscore.measures.samples import ALREADY_WRONG, SampleColumns
from gfscore.networks.classifier import Classifier
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Minimal,
    seeds: NDArray[np.uint64],
) -> SampleColumns:
    """Smallest perturbation found of each image, over several attacks, refined by bisection.

    Parameters
    ----------
    classifier : Classifier
        With gradients.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Minimal
        Norm, largest distance, attacks, and steps of the bisection.
    seeds : ndarray
        (n,) uint64; without influence, since no attack of this form draws random numbers.

    Returns
    -------
    dict
        Arrays (n,):

        - `value`, in [0, largest_distance]: 0 for a misclassified image, else an upper bound on the true distance
          unless it is censored
        - `censored`, whether nothing was found within largest_distance, which is then the value
        - `prediction`, of the nearest adversarial example, else of the image
        - `attack`, name of the attack that found it; "clean" for a misclassified image, None where censored
        - `steps`, forward passes

    Raises
    ------
    InputError
        For a classifier without gradients.
    """
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    is_correct = correct(logits, y)
    nearest = _Nearest(np.asarray(labels), logits, is_correct.cpu().numpy())
    if is_correct.any():
        x, y = x[is_correct], y[is_correct]
        for attack in settings.attacks:
            function = partial(MINIMAL_ATTACKS[attack.name].load(), **attack.model_dump(exclude={"name"}))
            search = confirmed_attack(function, misclassified, precision=classifier.search)
            candidates, passes = search(network, x, y, norm=settings.norm, largest_distance=settings.largest_distance)
            points, adversarial = refine(network, x, candidates.detach(), y, steps=settings.bisection_steps)
            lengths = distances(points, x, settings.norm).cpu().numpy()
            lengths = np.where(adversarial.cpu().numpy(), lengths, math.inf)
            passes = passes + settings.bisection_steps + PASSES_AROUND
            nearest.add(attack.name, lengths, logits_of(network, points), passes.cpu().numpy())
    return nearest.columns(settings.largest_distance)


class _Nearest:
    # The nearest adversarial example of each sample so far.

    def __init__(self, labels: NDArray[np.int64], logits: Tensor, is_correct: NDArray[np.bool_]) -> None:
        self._labels = labels
        self._is_correct = is_correct
        self._distance = np.where(is_correct, math.inf, 0.0)
        self._attack: NDArray[np.object_] = np.where(is_correct, None, ALREADY_WRONG).astype(object)  # type: ignore[call-overload]
        self._prediction = predictions(logits.cpu().numpy(), labels)
        self._clean_prediction = self._prediction.copy()
        self._steps = np.ones(len(labels), dtype=np.int64)

    def add(self, attack: str, lengths: NDArray[np.float64], logits: Tensor, passes: NDArray[np.int64]) -> None:
        # Keep the examples of an attack, one for each correctly classified sample, that are nearer than all before.
        rows = np.flatnonzero(self._is_correct)
        nearer = lengths < self._distance[rows]
        prediction = predictions(logits.cpu().numpy(), self._labels[rows])
        self._distance[rows[nearer]] = lengths[nearer]
        self._attack[rows[nearer]] = attack
        self._prediction[rows[nearer]] = prediction[nearer]
        self._steps[rows] += passes

    def columns(self, largest_distance: float) -> SampleColumns:
        censored = self._distance > largest_distance
        return {
            "prediction": np.where(censored, self._clean_prediction, self._prediction),
            "value": np.minimum(self._distance, largest_distance),
            "censored": censored,
            "attack": np.where(censored, None, self._attack).astype(object),  # type: ignore[call-overload]
            "steps": self._steps,
        }
