"""The fifteen common corruptions at five severities, for images of any size.

Sources: Hendrycks and Dietterich 2019, and the code that made CIFAR-10-C and ImageNet-C for the parameters. Drawn anew
here from the seed in config.yaml, so the pixels are not those of the published sets (which can be evaluated as data
sets of their own); frost is a substitute, see weather.py.
"""

from zlib import crc32

import numpy as np

from gfscore.images.corruptions import blur, digital, noise, weather
from gfscore.images.corruptions.parameters import PARAMETERS, parameters_of
from gfscore.networks.logit_watch import refusing_nan
from gfscore.statistics.margins import predictions

_MODULES = (noise, blur, weather, digital)
CORRUPTIONS = {name: next(getattr(m, name) for m in _MODULES if hasattr(m, name)) for name in PARAMETERS}
"""Corruption -> function of images (n, C, H, W) float32, parameters and a numpy Generator, which yields the corrupted
images as float64, part by part."""


def corrupt(images, corruption, severity, *, rng):
    """Corrupted copies of images (n, C, H, W) float32 in [0, 1], rounded to 256 levels like stored images.

    `severity` 1 to 5, `rng` a numpy Generator. Raises InputError for an unknown name or severity.
    """
    parameters = parameters_of(corruption, severity, min(images.shape[2:]))
    corrupted, start = np.empty_like(images), 0
    for part in CORRUPTIONS[corruption](images, parameters, rng):
        levels = np.rint(255 * np.clip(part, 0, 1))
        corrupted[start : start + len(part)] = levels / 255
        start += len(part)
    return corrupted


@refusing_nan
def measure_batch(classifier, images, labels, *, settings, seed):
    """Correctness of a batch under every corruption and severity of the settings, one row each.

    Takes a Classifier, images (n, C, H, W) float32 in [0, 1], labels (n,) and the seed of the batch;
    returns the columns of the samples table of kind corruption (see gfscore.measures.job.measure_model).
    """
    parts = []
    for corruption in settings["corruptions"]:
        for severity in settings["severities"]:
            # A corruption draws the same whatever else is asked for.
            rng = np.random.default_rng([seed, crc32(corruption.encode()), severity])
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
