"""Correctness of a batch of images under common corruptions, drawn anew from their seeds."""

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.catalogue import corrupt
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
) -> dict[str, NDArray[Any]]:
    """Correctness of a batch under every corruption and severity of the settings, one row each.

    Takes a Classifier, images (n, C, H, W) float32 in [0, 1], labels (n,) and a seed of each sample, `seeds` (n,);
    returns the columns of the samples table of kind corruption (see gfscore.measures.job.measure_in_batches).
    """
    parts = []
    for corruption in settings["corruptions"]:
        for severity in settings["severities"]:
            # A corruption draws the same whatever else is asked for.
            rng = RowGenerators(seeds, crc32(corruption.encode()) * 8 + severity)
            logits = classifier.logits(corrupt(images, corruption, severity, rng=rng))
            parts.append((corruption, severity, predictions(logits, labels)))
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
