"""Certified radii of a batch: randomized smoothing, and attacks on its certificates."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gfscore.measures.certified.smoothed_attacks import attack_certificates
from gfscore.measures.certified.smoothing import certify
from gfscore.networks.batched import BatchedClassifier
from gfscore.networks.classifier import Classifier
from gfscore.statistics.draws import Draws

CERTIFICATE, ATTACK = range(2)
"""Streams of noise: the attack draws the same whatever the certificate took."""


def measure_batch(
    classifier: Classifier,
    images: NDArray[np.float32],
    labels: NDArray[np.int64],
    *,
    settings: Mapping[str, Any],
    seeds: NDArray[np.uint64],
) -> dict[str, NDArray[Any]]:
    """Certified radius of every sample: CERTIFY of Cohen et al. 2019, one array (n,) per column.

    `settings["smoothing"]` holds sigma (pixels in [0, 1]), selection_samples n0, estimation_samples n, alpha,
    batch_size (noisy copies classified at a time) and sandwich (see smoothed_attacks, null for none). Each certificate
    holds with probability at least 1 - alpha over the noise, for the smoothed classifier, also for perturbations that
    leave [0, 1]; noisy copies are not clipped. `prediction` is the class of the smoothed classifier, -1 for an
    abstention. `attacked` says that the sandwich attacked the certificate, `refuted` that it was caught wrong.
    """
    import torch

    smoothing = settings["smoothing"]
    base = BatchedClassifier(classifier, batch_size=smoothing["batch_size"])
    noise = Draws.of(seeds, base.device)
    x = torch.from_numpy(images).to(base.device)
    columns = certify(base, x, smoothing=smoothing, noise=noise.stream(CERTIFICATE))
    right = columns["prediction"] == labels
    attacked = refuted = np.zeros(len(labels), dtype=bool)
    if smoothing["sandwich"] is not None:
        attacked = ~columns["abstained"]
        refuted = attack_certificates(base, x, columns, smoothing=smoothing, noise=noise.stream(ATTACK))
    return columns | {
        "value": np.where(right, columns["radius"], 0.0),
        "censored": np.zeros(len(labels), dtype=bool),
        "attacked": attacked,
        "refuted": refuted,
    }
