"""Correctness of a batch of images under common corruptions: copies of the dataset, or drawn from seeds."""

from itertools import product
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from gfscore.images.corruptions.catalogue import corrupt
from gfscore.images.corruptions.parameters import PARAMETERS, SEVERITIES
from gfscore.images.image_set import Copies
from gfscore.measures.corruption import Corruption
from gfscore.measures.samples import SampleColumns
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import RowGenerators
from gfscore.statistics.margins import predictions


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Corruption,
    seeds: NDArray[np.uint64],
    copies: Copies | None = None,
) -> SampleColumns:
    """Correctness of a batch under every corruption and severity, one row per sample and condition.

    Parameters
    ----------
    classifier : Classifier
        With or without gradients.
    images : ndarray
        (n, C, H, W) float32 in [0, 1].
    labels : ndarray
        (n,) int64.
    settings : Corruption
        Corruptions and severities that are made.
    seeds : ndarray
        Seed of each sample, (n,) uint64.
    copies : Copies, optional
        Corrupted copies of the images where the dataset brings them, which are measured in place of those made.

    Returns
    -------
    dict
        Arrays, all samples of a condition one after the other: row, the place of the sample in the batch; prediction;
        value, 1 where it is the label, else 0; corruption; severity; censored, always false.
    """
    if copies is None:
        conditions = tuple(product(settings.corruptions or PARAMETERS, settings.severities or range(1, SEVERITIES + 1)))
    else:
        conditions = copies.conditions

    predicted = []
    corruptions = []
    severities = []
    for corruption, severity in conditions:
        if copies is None:
            # A corruption draws the same whatever else the settings name.
            rng = RowGenerators(seeds, crc32(corruption.encode()) * 8 + severity)
            corrupted = corrupt(images, corruption, severity, rng=rng)
        else:
            corrupted = copies.corrupted(corruption, severity)
        logits = classifier.logits(corrupted)
        predicted.append(predictions(logits, labels))
        corruptions.append(corruption)
        severities.append(severity)

    samples = len(images)
    prediction = np.concatenate(predicted)
    return {
        "row": np.tile(np.arange(samples), len(predicted)),
        "prediction": prediction,
        "value": (prediction == np.tile(labels, len(predicted))).astype(float),
        "censored": np.zeros(len(prediction), dtype=bool),
        "corruption": np.repeat(np.array(corruptions, dtype=object), samples),
        "severity": np.repeat(severities, samples),
    }
