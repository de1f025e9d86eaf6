"""Correctness of a batch of images under common corruptions: copies of the dataset, or drawn from seeds."""

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.catalogue import corrupt
from gfscore.images.corruptions.parameters import PARAMETERS, SEVERITIES
from gfscore.images.image_set import Copies
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import RowGenerators
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
    copies: Copies | None = None,
) -> dict[str, NDArray[Any]]:
    """Correctness of a batch under every corruption and severity of the settings, or of its `copies`, one row each.

    Arguments as in gfscore.measures.job; `copies` are the images' corrupted copies where the dataset brings them.
    """
    if copies is None:
        conditions, corrupted = _made(images, settings, seeds)
    else:
        conditions, corrupted = copies.conditions, copies.of
    parts = [(*condition, predictions(classifier.logits(corrupted(*condition)), labels)) for condition in conditions]
    n = len(images)
    prediction = np.concatenate([part[2] for part in parts])
    return {
        "row": np.tile(np.arange(n), len(parts)),
        "prediction": prediction,
        "value": (prediction == np.tile(labels, len(parts))).astype(float),
        "censored": np.zeros(len(prediction), dtype=bool),
        "corruption": np.repeat(np.array([part[0] for part in parts], dtype=object), n),
        "severity": np.repeat([part[1] for part in parts], n),
    }


def _made(
    images: NDArray[np.float32], settings: Mapping[str, Any], seeds: NDArray[np.uint64]
) -> tuple[Iterable[tuple[str, int]], Callable[[str, int], NDArray[np.float32]]]:
    def corrupted(corruption: str, severity: int) -> NDArray[np.float32]:
        # A corruption draws the same whatever else is asked for.
        rng = RowGenerators(seeds, crc32(corruption.encode()) * 8 + severity)
        return corrupt(images, corruption, severity, rng=rng)

    severities = settings["severities"] or range(1, SEVERITIES + 1)
    return product(settings["corruptions"] or PARAMETERS, severities), corrupted
