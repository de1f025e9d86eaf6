"""Distance of each sample to the nearest adversarial example that attacks find."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.attacks.gradient_ascent import correct, misclassified
from gfscore.attacks.minimal_norm import refine
from gfscore.attacks.registry import MINIMAL_ATTACKS, complete
from gfscore.attacks.search import confirmed_attack, distances, logits_of, on_device
from gfscore.core.tensors import Tensor
from gfscore.measures.samples import ALREADY_WRONG
from gfscore.networks.classifier import Classifier
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
) -> dict[str, NDArray[Any]]:
    """Smallest perturbation found of each image, over several attacks, refined by bisection.

    Arguments as in gfscore.measures.job; `settings` norm, largest_distance, bisection_steps and attacks. `seeds` decide
    nothing, since no attack here starts at random. Returns arrays (n,): value in [0, largest_distance], an upper bound
    on the true distance, 0 for a misclassified image and largest_distance where nothing was found within it; censored,
    true exactly in the latter case; prediction of the nearest adversarial example, else of the image; attack, its name,
    "clean" for a misclassified image, None where nothing was found; steps, forward passes. Raises InputError for a
    classifier without gradients and for an unknown attack or setting.
    """
    norm, largest_distance = settings["norm"], settings["largest_distance"]
    attacks = [_attack(entry) for entry in settings["attacks"]]
    network, x, y = on_device(classifier, images, labels)
    logits = logits_of(network, x)
    right = correct(logits, y)
    result = _Nearest(np.asarray(labels), logits, right.cpu().numpy())
    if right.any():
        x, y = x[right], y[right]
        for name, run in attacks:
            search = confirmed_attack(run, misclassified, precision=classifier.search)
            candidates, passes = search(network, x, y, norm=norm, largest_distance=largest_distance)
            points, found = refine(network, x, candidates.detach(), y, steps=settings["bisection_steps"])
            distance = np.where(found.cpu().numpy(), distances(points, x, norm).cpu().numpy(), math.inf)
            # The check at the end of refinement, the passes of bisection, and the prediction.
            passes = passes + settings["bisection_steps"] + 3
            result.add(name, distance, logits_of(network, points), passes.cpu().numpy())
    return result.columns(largest_distance)


class _Nearest:
    """The nearest adversarial example of each sample so far."""

    def __init__(self, labels: NDArray[np.int64], logits: Tensor, right: NDArray[np.bool_]) -> None:
        self._labels, self._right = labels, right
        self._distance = np.where(right, math.inf, 0.0)
        self._attack: NDArray[np.object_] = np.where(right, None, ALREADY_WRONG).astype(object)  # type: ignore[call-overload]
        self._prediction = _predicted(logits, labels)
        self._clean = self._prediction.copy()
        self._steps = np.ones(len(labels), dtype=np.int64)

    def add(self, name: str, distances: NDArray[np.float64], logits: Tensor, passes: NDArray[np.int64]) -> None:
        """Keep what an attack found on the correctly classified samples where it is nearer than anything before."""
        rows = np.flatnonzero(self._right)
        nearer = distances < self._distance[rows]
        self._distance[rows[nearer]] = distances[nearer]
        self._attack[rows[nearer]] = name
        self._prediction[rows[nearer]] = _predicted(logits, self._labels[rows])[nearer]
        self._steps[rows] += passes

    def columns(self, largest_distance: float) -> dict[str, NDArray[Any]]:
        censored = self._distance > largest_distance
        return {
            "prediction": np.where(censored, self._clean, self._prediction),
            "value": np.minimum(self._distance, largest_distance),
            "censored": censored,
            "attack": np.where(censored, None, self._attack).astype(object),  # type: ignore[call-overload]
            "steps": self._steps,
        }


def _predicted(logits, labels):
    return predictions(logits.cpu().numpy(), labels)


def _attack(entry):
    # Name of an attack and the function with its settings bound.
    options = complete(entry, MINIMAL_ATTACKS)
    name = options.pop("name")
    return name, partial(MINIMAL_ATTACKS[name].load(), **options)
