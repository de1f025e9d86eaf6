"""Certified radii of a batch: randomized smoothing, and attacks on its certificates."""

import numpy as np

from gfscore.measures.certified.radii import require_certifiable
from gfscore.measures.certified.smoothed_attacks import attack_certificates
from gfscore.measures.certified.smoothing import certify
from gfscore.networks.batched import BatchedClassifier


def measure_batch(classifier, images, labels, *, settings, seed):
    """Certified radius of every sample: CERTIFY of Cohen et al. 2019, one array (n,) per column.

    `settings["smoothing"]` holds sigma (pixels in [0, 1]), selection_samples n0, estimation_samples n, alpha,
    batch_size (noisy copies classified at a time) and sandwich (see smoothed_attacks, null for none). Each certificate
    holds with probability at least 1 - alpha over the noise, for the smoothed classifier, also for perturbations that
    leave [0, 1]; noisy copies are not clipped. `prediction` is the class of the smoothed classifier, -1 for an
    abstention. `attacked` says that the sandwich attacked the certificate, `refuted` that it was caught wrong. Raises
    InputError when the settings can certify nothing.
    """
    import torch

    smoothing = settings["smoothing"]
    require_certifiable(smoothing)
    base = BatchedClassifier(classifier, batch_size=smoothing["batch_size"])
    generator = torch.Generator(device=base.device).manual_seed(seed)
    x = torch.from_numpy(images).to(base.device)
    columns = certify(base, x, smoothing=smoothing, generator=generator)
    right = columns["prediction"] == labels
    attacked = refuted = np.zeros(len(labels), dtype=bool)
    if smoothing["sandwich"] is not None:
        attacked = ~columns["abstained"]
        refuted = attack_certificates(base, x, columns, smoothing=smoothing, generator=generator)
    return columns | {
        "value": np.where(right, columns["radius"], 0.0),
        "censored": np.zeros(len(labels), dtype=bool),
        "attacked": attacked,
        "refuted": refuted,
    }
